//===- RowValues.cpp - The values of a row while its code is emitted ------===//
//
// Values are emitted where they are first asked for. What a region inside a row must not own, since
// code behind it asks again, enterStage emits before the region opens.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/RowValues.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace descent {

/// Operands of a payload in the order Lanes::payload wants them, null where it does not read.
static SmallVector<Value> payloadOperands(RowNode *node, bool initials,
                                          llvm::function_ref<Value(RowNode *)> operand) {
  SmallVector<Value> values;
  unsigned inputs = node->op.getNumDpsInputs(), all = node->op->getNumOperands();
  for (auto [i, producer] : llvm::enumerate(node->operands))
    values.push_back(producer && (initials || i < inputs || i >= all) ? operand(producer)
                                                                      : Value());
  return values;
}

Value emitMap(Lanes &lanes, RowNode *node, int64_t width,
              llvm::function_ref<Value(RowNode *)> operand,
              llvm::function_ref<Value(const LinearForm &)> loop) {
  auto yield = cast<linalg::YieldOp>(node->op.getBody()->getTerminator());
  return lanes.payload(
      node->op, payloadOperands(node, /*initials=*/true, operand), node->captures, width,
      [&](unsigned i) { return loop(node->loops[i]); }, nullptr,
      yield.getOperand(node->resultNumber));
}

Value emitContribution(Lanes &lanes, RowNode *reduction, int64_t width,
                       llvm::function_ref<Value(RowNode *)> operand,
                       llvm::function_ref<Value(const LinearForm &)> loop) {
  Operation *combiner = reduction->combiner;
  Value own = reduction->op.getRegionOutputArgs()[reduction->resultNumber];
  Value contribution = combiner->getOperand(combiner->getOperand(0) == own ? 1 : 0);
  return lanes.payload(
      reduction->op, payloadOperands(reduction, /*initials=*/false, operand), reduction->captures,
      width, [&](unsigned i) { return loop(reduction->loops[i]); }, combiner, contribution);
}

RowNode *initialValue(Lanes &lanes, RowNode *reduction) {
  RowNode *initial = reduction->operands[reduction->op.getNumDpsInputs() + reduction->resultNumber];
  bool neutral = initial && initial->kind == RowNode::Kind::Splat &&
                 initial->splat == lanes.neutral(reduction->combiner);
  return neutral ? nullptr : initial;
}

LogicalResult RowValues::check(func::FuncOp tensors) {
  for (auto &node : graph.nodes())
    if (node->kind == RowNode::Kind::Reduce &&
        (node->reduced.size() != 1 || node->reduced[0] != graph.sizes.size() - 1))
      return node->op.emitError("a rows kernel reduces over the last axis only (or over axes that "
                                "are one run in every buffer)");
  for (auto [i, result] : llvm::enumerate(graph.results))
    if (!result.strides.empty() && result.strides.back() > 1)
      return tensors.emitError()
             << "result " << i
             << " of a rows kernel is not contiguous along the kernel's last axis";
  return success();
}

int64_t RowValues::elementBytes() const {
  int64_t bytes = 0;
  for (auto &node : graph.nodes())
    if (node->kind == RowNode::Kind::Load && schedule.varies(node.get()))
      bytes += storageBytes(node->type);
  for (const RowResult &result : graph.results)
    if (!result.strides.empty() && result.strides.back() != 0)
      bytes += storageBytes(result.type);
  return std::max<int64_t>(bytes, 1);
}

void RowValues::enterRow(Value rowIndex) {
  row = rowIndex;
  position.assign(leading(), nullptr);
  loadBases.clear();
  storeBases.assign(graph.results.size(), nullptr);
  storeGuards.assign(graph.results.size(), nullptr);
}

Value RowValues::dimension(unsigned i) {
  if (leading() == 1)
    return row;
  if (!position[i]) {
    int64_t inner = 1;
    for (unsigned k = i + 1; k < leading(); ++k)
      inner *= graph.sizes[k];
    Value quotient =
        inner == 1 ? row : arith::DivUIOp::create(b, row, lanes.index(inner)).getResult();
    position[i] =
        i == 0 ? quotient
               : arith::RemUIOp::create(b, quotient, lanes.index(graph.sizes[i])).getResult();
  }
  return position[i];
}

Value RowValues::offset(const LinearForm &strides) {
  Value sum;
  // Most buffers hold whole rows one behind the other: one product instead of a division per
  // dimension.
  bool whole = leading() > 0;
  for (unsigned i = leading(); i-- > 1;)
    whole &= strides[i - 1] == strides[i] * graph.sizes[i];
  if (whole && strides[leading() - 1] != 0)
    return lanes.scaled(row, strides[leading() - 1]);
  for (unsigned i = 0; i < leading(); ++i)
    if (strides[i] != 0)
      sum = lanes.add(sum, lanes.scaled(dimension(i), strides[i]));
  return sum;
}

