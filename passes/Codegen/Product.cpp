//===- Product.cpp - The loop nest of matrix products and convolutions ----===//
//
// For each rectangle of C, from the outside in: columns (what of B is packed at a time), blocks of
// k, rows (what of A is packed at a time and stays in L2), panels of B, tiles. The innermost loop
// walks down the rows under one panel of B, which therefore stays in the nearest cache.
//
// Blocks of k are long, since the tile needs few bytes per cycle of either operand and each further
// block reads and writes C once more. Products of several blocks collect their sums in C itself;
// with an epilogue they collect them in scratch, of which a band of rows at a time is taken so that
// it stays in the cache.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/Product.h"
#include "dialects/NN/NarrowFloats.h"
#include "passes/Codegen/Epilogue.h"
#include "passes/Codegen/KernelFunction.h"
#include "passes/Codegen/Lanes.h"
#include <algorithm>

using namespace mlir;

namespace descent {

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t roundUp(int64_t a, int64_t b) { return ceilDiv(a, b) * b; }

TileSteps stepsFor(Type a, Type b, const CpuTarget &target) {
  return target.bf16Products() && fitsBf16(a) && fitsBf16(b) ? TileSteps::Bf16Pairs
                                                             : TileSteps::Floats;
}

LogicalResult checkOperand(Location loc, const Twine &what, const NumberBuffer &operand,
                           int64_t elements) {
  auto [type, element] = operand;
  if (type && type.hasStaticShape() && isProductElement(element) &&
      type.getElementType() == storageType(element) && type.getNumElements() == elements)
    return success();
  InFlightDiagnostic error = emitError(loc) << what << " of type " << type;
  if (type && element != type.getElementType())
    error << " holding " << element;
  return error << "; it needs " << elements
               << " elements of f32, of bf16 or f16 stored as i16, or of f8E4M3FN or f8E5M2 stored "
                  "as i8";
}

Epilogue roundingEpilogue(Type element) {
  if (element.isF32())
    return nullptr;
  return [element](OpBuilder &builder, Location loc,
                   const EpiloguePoint &point) -> SmallVector<Value> {
    Emitter e(builder, loc);
    return {bitcastElements(e, narrowFloat(builder, loc, point.product, element),
                            storageType(element))};
  };
}

ProductPlan planProduct(int64_t batch, int64_t m, int64_t n, int64_t k, TileSteps steps,
                        const CpuTarget &target) {
  // Empty products have no plan; emitProductKernel refuses them.
  if (batch < 1 || m < 1 || n < 1 || k < 1)
    return {};
  int64_t mr = target.tileRows(), nr = target.tileVectors() * target.lanes();
  int64_t rowTiles = ceilDiv(m, mr), panels = ceilDiv(n, nr);
  ProductPlan plan;

  // Tasks of about ten microseconds divide well among any number of threads and still pay for their
  // launch; sixty-four are enough. Columns are cut first: neighbouring whole columns merge into one
  // rectangle, so cutting them costs nothing.
  double flops = 2.0 * batch * m * n * k;
  int64_t wanted = std::clamp<int64_t>(flops / 1e6, 1, 64);
  int64_t perBatch = ceilDiv(wanted, batch);
  int64_t columnBlocks = ceilDiv(panels, ceilDiv(panels, std::min(panels, perBatch)));
  int64_t rowBlocks = columnBlocks >= 16 ? 1 : std::min(rowTiles, ceilDiv(perBatch, columnBlocks));
  plan.taskColumns = ceilDiv(panels, columnBlocks) * nr;
  plan.taskRows = ceilDiv(rowTiles, rowBlocks) * mr;

  // A panel of B of this depth takes at most a quarter of L2, and A's block another half.
  int64_t bytes = steps == TileSteps::Bf16Pairs ? 2 : 4; // of a packed element
  int64_t deepest = std::max<int64_t>(256, target.l2Bytes / 4 / (nr * bytes));
  plan.depth = std::min(k, roundUp(ceilDiv(k, ceilDiv(k, deepest)), 8));
  plan.rows = std::clamp<int64_t>(target.l2Bytes / 2 / (plan.depth * bytes) / mr, 1, rowTiles) * mr;
  plan.columns =
      std::clamp<int64_t>((int64_t(2) << 20) / (plan.depth * bytes) / nr, 1, panels) * nr;
  return plan;
}

namespace {

struct ScratchLayout {
  int64_t bytes = 0;
  int64_t take(int64_t size) {
    int64_t at = bytes;
    bytes += roundUp(size, 64);
    return at;
  }
};

class Nest {
public:
  Nest(ModuleOp module, Location loc, const ProductSpec &spec, const CpuTarget &target)
      : module(module), loc(loc), spec(spec), target(target), plan(spec.plan),
        mr(target.tileRows()), nr(target.tileVectors() * target.lanes()) {}

