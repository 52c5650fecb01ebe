//===- CopyKernel.cpp - Kernels that move elements ------------------------===//
//
// Each piece (CopyPieces.h) becomes a loop over its outer loops' iterations, cut into tasks, around
// one of four inner parts:
//   - a run that is contiguous on both sides: vector loads and stores; a constant or broadcast run
//   stores one vector over and over;
//   - a run that is strided at the source where another loop is contiguous there (a transpose): 8 x
//   8 blocks, loaded as rows, transposed in
//     registers, stored as rows;
//   - any other strided source: gathered into vectors;
//   - a strided destination: element by element (only padding between elements writes so).
// Pieces do not overlap, so the tasks of all pieces are simply numbered one after the other.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/Codegen/CopyPieces.h"
#include "passes/Codegen/KernelEmitter.h"
#include "passes/Codegen/KernelFunction.h"
#include "passes/Codegen/Lanes.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace descent {

namespace {

constexpr int64_t taskBytes = 32 << 10;
constexpr int64_t wantedTasks = 16;
constexpr int64_t tile = 8;

class CopyEmitter {
public:
  CopyEmitter(const CpuTarget &cpu, ImplicitLocOpBuilder &b) : cpu(cpu), b(b), lanes(b) {}
  FailureOr<func::FuncOp> emit(exec::KernelOp kernel, ModuleOp target);

private:
  const CpuTarget &cpu;
  ImplicitLocOpBuilder &b;
  Lanes lanes;
  SmallVector<Value> inputs, outputs;
  llvm::MapVector<Attribute, Value> tables; ///< literals of several values, as flat buffers

