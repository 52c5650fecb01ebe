//===- EmulatedExecutor.cpp - Kernels of a program on the emulated GPU ----===//
//
// Each launch gets device memory of its own, exactly as large as its operands, so that no access
// can stray into a neighbour unseen; results and workspace are uninitialised. Products of the
// library are computed as the emulated cuBLASLt computes them, or by what stands in for them where
// DESCENT_EMULATOR_CUBLASLT=none.
//
//===----------------------------------------------------------------------===//

#include "EmulatedExecutor.h"

#include "compiler/Target/CudaCodegen.h"
#include "compiler/Target/Emulate.h"
#include "mlir/IR/Verifier.h"
#include "passes/Cuda/DeviceKernels.h"
#include "passes/Fusion/KernelRules.h"
#include "runtime/core/Error.h"
#include "runtime/emulator/Emulator.h"
#include "runtime/emulator/ProductArithmetic.h"
#include "runtime/emulator/Products.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/Module.h"

#include <cstring>

using namespace mlir;

namespace descent {

namespace {

class EmulatedExecutor final : public KernelExecutor {
public:
  EmulatedExecutor(OwningOpRef<ModuleOp> kernels, EmulatedCode code)
      : kernels(std::move(kernels)), code(std::move(code)) {
    device.load(this->code.module());
  }

  LogicalResult run(exec::LaunchOp launch, ArrayRef<Operand> operands,
                    const ProgramRunOptions &options) override;

private:
  LogicalResult runCommand(exec::LaunchOp launch, exec::DeviceLaunchOp command);
  LogicalResult runCommand(exec::LaunchOp launch, exec::DeviceFillOp command);
  LogicalResult runCommand(exec::LaunchOp launch, exec::DeviceProductOp command);
  LogicalResult runCommands(exec::LaunchOp launch, Block &commands);

  OwningOpRef<ModuleOp> kernels;
  EmulatedCode code;
  emulator::Device device;
  llvm::DenseMap<Value, uint64_t> addresses; // of the running kernel's buffers
  uint64_t workspace = 0;
};

} // namespace

LogicalResult EmulatedExecutor::runCommand(exec::LaunchOp launch, exec::DeviceLaunchOp command) {
  auto size = [](ArrayRef<int64_t> sizes) {
    return emulator::Dim{static_cast<uint32_t>(sizes[0]), static_cast<uint32_t>(sizes[1]),
                         static_cast<uint32_t>(sizes[2])};
  };
  emulator::LaunchRequest request;
  request.module = &code.module();
  request.kernel =
      &emulator::Device::find(code.module(), command.getFunction().getLeafReference().getValue());
  request.grid = size(command.getGrid());
  request.block = size(command.getBlock());
  request.dynamicShared = static_cast<uint32_t>(command.getShared());
  for (Value buffer : command.getBuffers()) {
    uint64_t address = addresses.lookup(buffer);
    std::vector<char> bytes(sizeof address);
    std::memcpy(bytes.data(), &address, sizeof address);
    request.parameters.push_back(std::move(bytes));
  }
  if (std::optional<emulator::Fault> fault = device.launch(request))
    return launch.emitOpError("@") << launch.getKernel() << ": " << fault->message;
  return success();
}

LogicalResult EmulatedExecutor::runCommand(exec::LaunchOp, exec::DeviceFillOp command) {
  auto type = cast<MemRefType>(command.getBuffer().getType());
  device.memory.fill(addresses.lookup(command.getBuffer()),
                     static_cast<uint8_t>(command.getValue()),
                     type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8));
  return success();
}

