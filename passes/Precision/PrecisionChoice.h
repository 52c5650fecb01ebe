//===- PrecisionChoice.h - In which type each op runs ---------------------===//
//
// The rules of mixed precision, apart from the pass that applies them, so that the plan can print
// what was decided and why.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_PRECISION_PRECISIONCHOICE_H
#define DESCENT_PASSES_PRECISION_PRECISIONCHOICE_H

#include "dialects/NN/NN.h"
#include "dialects/Train/Train.h"

namespace descent {

/// What was decided for one op of a model.
struct PrecisionChoice {
  mlir::Operation *op;
  /// The element type that its float operands are converted to; null leaves them as they come.
  mlir::Type operands;
  /// The element type of its float results.
  mlir::Type results;
  /// The rule that said so, in words: "narrow (matmul)", "override of matmul in h.0.*", "bias of a
  /// product".
  std::string rule;
  /// An override said so. quantize-products leaves such a product as it is: its operands have the
  /// type that was asked for.
  bool overridden = false;
};

/// Unit attribute on a product of the forward pass, from insert-precision-casts to
/// quantize-products: neither it nor the products of its gradient are to be quantized.
inline constexpr llvm::StringLiteral unquantizedAttrName = "train.unquantized";

/// Decides for every op of `model`, in program order, from its class (PrecisionOp) and the module's
/// attributes `train.compute` and `train.overrides`:
///
///  - the last override that matches decides alone;
///  - *narrow* ops run in the compute type; one whose result goes only into the addition of a bias
///    (a parameter of rank 1) yields its f32 sum, the bias is added in f32, and the sum is rounded
///    once, as the linear layers and convolutions of torch.autocast do inside;
///  - *wide* ops run in f32;
///  - *widest-operand* and *follows-input* ops run in the widest type of their float operands;
///    splat constants count for nothing there, unless their value is not finite or below the normal
///    numbers of that type: then the op runs in f32 (a mask of -1e9 in f16, an epsilon of 1e-8);
///  - predictions are f32 again at the loss.
///
/// Fails after an error at the module where an override matches nothing.
mlir::FailureOr<llvm::SmallVector<PrecisionChoice>> choosePrecision(nn::ModelOp model);

/// Whether the op's type is open to overrides: it has a class, operands, and is no cast of the
/// model's own.
bool canOverride(mlir::Operation &op);

/// Whether the override is about this op, by its kind and its names: the path of the instance it is
/// in ("h.0.attn"), that with its kind ("h.0.attn.matmul"), and those of the parameters among its
/// operands.
bool matchesOverride(mlir::Operation &op, train::OverrideAttr entry);

} // namespace descent

#endif // DESCENT_PASSES_PRECISION_PRECISIONCHOICE_H
