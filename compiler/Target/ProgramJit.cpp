//===- ProgramJit.cpp - Runs outlined programs in this process ------------===//
//
// Written to find faults in generated code: every buffer and the scratch start as all-ones bits
// (NaN in every float type), buffers end in a guard that is checked behind each launch, and tasks
// can run one by one or backwards.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/ProgramJit.h"
#include "dialects/Exec/Exec.h"
#include "passes/Codegen/KernelDispatch.h"
#include "passes/Codegen/KernelEmitter.h"
#include "passes/Codegen/KernelFunction.h"
#include "passes/Fusion/KernelRules.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

using namespace mlir;

namespace descent {
namespace {

/// Cache-line aligned bytes with a guard behind them.
class Buffer {
public:
  explicit Buffer(int64_t bytes) : bytes(bytes) {
    // A kernel may read a whole vector at the last element of a row, never write it: the guard is
    // as long as the longest vector.
    size_t total = llvm::alignTo(bytes + guardBytes, 64);
    memory.reset(static_cast<char *>(std::aligned_alloc(64, total)));
    std::memset(memory.get(), 0xff, bytes);
    std::memset(memory.get() + bytes, guardByte, total - bytes);
  }
  char *data() { return memory.get(); }
  bool guardIntact() const {
    for (int64_t i = 0; i < guardBytes; ++i)
      if (memory.get()[bytes + i] != guardByte)
        return false;
    return true;
  }
  const int64_t bytes;

private:
  static constexpr int64_t guardBytes = 64;
  static constexpr char guardByte = 0x5a;
  struct Free {
    void operator()(char *memory) const { std::free(memory); }
  };
  std::unique_ptr<char, Free> memory;
};

/// Calls `body` with the C++ type that stores elements of a float or integer type and is converted
/// by the compiler.
template <typename Body> bool withStorage(Type element, Body body) {
  if (element.isF32())
    return body(float()), true;
  if (element.isInteger(32))
    return body(int32_t()), true;
  if (element.isInteger(64))
    return body(int64_t()), true;
  if (element.isInteger(1))
    return body(uint8_t()), true;
  return false;
}

void encode(const reference::Tensor &tensor, Type element, char *to) {
  if (withStorage(element, [&](auto sample) {
        for (double value : tensor.values) {
          auto stored = static_cast<decltype(sample)>(value);
          std::memcpy(to, &stored, sizeof stored);
          to += sizeof stored;
        }
      }))
    return;
  // Narrow floats. Those of eight bits hold operands only, and a cast to them saturates.
  const llvm::fltSemantics &semantics = cast<FloatType>(element).getFloatSemantics();
  unsigned width = element.getIntOrFloatBitWidth() / 8;
  llvm::APFloat largest = llvm::APFloat::getLargest(semantics);
  bool lost = false;
  largest.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &lost);
  double limit = largest.convertToDouble();
  for (double value : tensor.values) {
    llvm::APFloat number(width == 1 && !std::isnan(value) ? std::clamp(value, -limit, limit)
                                                          : value);
    number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &lost);
    uint64_t bits = number.bitcastToAPInt().getZExtValue(); // little endian, as the CPUs we target
    std::memcpy(to, &bits, width);
    to += width;
  }
}

reference::Tensor decode(RankedTensorType type, const char *from) {
  reference::Tensor tensor{std::vector<int64_t>(type.getShape())};
  if (withStorage(type.getElementType(), [&](auto sample) {
        for (double &value : tensor.values) {
          std::memcpy(&sample, from, sizeof sample);
          value = static_cast<double>(sample);
          from += sizeof sample;
        }
      }))
    return tensor;
  unsigned width = type.getElementType().getIntOrFloatBitWidth() / 8;
  for (double &value : tensor.values) {
    uint64_t bits = 0;
    std::memcpy(&bits, from, width);
    llvm::APFloat number(cast<FloatType>(type.getElementType()).getFloatSemantics(),
                         llvm::APInt(8 * width, bits));
    bool lost = false;
    number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &lost);
    value = number.convertToDouble();
    from += width;
  }
  return tensor;
}

/// The value whose bytes a view shows.
Value rootOf(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (!fusion::isView(def))
      break;
    value = def->getOperand(0);
  }
  return value;
}

/// Kernel functions of this CPU.
class CpuExecutor final : public KernelExecutor {
public:
  static FailureOr<std::unique_ptr<KernelExecutor>> create(ModuleOp program,
                                                           const CpuTarget &target) {
    FailureOr<OwningOpRef<ModuleOp>> functions = generateKernels(program, target);
    if (failed(functions))
      return failure();
    auto result = std::make_unique<CpuExecutor>();
    for (auto function : (*functions)->getOps<func::FuncOp>()) {
      auto tasks = function->getAttrOfType<IntegerAttr>(tasksAttrName);
      if (!tasks)
        continue;
      Kernel &kernel = result->kernels[function.getSymName()];
      kernel.tasks = tasks.getInt();
      kernel.scratchBytes = function->getAttrOfType<IntegerAttr>(scratchAttrName).getInt();
    }
    FailureOr<std::unique_ptr<KernelJit>> jit = KernelJit::create(**functions, target);
    if (failed(jit))
      return failure();
    result->jit = std::move(*jit);
    for (auto kernel : program.getOps<exec::KernelOp>()) {
      Kernel &compiled = result->kernels[kernel.getSymName()];
      compiled.function = result->jit->kernel(kernel.getSymName());
      if (!compiled.function)
        return kernel.emitOpError("@")
               << kernel.getSymName() << " is missing from the compiled code";
    }
    return std::unique_ptr<KernelExecutor>(std::move(result));
  }

