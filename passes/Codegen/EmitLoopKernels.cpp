//===- EmitLoopKernels.cpp - The loop generators as a pass ----------------===//
//
// Lets tests write a kernel's linalg form by hand. In compilation the generators are called through
// KernelEmitter.h.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/Codegen/LoopKernels.h"
#include "passes/Passes.h"

using namespace mlir;

namespace descent {

#define GEN_PASS_DEF_EMITLOOPKERNELS
#include "passes/Passes.h.inc"

namespace {

struct EmitLoopKernelsPass : impl::EmitLoopKernelsBase<EmitLoopKernelsPass> {
  using EmitLoopKernelsBase::EmitLoopKernelsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::Expected<CpuTarget> target = CpuTarget::named(cpu);
    if (!target) {
      module.emitError() << llvm::toString(target.takeError());
      return signalPassFailure();
    }
    for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      auto kind = function->getAttrOfType<StringAttr>("descent.kind");
      if (!kind)
        continue;
      // The kernel takes the name, so the tensor form gives it up first.
      std::string name = function.getName().str();
      OwningOpRef<func::FuncOp> tensors = function;
      function->remove();
      FailureOr<func::FuncOp> kernel = failure();
      if (kind == "rows")
        kernel = emitRows(function, module, *target);
      else if (kind == "columns")
        kernel = emitColumns(function, module, *target);
      else
        function.emitError() << "'descent.kind' of '" << name << "' is \"" << kind.getValue()
                             << "\"; this pass knows \"rows\" and \"columns\"";
      if (failed(kernel))
        return signalPassFailure();
      if (kind == "rows") {
        SmallVector<Attribute> pairs;
        OpBuilder builder(&getContext());
        for (auto [result, input] : reusableRowOperands(function))
          pairs.push_back(builder.getDenseI64ArrayAttr({result, input}));
        (*kernel)->setAttr("reusable", builder.getArrayAttr(pairs));
      }
    }
  }
};

} // namespace
} // namespace descent
