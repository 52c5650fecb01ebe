//===- KernelFunction.cpp - Kernel functions to the LLVM dialect ----------===//
//
// How generators begin a kernel function, and the pipeline that lowers it. Between
// check-kernel-functions and wrap-kernel-functions at its ends stand only MLIR's conversions and
// `expand-math`; no LLVM optimisation runs afterwards, since generators emit what the code
// generator should see (loop-invariant values hoisted, accumulators in registers).
//
// Order matters in three places. Multi-dimensional vectors are unrolled before anything becomes
// control flow, or tiles would live on the stack. libm calls come after the LLVM intrinsics have
// taken what they can (sqrt and fma must not become calls) but before functions and vectors are
// converted, because they create both. `ub.poison` from the canonicalizer must be converted or
// translation refuses it.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/KernelFunction.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/Vector/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"

using namespace mlir;

namespace descent {

func::FuncOp createKernelFunction(ModuleOp module, Location loc, StringRef name, TypeRange buffers,
                                  int64_t tasks, int64_t scratchBytes) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  SmallVector<Type> arguments(buffers);
  arguments.append(2, builder.getIndexType());
  arguments.push_back(MemRefType::get({scratchBytes}, builder.getI8Type()));
  auto function = func::FuncOp::create(builder, loc, name, builder.getFunctionType(arguments, {}));
  function->setAttr(tasksAttrName, builder.getI64IntegerAttr(tasks));
  function->setAttr(scratchAttrName, builder.getI64IntegerAttr(scratchBytes));
  function.addEntryBlock();
  return function;
}

void buildLowerKernelFunctions(OpPassManager &pm, bool expandBf16) {
  pm.addPass(createCheckKernelFunctions());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createExpandMath({expandBf16}));
  OpPassManager &functions = pm.nest<func::FuncOp>();
  functions.addPass(createConvertLinalgToLoopsPass());
  functions.addPass(vector::createLowerVectorMultiReductionPass(
      vector::VectorMultiReductionLowering::InnerReduction));
  functions.addPass(createConvertVectorToSCFPass(VectorTransferToSCFOptions().enableFullUnroll()));
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertMathToLibmPass());
  ConvertVectorToLLVMPassOptions vectors;
  vectors.reassociateFPReductions = true;
  vectors.x86Vector = true;
  pm.addPass(createConvertVectorToLLVMPass(vectors));
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  ConvertFuncToLLVMPassOptions calls;
  calls.useBarePtrCallConv = true;
  pm.addPass(createConvertFuncToLLVMPass(calls));
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createUBToLLVMConversionPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createWrapKernelFunctions());
}

void registerKernelPipelines() {
  PassPipelineRegistration<>(
      "lower-kernel-functions",
      "Lower kernel functions to the LLVM dialect with the signature of the ABI",
      [](OpPassManager &pm) { buildLowerKernelFunctions(pm); });
}

} // namespace descent
