//===- Lifetimes.cpp - Which values share bytes, and for how long ---------===//
//
//   1. Required sharing: views, accumulations, members of a packed slab, values written to a slab
//   or state.
//   2. Allowed sharing: a result over an input of the same launch, where the kernel reads each
//   element before it writes it (reusableOperands), the input
//      has no later use, and neither is pinned elsewhere.
//   3. Each place lives from its first definition to its last use.
//
// insert-copies has made the required sharing possible; this file trusts it and verify-plan checks
// the result.
//
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Lifetimes.h"

#include "passes/Codegen/KernelEmitter.h"
#include "passes/Fusion/KernelRules.h"

using namespace mlir;
using namespace descent;
using namespace descent::schedule;

int64_t schedule::bytesOf(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

exec::KernelOp schedule::kernelOf(exec::LaunchOp launch) {
  return SymbolTable::lookupNearestSymbolFrom<exec::KernelOp>(launch, launch.getKernelAttr());
}

std::optional<unsigned> schedule::accumulatedOperand(exec::KernelOp kernel) {
  if (auto index = kernel->getAttrOfType<IntegerAttr>(fusion::accumulateAttrName))
    return static_cast<unsigned>(index.getInt());
  return std::nullopt;
}

bool schedule::isView(Operation &op) {
  auto fusible = dyn_cast<FusibleOp>(op);
  return fusible && fusible.getFusionClass() == FusionClass::View;
}

/// Where a member of a slab starts, in bytes.
static int64_t memberOffset(train::SlabOp slab, int64_t element) {
  return element * llvm::divideCeil(slab.getTensorType().getElementTypeBitWidth(), 8);
}

SlabMap::SlabMap(ModuleOp module) {
  for (auto slab : module.getOps<train::SlabOp>()) {
    members[slab.getSymNameAttr()] = {slab.getSymNameAttr(), 0};
    if (slab.getCategory() ==
        "gradients") // members are named after the parameters, which live elsewhere
      continue;
    for (auto [member, offset] :
         llvm::zip(slab.getMembers().getAsRange<FlatSymbolRefAttr>(), slab.getOffsets()))
      members[member.getAttr()] = {slab.getSymNameAttr(), memberOffset(slab, offset)};
  }
}

Persistent SlabMap::place(StringAttr symbol) const {
  auto found = members.find(symbol);
  return found == members.end() ? Persistent{symbol, 0} : found->second;
}

Lifetimes::Lifetimes(train::FuncOp function, const SlabMap &slabs) : function(function) {
  readKernels();
  numberValues();
  uniteRequired();
  uniteReusable();
  collect(slabs);
}

void Lifetimes::readKernels() {
  for (auto launch : function.getBody().front().getOps<exec::LaunchOp>())
    kernels.try_emplace(launch.getKernelAttr().getAttr());
  for (auto kernel : function->getParentOfType<ModuleOp>().getOps<exec::KernelOp>())
    if (auto found = kernels.find(kernel.getSymNameAttr()); found != kernels.end())
      found->second = {accumulatedOperand(kernel), reusableOperands(kernel)};
}

void Lifetimes::numberValues() {
  Block &body = function.getBody().front();
  llvm::append_range(values, body.getArguments());
  for (Operation &op : body) {
    if (auto launch = dyn_cast<exec::LaunchOp>(op)) {
      launchNumber[launch] = static_cast<int64_t>(launches.size());
      launches.push_back(launch);
    }
    llvm::append_range(values, op.getResults());
  }
  for (Value value : values)
    classes.insert(value);
  for (BlockArgument argument : body.getArguments())
    fixed.insert(argument);
}

void Lifetimes::unite(Value a, Value b) {
  bool isFixedUnion = isFixed(a) || isFixed(b);
  classes.unionSets(a, b);
  if (isFixedUnion)
    fixed.insert(classes.getLeaderValue(a));
}

void Lifetimes::uniteRequired() {
  for (Operation &op : function.getBody().front()) {
    if (isView(op)) {
      unite(op.getResult(0), op.getOperand(0));
    } else if (auto launch = dyn_cast<exec::LaunchOp>(op)) {
      if (std::optional<unsigned> operand = factsOf(launch).accumulated)
        unite(launch.getOutputs()[0], launch.getInputs()[*operand]);
    } else if (isa<train::ReadOp>(op)) {
      fixed.insert(classes.getLeaderValue(op.getResult(0)));
    } else if (auto pack = dyn_cast<train::PackOp>(op)) {
      fixed.insert(classes.getLeaderValue(pack.getPacked()));
      for (Value member : pack.getMembers()) // not united: each has its own part of the slab
        fixed.insert(classes.getLeaderValue(member));
    } else if (auto write = dyn_cast<train::WriteOp>(op)) {
      fixed.insert(classes.getLeaderValue(write.getValue()));
    }
  }
}

int64_t Lifetimes::lastUse(Value value) const {
  int64_t last = -1;
  for (auto member = classes.findLeader(value); member != classes.member_end(); ++member)
    for (Operation *user : member->getUsers()) {
      if (auto found = launchNumber.find(user); found != launchNumber.end())
        last = std::max(last, found->second);
      else if (!isView(*user))
        last = static_cast<int64_t>(launches.size());
    }
  return last;
}

void Lifetimes::uniteReusable() {
  for (auto [number, launch] : llvm::enumerate(launches)) {
    llvm::SmallDenseSet<unsigned> takenResults, takenInputs;
    const KernelFacts &facts = factsOf(launch);
    if (facts.accumulated)
      takenResults.insert(0);
    for (auto [result, input] : facts.reusable) {
      Value output = launch.getOutputs()[result], operand = launch.getInputs()[input];
      if (takenResults.contains(result) || takenInputs.contains(input) || isFixed(output) ||
          isFixed(operand) || lastUse(operand) != static_cast<int64_t>(number))
        continue;
      // The same value twice among the inputs would be overwritten while its other use still reads.
      if (llvm::count_if(launch.getInputs(),
                         [&](Value v) { return classes.isEquivalent(v, operand); }) > 1)
        continue;
      takenResults.insert(result);
      takenInputs.insert(input);
      unite(output, operand);
      ++reused;
    }
  }
}

void Lifetimes::collect(const SlabMap &slabs) {
  DenseMap<Value, unsigned> leaderIndex;
  int64_t end = static_cast<int64_t>(launches.size());
  for (Value value : values) {
    Value leader = classes.getLeaderValue(value);
    auto [entry, isNew] = leaderIndex.try_emplace(leader, places.size());
    if (isNew) {
      Operation *def = value.getDefiningOp();
      int64_t first = def && launchNumber.contains(def) ? launchNumber.lookup(def) : 0;
      places.push_back(
          {value, std::nullopt, bytesOf(value.getType()), first, first, isa<BlockArgument>(value)});
    }
    placeIndex[value] = entry->second;
    Place &place = places[entry->second];
    place.last = std::max({place.last, place.first, lastUse(value)});
    if (auto read = value.getDefiningOp<train::ReadOp>())
      place.persistent = slabs.place(read.getSymbolAttr().getAttr());
  }
  for (Operation &op : function.getBody().front()) {
    if (auto pack = dyn_cast<train::PackOp>(op)) {
      auto slab = SymbolTable::lookupNearestSymbolFrom<train::SlabOp>(pack, pack.getSlabAttr());
      places[placeIndex[pack.getPacked()]].persistent = Persistent{slab.getSymNameAttr(), 0};
      for (auto [member, offset] : llvm::zip(pack.getMembers(), slab.getOffsets()))
        places[placeIndex[member]].persistent =
            Persistent{slab.getSymNameAttr(), memberOffset(slab, offset)};
    } else if (auto write = dyn_cast<train::WriteOp>(op)) {
      places[placeIndex[write.getValue()]].persistent =
          slabs.place(write.getSymbolAttr().getAttr());
    }
  }
  for (auto [argument, attributes] :
       llvm::zip(function.getArguments(), llvm::seq<unsigned>(0, function.getNumArguments()))) {
    auto name = function.getArgAttrOfType<StringAttr>(attributes, "nn.name");
    std::string symbol = name ? name.str() : ("input" + llvm::Twine(attributes)).str();
    places[placeIndex[argument]].persistent =
        Persistent{StringAttr::get(function.getContext(), "input:" + symbol), 0};
    places[placeIndex[argument]].last = end;
  }
}
