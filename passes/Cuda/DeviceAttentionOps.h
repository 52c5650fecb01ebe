//===- DeviceAttentionOps.h - Ops of a warp in short spellings ------------===//
//
// What the attention kernels of a GPU are written in: 32-bit words that fold while they are known,
// f32 arithmetic, pairs of narrow floats, fragments of the tensor cores, copies that bypass
// registers. Everything is an op of arith, scf, llvm or nvvm; integers are i32 but for offsets into
// global memory, which are i64 whatever the index width that the module is lowered with.
//
// Shared addresses are !llvm.ptr<3>, global ones !llvm.ptr<1>, offsets from either are in bytes.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CUDA_DEVICEATTENTIONOPS_H
#define DESCENT_PASSES_CUDA_DEVICEATTENTIONOPS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include <concepts>
#include <map>

namespace descent {

/// An integer that is known now or a value. Arithmetic on known ones emits nothing.
class Word {
public:
  template <std::integral Integer> Word(Integer number) : number(static_cast<int64_t>(number)) {}
  Word(mlir::Value value) : value(value) {}
  bool isKnown() const { return !value; }
  bool is(int64_t wanted) const { return !value && number == wanted; }

  int64_t number = 0;
  mlir::Value value;
};

using Values = llvm::SmallVector<mlir::Value>;

class WarpOps {
public:
  /// Emits into the function's entry block, before its terminator. `narrow` is the type of the
  /// tensor cores' operands; null where there are none.
  WarpOps(mlir::gpu::GPUFuncOp function, mlir::FloatType narrow);

  mlir::OpBuilder builder;
  mlir::Location loc;
  mlir::FloatType narrow;
  mlir::Type f32, i32, i64, i16;
  mlir::LLVM::LLVMPointerType sharedPointer, globalPointer;

  // Integers. Constants stand once, at the top of the function.
  mlir::Value integer(int64_t number, mlir::Type type);
  mlir::Value value(Word a) { return a.value ? a.value : integer(a.number, i32); }
  mlir::Value wideValue(Word a) { return a.value ? a.value : integer(a.number, i64); }
  Word add(Word a, Word b);
  Word sub(Word a, Word b);
  Word mul(Word a, Word b);
  Word div(Word a, int64_t b); ///< of non-negative numbers
  Word rem(Word a, int64_t b); ///< likewise
  Word shl(Word a, int64_t bits) { return mul(a, int64_t(1) << bits); }
  Word shr(Word a, int64_t bits) { return div(a, int64_t(1) << bits); }
  Word bitAnd(Word a, int64_t mask);
  Word bitXor(Word a, Word b);
  Word min(Word a, Word b);
  Word choose(mlir::Value condition, Word a, Word b);
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, Word a, Word b);
  mlir::Value less(Word a, Word b) { return compare(mlir::arith::CmpIPredicate::slt, a, b); }
  mlir::Value both(mlir::Value a, mlir::Value b); ///< either may be null: true
  // i64.
  Word widen(Word a);
  Word addWide(Word a, Word b);
  Word mulWide(Word a, int64_t b);
  Word threadIndex();
  Word blockIndex();

  // f32.
  mlir::Value constant(double number);
  mlir::Value addf(mlir::Value a, mlir::Value b);
  mlir::Value subf(mlir::Value a, mlir::Value b);
  mlir::Value mulf(mlir::Value a, mlir::Value b);
  mlir::Value negate(mlir::Value a);
  mlir::Value fma(mlir::Value a, mlir::Value b, mlir::Value c);
  mlir::Value larger(mlir::Value a, mlir::Value b); ///< the other one if one is NaN
  mlir::Value power2(mlir::Value a);                ///< 2^a
  mlir::Value log2(mlir::Value a);
  mlir::Value reciprocal(mlir::Value a);
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);
  using Combine = llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)>;
  /// Over the `lanes` neighbouring lanes that this one belongs to, a power of two.
  mlir::Value acrossLanes(mlir::Value a, int lanes, Combine combine);

  // Narrow floats: i32 holds a pair, the first in the low half; i16 holds one.
  mlir::Value pack(mlir::Value low, mlir::Value high);
  std::pair<mlir::Value, mlir::Value> unpack(mlir::Value pair);
  mlir::Value narrowBits(mlir::Value wide); ///< i16 of an f32
  mlir::Value widenBits(mlir::Value bits);  ///< f32 of an i16

  // Memory.
  mlir::Value at(mlir::Value pointer, Word bytes);     ///< i32 offset
  mlir::Value atWide(mlir::Value pointer, Word bytes); ///< i64 offset
  mlir::Value load(mlir::Value pointer, mlir::Type type, int64_t alignment);
  void store(mlir::Value value, mlir::Value pointer, int64_t alignment);
  mlir::Value element(mlir::Value aggregate, int64_t index);

  // Warps and tensor cores, as TensorCoreOps.h says; products are of the narrow type.
  Values loadMatrices(mlir::Value shared, bool transposed);
  Values multiply(mlir::ValueRange a, mlir::ValueRange b, mlir::ValueRange c);
  void copyAsync(mlir::Value shared, mlir::Value global, int64_t bytes, mlir::Value read);
  void commitCopies();
  void awaitCopies();
  void barrier();
  void warpBarrier();

  // Control flow.
  using LoopBody = llvm::function_ref<Values(Word, mlir::ValueRange)>;
  Values loop(Word from, Word to, int64_t step, mlir::ValueRange initial, LoopBody body);
  void when(mlir::Value condition, llvm::function_ref<void()> then);
  /// `then()` where the condition holds, `otherwise` elsewhere.
  Values whenElse(mlir::Value condition, mlir::ValueRange otherwise,
                  llvm::function_ref<Values()> then);

private:
  mlir::Block *entry;
  std::map<std::pair<const void *, int64_t>, mlir::Value> integers;
  std::map<uint32_t, mlir::Value> floats;

  mlir::Value intrinsic(llvm::StringRef name, mlir::ValueRange arguments);
  template <typename Op> Word binary(Word a, Word b);
};

} // namespace descent

#endif // DESCENT_PASSES_CUDA_DEVICEATTENTIONOPS_H
