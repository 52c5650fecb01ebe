//===- RowSchedule.cpp - Passes over a row --------------------------------===//
//
// Stages are visited last to first: a later stage decides what an earlier one must keep, which may
// in turn make that stage need more from the ones before it. A second sweep then records what each
// stage touches.
//
// In-place reuse follows from the same record. A result may lie over an input if both are one
// element for one element of the domain and no stage after the one that writes the result reads the
// input. Within a stage a block of lanes is loaded before it is stored.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/RowSchedule.h"
#include "passes/Codegen/Lanes.h"

using namespace mlir;

namespace descent {

/// Keeping a value costs a store and a load; up to so many operations, computing it again costs no
/// more.
static constexpr unsigned recomputeCost = 6;
RowSchedule::RowSchedule(const RowGraph &graph, int64_t spillLimit)
    : graph(graph), spillLimit(spillLimit) {
  for (int64_t size : graph.sizes)
    rows *= size;
  if (!graph.sizes.empty()) {
    columns = graph.sizes.back();
    rows /= columns;
  }
  unsigned count = 0;
  for (auto &node : graph.nodes())
    if (node->kind == RowNode::Kind::Reduce)
      count = std::max(count, node->level);
  stages.resize(count + 1);
  for (auto &node : graph.nodes())
    if (node->kind == RowNode::Kind::Reduce)
      stages[node->level - 1].reductions.push_back(node.get());
  for (auto [i, result] : llvm::enumerate(graph.results)) {
    if (storesElements(i))
      stages[result.node->level].stores.push_back(i);
    else
      rowResults.push_back(i);
  }
  for (unsigned stage = stages.size(); stage-- > 0;)
    visitRoots(stage, /*decide=*/true);
  for (RowStage &stage : stages) {
    stage.visited.clear();
    stage.uniform.clear();
  }
  for (unsigned stage = 0; stage < stages.size(); ++stage)
    visitRoots(stage, /*decide=*/false);
}

void RowSchedule::visitRoots(unsigned stage, bool decide) {
  RowStage &s = stages[stage];
  for (RowNode *reduction : s.reductions)
    for (RowNode *operand : reduction->operands)
      if (operand)
        visit(operand, stage, decide);
  for (unsigned result : s.stores)
    visit(graph.results[result].node, stage, decide);
  for (RowNode *node : s.spills)
    visit(node, stage, decide);
}

void RowSchedule::visit(RowNode *node, unsigned stage, bool decide) {
  RowStage &s = stages[stage];
  if (!varies(node)) {
    s.uniform.insert(node);
    return;
  }
  if (!s.visited.insert(node))
    return;
  if (decide && node->kind == RowNode::Kind::Map && node->level < stage &&
      !comesFromMemory(node, stage)) {
    for (auto [i, result] : llvm::enumerate(graph.results))
      if (result.node == node && storesElements(i) && result.strides.back() == 1 &&
          missing(result).empty())
        reread[node] = i;
    int64_t bytes = llvm::alignTo(columns * storageBytes(node->type), 64);
    if (!reread.contains(node) && node->cost > recomputeCost && bytes <= spillLimit) {
      spilled[node] = scratchBytes;
      scratchBytes += bytes;
      stages[node->level].spills.push_back(node);
    }
  }
  if (comesFromMemory(node, stage))
    return;
  for (RowNode *operand : node->operands)
    if (operand)
      visit(operand, stage, decide);
}

SmallVector<unsigned> RowSchedule::missing(const RowResult &result) const {
  SmallVector<unsigned> dimensions;
  for (auto [i, stride] : llvm::enumerate(result.strides))
    if (stride == 0 && graph.sizes[i] != 1)
      dimensions.push_back(i);
  return dimensions;
}

bool RowSchedule::reusable(unsigned resultNumber, unsigned input) const {
  const RowResult &result = graph.results[resultNumber];
  if (graph.resultTypes[resultNumber] != graph.inputTypes[input])
    return false;
  // One element a row: written once by its row, behind all reads of that row.
  bool elements = storesElements(resultNumber);
  SmallVector<unsigned> absent = missing(result);
  if (!elements && !absent.empty() && absent.back() == graph.sizes.size() - 1)
    absent.pop_back();
  if (!absent.empty())
    return false;
  for (auto &node : graph.nodes()) {
    if (node->kind != RowNode::Kind::Load || node->argument != input)
      continue;
    if (node->strides != result.strides)
      return false;
    // Column chunks of one row run as tasks of their own when nothing is reduced, and all of them
    // read a row's element.
    if (!elements && !graph.sizes.empty() && !graph.hasReductions && columns > 1)
      return false;
    for (unsigned stage = result.node->level + 1; elements && stage < stages.size(); ++stage)
      if (stages[stage].visited.contains(node.get()) || stages[stage].uniform.contains(node.get()))
        return false;
  }
  return true;
}

} // namespace descent
