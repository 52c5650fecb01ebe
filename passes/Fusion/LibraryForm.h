//===- LibraryForm.h - Epilogues that a vendor's library computes ---------===//
//
// cuBLASLt computes a product with one of a few epilogues. This is the statement of which chains of
// ops they are; fold-epilogues moves no others behind a product when it prepares code for CUDA, and
// the generator of products reads the kernel it gets by the same statement.
//
//     sum -> [times a scalar] -> [plus a bias] -> [cast] -> [relu | gelu]
//     sum -> [plus what lies in the result's place]
//     sum -> [times the derivative of gelu at a saved tensor]
//
// A product without any of these can add up one of its operands along k beside it: the gradient of
// a bias (fold-bias-gradients).
//
// Chains are read as the library computes them: in f32 from the sum on, with one rounding at the
// end. Where the ops round in between (a bf16 pre-activation, say) the library is more precise.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_FUSION_LIBRARYFORM_H
#define DESCENT_PASSES_FUSION_LIBRARYFORM_H

#include "dialects/Exec/Exec.h"
#include "dialects/NN/NN.h"

#include <optional>

namespace descent::fusion {

/// "tf32" on a product's fusion and on its kernel: both operands were rounded by nn.round_tf32, so
/// a product on tensor cores has the same sums.
inline constexpr llvm::StringLiteral computeAttrName = "compute";

/// On a product: it is not for a library, and has the tile array<i64: rows, columns, depth, stages,
/// splits> in generated code for a device, or, where the array is empty, the one that is planned
/// there. For experiments and tests; it stays with the op on its way to the kernel.
inline constexpr llvm::StringLiteral tileAttrName = "descent.tile";

/// A product's operand added up along k, in f32, in the product's block.
struct OperandSum {
  unsigned operand;
  nn::ReduceSumOp sum;
  nn::CastOp cast; ///< of a narrow operand, before the sum; null for f32

  /// What `sum` is of this kind: it and perhaps the cast read what is an argument of the block, and
  /// a product of matrices reads that as an operand stored with k as its first axis.
  static std::optional<OperandSum> of(nn::ReduceSumOp sum);
};

struct LibraryForm {
  enum class Activation { None, Relu, Gelu, GeluGradient };

  nn::MatmulOp product;
  mlir::Value value;       ///< the end of the chain
  mlir::Value scale;       ///< f32 of one element, of products of f8
  mlir::Value bias;        ///< one element a column, of any float type
  mlir::Value accumulated; ///< of the value's type and shape
  mlir::Value saved;       ///< GeluGradient: where the derivative is taken
  Activation activation = Activation::None;
  mlir::Value preactivation; ///< what Relu or Gelu is applied to
  std::optional<OperandSum> operandSum;

  /// The product alone.
  static LibraryForm of(nn::MatmulOp product);

  /// The chain with `op`, which reads its end as `current` (another name of `value`, in the block
  /// of `op`); none if no epilogue does that. Other operands are arguments of the block or come
  /// from ops that move along: those are added to `along`, then `op`.
  std::optional<LibraryForm> extended(mlir::Operation *op, mlir::Value current,
                                      llvm::SmallVectorImpl<mlir::Operation *> &along) const;

  /// Whether the pre-activation can be stored beside the result.
  bool canStorePreactivation() const;
};

/// The form of a body that is nothing but a product and such a chain, and whose results are the end
/// of the chain and perhaps the pre-activation of a gelu; or a product with an f32 result and the
/// sum of an operand, in this order.
std::optional<LibraryForm> matchLibraryForm(mlir::Block &body);

/// The op that makes the mask of a relu: x > 0, where `x` is what the relu is applied to.
bool isReluMask(mlir::Operation *op, mlir::Value x);

} // namespace descent::fusion

#endif // DESCENT_PASSES_FUSION_LIBRARYFORM_H
