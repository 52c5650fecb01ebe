//===- EmitProgram.cpp - From the schedule to the ABI's tables ------------===//
//
// Builds LLVM IR directly: the tables are constants whose layout must be that of abi.h, and a
// constant struct says so most plainly. Every struct type built here is checked against the size
// the C compiler gives it.
//
// A program's function computes addresses (arena + constant), fills an array of pointers and calls
// descent_launch, once a launch. Each launch has a site: equal kernels are one, so only the site
// can say which ops of the model it computes and what its outputs are called.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/EmitProgram.h"

#include "compiler/Target/CpuCodegen.h"
#include "compiler/Target/EmitDevice.h"
#include "compiler/Target/Tables.h"
#include "compiler/Version.h"
#include "dialects/Exec/Exec.h"
#include "dialects/Train/StateNames.h"
#include "passes/Codegen/KernelFunction.h"
#include "passes/Schedule/Lifetimes.h"
#include "runtime/include/descent/abi.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/xxhash.h"
#include <string_view>

using namespace mlir;

namespace descent {

// The runtime finds these states by the names of the ABI.
static constexpr bool isNamed(llvm::StringLiteral state, std::string_view name) {
  return std::string_view(state.data(), state.size()) == name;
}
static_assert(isNamed(train::updatesState, DESCENT_UPDATES_STATE) &&
              isNamed(train::lossScaleState, DESCENT_LOSS_SCALE_STATE) &&
              isNamed(train::cleanStepsState, DESCENT_CLEAN_STEPS_STATE) &&
              isNamed(train::skippedStepsState, DESCENT_SKIPPED_STEPS_STATE));

KernelCost costOf(Operation *operation) {
  auto kernel = cast<exec::KernelOp>(operation);
  KernelCost cost;
  kernel.walk([&](CostOp op) { cost.flops += op.getFlops(); });
  for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(), kernel.getResultTypes()))
    cost.bytes += static_cast<double>(schedule::bytesOf(type));
  return cost;
}

namespace {

class ProgramEmitter : Tables {
public:
  ProgramEmitter(ModuleOp plan, ModuleOp kernels, const ProgramOptions &options,
                 llvm::LLVMContext &context)
      : Tables(context, "descent_program"), plan(plan), kernels(kernels), options(options) {}

  FailureOr<std::unique_ptr<llvm::Module>> run();

private:
  // Tables.
  llvm::Constant *parameterRow(exec::StorageOp storage);
  llvm::Constant *inputRow(exec::StorageOp storage);
  LogicalResult emitKernels();
  LogicalResult emitCode(exec::KernelOp kernel, SmallVectorImpl<llvm::Constant *> &fields);
  llvm::Constant *operandRow(Type type);
  llvm::Constant *outputName(Value buffer);
  llvm::Constant *siteRow(exec::RunOp run);
  llvm::Constant *functionRow(exec::ProgramOp program);
  llvm::Constant *programFunction(exec::ProgramOp program, llvm::GlobalVariable *sites);
  uint64_t gradientsReady(exec::ProgramOp program);
  uint64_t workingCopies();
  uint64_t planHash();

  ModuleOp plan, kernels;
  const ProgramOptions &options;
  llvm::GlobalVariable *kernelTable = nullptr;
  llvm::StringMap<unsigned> kernelIndex;
  llvm::DenseMap<int64_t, StringRef> gradientAt; // offset in the arena to the parameter
  SmallVector<llvm::Constant *> kernelRows;
  uint64_t threadScratch = 0;
};

} // namespace

llvm::Constant *ProgramEmitter::operandRow(Type operand) {
  auto type = cast<ShapedType>(operand);
  return structure({i32(dtypeOf(type.getElementType())), i32(type.getRank()), shape(type)});
}

