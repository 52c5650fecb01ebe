//===- PlanMemory.cpp - Every byte gets its place -------------------------===//
//
// From tensors by value to launches on buffers:
//
//   1. Persistent part, in this order: parameter slabs, gradient slabs, optimizer slabs, what is in
//   no slab (frozen parameters, counters), inputs.
//   2. Transient part: one region behind it, shared by all functions, each placed by lifetime on
//   its own (Placement.h).
//   3. Each train.func becomes an exec.program of exec.run; train symbols become exec.storage.
//
// The arena is exactly as large as what is placed, so the planned peak is the measured one. A value
// that lives across the launch that computes the loss is an activation, any other transient one is
// workspace.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Schedule/Lifetimes.h"
#include "passes/Schedule/Placement.h"

#include "llvm/ADT/MapVector.h"

namespace descent {
#define GEN_PASS_DEF_PLANMEMORY
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;
using namespace descent::schedule;

namespace {

struct PlanMemory : descent::impl::PlanMemoryBase<PlanMemory> {
  void runOnOperation() override;

private:
  void placePersistent();
  int64_t reserve(int64_t bytes) {
    int64_t offset = end;
    end += llvm::alignTo(bytes, alignment);
    return offset;
  }
  int64_t offsetOf(const Persistent &place) const {
    return offsets.lookup(place.symbol) + place.bytes;
  }
  void declareStorage(StringRef name, StringRef category, int64_t offset, Type type,
                      ArrayRef<NamedAttribute> extra);
  void declareSymbols();
  void placeTransient(train::FuncOp function, TransientSlots &transient);
  void buildProgram(train::FuncOp function, const TransientSlots &transient);
  void buildArena();

