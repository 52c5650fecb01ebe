//===- EmulatedExecutor.cpp - Kernels of a program on the emulated GPU ----===//
//
// Each launch gets device memory of its own, exactly as large as its operands, so that no access
// can stray into a neighbour unseen; results and workspace are uninitialised.
//
//===----------------------------------------------------------------------===//

#include "EmulatedExecutor.h"

#include "compiler/Target/CudaCodegen.h"
#include "compiler/Target/Emulate.h"
#include "mlir/IR/Verifier.h"
#include "passes/Cuda/DeviceKernels.h"
#include "runtime/core/Error.h"
#include "runtime/emulator/Emulator.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/ScopeExit.h"
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

  OwningOpRef<ModuleOp> kernels;
  EmulatedCode code;
  emulator::Device device;
  llvm::DenseMap<Value, uint64_t> addresses; // of the running kernel's buffers
};

} // namespace

LogicalResult EmulatedExecutor::runCommand(exec::LaunchOp launch, exec::DeviceLaunchOp command) {
  auto size = [](ArrayRef<int64_t> sizes) {
    return emulator::Dim{static_cast<uint32_t>(sizes[0]), static_cast<uint32_t>(sizes[1]),
                         static_cast<uint32_t>(sizes[2])};
  };
  emulator::LaunchRequest request;
  request.module = &code.module();
  request.kernel = &emulator::Device::find(code.module(),
                                           command.getFunction().getLeafReference().getValue());
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
    uint64_t workspace =
        kernel.getWorkspace() ? allocate(kernel.getWorkspace(), "workspace") : 0;
    for (Operation &op : kernel.getBody().front()) {
      LogicalResult done = success();
      if (auto part = dyn_cast<exec::WorkspaceOp>(op))
        addresses[part] = workspace + part.getOffset();
      else if (auto command = dyn_cast<exec::DeviceLaunchOp>(op))
        done = runCommand(launch, command);
      else if (auto command = dyn_cast<exec::DeviceFillOp>(op))
        done = runCommand(launch, command);
      else
        done = op.emitOpError("cannot be run here");
      if (failed(done))
        return failure();
    }
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
