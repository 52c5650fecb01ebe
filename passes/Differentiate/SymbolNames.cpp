//===- SymbolNames.cpp - Names that training adds to the model's ----------===//

#include "passes/Differentiate/SymbolNames.h"

#include "dialects/Train/Train.h"

using namespace mlir;
using namespace descent;

LogicalResult descent::checkNameIsFree(ModuleOp module, StringRef name, StringRef what) {
  Operation *taken = module.lookupSymbol(name);
  if (!taken)
    return success();
  InFlightDiagnostic error = emitError(taken->getLoc());
  if (isa<train::ParameterOp>(taken))
    return error << "parameter '" << name << "' has the name that training gives to " << what
                 << "; rename the parameter";
  error << "'" << name << "' is the name of " << what << " too";
  if (auto state = dyn_cast<train::StateOp>(taken); state && state.getParameterAttr())
    error << "; rename the parameter '" << *state.getParameter() << "'";
  return error;
}
