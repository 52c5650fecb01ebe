//===- Emitter.cpp - Short spellings for hand-emitted loop nests ----------===//
//
// Known indices are folded here and not left to the canonicalizer: a tile has hundreds of
// addresses, and ops that never exist cost no compile time.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/Emitter.h"
#include <algorithm>
#include <cassert>

using namespace mlir;

namespace descent {

MemRefType flatType(Type element) { return MemRefType::get({int64_t(1) << 40}, element); }

static constexpr auto noWrap = arith::IntegerOverflowFlags::nsw;

Value Emitter::value(Index a) {
  return a.value ? a.value : arith::ConstantIndexOp::create(builder, loc, a.number).getResult();
}

Index Emitter::add(Index a, Index b) {
  if (a.isKnown() && b.isKnown())
    return a.number + b.number;
  if (a.is(0))
    return b;
  if (b.is(0))
    return a;
  return arith::AddIOp::create(builder, loc, value(a), value(b), noWrap).getResult();
}

Index Emitter::sub(Index a, Index b) {
  if (a.isKnown() && b.isKnown())
    return a.number - b.number;
  if (b.is(0))
    return a;
  return arith::SubIOp::create(builder, loc, value(a), value(b), noWrap).getResult();
}

Index Emitter::mul(Index a, Index b) {
  if (a.isKnown() && b.isKnown())
    return a.number * b.number;
  if (a.is(0) || b.is(0))
    return 0;
  if (a.is(1))
    return b;
  if (b.is(1))
    return a;
  return arith::MulIOp::create(builder, loc, value(a), value(b), noWrap).getResult();
}

Index Emitter::min(Index a, Index b) {
  if (a.isKnown() && b.isKnown())
    return std::min(a.number, b.number);
  return arith::MinSIOp::create(builder, loc, value(a), value(b)).getResult();
}

Index Emitter::max(Index a, Index b) {
  if (a.isKnown() && b.isKnown())
    return std::max(a.number, b.number);
  return arith::MaxSIOp::create(builder, loc, value(a), value(b)).getResult();
}

Index Emitter::select(Value condition, Index a, Index b) {
  return arith::SelectOp::create(builder, loc, condition, value(a), value(b)).getResult();
}

Index Emitter::div(Index a, Index b) {
  if (a.isKnown() && b.isKnown())
    return a.number / b.number;
  if (b.is(1))
    return a;
  return arith::DivUIOp::create(builder, loc, value(a), value(b)).getResult();
}

Index Emitter::rem(Index a, Index b) {
  if (a.isKnown() && b.isKnown())
    return a.number % b.number;
  if (b.is(1))
    return 0;
  return arith::RemUIOp::create(builder, loc, value(a), value(b)).getResult();
}

Index Emitter::roundDown(Index a, int64_t multiple) { return mul(div(a, multiple), multiple); }
Index Emitter::roundUp(Index a, int64_t multiple) {
  return roundDown(add(a, multiple - 1), multiple);
}

Value Emitter::compare(arith::CmpIPredicate predicate, Index a, Index b) {
  return arith::CmpIOp::create(builder, loc, predicate, value(a), value(b));
}

Value Emitter::boolean(bool value) {
  return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(value));
}

void Emitter::loop(Index from, Index to, Index step, llvm::function_ref<void(Index)> body) {
  loop(from, to, step, ValueRange(), [&](Index i, ValueRange) {
    body(i);
    return SmallVector<Value>();
  });
}

SmallVector<Value> Emitter::loop(Index from, Index to, Index step, ValueRange initial,
                                 llvm::function_ref<SmallVector<Value>(Index, ValueRange)> body) {
  auto op = scf::ForOp::create(builder, loc, value(from), value(to), value(step), initial);
  OpBuilder::InsertionGuard guard(builder);
  Block *block = op.getBody();
  // Without carried values the op comes with its terminator.
  if (initial.empty())
    builder.setInsertionPoint(block->getTerminator());
  else
    builder.setInsertionPointToStart(block);
  SmallVector<Value> next = body(op.getInductionVar(), op.getRegionIterArgs());
  if (!initial.empty())
    scf::YieldOp::create(builder, loc, next);
  return SmallVector<Value>(op.getResults());
}