/// In the library's terms: every matrix is its transpose, so B comes first.
LogicalResult EmulatedExecutor::runCommand(exec::LaunchOp launch, exec::DeviceProductOp command) {
  using namespace emulator;
  mlir::Region &otherwise = command.getOtherwise();
  if (librarySettings().none && !otherwise.empty())
    return runCommands(launch, otherwise.front());
  auto typeOf = [](Value buffer) {
    Type element = cast<MemRefType>(buffer.getType()).getElementType();
    return element.isF32()                ? ElementType::F32
           : element.isBF16()             ? ElementType::BF16
           : element.isF16()              ? ElementType::F16
           : isa<Float8E5M2Type>(element) ? ElementType::E5M2
                                          : ElementType::E4M3;
  };
  auto at = [&](Value buffer) { return buffer ? addresses.lookup(buffer) : 0; };
  auto m = static_cast<int64_t>(command.getM()), n = static_cast<int64_t>(command.getN()),
       k = static_cast<int64_t>(command.getK());
  bool swapA = command.getTransposeA(), swapB = command.getTransposeB();
  auto matrix = [&](Value buffer, int64_t rows, int64_t columns, uint64_t ld, uint64_t stride) {
    return ProductMatrix{typeOf(buffer),
                         at(buffer),
                         rows,
                         columns,
                         static_cast<int64_t>(ld),
                         static_cast<int64_t>(stride)};
  };
  ProductTask task;
  task.a =
      matrix(command.getB(), swapB ? k : n, swapB ? n : k, command.getLdb(), command.getStrideB());
  task.b =
      matrix(command.getA(), swapA ? m : k, swapA ? k : m, command.getLda(), command.getStrideA());
  task.d = task.c = matrix(command.getD(), n, m, command.getLdd(), command.getStrideD());
  task.batch = static_cast<int64_t>(command.getBatch());
  task.transposeA = swapB;
  task.transposeB = swapA;
  task.tf32 = command.getCompute() == "tf32";
  task.beta = command.getAccumulate() ? 1 : 0;
  task.scaleA = at(command.getScaleB());
  task.scaleB = at(command.getScaleA());
  StringRef epilogue = command.getEpilogue();
  if (Value bias = command.getBias()) {
    task.bias = at(bias);
    task.biasType = typeOf(bias);
  } else if (Value gradient = command.getBiasGradient()) {
    task.bias = at(gradient);
    task.biasType = typeOf(gradient);
    task.biasGradient = llvm::StringSwitch<BiasGradient>(epilogue)
                            .Case("bgrad_a", BiasGradient::OfB)
                            .Case("bgrad_b", BiasGradient::OfA)
                            .Default(BiasGradient::OfD);
  }
  task.activation = epilogue.starts_with("drelu")   ? Activation::ReluGradient
                    : epilogue.starts_with("dgelu") ? Activation::GeluGradient
                    : epilogue.starts_with("relu")  ? Activation::Relu
                    : epilogue.starts_with("gelu")  ? Activation::Gelu
                                                    : Activation::None;
  if (Value aux = command.getAux()) {
    task.aux = at(aux);
    task.storeAux = !epilogue.starts_with("d");
    task.auxType = typeOf(aux);
    task.auxLd = static_cast<int64_t>(command.getAuxLd());
    task.auxStride = m * task.auxLd;
  }
  computeProduct(task, {[&](void *to, uint64_t address, uint64_t bytes, const char *) {
                          device.memory.copyOut(to, address, bytes);
                        },
                        [&](uint64_t address, const void *from, uint64_t bytes, const char *) {
                          device.memory.copyIn(address, from, bytes);
                        }});
  return success();
}

LogicalResult EmulatedExecutor::runCommands(exec::LaunchOp launch, Block &commands) {
  for (Operation &op : commands) {
    LogicalResult done = success();
    if (auto part = dyn_cast<exec::WorkspaceOp>(op))
      addresses[part] = workspace + part.getOffset();
    else if (auto command = dyn_cast<exec::DeviceLaunchOp>(op))
      done = runCommand(launch, command);
    else if (auto command = dyn_cast<exec::DeviceFillOp>(op))
      done = runCommand(launch, command);
    else if (auto command = dyn_cast<exec::DeviceProductOp>(op))
      done = runCommand(launch, command);
    else
      done = op.emitOpError("cannot be run here");
    if (failed(done))
      return failure();
  }
  return success();
}

