//===- Passes.td - Every pass, by phase -----------------------------------===//

#ifndef DESCENT_PASSES
#define DESCENT_PASSES

include "mlir/Pass/PassBase.td"

#endif // DESCENT_PASSES
