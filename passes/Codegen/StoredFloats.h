//===- StoredFloats.h - Operands of products between memory and registers -===//
//
// Narrow floats lie in buffers as integers of their width (storageType in Lanes.h). These read such
// integers as what a product multiplies: f32, or the pairs of bf16 of AVX512_BF16. Vector code on
// every CPU with AVX2 and F16C; nothing becomes a call.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_STOREDFLOATS_H
#define DESCENT_PASSES_CODEGEN_STOREDFLOATS_H

#include "mlir/IR/BuiltinTypes.h"
#include "passes/Codegen/Emitter.h"

namespace descent {

/// A buffer and what its elements mean: memref<..xi16> of bf16, say. A memref alone means itself.
struct NumberBuffer {
  mlir::MemRefType type;
  mlir::Type element;

  NumberBuffer() = default;
  NumberBuffer(mlir::MemRefType type) : type(type), element(type.getElementType()) {}
  NumberBuffer(mlir::MemRefType type, mlir::Type element) : type(type), element(element) {}
};

/// The types that operands of products can have: f32, bf16, f16, f8E4M3FN, f8E5M2.
bool isProductElement(mlir::Type element);

/// Whether every value of `element` is one of bf16 as well.
bool fitsBf16(mlir::Type element);

/// f32 from numbers as they are stored, scalars or vectors. Exact; NaN stays NaN.
mlir::Value widenStored(Emitter &emitter, mlir::Value stored, mlir::Type element);

/// The bits of bf16 as i16 from numbers that fit it, as they are stored.
mlir::Value bf16Bits(Emitter &emitter, mlir::Value stored, mlir::Type element);

/// i32 that hold `low` in their lower and `high` in their upper half as bf16, lane by lane. Both
/// are as stored, of an element that fits bf16; a null `high` is zero.
mlir::Value bf16Pairs(Emitter &emitter, mlir::Value low, mlir::Value high, mlir::Type element);

/// `value`, a number or vector of numbers, with its elements' bits read as `element`.
mlir::Value bitcastElements(Emitter &emitter, mlir::Value value, mlir::Type element);

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_STOREDFLOATS_H
