//===- Gemm.cpp - Kernels of matrix products ------------------------------===//
//
// Says where the elements of A and B stand, and decides what to pack. Packing an element costs
// about as much as the tile spends on four to ten multiply-adds of it, so it pays unless few tiles
// read the element again; and a B stored [n, k] must be packed, since the tile loads vectors along
// n. Narrow operands are always packed, which is where they are widened or paired.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/Gemm.h"

using namespace mlir;

namespace descent {

ProductPlan planGemm(const GemmSpec &spec, const CpuTarget &target) {
  const Contraction &shape = spec.shape;
  ProductPlan plan = planProduct(shape.batch, shape.m, shape.n, shape.k,
                                 stepsFor(spec.a.element, spec.b.element, target), target);
  int64_t nr = target.tileVectors() * target.lanes();
  int64_t mr = target.tileRows();
  plan.packA = shape.transposeA ? shape.n > nr : shape.n * shape.k >= 1 << 19 || shape.m <= 8 * mr;
  // Tiles that read both matrices unpacked run out of address registers; with A packed, B may stay
  // where it is while few rows read it or it fits L2.
  bool leaveB = shape.m <= 16 * mr || (shape.m <= 512 && shape.n * shape.k <= 1 << 17);
  plan.packB = shape.transposeB || !plan.packA || !leaveB;
  plan.packA |= !spec.a.element.isF32();
  plan.packB |= !spec.b.element.isF32();
  return plan;
}

FailureOr<func::FuncOp> emitGemmKernel(ModuleOp module, Location loc, const GemmSpec &spec,
                                       const CpuTarget &target) {
  const Contraction &shape = spec.shape;
  auto refuse = [&](const Twine &what) {
    return emitError(loc) << "matrix product '" << spec.name << "' " << what;
  };
  for (auto [name, operand, elements] : {std::tuple("A", spec.a, shape.batch * shape.m * shape.k),
                                         std::tuple("B", spec.b, shape.batch * shape.k * shape.n)})
    if (failed(
            checkOperand(loc, "matrix product '" + spec.name + "' has " + name, operand, elements)))
      return failure();

  ProductSpec product;
  product.name = spec.name;
  product.batch = shape.batch, product.m = shape.m, product.n = shape.n, product.k = shape.k;
  product.operands = {spec.a, spec.b};
  product.epilogue = spec.epilogue;
  product.accumulate = spec.accumulate;
  product.steps = stepsFor(spec.a.element, spec.b.element, target);
  product.plan = spec.plan ? *spec.plan : planGemm(spec, target);
  if (shape.transposeB && !product.plan.packB)
    return refuse("must pack B: it is stored [n, k], and tiles load vectors along n");
  for (auto [name, operand, packed] :
       {std::tuple("A", spec.a, product.plan.packA), std::tuple("B", spec.b, product.plan.packB)})
    if (!packed && !operand.element.isF32())
      return refuse(Twine("must pack ") + name + ": tiles read f32 where it is not packed");

  bool transposeA = shape.transposeA, transposeB = shape.transposeB;
  bool packsA = product.plan.packA, packsB = product.plan.packB;
  Type elementA = spec.a.element, elementB = spec.b.element;
  TileSteps steps = product.steps;
  int64_t m = shape.m, n = shape.n, k = shape.k;
  int64_t lda = transposeA ? m : k, ldb = transposeB ? k : n;
  int64_t nr = target.tileVectors() * target.lanes();
  product.sources = [=, &target](Emitter &e, ValueRange operands, Value) {
    Value a = e.flatten(operands[0]), b = e.flatten(operands[1]);
    // Offset of (row or column `start`, k) in a matrix whose leading axis is k (`depthFirst`) or
    // the rows.
    auto offset = [](Emitter &e, Index batch, Index size, Index start, Index at, Index ld,
                     bool depthFirst) {
      Index inside = depthFirst ? e.add(e.mul(at, ld), start) : e.add(e.mul(start, ld), at);
      return e.add(e.mul(batch, size), inside);
    };
    ProductSources sources;
    sources.layoutA = transposeA ? TileA::Columns : TileA::Rows;
    func::FuncOp packA =
        packsA ? getOrCreatePack(module, target.tileRows(), !transposeA, target, {elementA, steps})
               : nullptr;
    func::FuncOp packB =
        packsB ? getOrCreatePack(module, nr, transposeB, target, {elementB, steps}) : nullptr;
    auto pack = [=](func::FuncOp function, Value source, int64_t size, int64_t ld,
                    bool depthFirst) {
      return [=](Emitter &e, Index batch, Index start, Index extent, Index at, Index depth,
                 Value destination, Index destinationOffset) {
        e.call(function,
               {source, e.value(offset(e, batch, size, start, at, ld, depthFirst)), e.value(ld),
                destination, e.value(destinationOffset), e.value(depth), e.value(extent)});
      };
    };
    auto place = [=](Value source, int64_t size, int64_t ld, bool depthFirst) {
      return [=](Emitter &e, Index batch, Index start, Index at) {
        return OperandSource::Place{source, offset(e, batch, size, start, at, ld, depthFirst), ld};
      };
    };
    if (packA)
      sources.a.pack = pack(packA, a, m * k, lda, transposeA);
    else
      sources.a.place = place(a, m * k, lda, transposeA);
    if (packB)
      sources.b.pack = pack(packB, b, k * n, ldb, !transposeB);
    else
      sources.b.place = place(b, k * n, ldb, !transposeB);
    return sources;
  };
  return emitProductKernel(module, loc, product, target);
}

} // namespace descent
