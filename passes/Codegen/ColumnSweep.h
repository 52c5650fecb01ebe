//===- ColumnSweep.h - Reductions over leading axes, one row at a time ----===//
//
// What the columns generators of all targets share: which kernels they take, what one row adds to
// the accumulators of a few neighbouring columns, and what becomes of the sums. How rows, columns
// and kept axes are dealt out, and how elements are accessed, is the generators' own.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_COLUMNSWEEP_H
#define DESCENT_PASSES_CODEGEN_COLUMNSWEEP_H

#include "passes/Codegen/Lanes.h"
#include "passes/Codegen/RowGraph.h"
#include "llvm/ADT/DenseMap.h"

namespace descent {

class ColumnSweep {
protected:
  ColumnSweep(RowGraph &graph, Lanes &lanes) : graph(graph), b(lanes.b), lanes(lanes) {}
  virtual ~ColumnSweep() = default;

  /// `laneCount` elements of a buffer, `stride` apart; a scalar where the stride is 0.
  virtual mlir::Value read(mlir::Value buffer, mlir::Value at, mlir::Type element,
                           int64_t stride) = 0;
  /// A value, of all lanes or uniform, to neighbouring elements.
  virtual void write(mlir::Value value, mlir::Value buffer, mlir::Value at) = 0;

  RowGraph &graph;
  mlir::ImplicitLocOpBuilder &b;
  Lanes &lanes;
  llvm::SmallVector<mlir::Value> inputs, outputs; ///< flat
  llvm::SmallVector<RowNode *> reductions;
  llvm::SmallVector<unsigned> kept, reduced; ///< leading dimensions by what happens to them
  llvm::SmallVector<unsigned> rowStores;     ///< results of every row, written during the sweep
  int64_t keptCount = 1, rows = 1, columns = 1;

  int64_t laneCount = 1;         ///< columns at once
  mlir::Value keptIndex, column; ///< where the sweep is; the first of its columns

  /// Fills the members above, or says why the kernel is none of these.
  llvm::LogicalResult check(mlir::func::FuncOp tensors);

  /// Begins a sweep at `keptIndex` and `column`: values of another place are forgotten.
  void enter();
  /// Computes, before the sweep, what all rows share.
  void prepareSweep();
  /// Accumulators of nothing.
  llvm::SmallVector<mlir::Value> neutrals();
  /// One row into the accumulators; stores what the row itself results in.
  llvm::SmallVector<mlir::Value> accumulateRow(mlir::Value rowIndex, mlir::ValueRange accumulators);
  /// Accumulators of some rows and of others.
  llvm::SmallVector<mlir::Value> combine(mlir::ValueRange some, mlir::ValueRange others);
  /// Elementwise ops on the sums; stores the results.
  void finish(mlir::ValueRange sums);

private:
  llvm::DenseMap<RowNode *, mlir::Value> sweepValues, rowValues;
  llvm::SmallVector<mlir::Value> position;

  bool dependsOnRow(const LinearForm &form) const {
    return llvm::any_of(reduced, [&](unsigned i) { return form[i] != 0; });
  }
  void delinearize(mlir::Value index, llvm::ArrayRef<unsigned> dimensions);
  mlir::Value offset(const LinearForm &strides);
  mlir::Value loopIndex(const LinearForm &form);
  mlir::Value element(RowNode *node);
  void prepare(RowNode *node);
};

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_COLUMNSWEEP_H
