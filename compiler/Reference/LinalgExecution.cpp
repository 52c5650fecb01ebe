//===- LinalgExecution.cpp - A function of nn ops through linalg, compiled -===//
//
//   1. Every op is replaced by its linalg form inside a kernel function with one task, whose
//   arguments are the function's inputs and results.
//   2. One-shot bufferization, loops, temporaries on the stack: test-sized tensors fit, and kernel
//   functions may not allocate.
//   3. The ordinary lowering of kernel functions and the in-process loader.
//
//===----------------------------------------------------------------------===//

#include "compiler/Reference/LinalgExecution.h"
#include "compiler/Target/CpuCodegen.h"
#include "dialects/NN/NN.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Codegen/KernelFunction.h"

#include <cstddef>
#include <cstring>

using namespace mlir;
using namespace descent;
using reference::Tensor;

static MemRefType bufferType(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return MemRefType::get(type.getShape(), type.getElementType());
}

/// Steps 1 and 2 into `module`.
static LogicalResult buildKernel(func::FuncOp function, ModuleOp module) {
  Block &body = function.getBody().front();
  auto ret = cast<func::ReturnOp>(body.getTerminator());
  SmallVector<Type> buffers;
  for (Value input : body.getArguments())
    buffers.push_back(bufferType(input));
  for (Value result : ret.getOperands())
    buffers.push_back(bufferType(result));
  func::FuncOp kernel =
      createKernelFunction(module, function.getLoc(), "kernel", buffers, /*tasks=*/1,
                           /*scratchBytes=*/0);
  Block &entry = kernel.getBody().front();
  OpBuilder builder = OpBuilder::atBlockBegin(&entry);

  DenseMap<Value, Value> lowered;
  for (BlockArgument input : body.getArguments())
    lowered[input] = bufferization::ToTensorOp::create(builder, input.getLoc(), input.getType(),
                                                       entry.getArgument(input.getArgNumber()),
                                                       /*restrict=*/true);
  for (Operation &op : body.without_terminator()) {
    auto lowerable = dyn_cast<LinalgLowerable>(op);
    if (!lowerable)
      return op.emitOpError("has no linalg form");
    SmallVector<Value> operands;
    for (Value operand : op.getOperands())
      operands.push_back(lowered.lookup(operand));
    FailureOr<SmallVector<Value>> values = lowerable.lowerToLinalg(builder, operands);
    if (failed(values))
      return failure();
    for (auto [result, value] : llvm::zip_equal(op.getResults(), *values)) {
      if (result.getType() != value.getType())
        return op.emitOpError() << "was lowered to " << value.getType() << " instead of "
                                << result.getType();
      lowered[result] = value;
    }
  }
  for (auto [index, result] : llvm::enumerate(ret.getOperands())) {
    auto store = bufferization::MaterializeInDestinationOp::create(
        builder, ret.getLoc(), lowered.lookup(result),
        entry.getArgument(body.getNumArguments() + index));
    store.setRestrict(true);
    store.setWritable(true);
  }
  func::ReturnOp::create(builder, ret.getLoc());

  PassManager pm(module->getContext());
  bufferization::OneShotBufferizePassOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.functionBoundaryTypeConversion = bufferization::LayoutMapOption::IdentityLayoutMap;
  pm.addPass(bufferization::createOneShotBufferizePass(options));
  pm.addPass(createCanonicalizerPass());
  bufferization::PromoteBuffersToStackPassOptions stack;
  stack.maxAllocSizeInBytes = 1 << 20;
  stack.maxRankOfAllocatedMemRef = 16;
  pm.addNestedPass<func::FuncOp>(bufferization::createPromoteBuffersToStackPass(stack));
  if (failed(pm.run(module)))
    return failure();
  // A strided copy would become a call into MLIR's runner library; as a loop it needs no library.
  SmallVector<memref::CopyOp> copies;
  module.walk([&](memref::CopyOp copy) { copies.push_back(copy); });
  for (memref::CopyOp copy : copies) {
    OpBuilder at(copy);
    linalg::makeMemRefCopyOp(at, copy.getLoc(), copy.getSource(), copy.getTarget());
    copy.erase();
  }
  PassManager loops(module->getContext());
  loops.addNestedPass<func::FuncOp>(createConvertLinalgToLoopsPass());
  return loops.run(module);
}