llvm::Constant *ProgramEmitter::parameterRow(exec::StorageOp storage) {
  struct Initializer {
    int32_t kind = DESCENT_INIT_CONSTANT;
    double a = 0.0, b = 0.0;
  };
  Attribute attribute = storage->getAttr("init");
  auto init = llvm::TypeSwitch<Attribute, Initializer>(attribute)
                  .Case<nn::ConstantInitAttr>([](auto a) {
                    return Initializer{DESCENT_INIT_CONSTANT, a.getValue(), 0.0};
                  })
                  .Case<nn::NormalInitAttr>([](auto a) {
                    return Initializer{DESCENT_INIT_NORMAL, a.getMean(), a.getDeviation()};
                  })
                  .Case<nn::UniformInitAttr>([](auto a) {
                    return Initializer{DESCENT_INIT_UNIFORM, a.getLow(), a.getHigh()};
                  })
                  .Default([](Attribute) { return Initializer{}; });
  auto gradient = storage->getAttrOfType<IntegerAttr>("gradient");
  auto group = storage->getAttrOfType<StringAttr>("group");
  return structure({tensor(storage.getSymName(), storage.getTensorType(), storage.getOffset()),
                    i32(init.kind), i32(!storage->hasAttr("frozen")), f64(init.a), f64(init.b),
                    i64(gradient ? gradient.getInt() : -1), text(group ? group.getValue() : ""),
                    f64(storage->getAttrOfType<FloatAttr>("rate_scale").getValueAsDouble()),
                    f64(storage->getAttrOfType<FloatAttr>("weight_decay").getValueAsDouble())});
}

llvm::Constant *ProgramEmitter::inputRow(exec::StorageOp storage) {
  auto role = storage->getAttrOfType<StringAttr>("nn.role");
  int32_t code = llvm::StringSwitch<int32_t>(role ? role.getValue() : "data")
                     .Case("target", DESCENT_INPUT_TARGET)
                     .Case("row_weights", DESCENT_INPUT_ROW_WEIGHTS)
                     .Case("rng", DESCENT_INPUT_RNG)
                     .Default(DESCENT_INPUT_DATA);
  auto bounds = storage->getAttrOfType<DenseI64ArrayAttr>("nn.range");
  auto ignore = storage->getAttrOfType<IntegerAttr>("nn.ignore_index");
  StringRef name = storage.getSymName();
  name.consume_front("input:");
  return structure({tensor(name, storage.getTensorType(), storage.getOffset()), i32(code),
                    i32(bounds ? 1 : 0), i64(bounds ? bounds[0] : 0), i64(bounds ? bounds[1] : 0),
                    i64(ignore ? ignore.getInt() : 0), i32(ignore ? 1 : 0), i32(0)});
}

/// The fields of a kernel that say how it is computed on the CPU: function, tasks, scratch.
LogicalResult ProgramEmitter::emitCode(exec::KernelOp kernel,
                                       SmallVectorImpl<llvm::Constant *> &fields) {
  if (options.device) {
    llvm::append_range(fields, ArrayRef<llvm::Constant *>{null(), i64(0), i64(0)});
    return success();
  }
  Operation *function = SymbolTable::lookupSymbolIn(kernels, kernel.getSymName());
  auto tasks = function ? function->getAttrOfType<IntegerAttr>(tasksAttrName) : IntegerAttr();
  auto scratch = function ? function->getAttrOfType<IntegerAttr>(scratchAttrName) : IntegerAttr();
  if (!tasks || !scratch)
    return kernel.emitOpError() << "@" << kernel.getSymName() << " has no generated function";
  auto *type = llvm::FunctionType::get(
      builder.getVoidTy(), {pointer, builder.getInt64Ty(), builder.getInt64Ty(), pointer}, false);
  fields.push_back(llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage,
                                          kernel.getSymName(), *module));
  fields.push_back(i64(tasks.getInt()));
  fields.push_back(i64(scratch.getInt()));
  threadScratch = std::max<uint64_t>(threadScratch, static_cast<uint64_t>(scratch.getInt()));
  return success();
}

