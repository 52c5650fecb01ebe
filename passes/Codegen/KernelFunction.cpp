//===- KernelFunction.cpp - Kernel functions to the LLVM dialect ----------===//
//
// The pipeline, and the two passes at its ends. Between them stand only MLIR's conversions and `expand-math`; no LLVM optimisation
// runs afterwards, since generators emit what the code generator should see (loop-invariant values hoisted, accumulators in registers).
//
// Order matters in three places. Multi-dimensional vectors are unrolled before anything becomes control flow, or tiles would live on the
// stack. libm calls come after the LLVM intrinsics have taken what they can (sqrt and fma must not become calls) but before functions and
// vectors are converted, because they create both. `ub.poison` from the canonicalizer must be converted or translation refuses it.
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

#define GEN_PASS_DEF_CHECKKERNELFUNCTIONS
#define GEN_PASS_DEF_WRAPKERNELFUNCTIONS
#include "passes/Passes.h.inc"

func::FuncOp createKernelFunction(ModuleOp module, Location loc, StringRef name, TypeRange buffers, int64_t tasks,
                                  int64_t scratchBytes) {
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

namespace {

struct CheckKernelFunctionsPass : impl::CheckKernelFunctionsBase<CheckKernelFunctionsPass> {
  static LogicalResult check(func::FuncOp function) {
    auto refuse = [&](const Twine &what) {
      return function.emitError() << "kernel function '" << function.getName() << "' " << what;
    };
    auto tasks = function->getAttrOfType<IntegerAttr>(tasksAttrName);
    auto scratch = function->getAttrOfType<IntegerAttr>(scratchAttrName);
    if (!tasks || tasks.getInt() < 0)
      return refuse("needs 'descent.tasks' to be a count of tasks, as in 'descent.tasks = 8 : i64'");
    if (!scratch || scratch.getInt() < 0)
      return refuse("needs 'descent.scratch' to be a number of bytes, as in 'descent.scratch = 0 : i64'");
    if (function.isExternal())
      return refuse("has no body");
    if (function.getNumResults())
      return refuse("returns values; results are written to output buffers");
    unsigned count = function.getNumArguments();
    auto types = function.getArgumentTypes();
    auto expected = MemRefType::get({scratch.getInt()}, IntegerType::get(function.getContext(), 8));
    if (count < 3 || !types[count - 3].isIndex() || !types[count - 2].isIndex() || types[count - 1] != expected) {
      InFlightDiagnostic error = refuse("must end its arguments with the first task, the last task and the scratch");
      return error << ": index, index, " << expected;
    }
    for (auto [position, type] : llvm::enumerate(types.drop_back(3))) {
      auto memref = dyn_cast<MemRefType>(type);
      if (!memref || !memref.hasStaticShape() || !memref.getLayout().isIdentity()) {
        InFlightDiagnostic error = refuse("takes buffers as memrefs of static shape and identity layout");
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
        alloc.emitError("kernels may not allocate on the heap; take the bytes from the scratch argument or use memref.alloca");
        return WalkResult::interrupt();
      });
      if (result.wasInterrupted())
        return signalPassFailure();
    }
  }
};

struct WrapKernelFunctionsPass : impl::WrapKernelFunctionsBase<WrapKernelFunctionsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    auto pointer = LLVM::LLVMPointerType::get(&getContext());
    auto i64 = IntegerType::get(&getContext(), 64);
    SmallVector<LLVM::LLVMFuncOp> kernels;
    for (auto function : module.getOps<LLVM::LLVMFuncOp>())
      if (function->hasAttr(tasksAttrName))
        kernels.push_back(function);
    for (LLVM::LLVMFuncOp body : kernels) {
      std::string name = body.getName().str();
      auto types = body.getFunctionType().getParams();
      unsigned buffers = types.size() < 3 ? 0 : types.size() - 3;
      auto isPointer = [&](Type type) { return type == pointer; };
      if (types.size() < 3 || !llvm::all_of(types.take_front(buffers), isPointer) || types[buffers] != i64 ||
          types[buffers + 1] != i64 || types[buffers + 2] != pointer) {
        body.emitError() << "kernel function '" << name << "' must take pointers, two i64 and a pointer, not "
                         << body.getFunctionType();
        return signalPassFailure();
      }
      if (failed(symbols.rename(body, name + ".body"))) {
        body.emitError() << "'" << name << ".body' is already defined";
        return signalPassFailure();
      }
      body.setLinkage(LLVM::Linkage::Internal);
      OpBuilder builder(body->getNextNode() ? OpBuilder(body->getNextNode()) : OpBuilder::atBlockEnd(module.getBody()));
      Location loc = body.getLoc();
      auto wrapper = LLVM::LLVMFuncOp::create(
          builder, loc, name, LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(&getContext()), {pointer, i64, i64, pointer}));
      for (StringRef attribute : {StringRef(tasksAttrName), StringRef(scratchAttrName)}) {
        wrapper->setAttr(attribute, body->getAttr(attribute));
        body->removeAttr(attribute);
      }
      Block *entry = wrapper.addEntryBlock(builder);
      builder.setInsertionPointToStart(entry);
      SmallVector<Value> operands;
      for (unsigned i = 0; i < buffers; ++i) {
        Value slot = LLVM::GEPOp::create(builder, loc, pointer, pointer, entry->getArgument(0),
                                         ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
        operands.push_back(LLVM::LoadOp::create(builder, loc, pointer, slot));
      }
      for (unsigned i = 1; i < 4; ++i)
        operands.push_back(entry->getArgument(i));
      LLVM::CallOp::create(builder, loc, body, operands);
      LLVM::ReturnOp::create(builder, loc, ValueRange());
    }
  }
};

} // namespace

void buildLowerKernelFunctions(OpPassManager &pm, bool expandBf16) {
  pm.addPass(createCheckKernelFunctions());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createExpandMath({expandBf16}));
  OpPassManager &functions = pm.nest<func::FuncOp>();
  functions.addPass(createConvertLinalgToLoopsPass());
  functions.addPass(vector::createLowerVectorMultiReductionPass(vector::VectorMultiReductionLowering::InnerReduction));
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
  PassPipelineRegistration<>("lower-kernel-functions",
                             "Lower kernel functions to the LLVM dialect with the signature of the ABI",
                             [](OpPassManager &pm) { buildLowerKernelFunctions(pm); });
}

} // namespace descent