  struct Plan {
    CopyPiece piece;
    int run = -1;    ///< loop with destination stride 1, or -1
    int across = -1; ///< loop with source stride 1 of a transpose, or -1
    SmallVector<unsigned> outer;
    int64_t iterations = 1, perTask = 1, tasks = 1;
  };
  Plan plan(CopyPiece piece) const;
  void divide(CopyPiece piece, std::vector<Plan> &plans) const;
  void declareTable(DenseElementsAttr table, func::FuncOp function, ModuleOp target);
  /// The flat buffer that a piece reads; null for a fill.
  Value sourceOf(const CopyPiece &piece) const {
    return piece.input >= 0 ? inputs[piece.input]
           : piece.table    ? tables.lookup(piece.table)
                            : Value();
  }
  void emitPlan(const Plan &plan, Value from, Value to);
  void emitRun(const Plan &plan, Value to, Value from);
  void emitTranspose(const Plan &plan, Value to, Value from);
  void emitTile(const Plan &plan, Value to, Value from, int64_t runs, int64_t acrosses);
  SmallVector<Value> transpose(SmallVector<Value> rows);
  /// loop(0, size) in blocks, the rest as its own static block.
  void blocks(int64_t size, int64_t width, llvm::function_ref<void(Value, int64_t)> body);
};

CopyEmitter::Plan CopyEmitter::plan(CopyPiece piece) const {
  Plan plan;
  unsigned loops = piece.sizes.size();
  for (unsigned i = 0; i < loops; ++i)
    if (piece.to[i] == 1)
      plan.run = i;
  if (plan.run >= 0 && piece.readsMemory() && piece.from[plan.run] > 1 &&
      piece.sizes[plan.run] >= 4)
    for (unsigned i = 0; i < loops; ++i)
      if (piece.from[i] == 1 && piece.sizes[i] >= 4)
        plan.across = i;
  int64_t inner = 1;
  for (unsigned i = 0; i < loops; ++i) {
    if (static_cast<int>(i) == plan.run || static_cast<int>(i) == plan.across) {
      inner *= piece.sizes[i];
    } else {
      plan.outer.push_back(i);
      plan.iterations *= piece.sizes[i];
    }
  }
  int64_t bytes = 2 * inner * storageBytes(piece.element);
  int64_t wanted = std::clamp<int64_t>(bytes * plan.iterations / wantedTasks, 4 << 10, taskBytes);
  plan.perTask = std::clamp<int64_t>(wanted / bytes, 1, plan.iterations);
  plan.tasks = llvm::divideCeil(plan.iterations, plan.perTask);
  plan.piece = std::move(piece);
  return plan;
}

/// Cuts long inner parts, so that a piece with few outer iterations still makes several tasks.
void CopyEmitter::divide(CopyPiece piece, std::vector<Plan> &plans) const {
  Plan whole = plan(piece);
  int64_t inner = piece.count() / whole.iterations, bytes = storageBytes(piece.element);
  int loop = whole.across >= 0 ? whole.across : whole.run;
  if (loop >= 0 && whole.iterations < wantedTasks && inner * bytes > 2 * taskBytes) {
    int64_t other = inner / piece.sizes[loop];
    int64_t block = llvm::alignTo(std::max<int64_t>(taskBytes / bytes / other, 1), 64);
    if (block * 2 <= piece.sizes[loop]) {
      auto [main, rest] = piece.split(loop, block);
      plans.push_back(plan(main));
      if (rest)
        plans.push_back(plan(*rest));
      return;
    }
  }
  plans.push_back(std::move(whole));
}

void CopyEmitter::blocks(int64_t size, int64_t width,
                         llvm::function_ref<void(Value, int64_t)> body) {
  int64_t rest = size % width, whole = size - rest;
  if (whole)
    lanes.loop(lanes.index(0), lanes.index(whole), width, {}, [&](Value at, ValueRange) {
      body(at, width);
      return SmallVector<Value>();
    });
  if (rest)
    body(lanes.index(whole), rest);
}

void CopyEmitter::emitRun(const Plan &plan, Value to, Value from) {
  const CopyPiece &piece = plan.piece;
  Value target = outputs[piece.result], source = sourceOf(piece);
  // Elements of one byte fill a register sooner.
  int64_t most = 4 * cpu.vectorBits / 8 / storageBytes(piece.element), least = 4;
  int64_t size = plan.run < 0 ? 1 : piece.sizes[plan.run],
          stride = plan.run < 0 ? 0 : piece.from[plan.run];
  if (size == 1) {
    Value value = source ? lanes.loadScalar(source, from, piece.element)
                         : arith::ConstantOp::create(b, piece.fill).getResult();
    lanes.storeScalar(value, target, to);
    return;
  }
  Value uniform;
  if (!source)
    uniform = arith::ConstantOp::create(b, piece.fill);
  else if (stride == 0)
    uniform = lanes.loadScalar(source, from, piece.element);
  int64_t width =
      std::min<int64_t>(most, llvm::bit_floor(static_cast<uint64_t>(std::max(size, least))));
  if (stride > 1)
    width = std::min<int64_t>(width, cpu.lanes());
  blocks(size, width, [&](Value at, int64_t active) {
    LaneBlock block = active == width ? LaneBlock{width, width, nullptr}
                                      : lanes.block(active, std::min(width, least));
    Value value = uniform;
    if (!value)
      value = stride == 1 ? lanes.load(source, lanes.add(from, at), piece.element, block)
                          : lanes.loadStrided(source, lanes.add(from, lanes.scaled(at, stride)),
                                              stride, piece.element, block);
    lanes.store(value, target, lanes.add(to, at), block);
  });
}

/// Three rounds of interleaving rows k and k + 4.
SmallVector<Value> CopyEmitter::transpose(SmallVector<Value> rows) {
  SmallVector<int64_t> low, high;
  for (int64_t i = 0; i < tile / 2; ++i) {
    low.append({i, i + tile});
    high.append({i + tile / 2, i + tile / 2 + tile});
  }
  for (int64_t round = 1; round < tile; round *= 2) {
    SmallVector<Value> next;
    for (int64_t k = 0; k < tile / 2; ++k) {
      next.push_back(vector::ShuffleOp::create(b, rows[k], rows[k + tile / 2], low));
      next.push_back(vector::ShuffleOp::create(b, rows[k], rows[k + tile / 2], high));
    }
    rows = std::move(next);
  }
  return rows;
}

void CopyEmitter::emitTile(const Plan &plan, Value to, Value from, int64_t runs, int64_t acrosses) {
  const CopyPiece &piece = plan.piece;
  LaneBlock reads = lanes.block(acrosses, tile), writes = lanes.block(runs, tile);
  SmallVector<Value> rows;
  for (int64_t i = 0; i < runs; ++i)
    rows.push_back(lanes.load(sourceOf(piece),
                              lanes.add(from, lanes.index(i * piece.from[plan.run])), piece.element,
                              reads));
  while (static_cast<int64_t>(rows.size()) < tile)
    rows.push_back(rows.front()); // lanes that the store masks off
  rows = transpose(std::move(rows));
  for (int64_t i = 0; i < acrosses; ++i)
    lanes.store(rows[i], outputs[piece.result],
                lanes.add(to, lanes.index(i * piece.to[plan.across])), writes);
}

void CopyEmitter::emitTranspose(const Plan &plan, Value to, Value from) {
  const CopyPiece &piece = plan.piece;
  blocks(piece.sizes[plan.across], tile, [&](Value across, int64_t acrosses) {
    Value rowTo = lanes.add(to, lanes.scaled(across, piece.to[plan.across])),
          rowFrom = lanes.add(from, across);
    blocks(piece.sizes[plan.run], tile, [&](Value run, int64_t runs) {
      emitTile(plan, lanes.add(rowTo, run),
               lanes.add(rowFrom, lanes.scaled(run, piece.from[plan.run])), runs, acrosses);
    });
  });
}

void CopyEmitter::emitPlan(const Plan &plan, Value begin, Value end) {
  const CopyPiece &piece = plan.piece;
  lanes.loop(begin, end, 1, {}, [&](Value iteration, ValueRange) {
    Value to = lanes.index(piece.toBase), from = lanes.index(piece.fromBase);
    int64_t inner = 1;
    for (unsigned k = plan.outer.size(); k-- > 0;) {
      unsigned loop = plan.outer[k];
      Value at = inner == 1 ? iteration
                            : arith::DivUIOp::create(b, iteration, lanes.index(inner)).getResult();
      if (k > 0)
        at = arith::RemUIOp::create(b, at, lanes.index(piece.sizes[loop]));
      inner *= piece.sizes[loop];
      to = lanes.add(to, lanes.scaled(at, piece.to[loop]));
      if (piece.from[loop])
        from = lanes.add(from, lanes.scaled(at, piece.from[loop]));
    }
    if (plan.across >= 0)
      emitTranspose(plan, to, from);
    else
      emitRun(plan, to, from);
    return SmallVector<Value>();
  });
}

/// Puts a literal into the object's constant data, in the form in which buffers store its elements.
void CopyEmitter::declareTable(DenseElementsAttr table, func::FuncOp function, ModuleOp target) {
  if (!table || tables.contains(table))
    return;
  Type element = table.getElementType(), stored = storageType(element);
  DenseElementsAttr flat = table.reshape(table.getType().clone({table.getNumElements()}));
  if (element.isInteger(1))
    flat = flat.mapValues(stored, [](const APInt &bit) { return bit.zext(8); });
  else if (stored != element)
    flat = flat.bitcast(stored);
  auto type = MemRefType::get({table.getNumElements()}, stored);
  std::string name = (function.getName() + ".constant" + Twine(tables.size())).str();
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(function);
    memref::GlobalOp::create(b, target.getLoc(), name, b.getStringAttr("private"), type, flat,
                             /*constant=*/true, /*alignment=*/IntegerAttr());
  }
  tables[table] = memref::GetGlobalOp::create(b, type, name);
}

