//===- TensorCoreOps.cpp - Ops of tensor cores, and copies that feed them -===//

#include "passes/Cuda/TensorCoreOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace descent::tensorcore {

LLVM::LLVMPointerType sharedPointer(MLIRContext *context) {
  return LLVM::LLVMPointerType::get(context, static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared));
}

LLVM::LLVMPointerType globalPointer(MLIRContext *context) {
  return LLVM::LLVMPointerType::get(context, static_cast<unsigned>(NVVM::NVVMMemorySpace::Global));
}

Value globalAddress(OpBuilder &builder, Location loc, Value buffer, bool index64) {
  auto type = cast<MemRefType>(buffer.getType());
  Type size = builder.getIntegerType(index64 ? 64 : 32);
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  SmallVector<Type> members = {pointer, pointer, size};
  if (type.getRank())
    members.append(2, LLVM::LLVMArrayType::get(size, type.getRank()));
  Type descriptor = LLVM::LLVMStructType::getLiteral(builder.getContext(), members);
  // The lowering's own cast back folds with this one.
  Value whole = UnrealizedConversionCastOp::create(builder, loc, descriptor, buffer).getResult(0);
  Value generic = LLVM::ExtractValueOp::create(builder, loc, whole, 1);
  return LLVM::AddrSpaceCastOp::create(builder, loc, globalPointer(builder.getContext()), generic);
}

Value addressAt(OpBuilder &builder, Location loc, Value pointer, LLVM::GEPArg bytes) {
  return LLVM::GEPOp::create(builder, loc, pointer.getType(), builder.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{bytes});
}

static SmallVector<Value> members(OpBuilder &builder, Location loc, Value aggregate) {
  SmallVector<Value> parts;
  for (int64_t i = 0; i < 4; ++i)
    parts.push_back(LLVM::ExtractValueOp::create(builder, loc, aggregate, i));
  return parts;
}

static Type fourOf(Type element) {
  return LLVM::LLVMStructType::getLiteral(element.getContext(), SmallVector<Type>(4, element));
}

SmallVector<Value> loadMatrices(OpBuilder &builder, Location loc, Value shared, bool transposed) {
  Value matrices = NVVM::LdMatrixOp::create(
      builder, loc, fourOf(builder.getI32Type()), shared, uint32_t(4),
      transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(builder.getContext(), 8, 8), NVVM::LdStMatrixEltType::B16);
  return members(builder, loc, matrices);
}

SmallVector<Value> multiply(OpBuilder &builder, Location loc, Type element, ValueRange a,
                            ValueRange b, ValueRange sums) {
  auto type = element.isBF16()  ? NVVM::MMATypes::bf16
              : element.isF16() ? NVVM::MMATypes::f16
                                : NVVM::MMATypes::tf32;
  SmallVector<Value> left(a), right(b);
  if (element.isF16()) // The op wants halves, and reads the others as integers.
    for (SmallVector<Value> *fragment : {&left, &right})
      for (Value &part : *fragment)
        part = LLVM::BitcastOp::create(builder, loc, VectorType::get({2}, element), part);
  Value product = NVVM::MmaOp::create(
      builder, loc, fourOf(builder.getF32Type()), left, right, sums,
      ArrayRef<int64_t>{16, 8, element.isF32() ? 8 : 16}, std::nullopt, std::nullopt,
      std::array<NVVM::MMATypes, 2>{type, type},
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row, NVVM::MMALayout::col});
  return members(builder, loc, product);
}

void copyAsync(OpBuilder &builder, Location loc, Value shared, Value global, int64_t bytes,
               Value read) {
  // Past L1 where the hardware can: what is shared by blocks is shared in L2.
  auto cache = bytes == 16 ? NVVM::LoadCacheModifierKind::CG : NVVM::LoadCacheModifierKind::CA;
  NVVM::CpAsyncOp::create(builder, loc, shared, global, static_cast<uint32_t>(bytes), cache, read);
}

void commitCopies(OpBuilder &builder, Location loc) {
  NVVM::CpAsyncCommitGroupOp::create(builder, loc);
}

void awaitCopies(OpBuilder &builder, Location loc, int64_t groups) {
  NVVM::CpAsyncWaitGroupOp::create(builder, loc, static_cast<uint32_t>(groups));
}

} // namespace descent::tensorcore