  func::FuncOp emit();

private:
  void rectangle(Emitter &e, Index batch, Index m0, Index m1, Index n0, Index n1);
  void columns(Emitter &e, Index batch, Index m0, Index m1, Index n, Index nc);
  void block(Emitter &e, Index batch, Index band, Index i, Index mc, Index n, Index nc, Index k,
             Index kc);
  void prefetch(Emitter &e, Index row, int rows, Index column, int vectors);

  ModuleOp module;
  Location loc;
  const ProductSpec &spec;
  const CpuTarget &target;
  const ProductPlan &plan;
  int64_t mr, nr;
  int64_t depthBlocks = 0; ///< of k
  int64_t bandRows = 0;    ///< of C whose sums are in scratch at a time
  int64_t sumsStride = 0;
  func::FuncOp epilogue;
  ProductSources sources;
  Value packedA, packedB, sums;
  SmallVector<Value> epilogueBuffers;
};

func::FuncOp Nest::emit() {
  depthBlocks = ceilDiv(spec.k, plan.depth);
  int64_t depth = std::min(plan.depth, spec.k);
  bandRows = roundUp(spec.m, mr);
  ScratchLayout layout;
  bool hasEpilogue = static_cast<bool>(spec.epilogue.function);
  int64_t atB = layout.take(plan.packB ? 4 * packedSize(plan.columns, depth, nr, spec.steps) : 0);
  int64_t atA = layout.take(plan.packA ? 4 * packedSize(plan.rows, depth, mr, spec.steps) : 0);
  int64_t atWorkspace = layout.take(spec.workspaceBytes);
  int64_t atSums = layout.bytes;
  if (hasEpilogue && depthBlocks == 1) {
    sumsStride = nr;
    layout.take(4 * mr * nr);
  } else if (hasEpilogue) {
    sumsStride = plan.columns;
    bandRows = std::clamp<int64_t>((int64_t(1) << 17) / sumsStride / plan.rows, 1,
                                   ceilDiv(spec.m, plan.rows)) *
               plan.rows;
    layout.take(4 * bandRows * sumsStride);
  }
  if (hasEpilogue)
    epilogue = createEpilogue(module, loc, spec, target);

  SmallVector<Type> buffers;
  for (const NumberBuffer &operand : spec.operands)
    buffers.push_back(operand.type);
  for (const EpilogueInput &input : spec.epilogue.inputs)
    buffers.push_back(input.type);
  llvm::append_range(buffers, spec.epilogue.outputs);
  int64_t rowBlocks = ceilDiv(spec.m, plan.taskRows),
          columnBlocks = ceilDiv(spec.n, plan.taskColumns);
  int64_t tasks = spec.batch * rowBlocks * columnBlocks;
  func::FuncOp function =
      createKernelFunction(module, loc, spec.name, buffers, tasks, layout.bytes);

  OpBuilder builder = OpBuilder::atBlockEnd(&function.front());
  Emitter e(builder, loc);
  ValueRange arguments = function.getArguments();
  ValueRange operands = arguments.take_front(spec.operands.size());
  for (Value buffer : arguments.drop_front(spec.operands.size()).drop_back(3))
    epilogueBuffers.push_back(e.flatten(buffer));
  Value first = arguments[buffers.size()], last = arguments[buffers.size() + 1],
        scratch = arguments.back();
  Type word = packedElement(builder.getContext(), spec.steps);
  packedB = plan.packB ? e.carve(scratch, atB, word) : Value();
  packedA = plan.packA ? e.carve(scratch, atA, word) : Value();
  sums = hasEpilogue ? e.carve(scratch, atSums, builder.getF32Type()) : Value();
  Value workspace =
      spec.workspaceBytes ? e.carve(scratch, atWorkspace, builder.getI8Type()) : Value();
  sources = spec.sources(e, operands, workspace);

  // while (task < last): the largest rectangle that starts at `task`.
  Type index = builder.getIndexType();
  auto loop = scf::WhileOp::create(builder, loc, TypeRange{index}, ValueRange{first});
  Block *condition = builder.createBlock(&loop.getBefore(), {}, {index}, {loc});
  scf::ConditionOp::create(builder, loc, e.less(condition->getArgument(0), last),
                           condition->getArguments());
  Block *body = builder.createBlock(&loop.getAfter(), {}, {index}, {loc});
  Index task = body->getArgument(0);
  Index column = e.div(task, rowBlocks), row = e.rem(task, rowBlocks);
  Index batch = e.div(column, columnBlocks), columnBlock = e.rem(column, columnBlocks);
  if (spec.batch == 1) {
    batch = 0;
    columnBlock = column;
  }
  Index left = e.sub(last, task);
  Index wholeColumns = e.min(e.div(left, rowBlocks), e.sub(columnBlocks, columnBlock));
  Value whole = arith::AndIOp::create(builder, loc, e.equal(row, 0), e.less(0, wholeColumns));
  Index width = e.select(whole, wholeColumns, 1);
  Index rowEnd = e.select(whole, rowBlocks, e.min(rowBlocks, e.add(row, left)));
  rectangle(e, batch, e.mul(row, plan.taskRows), e.min(e.mul(rowEnd, plan.taskRows), spec.m),
            e.mul(columnBlock, plan.taskColumns),
            e.min(e.mul(e.add(columnBlock, width), plan.taskColumns), spec.n));
  Index next = e.add(task, e.select(whole, e.mul(wholeColumns, rowBlocks), e.sub(rowEnd, row)));
  scf::YieldOp::create(builder, loc, e.value(next));
  builder.setInsertionPointAfter(loop);
  func::ReturnOp::create(builder, loc);
  return function;
}

void Nest::rectangle(Emitter &e, Index batch, Index m0, Index m1, Index n0, Index n1) {
  auto bands = [&](Index n) {
    Index nc = e.min(e.sub(n1, n), plan.columns);
    if (bandRows >= spec.m)
      return columns(e, batch, m0, m1, n, nc);
    e.loop(m0, m1, bandRows,
           [&](Index m) { columns(e, batch, m, e.min(e.add(m, bandRows), m1), n, nc); });
  };
  e.loop(n0, n1, plan.columns, bands);
}

void Nest::columns(Emitter &e, Index batch, Index m0, Index m1, Index n, Index nc) {
  auto depths = [&](Index k, Index kc) {
    if (plan.packB)
      sources.b.pack(e, batch, n, nc, k, kc, packedB, 0);
    e.loop(m0, m1, plan.rows, [&](Index i) {
      Index mc = e.min(e.sub(m1, i), plan.rows);
      if (plan.packA)
        sources.a.pack(e, batch, i, mc, k, kc, packedA, 0);
      block(e, batch, m0, i, mc, n, nc, k, kc);
    });
  };
  if (depthBlocks == 1)
    return depths(0, spec.k);
  e.loop(0, spec.k, plan.depth, [&](Index k) { depths(k, e.min(e.sub(spec.k, k), plan.depth)); });
}

/// What the epilogue of a tile reads and writes in matrices of C's shape. The tile itself touches
/// none of it, and fetching two dozen lines from memory takes as long as a tenth of a tile of depth
/// 384.
void Nest::prefetch(Emitter &e, Index row, int rows, Index column, int vectors) {
  auto fetch = [&](Value buffer, MemRefType type, bool isWrite) {
    int64_t line = 64 / storageBytes(type.getElementType()); // elements
    std::string name = "descent_prefetch_" + std::to_string(rows) + "x" +
                       std::to_string(vectors * target.lanes()) + (isWrite ? "_write_" : "_");
    llvm::raw_string_ostream(name) << type.getElementType();
    Type index = e.builder.getIndexType();
    func::FuncOp function = getOrCreateHelper(
        module, name, {buffer.getType(), index, index}, [&](Emitter &helper, ValueRange arguments) {
          for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < vectors * target.lanes(); j += line)
              memref::PrefetchOp::create(
                  helper.builder, helper.loc, arguments[0],
                  helper.value(
                      helper.add(helper.add(arguments[1], helper.mul(arguments[2], i)), j)),
                  isWrite,
                  /*localityHint=*/3, /*isDataCache=*/true);
        });
    e.call(function, {buffer, e.value(e.add(e.mul(row, spec.n), column)), e.value(spec.n)});
  };
  size_t inputs = spec.epilogue.inputs.size();
  for (auto [input, buffer] : llvm::zip(spec.epilogue.inputs, epilogueBuffers))
    if (input.type.getNumElements() == spec.batch * spec.m * spec.n)
      fetch(buffer, input.type, /*isWrite=*/false);
  for (auto [type, buffer] :
       llvm::zip(spec.epilogue.outputs, ArrayRef<Value>(epilogueBuffers).drop_front(inputs)))
    fetch(buffer, type, /*isWrite=*/true);
}

void Nest::block(Emitter &e, Index batch, Index band, Index i, Index mc, Index n, Index nc, Index k,
                 Index kc) {
  TileMode mode = spec.accumulate    ? TileMode::Accumulate
                  : depthBlocks == 1 ? TileMode::Store
                                     : TileMode::Flagged;
  Value accumulate = mode == TileMode::Flagged ? e.less(0, k) : Value();
  Index steps = packedSteps(e, kc, spec.steps);
  forEachColumnTile(
      e, nc, target, {spec.n % nr}, [&](Index j, int vectors, bool tail, Index columns) {
        Index column = e.add(n, j);
        OperandSource::Place b;
        if (plan.packB)
          b = {packedB, e.mul(j, steps), 0};
        else
          b = sources.b.place(e, batch, column, k);
        forEachRowTile(e, mc, target, {spec.m % mr}, [&](Index r, int rows) {
          Index row = e.add(i, r), globalRow = e.add(e.mul(batch, spec.m), row);
          OperandSource::Place a;
          if (plan.packA)
            a = {packedA, e.mul(r, steps), 0};
          else
            a = sources.a.place(e, batch, row, k);
          TileArguments call;
          call.a = a.buffer, call.aOffset = a.offset, call.lda = a.ld;
          call.b = b.buffer, call.bOffset = b.offset, call.ldb = b.ld;
          call.k = steps, call.columns = columns, call.accumulate = accumulate;
          if (!epilogue) {
            call.c = epilogueBuffers[0], call.ldc = spec.n;
            call.cOffset = e.add(e.mul(globalRow, spec.n), column);
          } else {
            call.c = sums, call.ldc = sumsStride;
            call.cOffset =
                depthBlocks == 1 ? Index(0) : e.add(e.mul(e.sub(row, band), sumsStride), j);
          }
          TileSpec tile = {rows,
                           vectors,
                           tail,
                           plan.packA ? TileA::Packed : sources.layoutA,
                           plan.packB ? TileB::Packed : TileB::Strided,
                           mode,
                           spec.steps};
          if (!epilogue)
            return callTile(e, module, tile, target, call);
          Value isLast = depthBlocks == 1 ? Value() : e.less(spec.k - 1, e.add(k, kc));
          auto fetch = [&] { prefetch(e, globalRow, rows, column, vectors); };
          if (isLast)
            e.when(isLast, fetch);
          else
            fetch();
          callTile(e, module, tile, target, call);
          auto finish = [&] {
            SmallVector<Value> operands = {
                call.c,          e.value(call.cOffset), e.value(call.ldc), e.value(globalRow),
                e.value(column), e.value(rows),         e.value(columns)};
            llvm::append_range(operands, epilogueBuffers);
            e.call(epilogue, operands);
          };
          if (isLast)
            e.when(isLast, finish);
          else
            finish();
        });
      });
}

} // namespace

