//===- ContractionKernel.cpp - Kernels of products ------------------------===//
//
// Translates a kernel body, one product and elementwise ops, into the specification that the
// product generator takes. The epilogue is a callback: the generator has a vector of products in a
// register and hands it over with the matching vectors of the other inputs; the ops'
// ElementwiseOp::emitElement then write the arithmetic of the whole chain on these vectors, once
// for each op.
//
// Values of i1 are bytes in memory and bits in registers, narrow floats are integers in memory;
// both ends of the callback convert.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NN.h"
#include "dialects/NN/NarrowFloats.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Codegen/Convolution.h"
#include "passes/Codegen/Gemm.h"
#include "passes/Codegen/KernelDispatch.h"
#include "passes/Codegen/Lanes.h"
#include "passes/Fusion/KernelRules.h"

using namespace mlir;
using namespace descent;

namespace {

MemRefType bufferOf(Type tensor) { return bufferType(cast<RankedTensorType>(tensor)); }

NumberBuffer operandOf(Type tensor) {
  return {bufferOf(tensor), cast<RankedTensorType>(tensor).getElementType()};
}

/// `scalar`'s type in the shape of a vector.
VectorType vectorOf(Type element, VectorType like) {
  return VectorType::get(like.getShape(), element);
}

Value fromMemory(OpBuilder &builder, Location loc, Value vector, Type element) {
  Emitter emitter(builder, loc);
  if (!element.isInteger(1))
    return bitcastElements(emitter, vector, element);
  auto type = cast<VectorType>(vector.getType());
  Value zero = arith::ConstantOp::create(builder, loc, type, builder.getZeroAttr(type));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, vector, zero);
}

Value toMemory(OpBuilder &builder, Location loc, Value vector) {
  Emitter emitter(builder, loc);
  auto type = cast<VectorType>(vector.getType());
  if (!type.getElementType().isInteger(1))
    return bitcastElements(emitter, vector, storageType(type.getElementType()));
  return arith::ExtUIOp::create(builder, loc, vectorOf(builder.getI8Type(), type), vector);
}

/// The body of a kernel around one product.
struct ContractionBody {
  Operation *product = nullptr;
  SmallVector<Operation *> epilogue; ///< in order

  static FailureOr<ContractionBody> read(exec::KernelOp kernel);
  bool isTrivial() const { return epilogue.empty(); }
};

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

