//===- RowGraph.h - What a kernel computes at one point of its domain -----===//
//
// The common ground of the rows and columns generators. A kernel in linalg form is read as a graph
// over one *domain*, the largest iteration space in it: each node is a tensor value together with
// where in that tensor the element lies that belongs to point (d0, ..., dn-1) of the domain. NumPy
// broadcasting, kept and dropped reduction axes, and reshapes all become coefficients of that
// index, so the generators see loads with strides, elementwise payloads and reductions, and nothing
// else.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_ROWGRAPH_H
#define DESCENT_PASSES_CODEGEN_ROWGRAPH_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <map>
#include <memory>

namespace descent {

/// A linear form in the domain's indices: one coefficient per dimension. Dimensions of size 1 have
/// coefficient 0.
using LinearForm = llvm::SmallVector<int64_t, 4>;
/// The index of a tensor's element: one form per axis of the tensor.
using ElementIndex = llvm::SmallVector<LinearForm, 4>;

struct RowNode {
  enum class Kind {
    Load,  ///< an element of an input
    Splat, ///< a constant
    Map,   ///< an elementwise linalg.generic
    Reduce ///< a linalg.generic that reduces
  };
  Kind kind = Kind::Load;
  unsigned id = 0;                        ///< order of creation: operands come first
  mlir::Type type;                        ///< element type
  unsigned argument = 0;                  ///< Load: which input
  LinearForm strides;                     ///< Load: element offset in the flat buffer
  int64_t base = 0;                       ///< Load: constant part of that offset
  mlir::TypedAttr splat;                  ///< Splat
  mlir::linalg::GenericOp op;             ///< Map, Reduce
  unsigned resultNumber = 0;              ///< Map, Reduce
  llvm::SmallVector<LinearForm, 4> loops; ///< Map, Reduce: the op's loop indices
  llvm::SmallVector<RowNode *, 4>
      operands; ///< Map, Reduce: inputs then inits; null where the payload does not read
  /// Map, Reduce: scalars that the payload takes from outside, elements of inputs at fixed
  /// positions. They follow `operands`' first getNumOperands() entries there, in this order.
  llvm::SmallVector<mlir::Value, 2> captures;
  mlir::Operation *combiner = nullptr;    ///< Reduce
  llvm::SmallVector<unsigned, 2> reduced; ///< Reduce: domain dimensions reduced over, increasing
  LinearForm depends; ///< non-zero for each dimension that the value varies along
  unsigned level = 0; ///< number of reductions on the longest path to here, this one included
  unsigned cost = 0;  ///< rough operations per element from loads or reductions to here
};

struct RowResult {
  RowNode *node = nullptr;
  mlir::Type type;    ///< element type
  LinearForm strides; ///< element offset in the flat buffer
};

class RowGraph {
public:
  /// Reads a function on tensors whose body is linalg.generic, linalg.fill, tensor.empty, reshapes
  /// that insert, remove or merge axes, and constants. Emits an error at what does not fit.
  static mlir::FailureOr<std::unique_ptr<RowGraph>> build(mlir::func::FuncOp function);

  llvm::SmallVector<int64_t> sizes; ///< of the domain; may be empty (a kernel of scalars)
  llvm::SmallVector<RowResult> results;
  llvm::SmallVector<mlir::RankedTensorType> inputTypes, resultTypes;
  bool hasReductions = false;
  bool usesIndices = false; ///< a payload asks for its position

  llvm::ArrayRef<std::unique_ptr<RowNode>> nodes() const { return storage; }

  /// Folds adjacent dimensions into one where every buffer allows it and every reduction treats
  /// them alike, and drops those of size 1. A kernel without broadcasting becomes one flat
  /// dimension, a kernel of scalars has none.
  void mergeDimensions();

  /// A last dimension of size 1, along which nothing varies: a reduction over the last axis becomes
  /// one over leading axes with a single column.
  void appendUnitDimension();

private:
  using Key = std::pair<void *, std::vector<int64_t>>;
  std::vector<std::unique_ptr<RowNode>> storage;
  std::map<Key, RowNode *> known;
  mlir::func::FuncOp function;

  mlir::FailureOr<RowNode *> demand(mlir::Value value, const ElementIndex &index);
  mlir::FailureOr<RowNode *> demandGeneric(mlir::OpResult value, const ElementIndex &index);
  mlir::FailureOr<ElementIndex> place(mlir::Value value);
  mlir::FailureOr<llvm::SmallVector<LinearForm, 4>> placeLoops(mlir::linalg::GenericOp op);
  mlir::FailureOr<ElementIndex> reshapeIndex(llvm::ArrayRef<int64_t> from,
                                             llvm::ArrayRef<int64_t> to,
                                             const ElementIndex &index) const;
  mlir::FailureOr<ElementIndex> alignRight(llvm::ArrayRef<int64_t> shape) const;
  LinearForm zero() const { return LinearForm(sizes.size(), 0); }
  LinearForm unit(unsigned dimension) const;
  RowNode *create(Key key);
  RowNode *splat(mlir::TypedAttr value, Key key);
  mlir::FailureOr<RowNode *> capture(mlir::Value value);
};

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_ROWGRAPH_H
