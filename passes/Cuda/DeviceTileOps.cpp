//===- DeviceTileOps.cpp - Ops that tiles of products are made of ---------===//

#include "passes/Cuda/DeviceTileOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace descent {

TileOps::TileOps(OpBuilder &builder, Location loc, bool index64)
    : Emitter(builder, loc), shared(LLVM::LLVMPointerType::get(builder.getContext(), 3)),
      global(LLVM::LLVMPointerType::get(builder.getContext(), 1)), index64(index64) {}

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
  // The descriptor that the lowering makes of a memref; its cast back folds with this one.
  auto type = cast<MemRefType>(memref.getType());
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Type size = builder.getIntegerType(index64 ? 64 : 32);
  SmallVector<Type> members = {pointer, pointer, size};
  if (type.getRank())
    members.append(2, LLVM::LLVMArrayType::get(size, type.getRank()));
  Type descriptor = LLVM::LLVMStructType::getLiteral(builder.getContext(), members);
  Value whole = UnrealizedConversionCastOp::create(builder, loc, descriptor, memref).getResult(0);
  Value generic = LLVM::ExtractValueOp::create(builder, loc, whole, 1);
  return LLVM::AddrSpaceCastOp::create(builder, loc, global, generic);
}

Value TileOps::sharedAt(Value pointer, Index bytes) {
  if (bytes.is(0))
    return pointer;
  SmallVector<LLVM::GEPArg> offset;
  if (bytes.isKnown())
    offset.push_back(static_cast<int32_t>(bytes.number));
  else
    offset.push_back(
        arith::IndexCastOp::create(builder, loc, builder.getI32Type(), bytes.value).getResult());
  return LLVM::GEPOp::create(builder, loc, shared, builder.getI8Type(), pointer, offset);
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
  // Past L1 where the hardware can: what is shared by blocks is shared in L2.
  auto cache = bytes == 16 ? NVVM::LoadCacheModifierKind::CG : NVVM::LoadCacheModifierKind::CA;
  NVVM::CpAsyncOp::create(builder, loc, to, from, static_cast<uint32_t>(bytes), cache, read);
}

void TileOps::commitCopies() { NVVM::CpAsyncCommitGroupOp::create(builder, loc); }
void TileOps::awaitCopies(int64_t groups) {
  NVVM::CpAsyncWaitGroupOp::create(builder, loc, static_cast<uint32_t>(groups));
}
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
  Type i32 = builder.getI32Type();
  Type four = LLVM::LLVMStructType::getLiteral(builder.getContext(), {i32, i32, i32, i32});
  Value matrices = NVVM::LdMatrixOp::create(
      builder, loc, four, pointer, uint32_t(4),
      transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(builder.getContext(), 8, 8), NVVM::LdStMatrixEltType::B16);
  SmallVector<Value> parts;
  for (int64_t i = 0; i < 4; ++i)
    parts.push_back(LLVM::ExtractValueOp::create(builder, loc, matrices, i));
  return parts;
}

SmallVector<Value> TileOps::multiply(Type element, ValueRange a, ValueRange b, ValueRange sums) {
  auto type = element.isBF16()  ? NVVM::MMATypes::bf16
              : element.isF16() ? NVVM::MMATypes::f16
                                : NVVM::MMATypes::tf32;
  SmallVector<Value> left(a), right(b);
  if (element.isF16()) // The op wants halves, and reads the others as integers.
    for (SmallVector<Value> *fragment : {&left, &right})
      for (Value &part : *fragment)
        part = LLVM::BitcastOp::create(builder, loc, VectorType::get({2}, element), part);
  Type f32 = builder.getF32Type();
  Type four = LLVM::LLVMStructType::getLiteral(builder.getContext(), {f32, f32, f32, f32});
  Value product = NVVM::MmaOp::create(
      builder, loc, four, left, right, sums, ArrayRef<int64_t>{16, 8, element.isF32() ? 8 : 16},
      std::nullopt, std::nullopt, std::array<NVVM::MMATypes, 2>{type, type},
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row, NVVM::MMALayout::col});
  SmallVector<Value> parts;
  for (int64_t i = 0; i < 4; ++i)
    parts.push_back(LLVM::ExtractValueOp::create(builder, loc, product, i));
  return parts;
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