FailureOr<func::FuncOp> CopyEmitter::emit(exec::KernelOp kernel, ModuleOp target) {
  auto pieces = copyPieces(kernel);
  if (failed(pieces))
    return failure();
  std::vector<Plan> plans;
  for (CopyPiece &piece : *pieces)
    divide(piece, plans);
  int64_t tasks = 0;
  for (Plan &plan : plans)
    tasks += plan.tasks;
  SmallVector<Type> buffers;
  for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(), kernel.getResultTypes()))
    buffers.push_back(bufferType(cast<RankedTensorType>(type)));
  func::FuncOp function = createKernelFunction(target, kernel.getLoc(), kernel.getName(), buffers,
                                               tasks, /*scratchBytes=*/0);
  b.setInsertionPointToStart(&function.getBody().front());
  auto arguments = function.getArguments();
  for (unsigned i = 0; i < buffers.size(); ++i)
    (i < kernel.getArgumentTypes().size() ? inputs : outputs).push_back(lanes.flat(arguments[i]));
  for (const Plan &plan : plans)
    declareTable(plan.piece.table, function, target);
  Value first = arguments[buffers.size()], last = arguments[buffers.size() + 1];
  int64_t start = 0;
  for (Plan &plan : plans) {
    // The part of [first, last) that is this plan's.
    auto clip = [&](Value task) -> Value {
      Value low = arith::MaxSIOp::create(b, task, lanes.index(start));
      Value high = arith::MinSIOp::create(b, low, lanes.index(start + plan.tasks));
      return arith::SubIOp::create(b, high, lanes.index(start));
    };
    Value from = lanes.scaled(clip(first), plan.perTask),
          to = lanes.scaled(clip(last), plan.perTask);
    if (plan.iterations % plan.perTask)
      to = arith::MinUIOp::create(b, to, lanes.index(plan.iterations));
    emitPlan(plan, from, to);
    start += plan.tasks;
  }
  func::ReturnOp::create(b);
  return function;
}

} // namespace

FailureOr<func::FuncOp> emitCopyKernel(exec::KernelOp kernel, ModuleOp target,
                                       const CpuTarget &cpu) {
  ImplicitLocOpBuilder builder(kernel.getLoc(), kernel.getContext());
  return CopyEmitter(cpu, builder).emit(kernel, target);
}

} // namespace descent
