//===- DeviceScatter.cpp - The gradient of an embedding on a device -------===//
//
// The sum of each row of the table in the order of positions, without atomics:
//
//   fill: the table with zeros; rows that no index names are exactly 0.
//
//   order: positions sorted by index, equal ones in order. One stable pass of counting for each
//   digit of 8 or 9 bits: a block ranks its own positions warp by warp, with the lanes that have
//   the same digit; from the counts of all blocks it then knows where each of them goes.
//
//   sums: segments of the sorted positions, as long for one as for another whatever the indices
//   are. A thread adds up the rows of one segment for a few columns. Sums that begin and end inside
//   are stored in the table; the first and the last may go on in the neighbouring segments and
//   become entries of the next level, of at most two entries a segment, until one segment holds
//   all.
//
// So a million equal indices cost as much as a million different ones. Orders
// follow from the indices alone: the same bits on every chip. A table narrower
// than f32 is rounded once, from the sums in f32.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NarrowFloats.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "passes/Codegen/TableRows.h"
#include "passes/Cuda/DeviceKernel.h"
#include "passes/Cuda/DeviceKernels.h"
#include "passes/Cuda/DeviceLanes.h"

using namespace mlir;

namespace descent {

namespace {

constexpr int64_t warp = 32;
constexpr int64_t wantedThreads = 512 * 256;

class DeviceScatter {
public:
  DeviceScatter(nn::EmbeddingGradOp op, DeviceKernel &device, DeviceLanes &lanes);
  void emit();

private:
  DeviceKernel &device;
  ImplicitLocOpBuilder &b;
  DeviceLanes &lanes;
  int64_t count, rows, columns;
  Type rowElement, indexElement, tableElement;
  Type i32;

  // Sorting.
  int64_t passes = 1, buckets = 2, threads = 256, perThread = 8, tiles = 1;
  int64_t tileItems() const { return threads * perThread; }
  int64_t warps() const { return threads / warp; }
  /// Counters of a warp: one more than there are digits, for the positions behind the end.
  int64_t pitch() const { return buckets + 1; }

  /// What a pass sorts: the keys and positions of the pass before; of the first, no positions.
  struct Order {
    Value keys, positions;
  };
  struct Ranks {
    SmallVector<Value> valid, keys, positions, digits, ranks; ///< of the thread's items
    Value counters;                                           ///< [warps][pitch]
  };
  Value number(int64_t value) { return lanes.constant(b.getI32IntegerAttr(value)); }
  Ranks rank(gpu::GPUFuncOp function, int64_t pass, Value keys, Value positions);
  void emitCount(int64_t pass, const Order &order, Value counts);
  void emitPlace(int64_t pass, const Order &order, Value counts, const Order &next);
  Order sort();