/// The bits of a value in a type.
static APInt encode(double value, Type type) {
  if (auto real = dyn_cast<FloatType>(type)) {
    APFloat number(value);
    bool loses = false;
    number.convert(real.getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses);
    return number.bitcastToAPInt();
  }
  return APInt(type.getIntOrFloatBitWidth(), static_cast<uint64_t>(static_cast<int64_t>(value)),
               /*isSigned=*/true,
               /*implicitTrunc=*/true);
}

static double decode(const APInt &bits, Type type) {
  if (auto real = dyn_cast<FloatType>(type))
    return APFloat(real.getFloatSemantics(), bits).convertToDouble();
  return static_cast<double>(type.isInteger(1) ? static_cast<int64_t>(bits.getZExtValue())
                                               : bits.getSExtValue());
}

LogicalResult descent::executeThroughLinalg(func::FuncOp function, ArrayRef<Tensor> inputs,
                                            SmallVectorImpl<Tensor> &outputs) {
  // The parser loaded only the dialects of its file.
  function->getContext()
      ->loadDialect<arith::ArithDialect, bufferization::BufferizationDialect, linalg::LinalgDialect,
                    math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
                    tensor::TensorDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(function.getLoc());
  if (failed(buildKernel(function, *module)))
    return failure();
  llvm::Expected<CpuTarget> target = CpuTarget::host();
  if (!target)
    return function.emitError() << llvm::toString(target.takeError());
  FailureOr<std::unique_ptr<KernelJit>> jit = KernelJit::create(*module, *target);
  if (failed(jit))
    return failure();

  // One byte for i1, as memref stores it; alignment for any vector.
  SmallVector<Type> types(function.getArgumentTypes());
  llvm::append_range(types, function.getResultTypes());
  std::vector<std::vector<std::max_align_t>> storage;
  SmallVector<void *> buffers;
  auto widthOf = [](Type type) {
    return llvm::divideCeil(getElementTypeOrSelf(type).getIntOrFloatBitWidth(), 8);
  };
  for (auto [index, type] : llvm::enumerate(types)) {
    int64_t count = cast<RankedTensorType>(type).getNumElements();
    unsigned width = widthOf(type);
    storage.emplace_back(count * width / sizeof(std::max_align_t) + 8);
    // Results start as NaN, so that an element nobody writes is seen.
    auto *bytes = reinterpret_cast<unsigned char *>(storage.back().data());
    std::fill_n(bytes, count * width, 0xFF);
    for (int64_t i = 0; index < inputs.size() && i < count; ++i) {
      uint64_t bits = encode(inputs[index].values[i], getElementTypeOrSelf(type)).getZExtValue();
      std::memcpy(bytes + i * width, &bits, width);
    }
    buffers.push_back(bytes);
  }
  descent_kernel_function kernel = (*jit)->kernel("kernel");
  if (!kernel)
    return function.emitError("the compiled kernel was not found");
  kernel(buffers.data(), 0, 1, nullptr);

  for (size_t index = inputs.size(); index < types.size(); ++index) {
    auto type = cast<RankedTensorType>(types[index]);
    unsigned width = widthOf(type), bits = type.getElementTypeBitWidth();
    Tensor output(type.getShape().vec());
    for (int64_t i = 0; i < output.size(); ++i) {
      uint64_t word = 0;
      std::memcpy(&word, static_cast<unsigned char *>(buffers[index]) + i * width, width);
      output.values[i] = decode(APInt(bits, word, false, true), type.getElementType());
    }
    outputs.push_back(std::move(output));
  }
  return success();
}
