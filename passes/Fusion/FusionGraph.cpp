//===- FusionGraph.cpp - Which ops share a kernel -------------------------===//
//
// The transitive closure is kept as one bit vector a node: a merge then costs a pass over the
// nodes, and the question whether two nodes may merge costs their direct successors only. A step
// has a few thousand ops, so this is megabytes and milliseconds.
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/FusionGraph.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Fusion/KernelRules.h"
#include <queue>

using namespace mlir;
using namespace descent;
using namespace descent::fusion;

/// Kernels clone free ops; everything else needs their result in memory.
static bool clonesFreeOps(Operation *op) {
  return isFree(op) || isElementwise(op) || isReduction(op);
}

FusionGraph::FusionGraph(Block &block) {
  Operation *terminator = block.mightHaveTerminator() ? block.getTerminator() : nullptr;
  for (auto [position, op] : llvm::enumerate(block)) {
    positions[&op] = position;
    if (&op == terminator)
      continue;
    if (isFree(&op) && !op.use_empty() && llvm::all_of(op.getUsers(), clonesFreeOps) &&
        llvm::all_of(op.getUsers(), [&](Operation *user) { return user->getBlock() == &block; }))
      continue;
    nodeIndex[&op] = nodes.size();
    FusionNode node;
    node.kind = kernelKind(&op).str();
    node.ops.push_back(&op);
    nodes.push_back(std::move(node));
  }

  successors.resize(nodes.size());
  for (unsigned i = 0; i < nodes.size(); ++i)
    parent.push_back(i);
  std::optional<unsigned> lastEffect;
  for (unsigned i = 0; i < nodes.size(); ++i) {
    Operation *op = nodes[i].ops.front();
    // An operand computed by a free op that has no node stands for what that op reads.
    std::function<void(Value)> dependOn = [&](Value value) {
      Operation *def = value.getDefiningOp();
      if (!def)
        return;
      def = block.findAncestorOpInBlock(*def);
      if (!def || def == op)
        return;
      if (std::optional<unsigned> from = nodeOf(def))
        successors[*from].insert(i);
      else
        llvm::for_each(def->getOperands(), dependOn);
    };
    op->walk([&](Operation *nested) { llvm::for_each(nested->getOperands(), dependOn); });
    if (nodes[i].kind.empty() && !isMemoryEffectFree(op)) {
      if (lastEffect)
        successors[*lastEffect].insert(i);
      lastEffect = i;
    }
  }
  descendants.assign(nodes.size(), llvm::BitVector(nodes.size()));
  for (unsigned i = nodes.size(); i-- > 0;)
    for (unsigned next : successors[i]) {
      descendants[i] |= descendants[next];
      descendants[i].set(next);
    }
}

std::optional<unsigned> FusionGraph::nodeOf(Operation *op) const {
  auto it = nodeIndex.find(op);
  if (it == nodeIndex.end())
    return std::nullopt;
  return find(it->second);
}

unsigned FusionGraph::find(unsigned node) const {
  while (parent[node] != node)
    node = parent[node];
  return node;
}

bool FusionGraph::mergeClosesCycle(unsigned a, unsigned b) const {
  auto leaves = [&](unsigned from, unsigned to) {
    return llvm::any_of(successors[from], [&](unsigned next) {
      unsigned middle = find(next);
      return middle != to && middle != from && descendants[middle].test(to);
    });
  };
  return leaves(a, b) || leaves(b, a);
}

void FusionGraph::merge(unsigned a, unsigned b) {
  parent[b] = a;
  nodes[b].merged = true;
  llvm::append_range(nodes[a].ops, nodes[b].ops);
  llvm::sort(nodes[a].ops,
             [&](Operation *x, Operation *y) { return positionOf(x) < positionOf(y); });
  nodes[b].ops.clear();
  for (Operation *clone : nodes[b].clones)
    if (!llvm::is_contained(nodes[a].clones, clone))
      nodes[a].clones.push_back(clone);
  llvm::erase_if(nodes[a].clones,
                 [&](Operation *clone) { return llvm::is_contained(nodes[a].ops, clone); });
  for (unsigned next : successors[b])
    successors[a].insert(next);
  descendants[a] |= descendants[b];
  descendants[a].reset(a);
  descendants[a].reset(b);
  for (unsigned n = 0; n < nodes.size(); ++n) {
    if (nodes[n].merged || n == a)
      continue;
    if (descendants[n].test(a) || descendants[n].test(b)) {
      descendants[n] |= descendants[a];
      descendants[n].set(a);
      descendants[n].reset(b);
    }
  }
}

SmallVector<unsigned> FusionGraph::order() const {
  SmallVector<unsigned> waiting(nodes.size(), 0);
  SmallVector<llvm::SmallSetVector<unsigned, 4>, 0> next(nodes.size());
  for (unsigned i = 0; i < nodes.size(); ++i)
    for (unsigned raw : successors[i]) {
      unsigned from = find(i), to = find(raw);
      if (from != to && next[from].insert(to))
        ++waiting[to];
    }
  auto later = [&](unsigned x, unsigned y) {
    return positionOf(nodes[x].ops.front()) > positionOf(nodes[y].ops.front());
  };
  std::priority_queue<unsigned, std::vector<unsigned>, decltype(later)> ready(later);
  for (unsigned i = 0; i < nodes.size(); ++i)
    if (!nodes[i].merged && waiting[i] == 0)
      ready.push(i);
  SmallVector<unsigned> result;
  while (!ready.empty()) {
    unsigned node = ready.top();
    ready.pop();
    result.push_back(node);
    for (unsigned to : next[node])
      if (--waiting[to] == 0)
        ready.push(to);
  }
  return result;
}
