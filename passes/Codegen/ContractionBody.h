//===- ContractionBody.h - What a kernel of one product says --------------===//
//
// The body of a kernel of kind "gemm" or "conv" is one product of the kernel's first two inputs and
// elementwise ops behind it, the epilogue. This reads such a body and emits its arithmetic; where
// the numbers lie, and how many at a time are worked on, is the business of the generators.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_CONTRACTIONBODY_H
#define DESCENT_PASSES_CODEGEN_CONTRACTIONBODY_H

#include "dialects/Exec/Exec.h"
#include "passes/Codegen/Convolution.h"

namespace descent {

struct ContractionBody {
  mlir::Operation *product = nullptr;
  llvm::SmallVector<mlir::Operation *> epilogue; ///< in order

  /// Fails after emitting an error at the kernel if it is no such kernel.
  static mlir::FailureOr<ContractionBody> read(exec::KernelOp kernel);

  /// The element type that the sum is rounded to before the epilogue.
  mlir::Type productElement() const;

  /// The kernel's inputs behind the product's operands, as EpilogueInput. `buffer` gives the buffer
  /// type of a tensor. Fails after emitting an error if one does not broadcast row by row.
  mlir::FailureOr<llvm::SmallVector<EpilogueInput>>
  inputs(exec::KernelOp kernel,
         llvm::function_ref<mlir::MemRefType(mlir::Type tensor)> buffer) const;

  /// What the kernel yields, one value per result, for a sum in f32 and elements of the inputs
  /// behind the product's operands: scalars, or vectors of one length, of the tensors' element
  /// types.
  llvm::SmallVector<mlir::Value> emit(mlir::OpBuilder &builder, mlir::Location loc,
                                      exec::KernelOp kernel, mlir::Value sum,
                                      mlir::ValueRange inputs) const;
};

/// One of the three products of a convolution.
struct ConvolutionProduct {
  ConvolutionKind kind;
  ConvolutionShape shape;

  /// Nothing if `product` is none.
  static std::optional<ConvolutionProduct> of(mlir::Operation *product);
};

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_CONTRACTIONBODY_H
