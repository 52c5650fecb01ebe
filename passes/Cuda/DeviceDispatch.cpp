//===- DeviceDispatch.cpp - Kernels to device code ------------------------===//
//
// Chooses the generator of each exec.kernel by its kind. Each kernel is generated into a module of
// its own, so that generators can run side by side; the modules are then joined in the kernels'
// order.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Threading.h"
#include "passes/Cuda/DeviceContraction.h"
#include "passes/Cuda/DeviceKernels.h"
#include "passes/Cuda/LibraryProduct.h"
#include "passes/Passes.h"
#include "llvm/ADT/StringSwitch.h"

namespace descent {
#define GEN_PASS_DEF_GENERATEDEVICEKERNELS
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;

using Generator = FailureOr<exec::DeviceKernelOp> (*)(exec::KernelOp, ModuleOp, const CudaTarget &);

static Generator generatorOf(StringRef kind) {
  return llvm::StringSwitch<Generator>(kind)
      .Case("rows", emitDeviceRows)
      .Case("columns", emitDeviceColumns)
      .Case("copy", emitDeviceCopy)
      .Case("gather", emitDeviceGather)
      .Case("scatter", emitDeviceScatter)
      .Case("pool", emitDevicePool)
      .Case("gemm", emitDeviceGemm)
      .Case("conv", emitDeviceContraction)
      .Case("attention", emitDeviceAttention)
      .Case("attention_grad", emitDeviceAttentionGrad)
      .Default(nullptr);
}

static LogicalResult generate(exec::KernelOp kernel, ModuleOp target, const CudaTarget &cuda) {
  Generator generator = generatorOf(kernel.getKind());
  if (!generator)
    return kernel.emitOpError("@") << kernel.getSymName() << " has kind '" << kernel.getKind()
                                   << "', for which there is no generator of device code";
  FailureOr<exec::DeviceKernelOp> device = generator(kernel, target, cuda);
  if (failed(device))
    return failure();
  if (device->getSymName() != kernel.getSymName() ||
      device->getBody().getNumArguments() !=
          kernel.getArgumentTypes().size() + kernel.getResultTypes().size())
    return kernel.emitOpError("@") << kernel.getSymName() << ": its generator made @"
                                   << device->getSymName() << ", which is no device form of it";
  return success();
}

FailureOr<OwningOpRef<ModuleOp>> descent::generateDeviceKernels(ModuleOp program,
                                                                const CudaTarget &cuda) {
  // A driver that is no pass has declared no dependent dialects; threads below may not load any.
  MLIRContext *context = program.getContext();
  context->loadDialect<affine::AffineDialect, arith::ArithDialect, func::FuncDialect,
                       gpu::GPUDialect, linalg::LinalgDialect, LLVM::LLVMDialect, math::MathDialect,
                       memref::MemRefDialect, NVVM::NVVMDialect, scf::SCFDialect,
                       tensor::TensorDialect, vector::VectorDialect>();
  SmallVector<exec::KernelOp> kernels(program.getOps<exec::KernelOp>());
  SmallVector<OwningOpRef<ModuleOp>, 0> parts(kernels.size());
  for (auto [part, kernel] : llvm::zip_equal(parts, kernels))
    part = ModuleOp::create(kernel.getLoc());
  LogicalResult generated = failableParallelForEachN(
      context, 0, kernels.size(), [&](size_t i) { return generate(kernels[i], *parts[i], cuda); });
  if (failed(generated))
    return failure();
  OwningOpRef<ModuleOp> joined = ModuleOp::create(program.getLoc());
  for (OwningOpRef<ModuleOp> &part : parts)
    joined->getBody()->getOperations().splice(joined->getBody()->end(),
                                              part->getBody()->getOperations());
  return joined;
}

namespace {

struct GenerateDeviceKernelsPass
    : descent::impl::GenerateDeviceKernelsBase<GenerateDeviceKernelsPass> {
  using GenerateDeviceKernelsBase::GenerateDeviceKernelsBase;

  void runOnOperation() override {
    llvm::Expected<CudaTarget> cuda = CudaTarget::named(target);
    if (!cuda) {
      getOperation().emitError("generate-device-kernels: ") << llvm::toString(cuda.takeError());
      return signalPassFailure();
    }
    FailureOr<OwningOpRef<ModuleOp>> kernels = generateDeviceKernels(getOperation(), *cuda);
    if (failed(kernels))
      return signalPassFailure();
    (*kernels)->setSymName("kernels");
    getOperation().push_back(kernels->release());
  }
};

} // namespace
