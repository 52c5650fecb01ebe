//===- DeviceTileOps.cpp - Ops that tiles of products are made of ---------===//

#include "passes/Cuda/DeviceTileOps.h"
#include "passes/Cuda/TensorCoreOps.h"

using namespace mlir;

namespace descent {

TileOps::TileOps(OpBuilder &builder, Location loc, bool index64)
    : Emitter(builder, loc), global(tensorcore::globalPointer(builder.getContext())),
      index64(index64) {}

Index TileOps::thread() {
  return gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x).getResult();
}
Index TileOps::block() {
  return gpu::BlockIdOp::create(builder, loc, gpu::Dimension::x).getResult();
}

Index TileOps::bitXor(Index a, Index b) {
  if (a.isKnown() && b.isKnown())
    return a.number ^ b.number;
  if (a.is(0))
    return b;
  if (b.is(0))
    return a;
  return arith::XOrIOp::create(builder, loc, value(a), value(b)).getResult();
}

Value TileOps::within(Index a, int64_t bound) {
  return compare(arith::CmpIPredicate::ult, a, bound);
}

Value TileOps::both(Value a, Value b) {
  if (!a || !b)
    return a ? a : b;
  return arith::AndIOp::create(builder, loc, a, b);
}

Value TileOps::globalPointer(Value memref) {
  return tensorcore::globalAddress(builder, loc, memref, index64);
}

Value TileOps::sharedAt(Value pointer, Index bytes) {
  if (bytes.is(0))
    return pointer;
  if (bytes.isKnown())
    return tensorcore::addressAt(builder, loc, pointer, static_cast<int32_t>(bytes.number));
  Value offset = arith::IndexCastOp::create(builder, loc, builder.getI32Type(), bytes.value);
  return tensorcore::addressAt(builder, loc, pointer, offset);
}

Value TileOps::globalAt(Value pointer, Index elements, Type element) {
  if (elements.is(0))
    return pointer;
  Value offset = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), value(elements));
  return LLVM::GEPOp::create(builder, loc, global, element, pointer,
                             ArrayRef<LLVM::GEPArg>{offset});
}

Value TileOps::loadFrom(Value pointer, Type type, int64_t alignment) {
  return LLVM::LoadOp::create(builder, loc, type, pointer, alignment);
}

void TileOps::storeTo(Value pointer, Value value, int64_t alignment) {
  LLVM::StoreOp::create(builder, loc, value, pointer, alignment);
}

void TileOps::copyAsync(Value to, Value from, int64_t bytes, Value exists) {
  Value read;
  if (exists) {
    auto count = [&](int64_t number) -> Value {
      return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(number));
    };
    read = arith::SelectOp::create(builder, loc, exists, count(bytes), count(0));
  }
  tensorcore::copyAsync(builder, loc, to, from, bytes, read);
}

void TileOps::commitCopies() { tensorcore::commitCopies(builder, loc); }
void TileOps::awaitCopies(int64_t groups) { tensorcore::awaitCopies(builder, loc, groups); }
void TileOps::barrier() { gpu::BarrierOp::create(builder, loc); }

Value TileOps::extract(Value vector, int64_t number) {
  if (!isa<VectorType>(vector.getType()))
    return vector;
  return vector::ExtractOp::create(builder, loc, vector, ArrayRef<int64_t>{number});
}

Value TileOps::join(ArrayRef<Value> elements) {
  if (elements.size() == 1)
    return elements.front();
  auto type = VectorType::get({static_cast<int64_t>(elements.size())}, elements.front().getType());
  return vector::FromElementsOp::create(builder, loc, type, elements);
}

SmallVector<Value> TileOps::loadMatrices(Value pointer, bool transposed) {
  return tensorcore::loadMatrices(builder, loc, pointer, transposed);
}

SmallVector<Value> TileOps::multiply(Type element, ValueRange a, ValueRange b, ValueRange sums) {
  return tensorcore::multiply(builder, loc, element, a, b, sums);
}

SmallVector<Value> TileOps::whenElseZero(Value condition, TypeRange types,
                                         llvm::function_ref<SmallVector<Value>()> then) {
  if (!condition)
    return then();
  auto op = scf::IfOp::create(builder, loc, types, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(op.thenBlock());
  scf::YieldOp::create(builder, loc, then());
  builder.setInsertionPointToStart(op.elseBlock());
  SmallVector<Value> zeros;
  for (Type type : types)
    zeros.push_back(arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type)));
  scf::YieldOp::create(builder, loc, zeros);
  return SmallVector<Value>(op.getResults());
}

} // namespace descent
