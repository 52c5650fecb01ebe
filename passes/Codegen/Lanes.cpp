//===- Lanes.cpp - Vector code of the loop-based kernels ------------------===//

#include "passes/Codegen/Lanes.h"
#include "dialects/NN/NN.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace descent {

Type storageType(Type element) {
  if (element.isInteger(1))
    return IntegerType::get(element.getContext(), 8);
  // Where the CPU has no such floats, masked loads of them are taken apart into conversions from
  // and to f32, one call a lane.
  if (element.isBF16() || element.isF16())
    return IntegerType::get(element.getContext(), 16);
  if (nn::isF8(element))
    return IntegerType::get(element.getContext(), 8);
  return element;
}

int64_t storageBytes(Type element) { return storageType(element).getIntOrFloatBitWidth() / 8; }

MemRefType bufferType(RankedTensorType type) {
  return MemRefType::get(type.getShape(), storageType(type.getElementType()));
}

Value Lanes::index(int64_t value) { return arith::ConstantIndexOp::create(b, value); }

Value Lanes::add(Value a, Value offset) {
  if (!a || !offset)
    return a ? a : offset;
  return arith::AddIOp::create(b, a, offset);
}

Value Lanes::scaled(Value a, int64_t factor) {
  return factor == 1 ? a : arith::MulIOp::create(b, a, index(factor));
}

SmallVector<Value> Lanes::loop(Value from, Value to, int64_t step, ValueRange carried,
                               function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(b, from, to, index(step), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!carried.empty())
    scf::YieldOp::create(b, next);
  return SmallVector<Value>(loop.getResults());
}

void Lanes::when(Value condition, function_ref<void()> body) {
  if (!condition)
    return body();
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

Value Lanes::flat(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  if (type.getRank() == 1)
    return buffer;
  auto flatType = MemRefType::get({type.getNumElements()}, type.getElementType());
  return memref::ReinterpretCastOp::create(b, flatType, buffer, /*offset=*/int64_t{0},
                                           ArrayRef<int64_t>{type.getNumElements()},
                                           ArrayRef<int64_t>{1});
}

Value Lanes::scratchView(Value scratch, int64_t byteOffset, int64_t count, Type element) {
  return memref::ViewOp::create(b, MemRefType::get({count}, storageType(element)), scratch,
                                index(byteOffset), ValueRange());
}

LaneBlock Lanes::block(int64_t count, int64_t least) {
  int64_t width = least;
  while (width < count)
    width *= 2;
  LaneBlock block{width, count, nullptr};
  if (width != count)
    block.mask = vector::ConstantMaskOp::create(b, VectorType::get({width}, b.getI1Type()),
                                                ArrayRef<int64_t>{count});
  return block;
}

Type Lanes::stored(Type element) const {
  return target == LaneTarget::Cpu || element.isInteger(1) ? storageType(element) : element;
}

llvm::MaybeAlign Lanes::alignment(VectorType type) const {
  if (target == LaneTarget::Cpu)
    return {};
  int64_t bytes = type.getNumElements() * storageBytes(type.getElementType());
  return llvm::Align(llvm::bit_floor(std::min<uint64_t>(bytes, 16)));
}

Value Lanes::fromStorage(Value value, Type element) {
  if (stored(element) == element)
    return value;
  if (!element.isInteger(1)) {
    Type type = element;
    if (auto vector = dyn_cast<VectorType>(value.getType()))
      type = vector.clone(element);
    return arith::BitcastOp::create(b, type, value);
  }
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(value.getType()));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, value, zero);
}

Value Lanes::toStorage(Value value) {
  Type element = getElementTypeOrSelf(value.getType()), type = stored(element);
  if (type == element)
    return value;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = vector.clone(type);
  if (element.isInteger(1))
    return arith::ExtUIOp::create(b, type, value);
  return arith::BitcastOp::create(b, type, value);
}

Value Lanes::loadScalar(Value flat, Value offset, Type element) {
  return fromStorage(memref::LoadOp::create(b, flat, offset), element);
}

void Lanes::storeScalar(Value value, Value flat, Value offset) {
  memref::StoreOp::create(b, toStorage(value), flat, offset);
}

Value Lanes::load(Value flat, Value offset, Type element, const LaneBlock &block) {
  if (isScalar(block.width))
    return loadScalar(flat, offset, element);
  auto type = VectorType::get({block.width}, stored(element));
  if (!block.mask)
    return fromStorage(
        vector::LoadOp::create(b, type, flat, offset, /*nontemporal=*/false, alignment(type)),
        element);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  return fromStorage(vector::MaskedLoadOp::create(b, type, flat, offset, block.mask, zero),
                     element);
}

