//===- NarrowStorage.cpp - Parameters and state kept in bf16 --------------===//
//
// What the recipe's precision.master = false and precision.state = "bf16" ask for: fewer bytes for
// what lives from step to step, at the price of rounding it once per step. The update itself stays
// in f32: lower-updates widens what it reads and rounds what it writes, to nearest or, since most
// updates are smaller than half a unit in bf16's last place and would be lost, stochastically.
//
// Without masters a parameter is its own working copy. Gradients stay f32: they are read once, and
// the norm wants them.
//
// Rejected: working copies in another type than bf16. Left in the IR: declarations in bf16, reads
// with casts behind them, and for stochastic rounding a generator's key as input of @step.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "passes/Passes.h"

namespace descent {
#define GEN_PASS_DEF_NARROWSTORAGE
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;

namespace {

struct NarrowStorage : descent::impl::NarrowStorageBase<NarrowStorage> {
  void runOnOperation() override;

private:
  LogicalResult narrowParameters();
  void narrowStates(Type element);
  void addGenerator(train::FuncOp step);
};

} // namespace

LogicalResult NarrowStorage::narrowParameters() {
  ModuleOp module = getOperation();
  Type bf16 = BFloat16Type::get(&getContext());
  llvm::StringMap<StringRef> parameterOf; // by working copy
  for (auto copy : module.getOps<train::WorkingCopyOp>()) {
    if (copy.getTensorType().getElementType() != bf16)
      return copy.emitError() << "'" << copy.getSymName() << "' is " << copy.getTensorType()
                              << ", but without masters parameters are kept in bf16; use "
                                 "precision.compute = \"bf16\" or precision.master = true";
    parameterOf[copy.getSymName()] = copy.getParameter();
  }
  for (auto parameter : module.getOps<train::ParameterOp>()) {
    parameter.setType(parameter.getTensorType().clone(bf16));
    ++parameters;
  }
  for (auto function : module.getOps<train::FuncOp>())
    for (auto read : llvm::make_early_inc_range(function.getBody().getOps<train::ReadOp>())) {
      if (auto copy = parameterOf.find(read.getSymbol()); copy != parameterOf.end()) {
        read.setSymbol(copy->second);
        continue;
      }
      if (!module.lookupSymbol<train::ParameterOp>(read.getSymbolAttr()))
        continue;
      auto wide = cast<RankedTensorType>(read.getValue().getType());
      OpBuilder builder(read);
      Value narrow =
          train::ReadOp::create(builder, read.getLoc(), wide.clone(bf16), read.getSymbol());
      read.replaceAllUsesWith(
          nn::CastOp::create(builder, read.getLoc(), narrow, TypeAttr::get(wide.getElementType()))
              .getY());
      read.erase();
    }
  for (auto copy : llvm::make_early_inc_range(module.getOps<train::WorkingCopyOp>()))
    copy.erase();
  return success();
}

void NarrowStorage::narrowStates(Type element) {
  for (auto state : getOperation().getOps<train::StateOp>())
    if (state.getParameterAttr()) {
      state.setType(state.getTensorType().clone(element));
      ++states;
    }
}

/// Random numbers need a key; a model with dropout has it already.
void NarrowStorage::addGenerator(train::FuncOp step) {
  for (unsigned i = 0; i < step.getNumArguments(); ++i)
    if (auto role = step.getArgAttrOfType<StringAttr>(i, "nn.role"); role && role == "rng")
      return;
  Builder builder(&getContext());
  auto attributes =
      builder.getDictionaryAttr({builder.getNamedAttr("nn.name", builder.getStringAttr("rng")),
                                 builder.getNamedAttr("nn.role", builder.getStringAttr("rng"))});
  (void)step.insertArgument(step.getNumArguments(),
                            RankedTensorType::get({4}, builder.getI32Type()), attributes,
                            step.getLoc());
}

void NarrowStorage::runOnOperation() {
  auto storage = getOperation()->getAttrOfType<train::StorageAttr>("train.storage");
  if (!storage)
    return;
  auto step = getOperation().lookupSymbol<train::FuncOp>("step");
  if (!step) {
    getOperation().emitError("narrow-storage needs train.func @step; run insert-optimizer first");
    return signalPassFailure();
  }
  if (!storage.getMaster() && failed(narrowParameters()))
    return signalPassFailure();
  bool narrowState = !storage.getState().isF32();
  if (narrowState)
    narrowStates(storage.getState());
  if (storage.getStochastic() && (!storage.getMaster() || narrowState))
    addGenerator(step);
}