LogicalResult ProgramEmitter::emitKernels() {
  for (auto kernel : plan.getOps<exec::KernelOp>()) {
    std::string sources;
    if (auto names = kernel.getSourcesAttr())
      sources = llvm::join(names.getAsValueRange<StringAttr>(), ", ");
    KernelCost cost = costOf(kernel);
    SmallVector<llvm::Constant *> operands;
    for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(), kernel.getResultTypes()))
      operands.push_back(operandRow(type));
    kernelIndex[kernel.getSymName()] = static_cast<unsigned>(kernelRows.size());
    SmallVector<llvm::Constant *> fields{text(kernel.getSymName()), text(sources)};
    if (failed(emitCode(kernel, fields)))
      return failure();
    fields.push_back(f64(cost.flops));
    fields.push_back(f64(cost.bytes));
    appendTable(fields, operands, sizeof(descent_operand));
    fields.push_back(i64(static_cast<int64_t>(kernel.getArgumentTypes().size())));
    SmallVector<llvm::Constant *> commands;
    if (options.device) {
      auto device = SymbolTable::lookupNearestSymbolFrom<exec::DeviceKernelOp>(
          kernels, kernel.getSymNameAttr());
      if (!device)
        return kernel.emitOpError() << "@" << kernel.getSymName() << " has no device code";
      commands = commandRows(*this, device.getBody().front());
    }
    appendTable(fields, commands, sizeof(descent_command));
    kernelRows.push_back(structure(fields));
  }
  threadScratch = llvm::alignTo(threadScratch, 64);
  return success();
}

static int64_t offsetOf(Value buffer) {
  return llvm::TypeSwitch<Operation *, int64_t>(buffer.getDefiningOp())
      .Case<exec::BufferOp, exec::GetOp>(
          [](auto op) { return static_cast<int64_t>(op.getOffset()); });
}

/// What a launch writes there, for messages: the op of the model with its place in the file, or the
/// parameter, gradient or state that lives there.
llvm::Constant *ProgramEmitter::outputName(Value buffer) {
  if (auto transient = buffer.getDefiningOp<exec::BufferOp>())
    return text(transient.getSource());
  auto get = buffer.getDefiningOp<exec::GetOp>();
  if (auto parameter = gradientAt.find(static_cast<int64_t>(get.getOffset()));
      parameter != gradientAt.end())
    return text(("gradient of " + parameter->second).str());
  return text(get.getStorage());
}

llvm::Constant *ProgramEmitter::siteRow(exec::RunOp run) {
  llvm::Constant *kernel = llvm::ConstantExpr::getInBoundsGetElementPtr(
      kernelTable->getValueType(), kernelTable,
      ArrayRef<llvm::Constant *>{builder.getInt64(0),
                                 builder.getInt64(kernelIndex.lookup(run.getKernel()))});
  auto sources = run.getSourcesAttr();
  if (!sources)
    sources = plan.lookupSymbol<exec::KernelOp>(run.getKernel()).getSourcesAttr();
  std::string source =
      sources ? llvm::join(sources.getAsValueRange<StringAttr>(), ", ") : std::string();
  SmallVector<llvm::Constant *> outputs, offsets, waits;
  for (Value output : run.getOutputs())
    outputs.push_back(outputName(output));
  for (Value buffer : run.getOperands())
    offsets.push_back(i64(offsetOf(buffer)));
  if (std::optional<ArrayRef<int64_t>> events = run.getWaits())
    for (int64_t event : *events)
      waits.push_back(i32(event));
  SmallVector<llvm::Constant *> fields{
      kernel,
      text(source),
      array(outputs),
      array(offsets),
      i32(static_cast<int64_t>(run.getStream())),
      i32(run.getRecord() ? static_cast<int64_t>(*run.getRecord()) : -1)};
  appendTable(fields, waits, sizeof(int32_t));
  return structure(fields);
}

