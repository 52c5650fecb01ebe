//===- ContractionKernel.cpp - Kernels of products ------------------------===//
//
// Translates a kernel body, one product and elementwise ops, into the specification that the
// product generator takes. The epilogue is a callback: the generator has a vector of products in a
// register and hands it over with the matching vectors of the other inputs.
//
// Values of i1 are bytes in memory and bits in registers, narrow floats are integers in memory;
// both ends of the callback convert.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NN.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Codegen/ContractionBody.h"
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

/// The arithmetic of `body`'s epilogue. The kernel outlives the generator's use of the callback.
Epilogue epilogueOf(exec::KernelOp kernel, const ContractionBody &body) {
  return [kernel, body](OpBuilder &builder, Location loc, const EpiloguePoint &point) mutable {
    SmallVector<Value> inputs;
    for (auto [type, vector] :
         llvm::zip_equal(kernel.getArgumentTypes().drop_front(2), point.inputs))
      inputs.push_back(
          fromMemory(builder, loc, vector, cast<RankedTensorType>(type).getElementType()));
    return llvm::map_to_vector(body.emit(builder, loc, kernel, point.product, inputs),
                               [&](Value v) { return toMemory(builder, loc, v); });
  };
}

FailureOr<EpilogueSpec> epilogueSpecOf(exec::KernelOp kernel, const ContractionBody &body) {
  EpilogueSpec spec;
  FailureOr<SmallVector<EpilogueInput>> inputs = body.inputs(kernel, bufferOf);
  if (failed(inputs))
    return failure();
  spec.inputs = std::move(*inputs);
  for (Type type : kernel.getResultTypes())
    spec.outputs.push_back(bufferOf(type));
  spec.function =
      body.epilogue.empty() ? roundingEpilogue(body.productElement()) : epilogueOf(kernel, body);
  return spec;
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
  std::optional<ConvolutionProduct> convolution = ConvolutionProduct::of(body->product);
  if (!convolution)
    return body->product->emitOpError("has no generator among the products (kernel @")
           << kernel.getSymName() << ")";
  ConvolutionSpec spec;
  spec.name = kernel.getSymName().str();
  spec.first = a;
  spec.second = b;
  spec.epilogue = std::move(*epilogue);
  spec.kind = convolution->kind;
  spec.shape = convolution->shape;
  return emitConvolutionKernel(target, kernel.getLoc(), spec, cpu);
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
