//===- KernelDispatch.cpp - Kernels to kernel functions -------------------===//
//
// Each kernel is generated into a module of its own, so that generators can run side by side; the
// modules are then joined in the kernels' order. Generators create helper functions (tiles,
// packing) once a module and name them by all that distinguishes them, so of helpers of one name
// any will do, and the first is kept.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/KernelDispatch.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/IR/Threading.h"
#include "passes/Codegen/Attention.h"
#include "passes/Codegen/KernelEmitter.h"
#include "passes/Codegen/KernelFunction.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace descent;

using Generator = FailureOr<func::FuncOp> (*)(exec::KernelOp, ModuleOp, const CpuTarget &);

static Generator generatorOf(StringRef kind) {
  return llvm::StringSwitch<Generator>(kind)
      .Case("rows", emitRowsKernel)
      .Case("columns", emitColumnsKernel)
      .Case("copy", emitCopyKernel)
      .Cases({"gemm", "conv"}, emitContractionKernel)
      .Case("attention", emitAttentionKernel)
      .Case("attention_grad", emitAttentionGradKernel)
      .Case("gather", emitGatherKernel)
      .Case("scatter", emitScatterKernel)
      .Case("pool", emitPoolKernel)
      .Default(nullptr);
}

FailureOr<func::FuncOp> descent::generateKernel(exec::KernelOp kernel, ModuleOp target,
                                                const CpuTarget &cpu) {
  Generator generator = generatorOf(kernel.getKind());
  if (!generator)
    return kernel.emitOpError("@") << kernel.getSymName() << " has kind '" << kernel.getKind()
                                   << "', for which there is no generator";
  FailureOr<func::FuncOp> function = generator(kernel, target, cpu);
  if (failed(function))
    return failure();
  if (function->getSymName() != kernel.getSymName() || !(*function)->hasAttr(tasksAttrName))
    return kernel.emitOpError("@")
           << kernel.getSymName() << ": its generator made @" << function->getSymName()
           << ", which is no kernel function of that name";
  return function;
}

FailureOr<OwningOpRef<ModuleOp>> descent::generateKernels(ModuleOp program, const CpuTarget &cpu) {
  // A driver that is no pass has declared no dependent dialects; threads below may not load any.
  MLIRContext *context = program.getContext();
  context->loadDialect<affine::AffineDialect, arith::ArithDialect, func::FuncDialect,
                       linalg::LinalgDialect, math::MathDialect, memref::MemRefDialect,
                       scf::SCFDialect, tensor::TensorDialect, vector::VectorDialect,
                       x86vector::X86VectorDialect>();
  SmallVector<exec::KernelOp> kernels(program.getOps<exec::KernelOp>());
  SmallVector<OwningOpRef<ModuleOp>, 0> parts(kernels.size());
  for (auto [part, kernel] : llvm::zip_equal(parts, kernels))
    part = ModuleOp::create(kernel.getLoc());
  LogicalResult generated =
      failableParallelForEachN(program.getContext(), 0, kernels.size(), [&](size_t i) {
        return LogicalResult(generateKernel(kernels[i], *parts[i], cpu));
      });
  if (failed(generated))
    return failure();
  OwningOpRef<ModuleOp> joined = ModuleOp::create(program.getLoc());
  SymbolTable symbols(*joined);
  for (auto [part, kernel] : llvm::zip_equal(parts, kernels))
    for (Operation &op : llvm::make_early_inc_range(*part->getBody())) {
      auto symbol = cast<SymbolOpInterface>(op);
      Operation *known = symbols.lookup(symbol.getName());
      if (known && symbol.isPrivate() &&
          SymbolTable::getSymbolVisibility(known) == SymbolTable::Visibility::Private)
        continue;
      if (known)
        return kernel.emitOpError("@")
               << kernel.getSymName() << ": two functions are called @" << symbol.getName();
      op.remove();
      symbols.insert(&op);
    }
  return joined;
}