llvm::Constant *ProgramEmitter::programFunction(exec::ProgramOp program,
                                                llvm::GlobalVariable *sites) {
  auto *type = llvm::FunctionType::get(builder.getVoidTy(), {pointer, pointer}, false);
  auto *function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage,
                                          "descent_" + program.getSymName(), *module);
  auto launchType =
      llvm::FunctionType::get(builder.getVoidTy(), {pointer, pointer, pointer}, false);
  llvm::FunctionCallee launch = module->getOrInsertFunction("descent_launch", launchType);
  builder.SetInsertPoint(llvm::BasicBlock::Create(builder.getContext(), "entry", function));
  unsigned most = 1;
  for (auto run : program.getBody().getOps<exec::RunOp>())
    most = std::max(most, run.getNumOperands());
  llvm::Value *context = function->getArg(0), *arena = function->getArg(1);
  llvm::Value *operands = builder.CreateAlloca(pointer, builder.getInt32(most));
  for (auto [site, run] : llvm::enumerate(program.getBody().getOps<exec::RunOp>())) {
    for (auto [index, buffer] : llvm::enumerate(run.getOperands())) {
      llvm::Value *address = builder.CreateConstInBoundsGEP1_64(
          builder.getInt8Ty(), arena, static_cast<uint64_t>(offsetOf(buffer)));
      builder.CreateStore(address, builder.CreateConstInBoundsGEP1_64(pointer, operands, index));
    }
    llvm::Value *place = builder.CreateConstInBoundsGEP2_64(sites->getValueType(), sites, 0, site);
    builder.CreateCall(launch, {context, place, operands});
  }
  builder.CreateRetVoid();
  return function;
}

/// The first launch that reads all of a slab of gradients: behind it stand only the norm, the
/// finite check and the update. A launch that also writes the slab is still summing.
uint64_t ProgramEmitter::gradientsReady(exec::ProgramOp program) {
  auto isSlab = [&](Value buffer) {
    auto get = buffer.getDefiningOp<exec::GetOp>();
    if (!get)
      return false;
    auto storage = plan.lookupSymbol<exec::StorageOp>(get.getStorage());
    return storage && storage.getCategory() == "slab.gradients" &&
           get.getOffset() == storage.getOffset() &&
           bytesOf(cast<ShapedType>(buffer.getType())) == bytesOf(storage.getTensorType());
  };
  for (auto [index, run] : llvm::enumerate(program.getBody().getOps<exec::RunOp>()))
    if (llvm::any_of(run.getInputs(), isSlab) && !llvm::any_of(run.getOutputs(), isSlab))
      return index;
  return DESCENT_NO_LAUNCH;
}

llvm::Constant *ProgramEmitter::functionRow(exec::ProgramOp program) {
  SmallVector<llvm::Constant *> outputs, sites;
  for (auto output : program.getBody().getOps<exec::OutputOp>())
    outputs.push_back(tensor(output.getName(), cast<MemRefType>(output.getBuffer().getType()),
                             offsetOf(output.getBuffer())));
  for (auto run : program.getBody().getOps<exec::RunOp>())
    sites.push_back(siteRow(run));
  SmallVector<llvm::Constant *> siteFields;
  appendTable(siteFields, sites, sizeof(descent_site));
  auto *siteTable = dyn_cast<llvm::GlobalVariable>(siteFields[0]);
  llvm::Constant *run = options.device ? null() : programFunction(program, siteTable);
  SmallVector<llvm::Constant *> fields{text(program.getSymName()), run};
  appendTable(fields, outputs, sizeof(descent_tensor));
  llvm::append_range(fields, siteFields);
  fields.push_back(i64(static_cast<int64_t>(gradientsReady(program))));
  int64_t events = 0;
  for (auto run : program.getBody().getOps<exec::RunOp>())
    if (run.getRecord())
      events = std::max(events, static_cast<int64_t>(*run.getRecord()) + 1);
  fields.push_back(i64(events));
  return structure(fields);
}

/// Bytes of the slabs that hold narrow copies of parameters.
uint64_t ProgramEmitter::workingCopies() {
  uint64_t bytes = 0;
  for (auto storage : plan.getOps<exec::StorageOp>())
    if (storage.getCategory() == "slab.working")
      bytes += static_cast<uint64_t>(bytesOf(storage.getTensorType()));
  return bytes;
}

/// Hash of names, shapes and types of parameters and states: what a checkpoint of this program must
/// agree with.
uint64_t ProgramEmitter::planHash() {
  std::string description;
  llvm::raw_string_ostream stream(description);
  for (auto storage : plan.getOps<exec::StorageOp>())
    if (storage.getCategory() == "parameters" || storage.getCategory() == "optimizer")
      stream << storage.getCategory() << ' ' << storage.getSymName() << ' ' << storage.getType()
             << '\n';
  return llvm::xxh3_64bits(description);
}

