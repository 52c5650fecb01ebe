//===- ContractionBody.cpp - What a kernel of one product says ------------===//
//
// The ops' ElementwiseOp::emitElement write the arithmetic of the whole chain, once for each op.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/ContractionBody.h"
#include "dialects/NN/NN.h"
#include "dialects/NN/NarrowFloats.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Fusion/KernelRules.h"

using namespace mlir;

namespace descent {

FailureOr<ContractionBody> ContractionBody::read(exec::KernelOp kernel) {
  ContractionBody body;
  SmallVector<Operation *> ops;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    ops.push_back(&op);
    if (fusion::fusionClass(&op) == FusionClass::Contraction)
      body.product = &op;
    else
      body.epilogue.push_back(&op);
  }
  if (std::optional<std::string> reason = fusion::kernelViolation(kernel.getKind(), ops))
    return kernel.emitOpError("@") << kernel.getSymName() << ": " << *reason;
  for (unsigned i = 0; i < 2; ++i) {
    auto argument = dyn_cast<BlockArgument>(body.product->getOperand(i));
    if (!argument || argument.getArgNumber() != i || !argument.hasOneUse())
      return body.product->emitOpError("operand ")
             << i << " must be input " << i << " of kernel @" << kernel.getSymName()
             << " and serve the product alone";
  }
  return body;
}

Type ContractionBody::productElement() const {
  return cast<RankedTensorType>(product->getResult(0).getType()).getElementType();
}

FailureOr<SmallVector<EpilogueInput>>
ContractionBody::inputs(exec::KernelOp kernel, function_ref<MemRefType(Type)> buffer) const {
  SmallVector<EpilogueInput> inputs;
  ArrayRef<int64_t> shape = fusion::shapeOf(product->getResult(0));
  for (Type type : kernel.getArgumentTypes().drop_front(2)) {
    std::optional<EpilogueInput> input = EpilogueInput::broadcast(buffer(type), shape);
    if (!input)
      return kernel.emitOpError("@")
             << kernel.getSymName() << ": its epilogue reads " << type
             << ", which does not broadcast to " << fusion::shapeText(shape) << " row by row";
    inputs.push_back(*input);
  }
  return inputs;
}

SmallVector<Value> ContractionBody::emit(OpBuilder &builder, Location loc, exec::KernelOp kernel,
                                         Value sum, ValueRange inputs) const {
  auto lanes = dyn_cast<VectorType>(sum.getType());
  IRMapping values;
  values.map(product->getResult(0), narrowFloat(builder, loc, sum, productElement()));
  values.map(kernel.getBody().getArguments().drop_front(2), inputs);
  for (Operation *op : epilogue) {
    SmallVector<Value> operands =
        llvm::map_to_vector(op->getOperands(), [&](Value v) { return values.lookup(v); });
    Value result;
    if (auto constant = dyn_cast<nn::ConstantOp>(op)) {
      auto elements = cast<DenseElementsAttr>(constant.getValue());
      auto scalar = cast<TypedAttr>(elements.getSplatValue<Attribute>());
      if (lanes)
        scalar = DenseElementsAttr::get(
            VectorType::get(lanes.getShape(), elements.getElementType()), Attribute(scalar));
      result = arith::ConstantOp::create(builder, loc, scalar);
    } else if (auto elementwise = dyn_cast<ElementwiseOp>(op)) {
      result = elementwise.emitElement(builder, loc, operands);
    } else {
      // kernelViolation lets nothing but a broadcast through, and operands are read broadcast
      // already.
      result = operands.front();
    }
    values.map(op->getResult(0), result);
  }
  return llvm::map_to_vector(kernel.getBody().front().getTerminator()->getOperands(),
                             [&](Value v) { return values.lookup(v); });
}

/// Sizes of one of the three products of a convolution, whichever tensors it has: image x, output
/// y, weights w.
template <typename ConvOp>
static ConvolutionShape convolutionShape(ConvOp op, Value x, Value y, Value w) {
  ArrayRef<int64_t> image = fusion::shapeOf(x), output = fusion::shapeOf(y),
                    weights = fusion::shapeOf(w);
  ConvolutionShape shape;
  shape.images = image[0];
  shape.height = image[1];
  shape.width = image[2];
  shape.inChannels = image[3];
  shape.outHeight = output[1];
  shape.outWidth = output[2];
  shape.outChannels = output[3];
  shape.kernelHeight = weights[0];
  shape.kernelWidth = weights[1];
  shape.strideY = op.getStrides()[0];
  shape.strideX = op.getStrides()[1];
  shape.dilationY = op.getDilations()[0];
  shape.dilationX = op.getDilations()[1];
  shape.padTop = op.getPadding()[0];
  shape.padLeft = op.getPadding()[2];
  return shape;
}

std::optional<ConvolutionProduct> ConvolutionProduct::of(Operation *product) {
  if (auto op = dyn_cast<nn::Conv2DOp>(product))
    return ConvolutionProduct{ConvolutionKind::Forward,
                              convolutionShape(op, op.getX(), op.getY(), op.getW())};
  if (auto op = dyn_cast<nn::Conv2DGradInputOp>(product))
    return ConvolutionProduct{ConvolutionKind::InputGradient,
                              convolutionShape(op, op.getDx(), op.getDy(), op.getW())};
  if (auto op = dyn_cast<nn::Conv2DGradWeightOp>(product))
    return ConvolutionProduct{ConvolutionKind::WeightGradient,
                              convolutionShape(op, op.getX(), op.getDy(), op.getDw())};
  return std::nullopt;
}

} // namespace descent
