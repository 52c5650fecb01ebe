//===- DeviceTilePlan.h - How a product is cut for a device ---------------===//

#ifndef DESCENT_PASSES_CUDA_DEVICETILEPLAN_H
#define DESCENT_PASSES_CUDA_DEVICETILEPLAN_H

#include "mlir/IR/BuiltinTypes.h"
#include "passes/Cuda/CudaTarget.h"
#include "llvm/Support/Error.h"

namespace descent {

/// What the block multiplies, and what its tiles in shared memory hold.
enum class TileMath {
  Floats, ///< f32 by fused multiply-adds of the threads
  Bf16,   ///< bf16 by tensor cores
  F16,    ///< f16 by tensor cores
  Tf32,   ///< f32 by tensor cores, of operands rounded to tf32 before
};

/// How operands of these types are multiplied, without rounding any of their values: f8 is both
/// bf16 and f16, and where nothing narrow holds both operands they become f32. `rounded` says that
/// f32 operands were rounded to tf32.
TileMath tileMathFor(mlir::Type a, mlir::Type b, bool rounded);

struct ProductSizes {
  int64_t batch = 1, m = 0, n = 0, k = 0;
};

/// Each block computes `rows` x `columns` elements of the product in steps of `depth`. Blocks fixes
/// a part of the tile for each of its threads (Floats) or warps.
struct DeviceTilePlan {
  TileMath math = TileMath::Floats;
  int64_t rows = 0, columns = 0, depth = 0;
  int64_t partRows = 0, partColumns = 0;
  int64_t stages = 2; ///< tiles of each operand in shared memory, all but one of them under way
  /// The sum over k is cut into this many, of `splitSteps` steps each (the last may have fewer).
  int64_t splits = 1, splitSteps = 0;

  int64_t threads() const {
    int64_t parts = (rows / partRows) * (columns / partColumns);
    return math == TileMath::Floats ? parts : 32 * parts;
  }
  int64_t elementBytes() const {
    return math == TileMath::Floats || math == TileMath::Tf32 ? 4 : 2;
  }
  mlir::Type element(mlir::MLIRContext *context) const;
  int64_t stageBytes() const { return (rows + columns) * depth * elementBytes(); }
  /// Dynamic shared memory: the stages, and after them the sums on their way to the epilogue.
  int64_t sharedBytes() const { return std::max(stages * stageBytes(), rows * columns * 4); }
  /// As many stages as the chip has shared memory for without running fewer blocks of 512 threads
  /// in all. How far ahead copies run changes no bit.
  void useShared(const CudaTarget &cuda);
};

/// The plan of least predicted time. A function of the sizes alone, never of the chip: where k is
/// cut decides the order of a sum, and so its bits.
DeviceTilePlan planDeviceTile(TileMath math, const ProductSizes &sizes);

/// The plan that fusion::tileAttrName asks for, or an error that says which there are.
llvm::Expected<DeviceTilePlan> wantedDeviceTile(TileMath math, const ProductSizes &sizes,
                                                llvm::ArrayRef<int64_t> wanted);

} // namespace descent

#endif // DESCENT_PASSES_CUDA_DEVICETILEPLAN_H
