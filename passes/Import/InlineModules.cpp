//===- InlineModules.cpp - One flat model ---------------------------------===//
//
// Every nn.instantiate is replaced by a clone of its module's body, from the outside in, until none
// is left; then the modules go. A parameter inside is prefixed with the names of the instances
// around it, "h.0.attn.qkv.weight". So is the location of every other op: a NameLoc "h.0.attn"
// around the place in the file, which is what plans and profiles print.
//
// Rejected: two parameters whose prefixed names are equal (a parameter "a.w" beside an instance "a"
// with a parameter "w"). Recursion is refused by the verifier of nn.instantiate, so the walk ends.
// Left in the IR: nn.model ops without instances, and no nn.module.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NN.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringMap.h"

namespace descent {
#define GEN_PASS_DEF_INLINEMODULES
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;

namespace {

struct InlineModules : descent::impl::InlineModulesBase<InlineModules> {
  void runOnOperation() override;

private:
  void expand(nn::InstantiateOp instance, StringRef prefix, SymbolTable &symbols);
};

} // namespace

static std::string qualify(StringRef prefix, StringRef name) {
  return prefix.empty() ? name.str() : (prefix + "." + name).str();
}

void InlineModules::expand(nn::InstantiateOp instance, StringRef prefix, SymbolTable &symbols) {
  auto callee = symbols.lookup<nn::ModuleOp>(instance.getCallee());
  std::string path = qualify(prefix, instance.getName());
  auto pathAttr = StringAttr::get(&getContext(), path);
  OpBuilder builder(instance);
  IRMapping mapping;
  mapping.map(callee.getBody().getArguments(), instance.getOperands());
  SmallVector<nn::InstantiateOp> inner;
  for (Operation &op : callee.getBody().front().without_terminator()) {
    Operation *clone = builder.clone(op, mapping);
    clone->setLoc(NameLoc::get(pathAttr, op.getLoc()));
    if (auto parameter = dyn_cast<nn::ParameterOp>(clone)) {
      parameter.setName(qualify(path, parameter.getName()));
      ++parametersNamed;
    }
    if (auto nested = dyn_cast<nn::InstantiateOp>(clone))
      inner.push_back(nested);
  }
  Operation *ret = callee.getBody().front().getTerminator();
  for (auto [result, value] : llvm::zip_equal(instance.getResults(), ret->getOperands()))
    result.replaceAllUsesWith(mapping.lookupOrDefault(value));
  instance.erase();
  ++instancesInlined;
  for (nn::InstantiateOp nested : inner)
    expand(nested, path, symbols);
}

/// Names that were unique in each module may meet in the model.
static LogicalResult verifyUnique(nn::ModelOp model) {
  llvm::StringMap<nn::ParameterOp> seen;
  for (auto parameter : model.getBody().front().getOps<nn::ParameterOp>()) {
    auto [entry, isNew] = seen.try_emplace(parameter.getName(), parameter);
    if (isNew)
      continue;
    InFlightDiagnostic error = parameter.emitOpError()
                               << "is named '" << parameter.getName()
                               << "' once its instances are inlined, but so is another; rename the "
                                  "parameter or the instance";
    error.attachNote(entry->second.getLoc()) << "the other is here";
    return error;
  }
  return success();
}

void InlineModules::runOnOperation() {
  SymbolTable symbols(getOperation());
  for (auto model : getOperation().getOps<nn::ModelOp>()) {
    auto instances = llvm::to_vector(model.getBody().front().getOps<nn::InstantiateOp>());
    for (nn::InstantiateOp instance : instances)
      expand(instance, "", symbols);
    if (failed(verifyUnique(model)))
      return signalPassFailure();
  }
  for (auto module : llvm::make_early_inc_range(getOperation().getOps<nn::ModuleOp>()))
    module.erase();
}
