//===- TensorForm.cpp - Kernels in linalg ---------------------------------===//
//
// Ops are visited in order with a map from the kernel's values to the function's. An op that only
// names a computation is decomposed into a copy of the kernel first, so that the kernel itself
// stays as the plan knows it.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/TensorForm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace descent {

/// Replaces decomposable ops until none is left.
static LogicalResult decompose(exec::KernelOp kernel) {
  bool changed = true;
  while (changed) {
    changed = false;
    for (Operation &op : llvm::make_early_inc_range(kernel.getBody().front())) {
      auto named = dyn_cast<DecomposableOp>(op);
      if (!named || isa<LinalgLowerable>(op))
        continue;
      OpBuilder builder(&op);
      auto values = named.decompose(builder);
      if (failed(values))
        return failure();
      op.replaceAllUsesWith(*values);
      op.erase();
      changed = true;
    }
  }
  return success();
}

FailureOr<OwningOpRef<func::FuncOp>> lowerToTensorForm(exec::KernelOp original) {
  MLIRContext *context = original.getContext();
  context->loadDialect<arith::ArithDialect, linalg::LinalgDialect, math::MathDialect,
                       tensor::TensorDialect, func::FuncDialect>();
  OwningOpRef<exec::KernelOp> kernel(original.clone());
  if (failed(decompose(*kernel)))
    return failure();

  OpBuilder builder(context);
  OwningOpRef<func::FuncOp> function(func::FuncOp::create(
      original.getLoc(), original.getName(),
      builder.getFunctionType(original.getArgumentTypes(), original.getResultTypes())));
  Block *entry = function->addEntryBlock();
  builder.setInsertionPointToStart(entry);
  IRMapping mapping;
  Block &body = kernel->getBody().front();
  mapping.map(body.getArguments(), entry->getArguments());
  for (Operation &op : body.without_terminator()) {
    SmallVector<Value> operands =
        llvm::map_to_vector(op.getOperands(), [&](Value v) { return mapping.lookup(v); });
    auto lowerable = dyn_cast<LinalgLowerable>(op);
    if (!lowerable)
      return op.emitOpError() << "has no linalg form, so it cannot stand in a kernel of kind \""
                              << original.getKind() << "\"",
             failure();
    auto values = lowerable.lowerToLinalg(builder, operands);
    if (failed(values))
      return failure();
    mapping.map(op.getResults(), *values);
  }
  SmallVector<Value> results = llvm::map_to_vector(body.getTerminator()->getOperands(),
                                                   [&](Value v) { return mapping.lookup(v); });
  func::ReturnOp::create(builder, original.getLoc(), results);
  // Two ops that ask for the same fill, extract or subexpression would else be two nodes of the
  // graph.
  IRRewriter rewriter(context);
  DominanceInfo dominance(*function);
  eliminateCommonSubExpressions(rewriter, dominance, *function);
  (void)runRegionDCE(rewriter, function->getBody());
  return function;
}

} // namespace descent
