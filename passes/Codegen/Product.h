//===- Product.h - The loop nest of matrix products and convolutions ------===//
//
// Everything that matrix products and convolutions share: the task grid, the cache blocks, the
// tiles, the epilogue. What differs, where the elements of A and B come from, is a pair of
// `OperandSource`s.
//
// Tasks are blocks of C, numbered down the rows and then to the next column of blocks. A call works
// through its tasks as few rectangles as they make up (whole neighbouring columns become one), each
// with cache blocks of its own: how tasks are cut says only how finely work can be divided, not how
// well it is blocked. An element of C is summed over the same blocks of k in the same order
// whichever rectangle it falls in, so grouping never changes a bit.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_PRODUCT_H
#define DESCENT_PASSES_CODEGEN_PRODUCT_H

#include "passes/Codegen/CpuTarget.h"
#include "passes/Codegen/Emitter.h"
#include "passes/Codegen/Pack.h"
#include "passes/Codegen/StoredFloats.h"
#include "passes/Codegen/Tile.h"
#include <functional>
#include <optional>
#include <string>

namespace descent {

/// A further input of an epilogue. Its element for row r of batch * m rows and column c of n stands
/// at
/// ((r / rowDivisor) % rowPeriod) * rowStride + c * columnStride.
struct EpilogueInput {
  mlir::MemRefType type;
  int64_t rowDivisor = 1;
  int64_t rowPeriod = 1; ///< 1: the same for all rows
  int64_t rowStride = 0;
  int64_t columnStride = 0; ///< 0 or 1

  /// The input that NumPy's rules broadcast to `output` (whose last axis is n), or nullopt if it
  /// does not broadcast in this form: its axes before the last must be broadcast ones, then real
  /// ones, then broadcast ones.
  static std::optional<EpilogueInput> broadcast(mlir::MemRefType type,
                                                llvm::ArrayRef<int64_t> output);
};

/// One vector of elements, neighbours in a row.
struct EpiloguePoint {
  mlir::Value product;                   ///< vector<lanes x f32>
  llvm::SmallVector<mlir::Value> inputs; ///< vectors of the inputs' element types
  mlir::Value row, column;               ///< index: row of batch * m, column of the first lane
};

/// One vector per output, of the output's element type. Lanes past the last column may hold
/// anything and are not stored.
using Epilogue = std::function<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::Location,
                                                              const EpiloguePoint &)>;

/// What happens to the product. Inputs may share memory with outputs if they are read and written
/// at the same element. Buffers of i1 and of narrow floats are passed as integers (storageType),
/// and the function gets and returns vectors of these.
struct EpilogueSpec {
  llvm::SmallVector<EpilogueInput> inputs;
  llvm::SmallVector<mlir::MemRefType> outputs; ///< batch * m * n elements each
  Epilogue function;                           ///< null: the one output is the product, in f32
};

/// The epilogue that rounds the product to `element`, bf16 or f16, and does nothing else. Null for
/// f32.
Epilogue roundingEpilogue(mlir::Type element);

/// How a product is cut. Sizes in elements.
struct ProductPlan {
  int64_t taskRows = 0, taskColumns = 0; ///< multiples of the tile, or at least m and n
  int64_t depth = 0;                     ///< of one block of k
  int64_t rows = 0;                      ///< of A at a time, kept in L2
  int64_t columns = 0;                   ///< of B at a time
  bool packA = true, packB = true;
};

/// Where an operand's elements come from. Exactly one of the functions is set.
struct OperandSource {
  /// Emits the packing (see Pack.h; in the steps of the product) of rows (columns of B) [start,
  /// start + extent) over k in [k, k
  /// + depth).
  std::function<void(Emitter &, Index batch, Index start, Index extent, Index k, Index depth,
                     mlir::Value destination, Index destinationOffset)>
      pack;
  /// Gives buffer, offset and leading stride of row (column) `start` at `k`, for tiles that read
  /// the matrix itself.
  struct Place {
    mlir::Value buffer;
    Index offset = 0, ld = 0;
  };
  std::function<Place(Emitter &, Index batch, Index start, Index k)> place;
};

struct ProductSources {
  OperandSource a, b;
  TileA layoutA = TileA::Packed; ///< Rows or Columns if a.place is set
};

struct ProductSpec {
  std::string name;
  int64_t batch = 1, m = 0, n = 0, k = 0;
  llvm::SmallVector<NumberBuffer> operands; ///< the leading buffers, A's and B's
  EpilogueSpec epilogue;
  bool accumulate = false;
  ProductPlan plan;
  /// Pairs need both operands packed.
  TileSteps steps = TileSteps::Floats;
  int64_t workspaceBytes = 0; ///< scratch that packing needs for itself
  /// Called once in the kernel's entry with the operands' buffers and the workspace, a flat buffer
  /// of bytes (null without workspaceBytes).
  std::function<ProductSources(Emitter &, mlir::ValueRange operands, mlir::Value workspace)>
      sources;
};

/// How operands of these types are multiplied: bf16 and f8 in pairs of bf16 where the CPU can, all
/// others in f32. Sums are f32 either way.
TileSteps stepsFor(mlir::Type a, mlir::Type b, const CpuTarget &target);

/// Refuses operands that are not `elements` numbers of a type that products know, as they are
/// stored. `what` names product and operand.
mlir::LogicalResult checkOperand(mlir::Location loc, const llvm::Twine &what,
                                 const NumberBuffer &operand, int64_t elements);

/// The task grid, the blocks and the packing that a simple cost model likes best. `packA`, `packB`
/// are left true.
ProductPlan planProduct(int64_t batch, int64_t m, int64_t n, int64_t k, TileSteps steps,
                        const CpuTarget &target);

/// Adds the kernel function. Fails after emitting an error at `loc`.
mlir::FailureOr<mlir::func::FuncOp> emitProductKernel(mlir::ModuleOp module, mlir::Location loc,
                                                      const ProductSpec &spec,
                                                      const CpuTarget &target);

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_PRODUCT_H