/// The arithmetic of `body`'s epilogue. The kernel outlives the generator's use of the callback.
Epilogue epilogueOf(exec::KernelOp kernel, const ContractionBody &body) {
  return [kernel, body](OpBuilder &builder, Location loc, const EpiloguePoint &point) mutable {
    auto lanes = cast<VectorType>(point.product.getType());
    IRMapping values;
    Type rounded = cast<RankedTensorType>(body.product->getResult(0).getType()).getElementType();
    Value product = narrowFloat(builder, loc, point.product, rounded);
    values.map(body.product->getResult(0), product);
    for (auto [argument, vector] :
         llvm::zip_equal(kernel.getBody().getArguments().drop_front(2), point.inputs))
      values.map(argument, fromMemory(builder, loc, vector,
                                      cast<RankedTensorType>(argument.getType()).getElementType()));
    for (Operation *op : body.epilogue) {
      SmallVector<Value> operands =
          llvm::map_to_vector(op->getOperands(), [&](Value v) { return values.lookup(v); });
      Value result;
      if (auto constant = dyn_cast<nn::ConstantOp>(op)) {
        auto elements = cast<DenseElementsAttr>(constant.getValue());
        auto type = vectorOf(elements.getElementType(), lanes);
        result = arith::ConstantOp::create(
            builder, loc, DenseElementsAttr::get(type, elements.getSplatValue<Attribute>()));
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
                               [&](Value v) { return toMemory(builder, loc, values.lookup(v)); });
  };
}

FailureOr<EpilogueSpec> epilogueSpecOf(exec::KernelOp kernel, const ContractionBody &body) {
  EpilogueSpec spec;
  ArrayRef<int64_t> shape = fusion::shapeOf(body.product->getResult(0));
  for (Type type : kernel.getArgumentTypes().drop_front(2)) {
    std::optional<EpilogueInput> input = EpilogueInput::broadcast(bufferOf(type), shape);
    if (!input)
      return kernel.emitOpError("@")
             << kernel.getSymName() << ": its epilogue reads " << type
             << ", which does not broadcast to " << fusion::shapeText(shape) << " row by row";
    spec.inputs.push_back(*input);
  }
  for (Type type : kernel.getResultTypes())
    spec.outputs.push_back(bufferOf(type));
  auto result = cast<RankedTensorType>(body.product->getResult(0).getType());
  spec.function =
      body.isTrivial() ? roundingEpilogue(result.getElementType()) : epilogueOf(kernel, body);
  return spec;
}

/// Sizes of one of the three products of a convolution, whichever tensors it has: image x, output
/// y, weights w.
template <typename ConvOp> ConvolutionShape convolutionShape(ConvOp op, Value x, Value y, Value w) {
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

} // namespace

FailureOr<func::FuncOp> descent::emitContractionKernel(exec::KernelOp kernel, ModuleOp target,
                                                       const CpuTarget &cpu) {
  FailureOr<ContractionBody> body = ContractionBody::read(kernel);
  if (failed(body))
    return failure();
  FailureOr<EpilogueSpec> epilogue = epilogueSpecOf(kernel, *body);
  if (failed(epilogue))
    return failure();
  NumberBuffer a = operandOf(kernel.getArgumentTypes()[0]),
               b = operandOf(kernel.getArgumentTypes()[1]);
  if (auto contraction = dyn_cast<ContractionOp>(body->product)) {
    GemmSpec spec;
    spec.name = kernel.getSymName().str();
    spec.shape = contraction.getContraction();
    spec.a = a;
    spec.b = b;
    spec.epilogue = std::move(*epilogue);
    return emitGemmKernel(target, kernel.getLoc(), spec, cpu);
  }
  ConvolutionSpec spec;
  spec.name = kernel.getSymName().str();
  spec.first = a;
  spec.second = b;
  spec.epilogue = std::move(*epilogue);
  if (auto forward = dyn_cast<nn::Conv2DOp>(body->product)) {
    spec.kind = ConvolutionKind::Forward;
    spec.shape = convolutionShape(forward, forward.getX(), forward.getY(), forward.getW());
    return emitConvolutionKernel(target, kernel.getLoc(), spec, cpu);
  }
  if (auto input = dyn_cast<nn::Conv2DGradInputOp>(body->product)) {
    spec.kind = ConvolutionKind::InputGradient;
    spec.shape = convolutionShape(input, input.getDx(), input.getDy(), input.getW());
    return emitConvolutionKernel(target, kernel.getLoc(), spec, cpu);
  }
  if (auto weight = dyn_cast<nn::Conv2DGradWeightOp>(body->product)) {
    spec.kind = ConvolutionKind::WeightGradient;
    spec.shape = convolutionShape(weight, weight.getX(), weight.getDy(), weight.getDw());
    return emitConvolutionKernel(target, kernel.getLoc(), spec, cpu);
  }
  return body->product->emitOpError("has no generator among the products (kernel @")
         << kernel.getSymName() << ")";
}

SmallVector<std::pair<unsigned, unsigned>>
descent::reusableContractionOperands(exec::KernelOp kernel) {
  SmallVector<std::pair<unsigned, unsigned>> pairs;
  // A library does not say in which order it reads and writes; adding in place is another matter,
  // and the kernel's own attribute.
  if (kernel->hasAttr(fusion::libraryAttrName))
    return pairs;
  for (auto [result, resultType] : llvm::enumerate(kernel.getResultTypes()))
    for (auto [input, inputType] : llvm::enumerate(kernel.getArgumentTypes()))
      // The product's operands are read by every tile; everything after them by the element's own
      // tile alone.
      if (input >= 2 && inputType == resultType)
        pairs.push_back({static_cast<unsigned>(result), static_cast<unsigned>(input)});
  return pairs;
}
