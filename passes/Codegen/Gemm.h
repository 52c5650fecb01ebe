//===- Gemm.h - Kernels of matrix products --------------------------------===//
//
// C[b, m, n] = sum over k of A[b, m, k] B[b, k, n], followed by an elementwise epilogue: bias,
// activation, residual, whatever fusion put behind the product. The kernel's buffers are A, B, the
// epilogue's inputs, the outputs; sizes come from the Contraction, so the memrefs may have any
// static shape of as many elements.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_GEMM_H
#define DESCENT_PASSES_CODEGEN_GEMM_H

#include "dialects/NN/Interfaces.h"
#include "passes/Codegen/Product.h"

namespace descent {

struct GemmSpec {
  std::string name;
  Contraction shape;
  /// f32, bf16, f16 or f8; they may differ. Sums are f32, and so is the product that the epilogue
  /// gets. CPUs with AVX512_BF16 multiply bf16 and f8 in pairs, which takes denormal bf16 and
  /// denormal sums as zero and orders the additions of a pair otherwise: bits differ between such
  /// CPUs and others, but never with the grouping of tasks.
  NumberBuffer a, b;
  EpilogueSpec epilogue;
  /// C += A B. Only without an epilogue function; with one, read the old value as an input.
  bool accumulate = false;
  /// Overrides the cost model, for experiments.
  std::optional<ProductPlan> plan;
};

/// The plan that emitGemmKernel uses when the spec has none.
ProductPlan planGemm(const GemmSpec &spec, const CpuTarget &target);

/// Adds the kernel function to the module, and the helpers it needs where the module has none.
/// Fails after emitting an error at `loc`.
mlir::FailureOr<mlir::func::FuncOp> emitGemmKernel(mlir::ModuleOp module, mlir::Location loc,
                                                   const GemmSpec &spec, const CpuTarget &target);

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_GEMM_H