void Lanes::store(Value value, Value flat, Value offset, const LaneBlock &block) {
  if (isScalar(block.width))
    return storeScalar(value, flat, offset);
  value = toStorage(widen(value, block.width));
  if (block.mask)
    vector::MaskedStoreOp::create(b, flat, offset, block.mask, value);
  else
    vector::StoreOp::create(b, value, flat, offset, /*nontemporal=*/false,
                            alignment(cast<VectorType>(value.getType())));
}

Value Lanes::loadStrided(Value flat, Value offset, int64_t stride, Type element,
                         const LaneBlock &block) {
  if (target == LaneTarget::Device) {
    SmallVector<Value> elements;
    for (int64_t i = 0; i < block.width; ++i)
      elements.push_back(loadScalar(flat, i ? add(offset, index(i * stride)) : offset, element));
    return join(elements);
  }
  auto type = VectorType::get({block.width}, stored(element));
  SmallVector<int32_t> positions;
  for (int64_t i = 0; i < block.width; ++i)
    positions.push_back(static_cast<int32_t>(i < block.active ? i * stride : 0));
  Value lanes = arith::ConstantOp::create(b, b.getI32VectorAttr(positions));
  Value mask = block.mask;
  if (!mask)
    mask = vector::ConstantMaskOp::create(b, VectorType::get({block.width}, b.getI1Type()),
                                          ArrayRef<int64_t>{block.width});
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  return fromStorage(vector::GatherOp::create(b, type, flat, ValueRange{offset}, lanes, mask, zero),
                     element);
}

Value Lanes::join(ValueRange elements) {
  if (elements.size() == 1)
    return elements.front();
  auto type = VectorType::get({static_cast<int64_t>(elements.size())}, elements.front().getType());
  return vector::FromElementsOp::create(b, type, elements);
}

Value Lanes::ramp(Value start, int64_t step, int64_t width) {
  // A constant vector of indices has elements of 64 bits, whatever an index has on a device.
  if (target == LaneTarget::Device) {
    SmallVector<Value> elements;
    for (int64_t i = 0; i < width; ++i)
      elements.push_back(i ? add(start, index(i * step)) : start);
    return join(elements);
  }
  SmallVector<APInt> steps;
  for (int64_t i = 0; i < width; ++i)
    steps.push_back(APInt(64, i * step));
  auto type = VectorType::get({width}, b.getIndexType());
  return arith::AddIOp::create(b, widen(start, width),
                               arith::ConstantOp::create(b, DenseElementsAttr::get(type, steps)));
}

Value Lanes::splat(TypedAttr value, int64_t width) {
  if (isScalar(width))
    return arith::ConstantOp::create(b, value);
  auto type = VectorType::get({width}, value.getType());
  return arith::ConstantOp::create(
      b, cast<TypedAttr>(DenseElementsAttr::get(type, ArrayRef<Attribute>{value})));
}

Value Lanes::widen(Value value, int64_t width) {
  if (isa<VectorType>(value.getType()) || isScalar(width))
    return value;
  if (auto constant = value.getDefiningOp<arith::ConstantOp>())
    return splat(cast<TypedAttr>(constant.getValue()), width);
  auto type = VectorType::get({width}, value.getType());
  if (isa<FloatType>(value.getType()) && !value.getType().isF32()) {
    // Without instructions for narrow floats a scalar one lives as f32, and moving it into a vector
    // would be a call that rounds it back.
    Type bits = storageType(value.getType());
    Value lanes = vector::BroadcastOp::create(b, VectorType::get({width}, bits),
                                              arith::BitcastOp::create(b, bits, value));
    return arith::BitcastOp::create(b, type, lanes);
  }
  return vector::BroadcastOp::create(b, type, value);
}

Value Lanes::part(Value vector, int64_t from, int64_t count) {
  return vector::ExtractStridedSliceOp::create(b, vector, ArrayRef<int64_t>{from},
                                               ArrayRef<int64_t>{count}, ArrayRef<int64_t>{1});
}

/// On sums and products only: on conversions the flag would let a rounding to a narrow type and
/// back disappear.
static void allowContraction(Operation *op) {
  if (!isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(op))
    return;
  auto math = cast<arith::ArithFastMathInterface>(op);
  auto flags = math.getFastMathFlagsAttr() ? math.getFastMathFlagsAttr().getValue()
                                           : arith::FastMathFlags::none;
  op->setAttr(
      math.getFastMathAttrName(),
      arith::FastMathFlagsAttr::get(op->getContext(), flags | arith::FastMathFlags::contract));
}

Value Lanes::apply(Operation *op, ValueRange operands, int64_t width) {
  bool wide = llvm::any_of(operands, [](Value v) { return isa<VectorType>(v.getType()); });
  IRMapping mapping;
  for (auto [from, to] : llvm::zip_equal(op->getOperands(), operands))
    mapping.map(from, wide ? widen(to, width) : to);
  Operation *clone = b.clone(*op, mapping);
  if (wide)
    for (OpResult result : clone->getResults())
      result.setType(VectorType::get({width}, result.getType()));
  allowContraction(clone);
  return clone->getResult(0);
}

