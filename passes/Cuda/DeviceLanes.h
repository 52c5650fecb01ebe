//===- DeviceLanes.h - Code of one thread of a device ---------------------===//
//
// Lanes (passes/Codegen/Lanes.h) for device code: payloads work on scalars or on the few
// neighbouring elements that one thread owns, buffers hold the elements' own types (bytes for i1),
// and accesses of several elements say how they are aligned, since 16 bytes at once are possible
// only where that is known. One lane is a scalar here, never a vector of one.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CUDA_DEVICELANES_H
#define DESCENT_PASSES_CUDA_DEVICELANES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "passes/Codegen/Lanes.h"

namespace descent {

/// Type in which elements lie in device buffers, and its bytes.
mlir::Type deviceElement(mlir::Type element);
int64_t deviceBytes(mlir::Type element);

class DeviceLanes : public Lanes {
public:
  explicit DeviceLanes(mlir::ImplicitLocOpBuilder &builder) : Lanes(builder, LaneTarget::Device) {}

  /// x of the thread in its block and of the block in the grid.
  mlir::Value thread();
  mlir::Value block();
  /// All threads of the block arrive before any goes on.
  void barrier();
  /// `count` elements that the threads of a block share, aligned to 128 bytes.
  mlir::Value shared(mlir::gpu::GPUFuncOp function, int64_t count, mlir::Type element);

  // Of non-negative numbers.
  mlir::Value div(mlir::Value a, int64_t b);
  mlir::Value rem(mlir::Value a, int64_t b);
  mlir::Value less(mlir::Value a, mlir::Value b);
  mlir::Value less(mlir::Value a, int64_t b) { return less(a, index(b)); }
  mlir::Value equal(mlir::Value a, mlir::Value b);
  mlir::Value equal(mlir::Value a, int64_t b) { return equal(a, index(b)); }
  /// Null stands for true.
  mlir::Value both(mlir::Value a, mlir::Value b);
  /// The indices of row-major position `linear`, which lies inside `sizes`.
  llvm::SmallVector<mlir::Value> indices(mlir::Value linear, llvm::ArrayRef<int64_t> sizes);

  /// if (condition) then, else otherwise, which yield as many values.
  llvm::SmallVector<mlir::Value>
  select(mlir::Value condition, llvm::function_ref<llvm::SmallVector<mlir::Value>()> then,
         llvm::function_ref<llvm::SmallVector<mlir::Value>()> otherwise);

  /// for (i = from; i < to; i += step), `unroll` iterations at a time while that many are left, so
  /// that their loads can be under way together.
  llvm::SmallVector<mlir::Value>
  unrolled(mlir::Value from, mlir::Value to, int64_t step, int64_t unroll, mlir::ValueRange carried,
           llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);

  /// `width` neighbouring elements at an offset that is a multiple of `width`.
  mlir::Value read(mlir::Value flat, mlir::Value offset, mlir::Type element, int64_t width) {
    return load(flat, offset, element, LaneBlock{width, width, nullptr});
  }
  /// `width` elements, `stride` apart.
  mlir::Value readStrided(mlir::Value flat, mlir::Value offset, int64_t stride, mlir::Type element,
                          int64_t width) {
    return loadStrided(flat, offset, stride, element, LaneBlock{width, width, nullptr});
  }
  void write(mlir::Value value, mlir::Value flat, mlir::Value offset, int64_t width) {
    store(value, flat, offset, LaneBlock{width, width, nullptr});
  }

  mlir::Value constant(mlir::TypedAttr value);
  /// As `widen`, and a scalar where width is 1.
  mlir::Value spread(mlir::Value value, int64_t width) { return widen(value, width); }
  /// A constant in all lanes.
  mlir::Value uniform(mlir::TypedAttr value, int64_t width) { return splat(value, width); }
  mlir::Value lane(mlir::Value value, int64_t number);
};

/// The most elements, a power of two and at most `most`, that one access can move where all of
/// `multiples` (offsets, strides, sizes in elements; zeros count for nothing) occur in addresses.
int64_t commonWidth(int64_t most, llvm::ArrayRef<int64_t> multiples);

} // namespace descent

#endif // DESCENT_PASSES_CUDA_DEVICELANES_H