FailureOr<std::unique_ptr<llvm::Module>> ProgramEmitter::run() {
  auto arenas = plan.getOps<exec::ArenaOp>();
  if (arenas.empty())
    return plan.emitError("has no exec.arena; run plan-memory first");
  exec::ArenaOp arena = *arenas.begin();
  if (failed(setTarget(*module, options.cpu, plan.getLoc())) || failed(emitKernels()))
    return failure();

  SmallVector<llvm::Constant *> parameters, states, inputs, settings, functions;
  llvm::StringMap<int32_t> parameterIndex;
  for (auto storage : plan.getOps<exec::StorageOp>())
    if (storage.getCategory() == "parameters") {
      parameterIndex[storage.getSymName()] = static_cast<int32_t>(parameters.size());
      parameters.push_back(parameterRow(storage));
      if (auto gradient = storage->getAttrOfType<IntegerAttr>("gradient"))
        gradientAt[gradient.getInt()] = storage.getSymName();
    } else if (storage.getCategory() == "inputs") {
      inputs.push_back(inputRow(storage));
    }
  for (auto storage : plan.getOps<exec::StorageOp>()) {
    if (storage.getCategory() != "optimizer")
      continue;
    auto owner = storage->getAttrOfType<FlatSymbolRefAttr>("parameter");
    states.push_back(
        structure({tensor(storage.getSymName(), storage.getTensorType(), storage.getOffset()),
                   i32(owner ? parameterIndex.lookup(owner.getValue()) : -1), i32(0),
                   f64(storage->getAttrOfType<FloatAttr>("initial").getValueAsDouble())}));
  }
  for (const auto &[key, value] : options.settings)
    settings.push_back(structure({text(key), text(value)}));

  SmallVector<llvm::Constant *> kernelFields;
  appendTable(kernelFields, kernelRows, sizeof(descent_kernel));
  kernelTable = dyn_cast<llvm::GlobalVariable>(kernelFields[0]);
  for (auto program : plan.getOps<exec::ProgramOp>())
    functions.push_back(functionRow(program));

  DeviceMemory behind;
  if (options.device)
    behind = deviceMemoryOf(plan, kernels, options.device->cuda);
  auto memory =
      structure({i64(arena.getSize()), i64(arena.getPersistent()), i64(arena.getParameters()),
                 i64(arena.getGradients()), i64(arena.getOptimizer()), i64(arena.getActivations()),
                 i64(arena.getWorkspace()), i64(static_cast<int64_t>(workingCopies())),
                 i64(static_cast<int64_t>(threadScratch)), i64(arena.getLowerBound()),
                 i64(behind.workspace), i64(behind.staging)});
  SmallVector<llvm::Constant *> fields{i32(DESCENT_ABI_VERSION),
                                       i32(sizeof(descent_program)),
                                       text(options.name),
                                       text(versionText()),
                                       text(options.cpu.name),
                                       text(llvm::join(options.cpu.requiredFeatures(), ",")),
                                       i64(static_cast<int64_t>(planHash())),
                                       memory};
  appendTable(fields, parameters, sizeof(descent_parameter));
  appendTable(fields, states, sizeof(descent_state));
  appendTable(fields, inputs, sizeof(descent_input));
  llvm::append_range(fields, kernelFields);
  appendTable(fields, settings, sizeof(descent_setting));
  appendTable(fields, functions, sizeof(descent_function));
  fields.push_back(options.device ? deviceRow(*this, *options.device) : null());
  llvm::Constant *program = structure(fields);
  layoutBroken |=
      module->getDataLayout().getTypeAllocSize(program->getType()) != sizeof(descent_program);
  if (layoutBroken)
    return plan.emitError("internal: a table of the program has another layout than abi.h");
  new llvm::GlobalVariable(*module, program->getType(), true, llvm::GlobalValue::ExternalLinkage,
                           program, DESCENT_PROGRAM_SYMBOL);
  return std::move(module);
}

FailureOr<std::unique_ptr<llvm::Module>> emitProgram(ModuleOp plan, ModuleOp kernels,
                                                     const ProgramOptions &options,
                                                     llvm::LLVMContext &context) {
  return ProgramEmitter(plan, kernels, options, context).run();
}

} // namespace descent