  LogicalResult run(exec::LaunchOp launch, ArrayRef<Operand> operands,
                    const ProgramRunOptions &options) override {
    auto known = kernels.find(launch.getKernel());
    if (known == kernels.end())
      return launch.emitOpError("launches @") << launch.getKernel() << ", which was not compiled";
    const Kernel &kernel = known->second;
    SmallVector<void *> pointers = llvm::map_to_vector(
        operands, [](const Operand &operand) -> void * { return operand.data; });
    int64_t step = options.tasksPerCall > 0 ? options.tasksPerCall : kernel.tasks;
    for (int64_t done = 0; done < kernel.tasks; done += step) {
      int64_t count = std::min(step, kernel.tasks - done);
      int64_t first = options.backwards ? kernel.tasks - done - count : done;
      Buffer scratch(kernel.scratchBytes);
      kernel.function(pointers.data(), first, first + count, scratch.data());
      if (!scratch.guardIntact())
        return launch.emitOpError("@")
               << launch.getKernel() << " writes past the end of its scratch";
    }
    return success();
  }

private:
  struct Kernel {
    descent_kernel_function function = nullptr;
    int64_t tasks = 0, scratchBytes = 0;
  };
  std::unique_ptr<KernelJit> jit;
  llvm::StringMap<Kernel> kernels;
};

} // namespace

KernelExecutor::~KernelExecutor() = default;

ProgramJit::ProgramJit(ModuleOp program, std::unique_ptr<KernelExecutor> executor)
    : program(program), executor(std::move(executor)) {
  for (auto kernel : program.getOps<exec::KernelOp>())
    reusable[kernel.getSymName()] = reusableOperands(kernel);
}

FailureOr<std::unique_ptr<ProgramJit>> ProgramJit::create(ModuleOp program,
                                                          const CpuTarget &target) {
  FailureOr<std::unique_ptr<KernelExecutor>> executor = CpuExecutor::create(program, target);
  if (failed(executor))
    return failure();
  return std::make_unique<ProgramJit>(program, std::move(*executor));
}

LogicalResult ProgramJit::run(StringRef name, ArrayRef<reference::Tensor> inputs,
                              SmallVectorImpl<reference::Tensor> &results,
                              const ProgramRunOptions &options) const {
  ModuleOp module = program; // a handle; looking up is not const in MLIR
  auto function = module.lookupSymbol<FunctionOpInterface>(name);
  if (!function)
    return module.emitError("there is no function @") << name;
  Block &body = function.getFunctionBody().front();
  if (inputs.size() != body.getNumArguments())
    return function.emitError("@")
           << name << " takes " << body.getNumArguments() << " tensors, got " << inputs.size();

  llvm::DenseMap<Value, std::shared_ptr<Buffer>> buffers; // by root
  for (auto [argument, tensor] : llvm::zip_equal(body.getArguments(), inputs)) {
    auto type = cast<RankedTensorType>(argument.getType());
    if (type.getShape() != ArrayRef<int64_t>(tensor.shape))
      return function.emitError("@") << name << ": argument " << argument.getArgNumber() << " is "
                                     << type << ", got " << fusion::shapeText(tensor.shape);
    auto buffer = std::make_shared<Buffer>(fusion::bytesOf(argument));
    encode(tensor, type.getElementType(), buffer->data());
    buffers[argument] = std::move(buffer);
  }
  // The last op that reads each root: after it the buffer may be written over.
  llvm::DenseMap<Value, Operation *> lastReader;
  for (Operation &op : body)
    if (!fusion::isView(&op))
      for (Value operand : op.getOperands())
        lastReader[rootOf(operand)] = &op;

  for (Operation &op : body.without_terminator()) {
    if (fusion::isView(&op))
      continue;
    auto launch = dyn_cast<exec::LaunchOp>(op);
    if (!launch)
      return op.emitOpError(
          "is neither a launch nor a view; ProgramJit runs what verify-kernels accepts");
    SmallVector<std::shared_ptr<Buffer>> operands;
    for (Value input : launch.getInputs())
      operands.push_back(buffers.lookup(rootOf(input)));
    llvm::SmallDenseSet<unsigned> taken;
    for (auto [index, result] : llvm::enumerate(launch.getOutputs())) {
      std::shared_ptr<Buffer> place;
      for (auto [r, i] : reusable.lookup(launch.getKernel())) {
        if (!options.inPlace || place || r != index || taken.contains(i))
          continue;
        Value root = rootOf(launch.getInputs()[i]);
        // Read once by this launch, last by this launch, and no argument: those belong to the
        // caller.
        bool once =
            llvm::count_if(launch.getInputs(), [&](Value v) { return rootOf(v) == root; }) == 1;
        if (once && lastReader.lookup(root) == launch && root.getDefiningOp()) {
          place = operands[i];
          taken.insert(i);
        }
      }
      if (!place)
        place = std::make_shared<Buffer>(fusion::bytesOf(result));
      buffers[result] = place;
      operands.push_back(place);
    }
    SmallVector<KernelExecutor::Operand> places = llvm::map_to_vector(operands, [](auto &buffer) {
      return KernelExecutor::Operand{buffer->data(), buffer->bytes};
    });
    if (failed(executor->run(launch, places, options)))
      return failure();
    for (auto [index, buffer] : llvm::enumerate(operands))
      if (!buffer->guardIntact())
        return launch.emitOpError("@")
               << launch.getKernel() << " writes past the end of operand " << index;
  }
  for (Value value : body.getTerminator()->getOperands())
    results.push_back(
        decode(cast<RankedTensorType>(value.getType()), buffers.lookup(rootOf(value))->data()));
  return success();
}

} // namespace descent