  std::optional<SlabMap> slabs;
  llvm::MapVector<StringAttr, int64_t>
      offsets; // symbols and "input:<name>" to bytes from the arena's start
  int64_t end = 0;
  struct Totals {
    int64_t parameters = 0, gradients = 0, optimizer = 0, inputs = 0, persistent = 0;
    int64_t transient = 0, lowerBound = 0, activations = 0;
  } totals;
};

} // namespace

void PlanMemory::declareStorage(StringRef name, StringRef category, int64_t offset, Type type,
                                ArrayRef<NamedAttribute> extra) {
  OpBuilder builder = OpBuilder::atBlockEnd(getOperation().getBody());
  auto storage =
      exec::StorageOp::create(builder, getOperation().getLoc(), name, category, offset, type);
  for (NamedAttribute attribute : extra)
    storage->setAttr(attribute.getName(), attribute.getValue());
}

void PlanMemory::placePersistent() {
  ModuleOp module = getOperation();
  for (auto [category, total] : {std::pair<StringRef, int64_t *>{"parameters", &totals.parameters},
                                 {"working", &totals.parameters},
                                 {"gradients", &totals.gradients},
                                 {"optimizer", &totals.optimizer}}) {
    for (auto slab : module.getOps<train::SlabOp>())
      if (slab.getCategory() == category) {
        offsets[slab.getSymNameAttr()] = reserve(bytesOf(slab.getType()));
        *total += bytesOf(slab.getType());
      }
  }
  auto placeAlone = [&](StringAttr symbol, Type type, int64_t &total) {
    if (slabs->place(symbol).symbol != symbol)
      return; // lies in a slab
    offsets[symbol] = reserve(bytesOf(type));
    total += llvm::alignTo(bytesOf(type), alignment);
  };
  for (auto parameter : module.getOps<train::ParameterOp>())
    placeAlone(parameter.getSymNameAttr(), parameter.getType(), totals.parameters);
  for (auto state : module.getOps<train::StateOp>())
    placeAlone(state.getSymNameAttr(), state.getType(), totals.optimizer);
  for (auto function : module.getOps<train::FuncOp>()) {
    Lifetimes lifetimes(function, *slabs);
    for (BlockArgument argument : function.getArguments()) {
      StringAttr symbol = lifetimes.placeOf(argument).persistent->symbol;
      if (offsets.contains(symbol))
        continue;
      offsets[symbol] = reserve(bytesOf(argument.getType()));
      totals.inputs += llvm::alignTo(bytesOf(argument.getType()), alignment);
    }
  }
  totals.persistent = end;
}

/// Turns the train symbols into exec.storage that says all a program's tables need.
void PlanMemory::declareSymbols() {
  ModuleOp module = getOperation();
  Builder builder(&getContext());
  DenseMap<StringAttr, int64_t> gradientOf; // by parameter
  SmallVector<Operation *> symbols;
  struct Declaration {
    std::string name, category;
    int64_t offset;
    Type type;
    SmallVector<NamedAttribute> extra;
  };
  SmallVector<Declaration> declarations; // collected first: train and exec symbols share names

  for (auto slab : module.getOps<train::SlabOp>()) {
    symbols.push_back(slab);
    declarations.push_back({slab.getSymName().str(),
                            ("slab." + slab.getCategory()).str(),
                            offsets.lookup(slab.getSymNameAttr()),
                            slab.getType(),
                            {}});
    if (slab.getCategory() == "gradients")
      for (auto [member, element] :
           llvm::zip(slab.getMembers().getAsRange<FlatSymbolRefAttr>(), slab.getOffsets()))
        gradientOf[member.getAttr()] =
            offsets.lookup(slab.getSymNameAttr()) + 4 * element; // gradients are f32
  }
  for (auto parameter : module.getOps<train::ParameterOp>()) {
    symbols.push_back(parameter);
    Declaration declaration{parameter.getSymName().str(),
                            "parameters",
                            offsetOf(slabs->place(parameter.getSymNameAttr())),
                            parameter.getType(),
                            {builder.getNamedAttr("init", parameter.getInit()),
                             builder.getNamedAttr("rate_scale", parameter.getRateScaleAttr()),
                             builder.getNamedAttr("weight_decay", parameter.getWeightDecayAttr())}};
    if (parameter.getFrozen())
      declaration.extra.push_back(builder.getNamedAttr("frozen", builder.getUnitAttr()));
    if (parameter.getGroupAttr())
      declaration.extra.push_back(builder.getNamedAttr("group", parameter.getGroupAttr()));
    if (auto gradient = gradientOf.find(parameter.getSymNameAttr()); gradient != gradientOf.end())
      declaration.extra.push_back(
          builder.getNamedAttr("gradient", builder.getI64IntegerAttr(gradient->second)));
    declarations.push_back(std::move(declaration));
  }
  for (auto state : module.getOps<train::StateOp>()) {
    symbols.push_back(state);
    Declaration declaration{state.getSymName().str(),
                            "optimizer",
                            offsetOf(slabs->place(state.getSymNameAttr())),
                            state.getType(),
                            {builder.getNamedAttr("initial", state.getInitialAttr())}};
    if (state.getParameterAttr())
      declaration.extra.push_back(builder.getNamedAttr("parameter", state.getParameterAttr()));
    declarations.push_back(std::move(declaration));
  }
  for (auto copy : module.getOps<train::WorkingCopyOp>()) {
    symbols.push_back(copy);
    declarations.push_back({copy.getSymName().str(),
                            "working",
                            offsetOf(slabs->place(copy.getSymNameAttr())),
                            copy.getType(),
                            {builder.getNamedAttr("parameter", copy.getParameterAttr())}});
  }
  llvm::SmallDenseSet<StringAttr> declared;
  for (auto function : module.getOps<train::FuncOp>()) {
    Lifetimes lifetimes(function, *slabs);
    for (BlockArgument argument : function.getArguments()) {
      StringAttr symbol = lifetimes.placeOf(argument).persistent->symbol;
      if (!declared.insert(symbol).second)
        continue;
      SmallVector<NamedAttribute> extra;
      if (auto attributes = function.getArgAttrDict(argument.getArgNumber()))
        llvm::append_range(extra, attributes);
      declarations.push_back(
          {symbol.str(), "inputs", offsets.lookup(symbol), argument.getType(), extra});
    }
  }
  for (Operation *symbol : symbols)
    symbol->erase();
  for (Declaration &declaration : declarations)
    declareStorage(declaration.name, declaration.category, declaration.offset, declaration.type,
                   declaration.extra);
}

void PlanMemory::placeTransient(train::FuncOp function, TransientSlots &transient) {
  Lifetimes lifetimes(function, *slabs);
  transient = transientSlots(lifetimes);
  totals.transient = std::max(totals.transient, place(transient.slots));
  totals.lowerBound = std::max(totals.lowerBound, lowerBound(transient.slots));
  reused += lifetimes.getReused();
}

/// The launch after which the loss is known; what lives across it is kept for the backward pass.
static int64_t lossLaunch(train::FuncOp function, const Lifetimes &lifetimes) {
  return lifetimes.placeOf(function.getReturn().getValues()[0]).first;
}

/// The source op that computes a value: of a launch's result, the one its kernel yields there.
/// Kernels are shared, so the launch's own list of sources says which instance it is.
static std::string sourceOf(Value value) {
  auto launch = value.getDefiningOp<exec::LaunchOp>();
  if (!launch)
    return value.getDefiningOp() ? nn::sourceName(value.getDefiningOp()) : "";
  Operation *yield = kernelOf(launch).getBody().front().getTerminator();
  Operation *op = yield->getOperand(cast<OpResult>(value).getResultNumber()).getDefiningOp();
  std::string found = launch.getKernel().str();
  if (auto sources = launch->getAttrOfType<ArrayAttr>("sources"); sources && op)
    for (StringRef source : sources.getAsValueRange<StringAttr>())
      if (source.split(' ').first == op->getName().getStringRef())
        found = source.str();
  return found;
}

void PlanMemory::buildProgram(train::FuncOp function, const TransientSlots &transient) {
  Lifetimes lifetimes(function, *slabs);
  DenseMap<unsigned, const Slot *> slotOf;
  for (auto [slot, index] : llvm::zip_equal(transient.slots, transient.places))
    slotOf[index] = &slot;

  OpBuilder outer = OpBuilder::atBlockEnd(getOperation().getBody());
  auto program = exec::ProgramOp::create(outer, function.getLoc(), function.getSymName());
  OpBuilder builder = OpBuilder::atBlockEnd(&program.getBody().emplaceBlock());
  int64_t loss = lossLaunch(function, lifetimes);

  // What is alive at the step with the most bytes makes the activations and workspace of the
  // report.
  std::vector<int64_t> alive(lifetimes.getLaunches().size() + 1, 0), activations(alive);
  auto isActivation = [&](const Place &place) { return place.first <= loss && place.last > loss; };
  for (auto [slot, index] : llvm::zip_equal(transient.slots, transient.places))
    for (int64_t step = slot.first; step <= slot.last; ++step) {
      alive[static_cast<size_t>(step)] += slot.bytes;
      if (isActivation(lifetimes.getPlaces()[index]))
        activations[static_cast<size_t>(step)] += slot.bytes;
    }
  auto peak = std::distance(alive.begin(), llvm::max_element(alive));
  if (alive[static_cast<size_t>(peak)] == totals.lowerBound)
    totals.activations = std::max(totals.activations, activations[static_cast<size_t>(peak)]);

  DenseMap<Value, Value> buffers;
  auto bufferOf = [&](Value value) -> Value {
    Value &buffer = buffers[value];
    if (buffer)
      return buffer;
    auto tensor = cast<RankedTensorType>(value.getType());
    auto memref = MemRefType::get(tensor.getShape(), tensor.getElementType());
    unsigned index = lifetimes.indexOf(value);
    const Place &place = lifetimes.getPlaces()[index];
    if (place.persistent) {
      buffer = exec::GetOp::create(builder, value.getLoc(), memref, place.persistent->symbol,
                                   offsetOf(*place.persistent));
      return buffer;
    }
    const Slot &slot = *slotOf.lookup(index);
    std::string source = sourceOf(place.representative);
    buffer = exec::BufferOp::create(builder, value.getLoc(), memref, source,
                                    isActivation(place) ? "activations" : "workspace",
                                    totals.persistent + slot.offset, slot.first, slot.last);
    return buffer;
  };
  for (exec::LaunchOp launch : lifetimes.getLaunches()) {
    SmallVector<Value> inputs, outputs;
    for (Value input : launch.getInputs())
      inputs.push_back(bufferOf(input));
    for (Value output : launch.getOutputs())
      outputs.push_back(bufferOf(output));
    auto stream = launch->getAttrOfType<IntegerAttr>("stream");
    exec::RunOp::create(builder, launch.getLoc(), launch.getKernelAttr(), inputs, outputs,
                        launch->getAttrOfType<ArrayAttr>("sources"),
                        stream ? stream : builder.getI64IntegerAttr(0), /*record=*/nullptr,
                        /*waits=*/nullptr);
    ++launches;
  }
  train::ReturnOp ret = function.getReturn();
  for (auto [name, value] :
       llvm::zip_equal(ret.getNames().getAsRange<StringAttr>(), ret.getValues()))
    exec::OutputOp::create(builder, ret.getLoc(), name, bufferOf(value));
}

void PlanMemory::buildArena() {
  OpBuilder builder = OpBuilder::atBlockBegin(getOperation().getBody());
  int64_t size = totals.persistent + totals.transient;
  exec::ArenaOp::create(builder, getOperation().getLoc(), size, totals.persistent,
                        totals.persistent + totals.lowerBound, totals.parameters, totals.gradients,
                        totals.optimizer, totals.activations,
                        size - totals.parameters - totals.gradients - totals.optimizer -
                            totals.activations);
  peak += size;
  bound += totals.persistent + totals.lowerBound;
}

void PlanMemory::runOnOperation() {
  ModuleOp module = getOperation();
  slabs.emplace(module);
  offsets.clear();
  end = 0;
  totals = {};
  auto functions = llvm::to_vector(module.getOps<train::FuncOp>());
  placePersistent();
  std::vector<TransientSlots> transient(functions.size());
  for (auto [function, slots] : llvm::zip_equal(functions, transient))
    placeTransient(function, slots);
  for (auto [function, slots] : llvm::zip_equal(functions, transient))
    buildProgram(function, slots);
  buildArena();
  // Storage of inputs is read off the functions' arguments, so the functions go last.
  declareSymbols();
  for (train::FuncOp function : functions)
    function.erase();
}