void Emitter::when(Value condition, llvm::function_ref<void()> then,
                   llvm::function_ref<void()> otherwise) {
  auto op =
      scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/static_cast<bool>(otherwise));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(op.thenBlock());
  then();
  if (!otherwise)
    return;
  builder.setInsertionPointToStart(op.elseBlock());
  otherwise();
}

Value Emitter::load(Value buffer, Index offset) {
  return memref::LoadOp::create(builder, loc, buffer, value(offset));
}

void Emitter::store(Value scalar, Value buffer, Index offset) {
  memref::StoreOp::create(builder, loc, scalar, buffer, value(offset));
}

static VectorType vectorOf(Value buffer, int64_t lanes) {
  return VectorType::get({lanes}, cast<MemRefType>(buffer.getType()).getElementType());
}

Value Emitter::loadVector(Value buffer, Index offset, int64_t lanes) {
  return vector::LoadOp::create(builder, loc, vectorOf(buffer, lanes), buffer, value(offset));
}

void Emitter::storeVector(Value vector, Value buffer, Index offset) {
  vector::StoreOp::create(builder, loc, vector, buffer, value(offset));
}

Value Emitter::loadMasked(Value buffer, Index offset, Value mask) {
  VectorType type = vectorOf(buffer, cast<VectorType>(mask.getType()).getDimSize(0));
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  return vector::MaskedLoadOp::create(builder, loc, type, buffer, value(offset), mask, zero);
}

void Emitter::storeMasked(Value vector, Value buffer, Index offset, Value mask) {
  vector::MaskedStoreOp::create(builder, loc, buffer, value(offset), mask, vector);
}

Value Emitter::prefixMask(Index count, int64_t lanes) {
  return vector::CreateMaskOp::create(builder, loc, VectorType::get({lanes}, builder.getI1Type()),
                                      value(count));
}

Value Emitter::splat(Value scalar, int64_t lanes) {
  return vector::BroadcastOp::create(builder, loc, VectorType::get({lanes}, scalar.getType()),
                                     scalar);
}

Value Emitter::constantVector(double value, int64_t lanes) {
  auto type = VectorType::get({lanes}, builder.getF32Type());
  return arith::ConstantOp::create(builder, loc,
                                   DenseElementsAttr::get(type, static_cast<float>(value)));
}

Value Emitter::constant(double value) {
  return arith::ConstantOp::create(builder, loc,
                                   builder.getF32FloatAttr(static_cast<float>(value)));
}

Value Emitter::flatten(Value memref) {
  MemRefType type = flatType(cast<MemRefType>(memref.getType()).getElementType());
  if (memref.getType() == type)
    return memref;
  return memref::ReinterpretCastOp::create(builder, loc, type, memref, /*offset=*/int64_t(0),
                                           type.getShape(), ArrayRef<int64_t>{1});
}

Value Emitter::carve(Value scratch, Index byteOffset, Type element) {
  return memref::ViewOp::create(builder, loc, flatType(element), scratch, value(byteOffset),
                                ValueRange());
}

void Emitter::call(func::FuncOp function, ValueRange operands) {
  func::CallOp::create(builder, loc, function, operands);
}

func::FuncOp getOrCreateHelper(ModuleOp module, StringRef name, TypeRange arguments,
                               llvm::function_ref<void(Emitter &, ValueRange)> body) {
  if (auto existing = module.lookupSymbol<func::FuncOp>(name))
    return existing;
  // Helpers belong to no source op: kernels of several share them.
  Location loc = UnknownLoc::get(module.getContext());
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto function = func::FuncOp::create(builder, loc, name, builder.getFunctionType(arguments, {}));
  function.setPrivate();
  Block *entry = function.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  Emitter emitter(builder, loc);
  body(emitter, entry->getArguments());
  func::ReturnOp::create(builder, loc);
  return function;
}

} // namespace descent