Value Lanes::payload(linalg::GenericOp op, ArrayRef<Value> operands, ValueRange captures,
                     int64_t width, function_ref<Value(unsigned)> loop, Operation *skip,
                     Value wanted) {
  IRMapping mapping;
  unsigned arguments = op.getBody()->getNumArguments();
  for (auto [argument, value] :
       llvm::zip_equal(op.getBody()->getArguments(), operands.take_front(arguments)))
    if (value)
      mapping.map(argument, value);
  for (auto [capture, value] : llvm::zip_equal(captures, operands.drop_front(arguments)))
    mapping.map(capture, value);
  auto lookup = [&](Value value) {
    if (Value known = mapping.lookupOrNull(value))
      return known;
    // A constant from outside the payload.
    Value constant = b.clone(*value.getDefiningOp())->getResult(0);
    mapping.map(value, constant);
    return constant;
  };
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (&inner == skip)
      continue;
    if (auto position = dyn_cast<linalg::IndexOp>(inner)) {
      mapping.map(position.getResult(), loop(position.getDim()));
      continue;
    }
    SmallVector<Value> values;
    bool wide = false;
    for (Value operand : inner.getOperands()) {
      values.push_back(lookup(operand));
      wide |= isa<VectorType>(values.back().getType());
    }
    IRMapping local;
    for (auto [from, to] : llvm::zip_equal(inner.getOperands(), values))
      local.map(from, wide ? widen(to, width) : to);
    Operation *clone = b.clone(inner, local);
    if (wide)
      for (OpResult result : clone->getResults())
        result.setType(VectorType::get({width}, result.getType()));
    allowContraction(clone);
    mapping.map(inner.getResults(), clone->getResults());
  }
  return lookup(wanted);
}

TypedAttr Lanes::neutral(Operation *combiner) {
  Type type = combiner->getResult(0).getType();
  if (auto floats = dyn_cast<FloatType>(type)) {
    if (isa<arith::MaximumFOp, arith::MinimumFOp>(combiner))
      return b.getFloatAttr(
          type, APFloat::getInf(floats.getFloatSemantics(), isa<arith::MaximumFOp>(combiner)));
    return b.getFloatAttr(type, isa<arith::MulFOp>(combiner) ? 1.0 : 0.0);
  }
  unsigned bits = type.getIntOrFloatBitWidth();
  if (isa<arith::MaxSIOp>(combiner))
    return b.getIntegerAttr(type, APInt::getSignedMinValue(bits));
  if (isa<arith::MinSIOp>(combiner))
    return b.getIntegerAttr(type, APInt::getSignedMaxValue(bits));
  if (isa<arith::AndIOp>(combiner))
    return b.getIntegerAttr(type, APInt::getAllOnes(bits));
  return b.getIntegerAttr(type, isa<arith::MulIOp>(combiner) ? 1 : 0);
}

Value Lanes::combine(Operation *combiner, Value accumulator, Value value) {
  int64_t width = 1;
  if (auto vector = dyn_cast<VectorType>(accumulator.getType())) {
    width = vector.getNumElements();
    value = widen(value, width);
  }
  Value result = apply(combiner, {accumulator, value}, width);
  if (isa<arith::MaximumFOp, arith::MinimumFOp>(combiner)) {
    auto math = cast<arith::ArithFastMathInterface>(result.getDefiningOp());
    auto flags = (math.getFastMathFlagsAttr() ? math.getFastMathFlagsAttr().getValue()
                                              : arith::FastMathFlags::none) |
                 arith::FastMathFlags::nsz;
    result.getDefiningOp()->setAttr(math.getFastMathAttrName(),
                                    arith::FastMathFlagsAttr::get(b.getContext(), flags));
  }
  return result;
}

Value Lanes::narrow(Operation *combiner, Value vector, int64_t width) {
  for (int64_t count = cast<VectorType>(vector.getType()).getNumElements(); count > width;
       count /= 2)
    vector = combine(combiner, part(vector, 0, count / 2), part(vector, count / 2, count / 2));
  return vector;
}

Value Lanes::horizontal(Operation *combiner, Value vector) {
  auto type = dyn_cast<VectorType>(vector.getType());
  if (!type)
    return vector;
  if (target == LaneTarget::Device) {
    SmallVector<Value> elements;
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      elements.push_back(vector::ExtractOp::create(b, vector, ArrayRef<int64_t>{i}));
    for (size_t half = elements.size() / 2; half > 0; half /= 2)
      for (size_t i = 0; i < half; ++i)
        elements[i] = combine(combiner, elements[i], elements[i + half]);
    return elements.front();
  }
  vector = narrow(combiner, vector, 1);
  return vector::ExtractOp::create(b, vector, ArrayRef<int64_t>{0});
}

} // namespace descent
