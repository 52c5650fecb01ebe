//===- StoredFloats.cpp - Operands of products between memory and registers -===//
//
// bf16 is the upper half of f32, so a pair of numbers that fit it is put together from the upper
// halves of two f32; what is bf16 already need not be widened for that.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/StoredFloats.h"
#include "dialects/NN/NarrowFloats.h"

using namespace mlir;

namespace descent {

bool isProductElement(Type element) {
  return isa_and_present<Float32Type, BFloat16Type, Float16Type, Float8E4M3FNType, Float8E5M2Type>(
      element);
}

bool fitsBf16(Type element) {
  return isa_and_present<BFloat16Type, Float8E4M3FNType, Float8E5M2Type>(element);
}

/// `element`, or a vector of it as long as `like`.
static Type shaped(Type element, Value like) {
  auto vector = dyn_cast<VectorType>(like.getType());
  return vector ? VectorType::get(vector.getShape(), element) : element;
}

Value bitcastElements(Emitter &e, Value value, Type element) {
  Type wanted = shaped(element, value);
  if (wanted == value.getType())
    return value;
  return arith::BitcastOp::create(e.builder, e.loc, wanted, value);
}

static Value integer(Emitter &e, int64_t number, Value like) {
  Type type = like.getType();
  auto attr = IntegerAttr::get(getElementTypeOrSelf(type), number);
  if (auto vector = dyn_cast<VectorType>(type))
    return arith::ConstantOp::create(e.builder, e.loc,
                                     DenseElementsAttr::get(vector, Attribute(attr)));
  return arith::ConstantOp::create(e.builder, e.loc, attr);
}

static Value extend(Emitter &e, Value value, unsigned bits) {
  return arith::ExtUIOp::create(e.builder, e.loc, shaped(e.builder.getIntegerType(bits), value),
                                value);
}

static Value shiftLeft(Emitter &e, Value value, int64_t count) {
  return arith::ShLIOp::create(e.builder, e.loc, value, integer(e, count, value));
}

static Value shiftRight(Emitter &e, Value value, int64_t count) {
  return arith::ShRUIOp::create(e.builder, e.loc, value, integer(e, count, value));
}

Value widenStored(Emitter &e, Value stored, Type element) {
  return widenFloat(e.builder, e.loc, bitcastElements(e, stored, element));
}

/// f32 as i32.
static Value widenedBits(Emitter &e, Value stored, Type element) {
  return bitcastElements(e, widenStored(e, stored, element), e.builder.getI32Type());
}

Value bf16Bits(Emitter &e, Value stored, Type element) {
  if (isa<BFloat16Type>(element))
    return stored;
  Value upper = shiftRight(e, widenedBits(e, stored, element), 16);
  return arith::TruncIOp::create(e.builder, e.loc, shaped(e.builder.getI16Type(), stored), upper);
}

Value bf16Pairs(Emitter &e, Value low, Value high, Type element) {
  if (isa<BFloat16Type>(element)) {
    Value pair = extend(e, low, 32);
    if (high)
      pair = arith::OrIOp::create(e.builder, e.loc, pair, shiftLeft(e, extend(e, high, 32), 16));
    return pair;
  }
  // The lower halves of the widened bits are zero: numbers fit, and no NaN of eight bits has more
  // of a payload than the two bits of f8E5M2.
  Value pair = shiftRight(e, widenedBits(e, low, element), 16);
  if (high)
    pair = arith::OrIOp::create(e.builder, e.loc, pair, widenedBits(e, high, element));
  return pair;
}

} // namespace descent
