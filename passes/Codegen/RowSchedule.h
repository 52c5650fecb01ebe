//===- RowSchedule.h - Passes over a row ----------------------------------===//
//
// A row is visited once per *stage*: stage s computes what depends on s reductions one after
// another. Softmax has three (maximum, sum of exponentials, division). Within a stage everything
// stays in registers. A value that a later stage needs again is read back from the result it was
// stored to, kept in row scratch when dear, or computed again when cheap.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_ROWSCHEDULE_H
#define DESCENT_PASSES_CODEGEN_ROWSCHEDULE_H

#include "passes/Codegen/RowGraph.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace descent {

struct RowStage {
  llvm::SmallVector<RowNode *> reductions; ///< accumulate in this stage
  llvm::SmallVector<unsigned> stores;      ///< results written in this stage, element by element
  llvm::SmallVector<RowNode *> spills;     ///< kept in row scratch for later stages
  llvm::SetVector<RowNode *>
      visited; ///< nodes that vary along the row and are needed here, loads included
  llvm::SetVector<RowNode *> uniform; ///< nodes that do not vary along the row and are needed here
};

class RowSchedule {
public:
  /// Rows longer than this are not worth keeping: they would fall out of the cache before they are
  /// read again.
  static constexpr int64_t largestSpill = 512 << 10;

  /// `spillLimit`: bytes of the longest row that may be kept in row scratch; 0 where there is none.
  explicit RowSchedule(const RowGraph &graph, int64_t spillLimit = largestSpill);

  std::vector<RowStage> stages;
  llvm::SmallVector<unsigned>
      rowResults; ///< one element a row (or in all), written behind the last stage
  llvm::MapVector<RowNode *, int64_t> spilled; ///< byte offset in row scratch
  llvm::MapVector<RowNode *, unsigned>
      reread; ///< result that holds the value once its stage is over
  int64_t scratchBytes = 0;
  int64_t rows = 1, columns = 1;

  bool varies(const RowNode *node) const {
    return !node->depends.empty() && node->depends.back() != 0;
  }
  /// Dimensions of size > 1 that the result has not: it is written where those are 0.
  llvm::SmallVector<unsigned> missing(const RowResult &result) const;
  /// The value comes from memory rather than from its operands in this stage.
  bool comesFromMemory(RowNode *node, unsigned stage) const {
    return node->level < stage && (spilled.contains(node) || reread.contains(node));
  }
  bool reusable(unsigned result, unsigned input) const;

private:
  const RowGraph &graph;
  int64_t spillLimit;
  bool storesElements(unsigned result) const {
    const RowResult &r = graph.results[result];
    return !r.strides.empty() && r.strides.back() != 0;
  }
  void visit(RowNode *node, unsigned stage, bool decide);
  void visitRoots(unsigned stage, bool decide);
};

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_ROWSCHEDULE_H
