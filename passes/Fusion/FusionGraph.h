//===- FusionGraph.h - Which ops share a kernel ---------------------------===//
//
// The ops of one block as the nodes of a graph whose edges are uses. Nodes merge when their ops
// become one kernel; a merge that would close a cycle (a kernel waiting for another that waits for
// the first) is refused. The graph knows dependences only: what makes a good or a legal kernel is
// the caller's affair.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_FUSION_FUSIONGRAPH_H
#define DESCENT_PASSES_FUSION_FUSIONGRAPH_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include <string>

namespace descent::fusion {

struct FusionNode {
  std::string kind; ///< kind of the kernel; empty for an op that stays as it is
  llvm::SmallVector<mlir::Operation *> ops; ///< in program order
  llvm::SmallVector<mlir::Operation *>
      clones;          ///< in program order: ops of other nodes that this kernel computes again
  bool merged = false; ///< its ops went to another node
};

class FusionGraph {
public:
  /// One node for each op of the block but the terminator and the free ops that only kernels use.
  /// Ops with side effects keep their order.
  explicit FusionGraph(mlir::Block &block);

  unsigned size() const { return nodes.size(); }
  FusionNode &operator[](unsigned node) { return nodes[node]; }
  /// The node that holds an op of the block; nothing for a free op without a node and for the
  /// terminator.
  std::optional<unsigned> nodeOf(mlir::Operation *op) const;
  unsigned positionOf(mlir::Operation *op) const { return positions.lookup(op); }

  /// Whether b waits for a, directly or through others.
  bool reaches(unsigned a, unsigned b) const { return descendants[a].test(b); }
  /// Whether a and b as one node would wait for a third node that waits for them.
  bool mergeClosesCycle(unsigned a, unsigned b) const;
  /// Makes b's ops part of a's node.
  void merge(unsigned a, unsigned b);

  /// The nodes in an order that respects dependences, by first op where they leave a choice.
  llvm::SmallVector<unsigned> order() const;

private:
  llvm::SmallVector<FusionNode, 0> nodes;
  llvm::DenseMap<mlir::Operation *, unsigned> nodeIndex;
  llvm::DenseMap<mlir::Operation *, unsigned> positions;
  llvm::SmallVector<llvm::SmallSetVector<unsigned, 4>, 0>
      successors; // may name merged nodes; see find
  llvm::SmallVector<llvm::BitVector, 0> descendants;
  llvm::SmallVector<unsigned, 0> parent;

  unsigned find(unsigned node) const;
};

} // namespace descent::fusion

#endif // DESCENT_PASSES_FUSION_FUSIONGRAPH_H
