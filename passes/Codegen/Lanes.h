//===- Lanes.h - Vector code of the loop-based kernels --------------------===//
//
// Loads, stores and payloads on scalars or on vectors of a given number of elements. A value is
// *uniform* while it is a scalar; it becomes a vector where it meets one. Buffers are seen as flat
// one-dimensional memrefs in their storage type: on the CPU i8 for i1, f8E4M3FN and f8E5M2, i16 for
// bf16 and f16; on a device i8 for i1 and else the element type.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_LANES_H
#define DESCENT_PASSES_CODEGEN_LANES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/Codegen/CpuTarget.h"

namespace descent {

/// A piece of a run of elements: `width` lanes, of which the first `active` exist. The rest is
/// masked off.
struct LaneBlock {
  int64_t width = 1, active = 1;
  mlir::Value mask; ///< vector<width x i1>, null if all lanes exist
};

/// Type in which elements lie in a CPU's memory.
mlir::Type storageType(mlir::Type element);
int64_t storageBytes(mlir::Type element);
/// The buffer type of a tensor: static, identity layout, storage type.
mlir::MemRefType bufferType(mlir::RankedTensorType type);

/// What the code is for: how elements are stored, and whether vectors in memory are aligned.
enum class LaneTarget {
  Cpu,
  /// A thread of a GPU: vectors of at most 16 bytes lie at multiples of their size, so that one
  /// access moves them; one lane is a scalar; nothing is masked.
  Device
};

class Lanes {
public:
  explicit Lanes(mlir::ImplicitLocOpBuilder &builder, LaneTarget target = LaneTarget::Cpu)
      : b(builder), target(target) {}

  mlir::Value index(int64_t value);
  mlir::Value add(mlir::Value a, mlir::Value offset);
  mlir::Value scaled(mlir::Value a, int64_t factor);

  /// for (i = from; i < to; i += step); `body` gets i and the carried values and returns the next
  /// ones.
  llvm::SmallVector<mlir::Value>
  loop(mlir::Value from, mlir::Value to, int64_t step, mlir::ValueRange carried,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);
  /// if (condition) body; unconditional where the condition is null.
  void when(mlir::Value condition, llvm::function_ref<void()> body);

  /// A buffer as one dimension.
  mlir::Value flat(mlir::Value buffer);
  /// `count` elements of scratch from a byte offset, in the storage type of `element`.
  mlir::Value scratchView(mlir::Value scratch, int64_t byteOffset, int64_t count,
                          mlir::Type element);

  /// The smallest block that holds `count` elements, in powers of two of at least `least` lanes;
  /// masked if it is larger.
  LaneBlock block(int64_t count, int64_t least);

  mlir::Value loadScalar(mlir::Value flat, mlir::Value offset, mlir::Type element);
  void storeScalar(mlir::Value value, mlir::Value flat, mlir::Value offset);
  mlir::Value load(mlir::Value flat, mlir::Value offset, mlir::Type element,
                   const LaneBlock &block);
  void store(mlir::Value value, mlir::Value flat, mlir::Value offset, const LaneBlock &block);
  /// Every stride-th element.
  mlir::Value loadStrided(mlir::Value flat, mlir::Value offset, int64_t stride, mlir::Type element,
                          const LaneBlock &block);

  /// start, start + step, ...; `start` is an index.
  mlir::Value ramp(mlir::Value start, int64_t step, int64_t width);
  /// A vector of `width` from a uniform value; vectors pass through.
  mlir::Value widen(mlir::Value value, int64_t width);
  mlir::Value splat(mlir::TypedAttr value, int64_t width);
  /// A vector of the elements; one element stays a scalar.
  mlir::Value join(mlir::ValueRange elements);
  /// Contiguous lanes of a vector.
  mlir::Value part(mlir::Value vector, int64_t from, int64_t count);

  /// Clones an op onto scalars or vectors; uniform operands are widened where another is a vector.
  /// Floating-point ops get `contract`.
  mlir::Value apply(mlir::Operation *op, mlir::ValueRange operands, int64_t width);

  /// The payload of a generic. `operands` are in the order of the block arguments (null where
  /// unused) and then of `captures`, `loop(k)` yields loop k's index, scalar or vector. `skip` (a
  /// reduction's combiner) is left out. Returns the value that `wanted` maps to.
  mlir::Value payload(mlir::linalg::GenericOp op, llvm::ArrayRef<mlir::Value> operands,
                      mlir::ValueRange captures, int64_t width,
                      llvm::function_ref<mlir::Value(unsigned)> loop, mlir::Operation *skip,
                      mlir::Value wanted);

  /// The neutral element of a combiner.
  mlir::TypedAttr neutral(mlir::Operation *combiner);
  /// combiner(accumulator, value); maxima and minima ignore the sign of zero, which costs x86 three
  /// instructions.
  mlir::Value combine(mlir::Operation *combiner, mlir::Value accumulator, mlir::Value value);
  /// All lanes into one scalar, by halves: the order is fixed by the width alone.
  mlir::Value horizontal(mlir::Operation *combiner, mlir::Value vector);
  /// The upper half combined into the lower until `width` lanes are left.
  mlir::Value narrow(mlir::Operation *combiner, mlir::Value vector, int64_t width);

  mlir::ImplicitLocOpBuilder &b;
  LaneTarget target;

private:
  bool isScalar(int64_t width) const { return target == LaneTarget::Device && width == 1; }
  /// Type in which elements lie in this target's buffers.
  mlir::Type stored(mlir::Type element) const;
  mlir::Value fromStorage(mlir::Value value, mlir::Type element);
  mlir::Value toStorage(mlir::Value value);
  llvm::MaybeAlign alignment(mlir::VectorType type) const;
};

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_LANES_H
