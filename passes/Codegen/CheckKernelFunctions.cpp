//===- CheckKernelFunctions.cpp - The contract of generators --------------===//
//
// Runs first, so that a generator's mistake is reported in its own terms and not by a conversion or
// by wrong bytes at run time.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "passes/Codegen/KernelFunction.h"
#include "passes/Passes.h"

namespace descent {
#define GEN_PASS_DEF_CHECKKERNELFUNCTIONS
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;

namespace {

struct CheckKernelFunctionsPass
    : descent::impl::CheckKernelFunctionsBase<CheckKernelFunctionsPass> {
  static LogicalResult check(func::FuncOp function) {
    auto refuse = [&](const Twine &what) {
      return function.emitError() << "kernel function '" << function.getName() << "' " << what;
    };
    auto tasks = function->getAttrOfType<IntegerAttr>(tasksAttrName);
    auto scratch = function->getAttrOfType<IntegerAttr>(scratchAttrName);
    if (!tasks || tasks.getInt() < 0)
      return refuse(
          "needs 'descent.tasks' to be a count of tasks, as in 'descent.tasks = 8 : i64'");
    if (!scratch || scratch.getInt() < 0)
      return refuse(
          "needs 'descent.scratch' to be a number of bytes, as in 'descent.scratch = 0 : i64'");
    if (function.isExternal())
      return refuse("has no body");
    if (function.getNumResults())
      return refuse("returns values; results are written to output buffers");
    unsigned count = function.getNumArguments();
    auto types = function.getArgumentTypes();
    auto expected = MemRefType::get({scratch.getInt()}, IntegerType::get(function.getContext(), 8));
    if (count < 3 || !types[count - 3].isIndex() || !types[count - 2].isIndex() ||
        types[count - 1] != expected) {
      InFlightDiagnostic error =
          refuse("must end its arguments with the first task, the last task and the scratch");
      return error << ": index, index, " << expected;
    }
    for (auto [position, type] : llvm::enumerate(types.drop_back(3))) {
      auto memref = dyn_cast<MemRefType>(type);
      if (!memref || !memref.hasStaticShape() || !memref.getLayout().isIdentity()) {
        InFlightDiagnostic error =
            refuse("takes buffers as memrefs of static shape and identity layout");
        return error << "; argument " << position << " is " << type;
      }
    }
    return success();
  }

  void runOnOperation() override {
    auto internal = LLVM::LinkageAttr::get(&getContext(), LLVM::Linkage::Internal);
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function->hasAttr(tasksAttrName)) {
        if (failed(check(function)))
          return signalPassFailure();
        function.setPublic();
      } else if (function.isPrivate() && !function.isExternal()) {
        function->setAttr("llvm.linkage", internal);
      }
      WalkResult result = function.walk([&](memref::AllocOp alloc) {
        alloc.emitError("kernels may not allocate on the heap; take the bytes from the scratch "
                        "argument or use memref.alloca");
        return WalkResult::interrupt();
      });
      if (result.wasInterrupted())
        return signalPassFailure();
    }
  }
};

} // namespace
