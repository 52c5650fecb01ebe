//===- ColumnSweep.cpp - Reductions over leading axes, one row at a time --===//

#include "passes/Codegen/ColumnSweep.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Codegen/RowValues.h"

using namespace mlir;

namespace descent {

LogicalResult ColumnSweep::check(func::FuncOp tensors) {
  unsigned last = graph.sizes.size() - 1;
  columns = graph.sizes.back();
  for (auto &node : graph.nodes()) {
    if (node->kind != RowNode::Kind::Reduce)
      continue;
    if (llvm::is_contained(node->reduced, last))
      return node->op.emitError(
          "a columns kernel reduces over leading axes; the last one belongs to a rows kernel");
    if (node->level != 1)
      return node->op.emitError(
          "a columns kernel cannot reduce what depends on another of its reductions");
    if (!reductions.empty() && reductions.front()->reduced != node->reduced)
      return node->op.emitError("the reductions of a columns kernel must be over the same axes");
    reductions.push_back(node.get());
  }
  if (reductions.empty())
    return tensors.emitError("a columns kernel holds a reduction over leading axes");
  for (unsigned i = 0; i < last; ++i) {
    bool isReduced = llvm::is_contained(reductions.front()->reduced, i);
    (isReduced ? reduced : kept).push_back(i);
    (isReduced ? rows : keptCount) *= graph.sizes[i];
  }
  for (auto [i, result] : llvm::enumerate(graph.results)) {
    for (auto [dimension, stride] : llvm::enumerate(result.strides)) {
      bool needed = graph.sizes[dimension] != 1 &&
                    (!llvm::is_contained(reduced, dimension) || dependsOnRow(result.node->depends));
      if (needed && (dimension == last ? stride != 1 : stride == 0))
        return tensors.emitError()
               << "result " << i << " of a columns kernel must hold every column, side by side";
    }
    if (dependsOnRow(result.strides)) {
      if (result.node->level != 0)
        return tensors.emitError()
               << "result " << i << " of a columns kernel needs a second sweep over the rows";
      rowStores.push_back(i);
    }
  }
  return success();
}

void ColumnSweep::delinearize(Value index, ArrayRef<unsigned> dimensions) {
  int64_t inner = 1;
  for (unsigned k = dimensions.size(); k-- > 0;) {
    unsigned i = dimensions[k];
    Value quotient =
        inner == 1 ? index : arith::DivUIOp::create(b, index, lanes.index(inner)).getResult();
    position[i] =
        k == 0 ? quotient
               : arith::RemUIOp::create(b, quotient, lanes.index(graph.sizes[i])).getResult();
    inner *= graph.sizes[i];
  }
}

Value ColumnSweep::offset(const LinearForm &strides) {
  Value sum;
  for (unsigned i = 0; i + 1 < strides.size(); ++i)
    if (strides[i] != 0)
      sum = lanes.add(sum, lanes.scaled(position[i], strides[i]));
  return strides.back() == 0 ? sum : lanes.add(sum, lanes.scaled(column, strides.back()));
}

Value ColumnSweep::loopIndex(const LinearForm &form) {
  Value sum = offset(form);
  if (!sum)
    sum = lanes.index(0);
  if (form.back() == 0)
    return sum;
  return lanes.ramp(sum, form.back(), laneCount);
}

Value ColumnSweep::element(RowNode *node) {
  bool perRow = node->level == 0 && dependsOnRow(node->depends);
  auto &known = perRow ? rowValues : sweepValues;
  if (Value value = known.lookup(node))
    return value;
  Value value;
  if (node->kind == RowNode::Kind::Splat) {
    value = arith::ConstantOp::create(b, node->splat);
  } else if (node->kind == RowNode::Kind::Load) {
    Value at = offset(node->strides);
    if (!at || node->base)
      at = lanes.add(at, lanes.index(node->base));
    value = read(inputs[node->argument], at, node->type, node->strides.back());
  } else {
    value = emitMap(
        lanes, node, laneCount, [&](RowNode *operand) { return element(operand); },
        [&](const LinearForm &form) { return loopIndex(form); });
  }
  known[node] = value;
  return value;
}

void ColumnSweep::prepare(RowNode *node) {
  if (!dependsOnRow(node->depends)) {
    element(node);
    return;
  }
  for (RowNode *operand : node->operands)
    if (operand)
      prepare(operand);
}

void ColumnSweep::enter() {
  sweepValues.clear();
  rowValues.clear();
  position.assign(graph.sizes.size(), Value());
  delinearize(keptIndex, kept);
}

void ColumnSweep::prepareSweep() {
  for (RowNode *reduction : reductions)
    for (RowNode *operand : reduction->operands)
      if (operand)
        prepare(operand);
  for (unsigned result : rowStores)
    prepare(graph.results[result].node);
}

SmallVector<Value> ColumnSweep::neutrals() {
  SmallVector<Value> values;
  for (RowNode *reduction : reductions)
    values.push_back(lanes.splat(lanes.neutral(reduction->combiner), laneCount));
  return values;
}

SmallVector<Value> ColumnSweep::accumulateRow(Value rowIndex, ValueRange accumulators) {
  rowValues.clear();
  delinearize(rowIndex, reduced);
  SmallVector<Value> next, stored;
  for (auto [reduction, accumulator] : llvm::zip_equal(reductions, accumulators)) {
    Value value = emitContribution(
        lanes, reduction, laneCount, [&](RowNode *operand) { return element(operand); },
        [&](const LinearForm &form) { return loopIndex(form); });
    next.push_back(lanes.combine(reduction->combiner, accumulator, value));
  }
  for (unsigned result : rowStores)
    stored.push_back(element(graph.results[result].node));
  for (auto [result, value] : llvm::zip(rowStores, stored))
    write(value, outputs[result], offset(graph.results[result].strides));
  return next;
}

SmallVector<Value> ColumnSweep::combine(ValueRange some, ValueRange others) {
  SmallVector<Value> sums;
  for (auto [reduction, a, other] : llvm::zip_equal(reductions, some, others))
    sums.push_back(lanes.combine(reduction->combiner, a, other));
  return sums;
}

void ColumnSweep::finish(ValueRange sums) {
  for (auto [reduction, sum] : llvm::zip_equal(reductions, sums)) {
    if (RowNode *initial = initialValue(lanes, reduction))
      sum = lanes.combine(reduction->combiner, sum, element(initial));
    sweepValues[reduction] = sum;
  }
  SmallVector<std::pair<unsigned, Value>> stored;
  for (auto [i, result] : llvm::enumerate(graph.results))
    if (!llvm::is_contained(rowStores, i))
      stored.push_back({i, element(result.node)});
  for (auto [i, value] : stored) {
    Value at = offset(graph.results[i].strides);
    write(value, outputs[i], at ? at : lanes.index(0));
  }
}

} // namespace descent
