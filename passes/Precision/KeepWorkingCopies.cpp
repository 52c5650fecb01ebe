//===- KeepWorkingCopies.cpp - Parameters in the type of the products -----===//
//
// A parameter that products want in a narrow type would be cast in every step, and once more in
// every evaluation. The copy is kept instead: a train.working_copy that the update writes when it
// writes the parameter, half the bytes for the forward and the backward pass to read. The f32
// parameter, the master, is then read by the update alone.
//
// Left as casts: parameters that are frozen (no update writes them) and casts that something stands
// before, such as a reshape. Numerics do not change: the copy is the cast, made earlier.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "passes/Differentiate/SymbolNames.h"
#include "passes/Passes.h"

namespace descent {
#define GEN_PASS_DEF_KEEPWORKINGCOPIES
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;

namespace {

struct KeepWorkingCopies : descent::impl::KeepWorkingCopiesBase<KeepWorkingCopies> {
  void runOnOperation() override;
};

std::string typeName(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

} // namespace

void KeepWorkingCopies::runOnOperation() {
  ModuleOp module = getOperation();
  for (auto function : module.getOps<train::FuncOp>())
    for (auto cast : llvm::make_early_inc_range(function.getBody().getOps<nn::CastOp>())) {
      auto read = cast.getX().getDefiningOp<train::ReadOp>();
      auto parameter =
          read ? module.lookupSymbol<train::ParameterOp>(read.getSymbolAttr()) : nullptr;
      auto type = mlir::cast<RankedTensorType>(cast.getY().getType());
      if (!parameter || !(type.getElementType().isF16() || type.getElementType().isBF16()))
        continue;
      if (parameter.getFrozen()) {
        ++frozen;
        continue;
      }
      std::string name = (parameter.getSymName() + "." + typeName(type.getElementType())).str();
      if (!module.lookupSymbol<train::WorkingCopyOp>(name)) {
        if (failed(checkNameIsFree(module, name,
                                   ("the working copy of '" + parameter.getSymName() + "'").str())))
          return signalPassFailure();
        OpBuilder builder(&getContext());
        builder.setInsertionPointAfter(parameter);
        train::WorkingCopyOp::create(builder, parameter.getLoc(), name, parameter.getSymName(),
                                     type);
        ++copies;
      }
      OpBuilder builder(cast);
      cast.replaceAllUsesWith(train::ReadOp::create(builder, cast.getLoc(), type, name).getValue());
      cast.erase();
      if (read.use_empty())
        read.erase();
    }
}