  /// Entries that are added up: rows of dy named by positions, or the sums that segments left over.
  struct Entries {
    int64_t count = 0;
    Value keys;      ///< of sums: 2 key, or an odd number where there is no sum
    Value positions; ///< null: entry i is row i
    Value values;
    Type element;
  };
  Entries emitSums(const Entries &entries, unsigned level);
  MemRefType words(int64_t size) { return MemRefType::get({size}, i32); }
};

DeviceScatter::DeviceScatter(nn::EmbeddingGradOp op, DeviceKernel &device, DeviceLanes &lanes)
    : device(device), b(lanes.b), lanes(lanes), i32(b.getI32Type()) {
  auto indices = cast<RankedTensorType>(op.getIndices().getType());
  auto table = cast<RankedTensorType>(op.getDtable().getType());
  count = indices.getNumElements();
  rows = table.getShape().front();
  columns = table.getShape().back();
  indexElement = indices.getElementType();
  rowElement = cast<RankedTensorType>(op.getDy().getType()).getElementType();
  tableElement = table.getElementType();

  int64_t bits = std::max<int64_t>(1, llvm::Log2_64_Ceil(rows));
  passes = llvm::divideCeil(bits, 9);
  buckets = int64_t(1) << llvm::divideCeil(bits, passes);
  threads = std::max<int64_t>(256, buckets);
  perThread = std::clamp<int64_t>(llvm::bit_ceil(uint64_t(llvm::divideCeil(count, threads))), 1,
                                  count > (1 << 17) ? 16 : 8);
  tiles = llvm::divideCeil(count, tileItems());
}

/// The digits of a block's positions, and how many equal ones stand before each in its warp. A warp
/// takes consecutive positions, 32 at a time, so ranks follow their order.
DeviceScatter::Ranks DeviceScatter::rank(gpu::GPUFuncOp function, int64_t pass, Value keys,
                                         Value positions) {
  Ranks result;
  Value counters = result.counters = lanes.shared(function, warps() * pitch(), i32);
  Value thread = lanes.thread();
  lanes.loop(thread, lanes.index(warps() * pitch()), threads, {}, [&](Value at, ValueRange) {
    lanes.write(number(0), counters, at, 1);
    return SmallVector<Value>();
  });
  lanes.barrier();

  SmallVector<Value> own = lanes.indices(thread, {warps(), warp});
  Value counterLine = lanes.scaled(own[0], pitch());
  Value first = lanes.add(lanes.scaled(lanes.block(), tileItems()),
                          lanes.add(lanes.scaled(own[0], warp * perThread), own[1]));
  Value lane = arith::IndexCastOp::create(b, i32, own[1]);
  Value before = arith::SubIOp::create(b, arith::ShLIOp::create(b, number(1), lane), number(1));
  Value everyone = number(-1);
  bool ragged = count % tileItems();
  for (int64_t k = 0; k < perThread; ++k) {
    Value at = k == 0 ? first : lanes.add(first, lanes.index(k * warp));
    Value valid = ragged ? lanes.less(at, count) : Value();
    SmallVector<Value> item = lanes.select(
        valid,
        [&]() -> SmallVector<Value> {
          if (positions)
            return {lanes.read(keys, at, i32, 1), lanes.read(positions, at, i32, 1)};
          Value row = tableRow(lanes, lanes.read(keys, at, indexElement, 1), rows);
          return {arith::IndexCastOp::create(b, i32, row), arith::IndexCastOp::create(b, i32, at)};
        },
        [&]() -> SmallVector<Value> {
          return {number(0), number(0)};
        });
    Value digit = item[0];
    if (pass > 0)
      digit = arith::ShRUIOp::create(b, digit, number(pass * llvm::Log2_64(buckets)));
    if (pass + 1 < passes)
      digit = arith::AndIOp::create(b, digit, number(buckets - 1));
    if (valid)
      digit = arith::SelectOp::create(b, valid, digit, number(buckets));
    Value equal = NVVM::MatchSyncOp::create(b, i32, everyone, digit, NVVM::MatchSyncKind::any);
    Value lower =
        LLVM::CtPopOp::create(b, i32, arith::AndIOp::create(b, equal, before).getResult());
    Value counter =
        lanes.add(counterLine, arith::IndexCastUIOp::create(b, b.getIndexType(), digit));
    Value known = lanes.read(counters, counter, i32, 1);
    NVVM::SyncWarpOp::create(b, everyone);
    lanes.when(lanes.equal(lower, number(0)), [&] {
      Value more = LLVM::CtPopOp::create(b, i32, equal);
      lanes.write(arith::AddIOp::create(b, known, more), counters, counter, 1);
    });
    NVVM::SyncWarpOp::create(b, everyone);
    result.valid.push_back(valid);
    result.keys.push_back(item[0]);
    result.positions.push_back(item[1]);
    result.digits.push_back(arith::IndexCastUIOp::create(b, b.getIndexType(), digit));
    result.ranks.push_back(arith::AddIOp::create(b, known, lower));
  }
  lanes.barrier();
  return result;
}

/// counts[tile][digit].
void DeviceScatter::emitCount(int64_t pass, const Order &order, Value counts) {
  SmallVector<Value> buffers = {order.keys, counts};
  gpu::GPUFuncOp function = device.function("count" + std::to_string(pass), buffers, {threads});
  b.setInsertionPointToStart(&function.getBody().front());
  // Positions do not matter here.
  Value keys = lanes.flat(function.getArgument(0));
  Ranks ranks = rank(function, pass, keys, pass > 0 ? keys : Value());
  Value digit = lanes.thread();
  lanes.when(threads > buckets ? lanes.less(digit, buckets) : Value(), [&] {
    Value sum = number(0);
    for (int64_t w = 0; w < warps(); ++w)
      sum = arith::AddIOp::create(
          b, sum, lanes.read(ranks.counters, lanes.add(digit, lanes.index(w * pitch())), i32, 1));
    lanes.write(sum, lanes.flat(function.getArgument(1)),
                lanes.add(lanes.scaled(lanes.block(), buckets), digit), 1);
  });
  gpu::ReturnOp::create(b);
  device.launch(function, {tiles}, buffers);
}

/// Each key and position to where the pass puts it: behind all smaller digits, and behind equal
/// ones of earlier tiles, warps and lanes.
void DeviceScatter::emitPlace(int64_t pass, const Order &order, Value counts, const Order &next) {
  SmallVector<Value> buffers = {order.keys};
  if (order.positions)
    buffers.push_back(order.positions);
  if (counts)
    buffers.push_back(counts);
  buffers.append({next.keys, next.positions});
  gpu::GPUFuncOp function = device.function("place" + std::to_string(pass), buffers, {threads});
  b.setInsertionPointToStart(&function.getBody().front());
  unsigned argument = 0;
  auto take = [&] { return lanes.flat(function.getArgument(argument++)); };
  Value keys = take(), positions = order.positions ? take() : Value(),
        countsOf = counts ? take() : Value(), nextKeys = take(), nextPositions = take();

  Ranks ranks = rank(function, pass, keys, positions);
  Value digit = lanes.thread();
  Value isDigit = threads > buckets ? lanes.less(digit, buckets) : Value();
  // How many there are of the digit, and how many of those in earlier tiles.
  SmallVector<Value> totals = lanes.select(
      isDigit,
      [&]() -> SmallVector<Value> {
        if (countsOf)
          return lanes.unrolled(
              lanes.index(0), lanes.index(tiles), 1, 4, {number(0), number(0)},
              [&](Value tile, ValueRange carried) -> SmallVector<Value> {
                Value some =
                    lanes.read(countsOf, lanes.add(lanes.scaled(tile, buckets), digit), i32, 1);
                Value earlier =
                    arith::SelectOp::create(b, lanes.less(tile, lanes.block()), some, number(0));
                return {arith::AddIOp::create(b, carried[0], some),
                        arith::AddIOp::create(b, carried[1], earlier)};
              });
        Value sum = number(0);
        for (int64_t w = 0; w < warps(); ++w)
          sum = arith::AddIOp::create(
              b, sum,
              lanes.read(ranks.counters, lanes.add(digit, lanes.index(w * pitch())), i32, 1));
        return {sum, number(0)};
      },
      [&]() -> SmallVector<Value> {
        return {number(0), number(0)};
      });

  // Prefix sums over the digits, in two buffers by turns.
  Value here = lanes.shared(function, buckets, i32), other = lanes.shared(function, buckets, i32);
  lanes.when(isDigit, [&] { lanes.write(totals[0], here, digit, 1); });
  lanes.barrier();
  Value running = totals[0];
  for (int64_t step = 1; step < buckets; step *= 2) {
    Value reaches = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, digit, lanes.index(step));
    running = lanes.select(
        lanes.both(reaches, isDigit),
        [&]() -> SmallVector<Value> {
          return {arith::AddIOp::create(
              b, running, lanes.read(here, lanes.add(digit, lanes.index(-step)), i32, 1))};
        },
        [&]() -> SmallVector<Value> { return {running}; })[0];
    if (2 * step < buckets) {
      lanes.when(isDigit, [&] { lanes.write(running, other, digit, 1); });
      lanes.barrier();
    }
    std::swap(here, other);
  }
  // Counters become the places of each warp's first.
  lanes.when(isDigit, [&] {
    Value place = arith::AddIOp::create(b, arith::SubIOp::create(b, running, totals[0]), totals[1]);
    for (int64_t w = 0; w < warps(); ++w) {
      Value counter = lanes.add(digit, lanes.index(w * pitch()));
      Value some = lanes.read(ranks.counters, counter, i32, 1);
      lanes.write(place, ranks.counters, counter, 1);
      place = arith::AddIOp::create(b, place, some);
    }
  });
  lanes.barrier();
  Value counterLine = lanes.scaled(lanes.div(lanes.thread(), warp), pitch());
  for (int64_t k = 0; k < perThread; ++k)
    lanes.when(ranks.valid[k], [&] {
      Value start = lanes.read(ranks.counters, lanes.add(counterLine, ranks.digits[k]), i32, 1);
      Value place = arith::IndexCastUIOp::create(
          b, b.getIndexType(), arith::AddIOp::create(b, start, ranks.ranks[k]).getResult());
      lanes.write(ranks.keys[k], nextKeys, place, 1);
      lanes.write(ranks.positions[k], nextPositions, place, 1);
    });
  gpu::ReturnOp::create(b);
  device.launch(function, {tiles}, buffers);
}

DeviceScatter::Order DeviceScatter::sort() {
  Order order{device.input(1), Value()};
  Order lent[2];
  Value counts = tiles > 1 ? device.workspace(words(tiles * buckets)) : Value();
  for (int64_t pass = 0; pass < passes; ++pass) {
    Order &next = lent[pass % 2];
    if (!next.keys)
      next = {device.workspace(words(count)), device.workspace(words(count))};
    if (counts)
      emitCount(pass, order, counts);
    emitPlace(pass, order, counts, next);
    order = next;
  }
  return order;
}

/// One level of sums. Returns what is left over, nothing where one segment held all.
DeviceScatter::Entries DeviceScatter::emitSums(const Entries &entries, unsigned level) {
  constexpr int64_t blockThreads = 256, atOnce = 4;
  Type f32 = b.getF32Type();
  bool flagged = level > 0;
  int64_t n = entries.count;
  int64_t width = commonWidth(16 / deviceBytes(entries.element), {columns}),
          chunks = columns / width;
  int64_t length =
      n <= 64 ? n
              : std::clamp<int64_t>(
                    llvm::bit_floor(uint64_t(std::max<int64_t>(1, n * chunks / wantedThreads))), 16,
                    64);
  int64_t segments = llvm::divideCeil(n, length);
  Entries left;
  if (segments > 1)
    left = {2 * segments, device.workspace(words(2 * segments)), Value(),
            device.workspace(MemRefType::get({2 * segments, columns}, f32)), f32};

  SmallVector<Value> buffers = {entries.keys, entries.values, device.output(0)};
  if (entries.positions)
    buffers.push_back(entries.positions);
  if (left.count)
    buffers.append({left.keys, left.values});
  gpu::GPUFuncOp function =
      device.function("sums" + std::to_string(level), buffers, {blockThreads});
  b.setInsertionPointToStart(&function.getBody().front());
  unsigned argument = 0;
  auto take = [&] { return lanes.flat(function.getArgument(argument++)); };
  Value keys = take(), values = take(), table = take(),
        positions = entries.positions ? take() : Value(), leftKeys = left.count ? take() : Value(),
        leftValues = left.count ? take() : Value();

  auto readKey = [&](Value at) { return lanes.read(keys, at, i32, 1); };
  auto keyOf = [&](Value raw) -> Value {
    return flagged ? arith::ShRSIOp::create(b, raw, number(1)).getResult() : raw;
  };
  Value item = lanes.add(lanes.scaled(lanes.block(), blockThreads), lanes.thread());
  lanes.when(segments * chunks % blockThreads ? lanes.less(item, segments * chunks) : Value(), [&] {
    SmallVector<Value> own = lanes.indices(item, {segments, chunks});
    Value segment = own[0], column = lanes.scaled(own[1], width);
    Value first = lanes.scaled(segment, length), end = lanes.add(first, lanes.index(length));
    if (n % length)
      end = arith::MinSIOp::create(b, end, lanes.index(n));
    Value zero = lanes.uniform(b.getF32FloatAttr(0), width);
    auto row = [&](Value at, Value raw) {
      auto load = [&] {
        Value number = at;
        if (positions)
          number =
              arith::IndexCastOp::create(b, b.getIndexType(), lanes.read(positions, at, i32, 1));
        return SmallVector<Value>{lanes.read(
            values, lanes.add(lanes.scaled(number, columns), column), entries.element, width)};
      };
      if (!flagged)
        return load()[0];
      Value present = lanes.equal(arith::AndIOp::create(b, raw, number(1)), number(0));
      return lanes.select(present, load, [&] { return SmallVector<Value>{zero}; })[0];
    };
    auto storeTable = [&](Value key, Value sum) {
      Value isRow =
          flagged ? arith::CmpIOp::create(b, arith::CmpIPredicate::sge, key, number(0)) : Value();
      lanes.when(isRow, [&] {
        Value at = lanes.scaled(arith::IndexCastOp::create(b, b.getIndexType(), key), columns);
        lanes.write(narrowFloat(b, b.getLoc(), sum, tableElement), table, lanes.add(at, column),
                    width);
      });
    };
    auto storeLeft = [&](int64_t which, Value sum) {
      Value entry = lanes.add(lanes.scaled(segment, 2), lanes.index(which));
      lanes.write(sum, leftValues, lanes.add(lanes.scaled(entry, columns), column), width);
    };
    Value yes = lanes.constant(b.getBoolAttr(true));
    auto no = [&](Value condition) -> Value { return arith::XOrIOp::create(b, condition, yes); };
    auto differs = [&](Value a, Value other) -> Value {
      return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, a, other);
    };

    Value firstKey = keyOf(readKey(first)), starts = yes;
    if (segments > 1)
      starts = lanes.select(
          lanes.equal(segment, 0), [&] { return SmallVector<Value>{yes}; },
          [&] {
            Value previous = keyOf(readKey(lanes.add(first, lanes.index(-1))));
            return SmallVector<Value>{differs(previous, firstKey)};
          })[0];

    // Entries at `at` and behind it, all loaded before the first is added.
    auto step = [&](Value at, int64_t steps, ValueRange carried) {
      SmallVector<Value> raws, loaded, state(carried);
      for (int64_t k = 0; k < steps; ++k) {
        Value place = k == 0 ? at : lanes.add(at, lanes.index(k));
        raws.push_back(readKey(place));
        loaded.push_back(row(place, raws.back()));
      }
      for (auto [raw, value] : llvm::zip_equal(raws, loaded)) {
        Value sum = state[0], key = state[1], inside = state[2], nextKey = keyOf(raw);
        Value changes = differs(nextKey, key);
        lanes.when(changes, [&] {
          if (segments == 1)
            return storeTable(key, sum);
          lanes.when(inside, [&] { storeTable(key, sum); });
          lanes.when(no(inside), [&] { storeLeft(0, sum); });
        });
        sum = arith::SelectOp::create(b, changes, zero, sum);
        state = {arith::AddFOp::create(b, sum, widenFloat(b, b.getLoc(), value)), nextKey,
                 arith::OrIOp::create(b, inside, changes)};
      }
      return state;
    };
    SmallVector<Value> state = {zero, firstKey, starts};
    Value rest = first;
    if (length >= atOnce) {
      state.push_back(first);
      state = lanes.loop(first, lanes.add(end, lanes.index(1 - atOnce)), atOnce, state,
                         [&](Value at, ValueRange carried) {
                           SmallVector<Value> next = step(at, atOnce, carried.drop_back());
                           next.push_back(lanes.add(at, lanes.index(atOnce)));
                           return next;
                         });
      rest = state.pop_back_val();
    }
    if (length % atOnce || n % atOnce)
      state = lanes.loop(rest, end, 1, state,
                         [&](Value at, ValueRange carried) { return step(at, 1, carried); });

    Value sum = state[0], key = state[1], inside = state[2];
    if (segments == 1)
      return storeTable(key, sum);
    Value ends = lanes.select(
        lanes.less(end, n), [&] { return SmallVector<Value>{differs(keyOf(readKey(end)), key)}; },
        [&] { return SmallVector<Value>{yes}; })[0];
    Value isLast = lanes.both(inside, no(ends)), isFirst = no(starts);
    lanes.when(lanes.both(inside, ends), [&] { storeTable(key, sum); });
    lanes.when(no(inside), [&] { storeLeft(0, sum); });
    lanes.when(isLast, [&] { storeLeft(1, sum); });
    lanes.when(lanes.equal(own[1], 0), [&] {
      // An entry that is not there has its neighbour's key, so that it parts no sum.
      auto present = [&](Value k) { return arith::ShLIOp::create(b, k, number(1)).getResult(); };
      auto absent = [&](Value k) {
        return arith::OrIOp::create(b, present(k), number(1)).getResult();
      };
      auto pick = [&](Value condition, Value a, Value other) {
        return arith::SelectOp::create(b, condition, a, other).getResult();
      };
      Value at = lanes.scaled(segment, 2);
      lanes.write(pick(isFirst, present(firstKey), pick(isLast, absent(key), number(-1))), leftKeys,
                  at, 1);
      lanes.write(pick(isLast, present(key), pick(isFirst, absent(firstKey), number(-1))), leftKeys,
                  lanes.add(at, lanes.index(1)), 1);
    });
  });
  gpu::ReturnOp::create(b);
  int64_t blocks = llvm::divideCeil(segments * chunks, blockThreads);
  device.launch(function, {blocks}, buffers);
  return left;
}

void DeviceScatter::emit() {
  device.fill(device.output(0), 0);
  Order order = sort();
  Entries entries{count, order.keys, order.positions, device.input(0), rowElement};
  for (unsigned level = 0; entries.count > 0; ++level)
    entries = emitSums(entries, level);
}

} // namespace

FailureOr<exec::DeviceKernelOp> emitDeviceScatter(exec::KernelOp kernel, ModuleOp target,
                                                  const CudaTarget &) {
  auto op = soleOp<nn::EmbeddingGradOp>(kernel);
  if (failed(op))
    return failure();
  DeviceKernel device(kernel, target);
  ImplicitLocOpBuilder builder(kernel.getLoc(), kernel.getContext());
  DeviceLanes lanes(builder);
  DeviceScatter(*op, device, lanes).emit();
  return device.op();
}

} // namespace descent
