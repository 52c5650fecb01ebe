//===- VerifyKernels.cpp - The end of the Fusion phase --------------------===//
//
// What Schedule and Codegen rely on: programs hold views, launches and ops of other dialects;
// launches fit their kernels; kernels obey the rules of their kind (KernelRules), the same that
// form-kernels kept.
//
//===----------------------------------------------------------------------===//

#include "dialects/Exec/Exec.h"
#include "passes/Fusion/KernelRules.h"
#include "passes/Passes.h"

namespace descent {
#define GEN_PASS_DEF_VERIFYKERNELS
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;
using namespace descent::fusion;

namespace {

struct VerifyKernelsPass : descent::impl::VerifyKernelsBase<VerifyKernelsPass> {
  void runOnOperation() override {
    bool failed = false;
    for (auto kernel : getOperation().getOps<exec::KernelOp>())
      failed |= mlir::failed(verifyKernel(kernel));
    forEachProgram(getOperation(), [&](FunctionOpInterface function) {
      failed |= mlir::failed(verifyProgram(function));
    });
    if (failed)
      signalPassFailure();
    else
      markAllAnalysesPreserved();
  }

private:
  LogicalResult verifyKernel(exec::KernelOp kernel);
  LogicalResult verifyProgram(FunctionOpInterface function);
};

} // namespace

LogicalResult VerifyKernelsPass::verifyKernel(exec::KernelOp kernel) {
  SmallVector<Operation *> ops;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (!fusionClass(&op))
      return op.emitOpError("has no place in a kernel (@")
             << kernel.getSymName() << "); kernels hold ops with a fusion class";
    ops.push_back(&op);
  }
  if (std::optional<std::string> reason =
          kernelViolation(kernel.getKind(), ops, kernel->hasAttr(libraryAttrName)))
    return kernel.emitOpError("@") << kernel.getSymName() << " is no kernel of kind '"
                                   << kernel.getKind() << "': " << *reason;
  Operation *yield = kernel.getBody().front().getTerminator();
  if (yield->getNumOperands() == 0)
    return kernel.emitOpError("@")
           << kernel.getSymName() << " computes nothing: exec.yield has no operands";
  for (auto [index, value] : llvm::enumerate(yield->getOperands()))
    if (!value.getDefiningOp())
      return kernel.emitOpError("@")
             << kernel.getSymName() << " yields its own input as result " << index
             << "; the value has a place already, so its users should read that";
  if (auto accumulate = kernel->getAttrOfType<IntegerAttr>(accumulateAttrName)) {
    uint64_t index = accumulate.getValue().getZExtValue();
    if (index >= kernel.getNumArguments() || kernel.getResultTypes().size() != 1 ||
        kernel.getArgumentTypes()[index] != kernel.getResultTypes()[0])
      return kernel.emitOpError("@") << kernel.getSymName() << " accumulates onto operand " << index
                                     << ", which is not an input of the type of its only result";
  }
  return success();
}

LogicalResult VerifyKernelsPass::verifyProgram(FunctionOpInterface function) {
  for (Operation &op : function.getFunctionBody().front()) {
    if (auto fusion = dyn_cast<exec::FusionOp>(op))
      return fusion.emitOpError("of kind '")
             << fusion.getKind() << "' is not outlined; outline-kernels makes it a kernel";
    if (fusionClass(&op) && !isView(&op))
      return op.emitOpError("is in no kernel; form-kernels puts every op but views into one");
    auto launch = dyn_cast<exec::LaunchOp>(op);
    if (!launch)
      continue;
    auto kernel =
        SymbolTable::lookupNearestSymbolFrom<exec::KernelOp>(launch, launch.getKernelAttr());
    if (!kernel)
      return launch.emitOpError("launches @") << launch.getKernel() << ", which is no exec.kernel";
    if (launch.getInputs().getTypes() != TypeRange(kernel.getArgumentTypes()) ||
        launch->getResultTypes() != TypeRange(kernel.getResultTypes()))
      return launch.emitOpError("has other types than @")
             << kernel.getSymName() << ", " << kernel.getFunctionType();
  }
  return success();
}