FailureOr<func::FuncOp> emitProductKernel(ModuleOp module, Location loc, const ProductSpec &spec,
                                          const CpuTarget &target) {
  auto refuse = [&](const Twine &what) {
    return emitError(loc) << "product kernel '" << spec.name << "' " << what;
  };
  if (spec.batch < 1 || spec.m < 1 || spec.n < 1 || spec.k < 1)
    return refuse("has an empty axis: batch " + Twine(spec.batch) + ", m " + Twine(spec.m) +
                  ", n " + Twine(spec.n) + ", k " + Twine(spec.k));
  if (module.lookupSymbol(spec.name))
    return refuse("is already defined in this module");
  const ProductPlan &plan = spec.plan;
  int64_t mr = target.tileRows(), nr = target.tileVectors() * target.lanes();
  auto cuts = [](int64_t size, int64_t multiple, int64_t whole) {
    return size > 0 && (size % multiple == 0 || size >= whole);
  };
  if (!cuts(plan.taskRows, mr, spec.m) || !cuts(plan.taskColumns, nr, spec.n) || plan.rows <= 0 ||
      plan.rows % mr || plan.columns <= 0 || plan.columns % nr || plan.depth <= 0)
    return refuse("has a plan that does not consist of whole tiles of " + Twine(mr) + " x " +
                  Twine(nr));
  if (spec.steps == TileSteps::Bf16Pairs && !(plan.packA && plan.packB))
    return refuse("must pack both operands: it multiplies pairs of bf16");
  if (failed(checkEpilogue(loc, spec)))
    return failure();
  return Nest(module, loc, spec, target).emit();
}

} // namespace descent
