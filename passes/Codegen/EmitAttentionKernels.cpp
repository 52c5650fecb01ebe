//===- EmitAttentionKernels.cpp - The attention generator as a pass -------===//
//
// Shows and tests the generator alone. In compilation it is called through Attention.h.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/Codegen/Attention.h"
#include "passes/Passes.h"

using namespace mlir;

namespace descent {

#define GEN_PASS_DEF_EMITATTENTIONKERNELS
#include "passes/Passes.h.inc"

namespace {

struct EmitAttentionKernelsPass : impl::EmitAttentionKernelsBase<EmitAttentionKernelsPass> {
  using EmitAttentionKernelsBase::EmitAttentionKernelsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::Expected<CpuTarget> target = CpuTarget::named(cpu);
    if (!target) {
      module.emitError() << llvm::toString(target.takeError());
      return signalPassFailure();
    }
    for (auto kernel : llvm::make_early_inc_range(module.getOps<exec::KernelOp>())) {
      bool gradient = kernel.getKind() == "attention_grad";
      if (!gradient && kernel.getKind() != "attention")
        continue;
      if (failed(
              (gradient ? emitAttentionGradKernel : emitAttentionKernel)(kernel, module, *target)))
        return signalPassFailure();
      kernel.erase(); // The function has its name.
    }
  }
};

} // namespace
} // namespace descent
