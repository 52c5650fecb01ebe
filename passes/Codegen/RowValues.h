//===- RowValues.h - The values of a row while its code is emitted --------===//
//
// What the rows generators have in common, for CPUs and devices: addresses that a row fixes, values
// that all of a row shares, and the elements of one block of lanes. How elements get from memory
// and which of them are kept between stages is the generator's.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_ROWVALUES_H
#define DESCENT_PASSES_CODEGEN_ROWVALUES_H

#include "passes/Codegen/Lanes.h"
#include "passes/Codegen/RowSchedule.h"

namespace descent {

using BlockValues = llvm::DenseMap<RowNode *, mlir::Value>;

/// The value of an elementwise node on `width` lanes. `operand` yields what its operands are,
/// `loop` the index of one of its loops.
mlir::Value emitMap(Lanes &lanes, RowNode *node, int64_t width,
                    llvm::function_ref<mlir::Value(RowNode *)> operand,
                    llvm::function_ref<mlir::Value(const LinearForm &)> loop);
/// What a reduction adds (or multiplies, ...) to its accumulator, on `width` lanes.
mlir::Value emitContribution(Lanes &lanes, RowNode *reduction, int64_t width,
                             llvm::function_ref<mlir::Value(RowNode *)> operand,
                             llvm::function_ref<mlir::Value(const LinearForm &)> loop);
/// The value a reduction starts from, if it is not the combiner's neutral element, else null.
RowNode *initialValue(Lanes &lanes, RowNode *reduction);

class RowValues {
public:
  RowValues(RowGraph &graph, RowSchedule &schedule, Lanes &lanes)
      : graph(graph), schedule(schedule), b(lanes.b), lanes(lanes) {}
  virtual ~RowValues() = default;

protected:
  RowGraph &graph;
  RowSchedule &schedule;
  mlir::ImplicitLocOpBuilder &b;
  Lanes &lanes;
  llvm::SmallVector<mlir::Value> inputs, outputs; // flat

  // Valid within one row.
  mlir::Value row;
  llvm::SmallVector<mlir::Value>
      position; // index of each dimension but the last, null where not yet computed
  llvm::DenseMap<RowNode *, mlir::Value> uniforms, loadBases;
  llvm::SmallVector<mlir::Value> storeBases, storeGuards;
  mlir::Value columnBegin; // null: whole rows

  /// What a rows generator can do; emits an error at what it cannot.
  mlir::LogicalResult check(mlir::func::FuncOp tensors);
  /// Bytes moved for one element of the domain.
  int64_t elementBytes() const;

  void enterRow(mlir::Value rowIndex);
  unsigned leading() const { return graph.sizes.empty() ? 0 : graph.sizes.size() - 1; }
  mlir::Value dimension(unsigned i);
  /// The part of an address that a row fixes; null if it is 0.
  mlir::Value offset(const LinearForm &strides);
  /// Where a result lacks dimensions, one row writes it. Null: every row does.
  mlir::Value guard(const RowResult &result);
  /// Both conditions; null holds always.
  mlir::Value both(mlir::Value a, mlir::Value b);
  mlir::Value loopIndex(const LinearForm &form, mlir::Value column, int64_t width);
  /// A value that does not vary along the row.
  mlir::Value uniform(RowNode *node);
  /// The values that no dimension changes and no reduction feeds: an optimizer's bias corrections,
  /// say. They can be computed once for all rows.
  void emitShared();
  /// What the whole row shares in a stage; to stand before its loop over columns.
  void enterStage(unsigned stage);
  mlir::Value element(RowNode *node, unsigned stage, mlir::Value column, const LaneBlock &block,
                      BlockValues &values);
  mlir::Value contribution(RowNode *reduction, unsigned stage, mlir::Value column,
                           const LaneBlock &block, BlockValues &values);
  /// The scalar from all lanes' accumulators with the reduction's initial value.
  void finish(RowNode *reduction, mlir::Value total);
  /// Results with one element a row, where `writes` holds (null: always). `beforeStores` emits what
  /// is to stand between the reads and the stores of a row.
  void storeRowResults(mlir::Value writes = nullptr,
                       llvm::function_ref<void()> beforeStores = nullptr);

  /// The element of an input.
  virtual mlir::Value loadElement(RowNode *node, mlir::Value column, const LaneBlock &block) = 0;
  /// The value that an earlier stage left in memory.
  virtual mlir::Value loadKept(RowNode *node, mlir::Value column, const LaneBlock &block) = 0;
  virtual mlir::Value loadUniform(RowNode *node, mlir::Value at) {
    return lanes.loadScalar(inputs[node->argument], at, node->type);
  }
};

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_ROWVALUES_H
