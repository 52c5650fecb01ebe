//===- DevicePlan.cpp - What a program will do on a CUDA device -----------===//
//
// Reads the commands of the device's kernels: grids and blocks stand there, registers and spills
// come from ptxas, and what is counted of a launch are its operands, each once, and what passes
// through the workspace.
//
//===----------------------------------------------------------------------===//

#include "compiler/Report/DevicePlan.h"

#include "compiler/Target/EmitProgram.h"
#include "dialects/Exec/Exec.h"
#include "mlir/Support/DebugStringHelper.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace descent {

static std::string elementText(Value buffer) {
  return debugString(cast<MemRefType>(buffer.getType()).getElementType());
}

static std::string typeText(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << type.getElementType() << "[";
  llvm::interleaveComma(type.getShape(), stream, [&](int64_t size) { stream << size; });
  return text + "]";
}

static double bytesOf(Value buffer) {
  if (!buffer)
    return 0.0;
  auto type = cast<MemRefType>(buffer.getType());
  return static_cast<double>(type.getNumElements() *
                             llvm::divideCeil(type.getElementTypeBitWidth(), 8));
}

/// The name under which a type's arithmetic rate is known.
static std::string rateName(Type element) {
  if (element.isBF16())
    return "bf16";
  if (element.isF16())
    return "f16";
  return element.getIntOrFloatBitWidth() == 8 ? "f8" : "f32";
}

static DevicePlan::Function readLaunch(exec::DeviceLaunchOp launch, const CudaTarget &cuda,
                                       const Cubin *cubin) {
  DevicePlan::Function function;
  function.name = launch.getFunction().getLeafReference().str();
  llvm::copy(launch.getGrid(), function.grid.begin());
  llvm::copy(launch.getBlock(), function.block.begin());
  function.dynamicShared = static_cast<int64_t>(launch.getShared());
  for (Value buffer : launch.getBuffers())
    function.operands.push_back(typeText(buffer));
  if (!cubin)
    return function;
  auto known = cubin->functions.find(function.name);
  if (known == cubin->functions.end())
    return function;
  function.resources = known->second;
  BlockNeeds needs{function.threads(), function.resources->registers,
                   function.resources->shared + function.dynamicShared};
  function.occupancy = occupancyOf(cuda, needs);
  if (int64_t resident = function.occupancy->blocks * cuda.multiprocessors)
    function.waves = static_cast<double>(function.blocks()) / static_cast<double>(resident);
  return function;
}

/// Whether every row that the library reads or writes starts at a multiple of 16 bytes.
static bool isAligned(exec::DeviceProductOp product) {
  auto aligned = [](Value buffer, uint64_t leading) {
    auto type = cast<MemRefType>(buffer.getType());
    return leading * llvm::divideCeil(type.getElementTypeBitWidth(), 8) % 16 == 0;
  };
  return aligned(product.getA(), product.getLda()) && aligned(product.getB(), product.getLdb()) &&
         aligned(product.getD(), product.getLdd());
}

static DevicePlan::Product readProduct(exec::DeviceProductOp op) {
  DevicePlan::Product product;
  product.m = static_cast<int64_t>(op.getM());
  product.n = static_cast<int64_t>(op.getN());
  product.k = static_cast<int64_t>(op.getK());
  product.batch = static_cast<int64_t>(op.getBatch());
  product.transposeA = op.getTransposeA();
  product.transposeB = op.getTransposeB();
  product.accumulate = op.getAccumulate();
  product.isAligned = isAligned(op);
  product.a = elementText(op.getA());
  product.b = elementText(op.getB());
  product.d = elementText(op.getD());
  product.compute = op.getCompute().str();
  product.epilogue = op.getEpilogue().str();
  product.flops = 2.0 * static_cast<double>(product.m) * static_cast<double>(product.n) *
                  static_cast<double>(product.k) * static_cast<double>(product.batch);
  for (Value buffer : {op.getA(), op.getB(), op.getD(), op.getBias(), op.getAux(),
                       op.getBiasGradient(), op.getScaleA(), op.getScaleB()})
    product.bytes += bytesOf(buffer);
  if (product.accumulate)
    product.bytes += bytesOf(op.getD());
  return product;
}

/// Bytes that the commands move through the workspace: each part once for each command that takes
/// it.
static double workspaceTraffic(exec::DeviceKernelOp device) {
  double bytes = 0.0;
  for (auto part : device.getBody().getOps<exec::WorkspaceOp>())
    for (Operation *user : part->getUsers())
      if (user->getParentOp() == device.getOperation())
        bytes += bytesOf(part.getBuffer());
  return bytes;
}

