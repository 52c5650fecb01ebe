//===- WrapKernelFunctions.cpp - The signature of the ABI -----------------===//
//
// Runs last, on the LLVM dialect: each kernel function becomes the internal body of a function that
// takes its buffers as one array of pointers, which is how the runtime calls every kernel whatever
// its number of operands.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "passes/Codegen/KernelFunction.h"
#include "passes/Passes.h"

namespace descent {
#define GEN_PASS_DEF_WRAPKERNELFUNCTIONS
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;

namespace {

struct WrapKernelFunctionsPass : descent::impl::WrapKernelFunctionsBase<WrapKernelFunctionsPass> {
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
      if (types.size() < 3 || !llvm::all_of(types.take_front(buffers), isPointer) ||
          types[buffers] != i64 || types[buffers + 1] != i64 || types[buffers + 2] != pointer) {
        body.emitError() << "kernel function '" << name
                         << "' must take pointers, two i64 and a pointer, not "
                         << body.getFunctionType();
        return signalPassFailure();
      }
      if (failed(symbols.rename(body, name + ".body"))) { // a name that is taken gets a number
        body.emitError() << "calls of kernel function '" << name
                         << "' cannot be renamed: the module holds symbol tables";
        return signalPassFailure();
      }
      body.setLinkage(LLVM::Linkage::Internal);
      OpBuilder builder(body->getNextNode() ? OpBuilder(body->getNextNode())
                                            : OpBuilder::atBlockEnd(module.getBody()));
      Location loc = body.getLoc();
      auto wrapper = LLVM::LLVMFuncOp::create(
          builder, loc, name,
          LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(&getContext()),
                                      {pointer, i64, i64, pointer}));
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