Value RowValues::guard(const RowResult &result) {
  Value all;
  for (unsigned i : schedule.missing(result)) {
    Value at = i < leading() ? dimension(i) : columnBegin;
    if (!at)
      continue;
    Value first = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, at, lanes.index(0));
    all = both(all, first);
  }
  return all;
}

Value RowValues::both(Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  return arith::AndIOp::create(b, x, y);
}

Value RowValues::loopIndex(const LinearForm &form, Value column, int64_t width) {
  Value sum = offset(form);
  int64_t step = form.empty() ? 0 : form.back();
  if (step == 0)
    return sum ? sum : lanes.index(0);
  return lanes.ramp(lanes.add(sum, lanes.scaled(column, step)), step, width);
}

Value RowValues::uniform(RowNode *node) {
  if (Value known = uniforms.lookup(node))
    return known;
  Value value;
  switch (node->kind) {
  case RowNode::Kind::Load: {
    Value at = offset(node->strides);
    if (!at || node->base)
      at = lanes.add(at, lanes.index(node->base));
    value = loadUniform(node, at);
    break;
  }
  case RowNode::Kind::Splat:
    value = arith::ConstantOp::create(b, node->splat);
    break;
  case RowNode::Kind::Map:
    value = emitMap(
        lanes, node, 1, [&](RowNode *operand) { return uniform(operand); },
        [&](const LinearForm &form) { return loopIndex(form, nullptr, 1); });
    break;
  case RowNode::Kind::Reduce:
    llvm_unreachable("a stage defines its reductions before later ones read them");
  }
  uniforms[node] = value;
  return value;
}

void RowValues::emitShared() {
  for (RowStage &stage : schedule.stages)
    for (RowNode *node : stage.uniform)
      if (node->level == 0 && llvm::all_of(node->depends, [](int64_t d) { return d == 0; }))
        uniform(node);
}

void RowValues::enterStage(unsigned stageNumber) {
  RowStage &stage = schedule.stages[stageNumber];
  for (RowNode *node : stage.uniform)
    uniform(node);
  for (RowNode *node : stage.visited)
    if (node->kind == RowNode::Kind::Load && !loadBases.contains(node))
      loadBases[node] = offset(node->strides);
  if (graph.usesIndices)
    for (unsigned i = 0; i < leading(); ++i)
      dimension(i);
  for (unsigned result : stage.stores) {
    storeBases[result] = offset(graph.results[result].strides);
    storeGuards[result] = guard(graph.results[result]);
  }
}

Value RowValues::element(RowNode *node, unsigned stage, Value column, const LaneBlock &block,
                         BlockValues &values) {
  if (!schedule.varies(node))
    return uniform(node);
  if (Value known = values.lookup(node))
    return known;
  Value value;
  if (schedule.comesFromMemory(node, stage))
    value = loadKept(node, column, block);
  else if (node->kind == RowNode::Kind::Load)
    value = loadElement(node, column, block);
  else
    value = emitMap(
        lanes, node, block.width,
        [&](RowNode *operand) { return element(operand, stage, column, block, values); },
        [&](const LinearForm &form) { return loopIndex(form, column, block.width); });
  values[node] = value;
  return value;
}

Value RowValues::contribution(RowNode *reduction, unsigned stage, Value column,
                              const LaneBlock &block, BlockValues &values) {
  Value value = emitContribution(
      lanes, reduction, block.width,
      [&](RowNode *operand) { return element(operand, stage, column, block, values); },
      [&](const LinearForm &form) { return loopIndex(form, column, block.width); });
  return lanes.widen(value, block.width);
}

void RowValues::finish(RowNode *reduction, Value total) {
  if (RowNode *initial = initialValue(lanes, reduction))
    total = lanes.combine(reduction->combiner, total, uniform(initial));
  uniforms[reduction] = total;
}

void RowValues::storeRowResults(Value writes, llvm::function_ref<void()> beforeStores) {
  SmallVector<Value> values;
  for (unsigned result : schedule.rowResults)
    values.push_back(uniform(graph.results[result].node));
  if (beforeStores)
    beforeStores();
  for (auto [result, value] : llvm::zip(schedule.rowResults, values)) {
    Value at = offset(graph.results[result].strides);
    lanes.when(both(writes, guard(graph.results[result])), [&, result = result, value = value] {
      lanes.storeScalar(value, outputs[result], at ? at : lanes.index(0));
    });
  }
}

} // namespace descent
