//===- Convolution.h - Kernels of two-dimensional convolutions ------------===//
//
// The three products of a convolution on images [N, H, W, C] with weights [KH, KW, IC, OC]:
//
//   Forward         x, w -> y     y[p, oc] = sum over taps and ic of x[pixel of p under the tap,
//   ic] w[tap, ic, oc] InputGradient   dy, w -> dx   the same sum read backwards: dx[p, ic] gathers
//   the dy that p contributed to WeightGradient  x, dy -> dw   dw[tap, ic, oc] = sum over output
//   pixels of x[pixel under the tap, ic] dy[p, oc]
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_CONVOLUTION_H
#define DESCENT_PASSES_CODEGEN_CONVOLUTION_H

#include "passes/Codegen/Product.h"

namespace descent {

enum class ConvolutionKind { Forward, InputGradient, WeightGradient };

struct ConvolutionShape {
  int64_t images = 0, height = 0, width = 0, inChannels = 0; ///< of x
  int64_t outHeight = 0, outWidth = 0, outChannels = 0;      ///< of y
  int64_t kernelHeight = 0, kernelWidth = 0;
  int64_t strideY = 1, strideX = 1, dilationY = 1, dilationX = 1;
  int64_t padTop = 0, padLeft = 0; ///< padding below and to the right follows from the sizes of y
};

struct ConvolutionSpec {
  std::string name;
  ConvolutionKind kind = ConvolutionKind::Forward;
  ConvolutionShape shape;
  NumberBuffer first, second; ///< the operands in the order above, of types as GemmSpec's
  EpilogueSpec epilogue;      ///< rows are pixels (taps and ic), columns are channels of the result
  bool accumulate = false;    ///< as GemmSpec::accumulate
  std::optional<ProductPlan> plan;
};

ProductPlan planConvolution(const ConvolutionSpec &spec, const CpuTarget &target);

/// Adds the kernel function to the module, and the helpers it needs. Fails after emitting an error
/// at `loc`.
mlir::FailureOr<mlir::func::FuncOp> emitConvolutionKernel(mlir::ModuleOp module, mlir::Location loc,
                                                          const ConvolutionSpec &spec,
                                                          const CpuTarget &target);

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_CONVOLUTION_H