LogicalResult EmulatedExecutor::run(exec::LaunchOp launch, ArrayRef<Operand> operands,
                                    const ProgramRunOptions &options) {
  auto kernel = kernels->lookupSymbol<exec::DeviceKernelOp>(launch.getKernel());
  if (!kernel)
    return launch.emitOpError("launches @") << launch.getKernel() << ", which was not compiled";
  device.options.order = {options.backwards ? emulator::Order::Shuffled : emulator::Order::Forward,
                          /*seed=*/7};
  addresses.clear();
  llvm::DenseMap<char *, uint64_t> places; // a result over an input has the input's
  SmallVector<uint64_t> allocated;
  auto allocate = [&](uint64_t bytes, const Twine &name) {
    allocated.push_back(device.memory.allocate(bytes, name.str()));
    return allocated.back();
  };
  try {
    auto cleanUp = llvm::make_scope_exit([&] {
      for (uint64_t address : allocated)
        device.memory.release(address);
    });
    size_t inputs = kernel.getInputs();
    for (auto [index, operand] : llvm::enumerate(operands)) {
      auto [place, isNew] = places.try_emplace(operand.data, 0);
      if (isNew)
        place->second = allocate(operand.bytes, (index < inputs ? "input " : "result ") +
                                                    Twine(index < inputs ? index : index - inputs));
      if (index < inputs && isNew)
        device.memory.copyIn(place->second, operand.data, operand.bytes);
      addresses[kernel.getBody().getArgument(index)] = place->second;
    }
    // The plan places the result over the operand that it is added to; here it has what lies there.
    auto source =
        SymbolTable::lookupNearestSymbolFrom<exec::KernelOp>(launch, launch.getKernelAttr());
    if (auto accumulated =
            source ? source->getAttrOfType<IntegerAttr>(fusion::accumulateAttrName) : nullptr) {
      const Operand &from = operands[accumulated.getInt()], &to = operands[inputs];
      if (from.data != to.data)
        device.memory.copy(places.lookup(to.data), places.lookup(from.data), to.bytes);
    }
    workspace = kernel.getWorkspace() ? allocate(kernel.getWorkspace(), "workspace") : 0;
    if (failed(runCommands(launch, kernel.getBody().front())))
      return failure();
    for (const Operand &operand : operands.drop_front(inputs))
      device.memory.copyOut(operand.data, places.lookup(operand.data), operand.bytes);
  } catch (const Error &error) {
    return launch.emitOpError("@") << launch.getKernel() << ": " << error.what();
  }
  return success();
}

FailureOr<std::unique_ptr<KernelExecutor>> createEmulatedExecutor(ModuleOp program,
                                                                  const CudaTarget &cuda) {
  FailureOr<OwningOpRef<ModuleOp>> kernels = generateDeviceKernels(program, cuda);
  if (failed(kernels) || failed(verify(**kernels)))
    return failure();
  OwningOpRef<ModuleOp> lowered = (*kernels)->clone();
  if (failed(lowerDeviceKernels(*lowered)))
    return failure();
  FailureOr<DeviceCode> device = translateDeviceKernels(*lowered, cuda);
  if (failed(device))
    return failure();
  std::vector<EmulatorSymbol> symbols;
  for (const emulator::Symbol &symbol : emulator::symbols())
    symbols.push_back({symbol.name, symbol.address});
  llvm::Expected<EmulatedCode> code = EmulatedCode::load(
      std::move(device->context), std::move(device->module), "device code", nullptr, symbols);
  if (!code)
    return program.emitError() << llvm::toString(code.takeError());
  return std::unique_ptr<KernelExecutor>(
      new EmulatedExecutor(std::move(*kernels), std::move(*code)));
}

} // namespace descent