/// A gather reads the rows it takes, not its whole table.
static double movedBytes(exec::KernelOp kernel) {
  double bytes = costOf(kernel).bytes;
  if (kernel.getKind() != "gather")
    return bytes;
  auto bytesOfType = [](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return static_cast<double>(tensor.getNumElements() *
                               llvm::divideCeil(tensor.getElementTypeBitWidth(), 8));
  };
  double table = 0.0, taken = 0.0;
  for (Type type : kernel.getArgumentTypes())
    if (!cast<RankedTensorType>(type).getElementType().isInteger())
      table += bytesOfType(type);
  for (Type type : kernel.getResultTypes())
    taken += bytesOfType(type);
  return bytes - table + std::min(table, taken);
}

static std::string rateOfKernel(exec::KernelOp kernel, ArrayRef<DevicePlan::Product> products) {
  if (!products.empty() && products[0].compute == "tf32")
    return "tf32";
  bool multiplies =
      llvm::is_contained({"gemm", "conv", "attention", "attention_grad"}, kernel.getKind());
  if (!multiplies || kernel.getArgumentTypes().empty())
    return "f32";
  return rateName(cast<RankedTensorType>(kernel.getArgumentTypes()[0]).getElementType());
}

static DevicePlan::Kernel readKernel(exec::KernelOp kernel, exec::DeviceKernelOp device,
                                     const CudaTarget &cuda, const Cubin *cubin) {
  DevicePlan::Kernel entry;
  entry.name = kernel.getSymName().str();
  entry.kind = kernel.getKind().str();
  if (auto sources = kernel.getSourcesAttr())
    entry.sources = llvm::join(sources.getAsValueRange<StringAttr>(), ", ");
  entry.flops = costOf(kernel).flops;
  entry.bytes = movedBytes(kernel);
  if (device) {
    entry.bytes += workspaceTraffic(device);
    for (Operation &op : device.getBody().front())
      llvm::TypeSwitch<Operation *>(&op)
          .Case([&](exec::DeviceLaunchOp launch) {
            entry.functions.push_back(readLaunch(launch, cuda, cubin));
            ++entry.commands;
          })
          .Case([&](exec::DeviceFillOp) {
            ++entry.fills;
            ++entry.commands;
          })
          .Case([&](exec::DeviceProductOp product) {
            entry.products.push_back(readProduct(product));
            ++entry.commands;
            product.getOtherwise().walk([&](exec::DeviceLaunchOp launch) {
              entry.functions.push_back(readLaunch(launch, cuda, cubin));
              entry.functions.back().isFallback = true;
            });
          });
  }
  entry.rate = rateOfKernel(kernel, entry.products);
  entry.timeClass = entry.products.empty() ? entry.kind : "library";
  return entry;
}

/// Tokens where the model reads rows of integers, else samples.
static void readItems(DevicePlan &plan, ModuleOp schedule) {
  for (auto storage : schedule.getOps<exec::StorageOp>()) {
    auto role = storage->getAttrOfType<StringAttr>("nn.role");
    if (storage.getCategory() != "inputs" || !role || role.getValue() != "data")
      continue;
    RankedTensorType type = storage.getTensorType();
    if (type.getRank() == 0)
      continue;
    plan.step.areTokens = type.getRank() == 2 && type.getElementType().isInteger();
    plan.step.items = plan.step.areTokens ? type.getNumElements() : type.getDimSize(0);
    return;
  }
}

DevicePlan makeDevicePlan(ModuleOp schedule, ModuleOp kernels, const CudaTarget &cuda,
                          const Cubin *cubin) {
  DevicePlan plan;
  plan.cuda = cuda;
  if (!cubin)
    plan.noResources = "no ptxas was found (looked at $PTXAS, in PATH, $CUDA_HOME/bin and "
                       "/usr/local/cuda/bin), and registers are allocated there";
  llvm::MapVector<StringAttr, int64_t> launches;
  for (auto program : schedule.getOps<exec::ProgramOp>())
    if (program.getSymName() == "step")
      for (auto run : program.getBody().getOps<exec::RunOp>())
        ++launches[run.getKernelAttr().getAttr()];
  SymbolTable bySchedule(schedule), byDevice(kernels);
  for (auto [name, count] : launches) {
    plan.kernels.push_back(readKernel(bySchedule.lookup<exec::KernelOp>(name),
                                      byDevice.lookup<exec::DeviceKernelOp>(name), cuda, cubin));
    plan.kernels.back().launches = count;
  }
  readItems(plan, schedule);
  predictTimes(plan);
  return plan;
}

std::map<std::string, DeviceResources> spillingFunctions(const Cubin &cubin) {
  std::map<std::string, DeviceResources> spilling;
  for (const auto &function : cubin.functions)
    if (function.second.spillStores || function.second.spillLoads)
      spilling[function.first().str()] = function.second;
  return spilling;
}

} // namespace descent
