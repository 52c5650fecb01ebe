//===- DeviceAttention.cpp - Attention and its gradient on a GPU ----------===//
//
// Generators for kernels of kind "attention" and "attention_grad"; what their bodies may hold says
// passes/Codegen/Attention.h. bf16 and f16 with at most 128 columns a head run on the tensor cores,
// all else on the ordinary units in f32. One function for attention, two for the gradient, which
// pass rowsum(dO * O) through the workspace; no atomics, so bits do not depend on the order of
// blocks.
//
// This file chooses how a kernel is cut and makes the functions and the commands that launch them.
// The choice depends on the shape alone, so a model computes the same sums in the same order on
// every chip.
//
//===----------------------------------------------------------------------===//

#include "passes/Cuda/DeviceAttentionKernels.h"
#include "passes/Cuda/DeviceKernel.h"
#include "passes/Cuda/DeviceKernels.h"
#include "passes/Cuda/TensorCoreOps.h"

using namespace mlir;

namespace descent {

namespace {

constexpr int64_t widestTensorHead = 128;

/// Cuts keep ptxas from spilling on sm_80, sm_90 and sm_100; two row tiles let each fragment that
/// is read from shared memory feed two multiplications, which is what bounds a kernel with one.
AttentionCut forwardCut(const AttentionForm &form) {
  AttentionCut cut;
  int64_t padded = paddedDepth(form);
  cut.rowTiles = form.length > 64 ? 2 : 1;
  cut.columns = padded <= 64 ? 64 : 32;
  cut.reread = true;
  return cut;
}

AttentionCut gradientCut(const AttentionForm &form, GradientPart part) {
  AttentionCut cut;
  int64_t padded = paddedDepth(form);
  bool keys = part == GradientPart::Keys;
  cut.rowTiles = form.length > 64 && padded <= (keys ? 48 : 64) ? 2 : 1;
  cut.columns = padded <= 64 && cut.rowTiles == 1 ? 64 : 32;
  cut.reread = padded > 64 || cut.rowTiles == 2;
  return cut;
}

/// A function of the kernel, from the buffers that it uses to their addresses.
class FunctionMaker {
public:
  explicit FunctionMaker(DeviceKernel &kernel) : kernel(kernel) {}

  /// Has the function take operand `operand` of the kernel; its address will be in `pointer`.
  void use(const AttentionOperand &operand, Value &pointer) {
    use(kernel.operand(operand.buffer), pointer);
  }
  void use(const std::optional<AttentionOperand> &operand, Value &pointer) {
    if (operand)
      use(*operand, pointer);
  }
  void use(Value buffer, Value &pointer) {
    auto *found = llvm::find(buffers, buffer);
    pointers.push_back({static_cast<unsigned>(found - buffers.begin()), &pointer});
    if (found == buffers.end())
      buffers.push_back(buffer);
  }

