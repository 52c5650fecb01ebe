//===- GenerateKernels.cpp - Kernel functions beside their program --------===//
//
// The pass form of KernelDispatch, for tests and for looking at one kernel; the compiler's driver
// calls the library, since it wants the functions in a module of their own.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/Codegen/KernelDispatch.h"
#include "passes/Passes.h"

namespace descent {
#define GEN_PASS_DEF_GENERATEKERNELS
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;

namespace {

struct GenerateKernelsPass : descent::impl::GenerateKernelsBase<GenerateKernelsPass> {
  using GenerateKernelsBase::GenerateKernelsBase;

  void runOnOperation() override {
    llvm::Expected<CpuTarget> target = CpuTarget::named(cpu);
    if (!target) {
      getOperation().emitError("generate-kernels: ") << llvm::toString(target.takeError());
      return signalPassFailure();
    }
    FailureOr<OwningOpRef<ModuleOp>> functions = generateKernels(getOperation(), *target);
    if (failed(functions))
      return signalPassFailure();
    (*functions)->setSymName("kernels");
    getOperation().push_back(functions->release());
  }
};

} // namespace