  void make(StringRef suffix, int64_t threads, int64_t blocksPerMultiprocessor, int64_t grid,
            int64_t shared, llvm::function_ref<void(gpu::GPUFuncOp, Value)> fill) {
    gpu::GPUFuncOp function =
        kernel.function(suffix, buffers, {threads, 1, 1}, blocksPerMultiprocessor);
    LLVM::GlobalOp memory = kernel.dynamicShared();
    OpBuilder builder = OpBuilder::atBlockEnd(&function.getBody().front());
    SmallVector<Value> addresses;
    for (BlockArgument buffer : function.getBody().front().getArguments())
      addresses.push_back(tensorcore::globalAddress(builder, buffer.getLoc(), buffer,
                                                    kernel.module()->hasAttr(index64AttrName)));
    for (auto [index, pointer] : pointers)
      *pointer = addresses[index];
    Value base = LLVM::AddressOfOp::create(builder, function.getLoc(), memory);
    gpu::ReturnOp::create(builder, function.getLoc());
    fill(function, base);
    kernel.launch(function, {grid, 1, 1}, buffers, shared);
  }

private:
  DeviceKernel &kernel;
  SmallVector<Value> buffers;
  SmallVector<std::pair<unsigned, Value *>> pointers; // which buffer, and where its address goes
};

bool onTensorCores(const AttentionForm &form) {
  return form.narrow && form.depth <= widestTensorHead;
}

int64_t tensorBlocks(const AttentionForm &form, const AttentionCut &cut) {
  return form.batch * form.heads * llvm::divideCeil(form.length, cut.blockRows());
}

/// A grid has fewer than 2^31 blocks, and rows are counted in 32 bits.
LogicalResult checkSizes(exec::KernelOp kernel, const AttentionForm &form) {
  if (form.length <= 1 << 30 && form.batch * form.heads <= INT32_MAX / 256 &&
      llvm::divideCeil(form.length, 64) * form.batch * form.heads <= INT32_MAX / 256)
    return success();
  return kernel.emitOpError("@") << kernel.getSymName() << ": " << form.batch << " sequences of "
                                 << form.length << " rows in " << form.heads
                                 << " heads are more than a launch can have blocks for; split the "
                                    "batch";
}

void emitForward(DeviceKernel &kernel, const AttentionForm &form) {
  AttentionPointers pointers;
  FunctionMaker maker(kernel);
  maker.use(form.q, pointers.q);
  maker.use(form.k, pointers.k);
  maker.use(form.v, pointers.v);
  maker.use(form.o, pointers.o);
  maker.use(form.logsumexp, pointers.logsumexp);
  if (!onTensorCores(form))
    return maker.make("", scalarAttentionThreads, form.depth > 64 ? 1 : 2,
                      scalarAttentionBlocks(form), scalarAttentionShared(form),
                      [&](gpu::GPUFuncOp function, Value shared) {
                        emitScalarAttention(function, form, pointers, shared);
                      });
  AttentionCut cut = forwardCut(form);
  maker.make("", attentionThreads, cut.blocksPerMultiprocessor, tensorBlocks(form, cut),
             tensorAttentionShared(form, cut), [&](gpu::GPUFuncOp function, Value shared) {
               emitTensorAttention(function, form, pointers, shared, cut);
             });
}

void emitGradientPart(DeviceKernel &kernel, const AttentionForm &form, GradientPart part,
                      Value delta) {
  AttentionPointers pointers;
  FunctionMaker maker(kernel);
  bool keys = part == GradientPart::Keys;
  maker.use(form.q, pointers.q);
  maker.use(form.k, pointers.k);
  maker.use(form.v, pointers.v);
  maker.use(form.dout, pointers.dout);
  maker.use(form.logsumexp, pointers.logsumexp);
  if (delta)
    maker.use(delta, pointers.delta);
  if (keys) {
    maker.use(form.dk, pointers.dk);
    maker.use(form.dv, pointers.dv);
  } else {
    maker.use(form.o, pointers.o);
    maker.use(form.dq, pointers.dq);
  }
  StringRef suffix = keys ? "keys" : "queries";
  if (!onTensorCores(form))
    return maker.make(suffix, scalarAttentionThreads, form.depth > 64 ? 1 : 2,
                      scalarAttentionBlocks(form), scalarAttentionShared(form),
                      [&](gpu::GPUFuncOp function, Value shared) {
                        emitScalarAttentionGrad(function, form, part, pointers, shared);
                      });
  AttentionCut cut = gradientCut(form, part);
  maker.make(suffix, attentionThreads, cut.blocksPerMultiprocessor, tensorBlocks(form, cut),
             tensorAttentionGradShared(form, part, cut),
             [&](gpu::GPUFuncOp function, Value shared) {
               emitTensorAttentionGrad(function, form, part, pointers, shared, cut);
             });
}

FailureOr<AttentionForm> formOf(exec::KernelOp kernel, StringRef kind) {
  if (kernel.getKind() != kind)
    return kernel.emitError() << "has kind \"" << kernel.getKind() << "\"; expected \"" << kind
                              << "\"";
  FailureOr<AttentionForm> form = AttentionForm::parse(kernel);
  if (failed(form) || failed(checkSizes(kernel, *form)))
    return failure();
  return form;
}

} // namespace

FailureOr<exec::DeviceKernelOp> emitDeviceAttention(exec::KernelOp kernel, ModuleOp target,
                                                    const CudaTarget &) {
  FailureOr<AttentionForm> form = formOf(kernel, "attention");
  if (failed(form))
    return failure();
  DeviceKernel device(kernel, target);
  emitForward(device, *form);
  return device.op();
}

FailureOr<exec::DeviceKernelOp> emitDeviceAttentionGrad(exec::KernelOp kernel, ModuleOp target,
                                                        const CudaTarget &) {
  FailureOr<AttentionForm> form = formOf(kernel, "attention_grad");
  if (failed(form))
    return failure();
  DeviceKernel device(kernel, target);
  Value delta;
  if (form->dk)
    delta = device.workspace(MemRefType::get({form->batch, form->heads, form->length},
                                             Float32Type::get(kernel.getContext())));
  if (form->dq || form->dk)
    emitGradientPart(device, *form, GradientPart::Queries, delta);
  if (form->dk || form->dv)
    emitGradientPart(device, *form, GradientPart::Keys, delta);
  return device.op();
}

} // namespace descent
