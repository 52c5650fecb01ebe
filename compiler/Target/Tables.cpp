//===- Tables.cpp - Constants of the ABI's tables -------------------------===//

#include "compiler/Target/Tables.h"
#include "runtime/include/descent/abi.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace descent {

llvm::Constant *Tables::text(StringRef value) {
  llvm::Constant *&entry = texts[value];
  if (!entry) {
    auto *bytes = llvm::ConstantDataArray::getString(builder.getContext(), value);
    entry = new llvm::GlobalVariable(*module, bytes->getType(), true,
                                     llvm::GlobalValue::PrivateLinkage, bytes);
  }
  return entry;
}

llvm::Constant *Tables::array(ArrayRef<llvm::Constant *> elements) {
  if (elements.empty())
    return null();
  auto *type = llvm::ArrayType::get(elements[0]->getType(), elements.size());
  return new llvm::GlobalVariable(*module, type, true, llvm::GlobalValue::PrivateLinkage,
                                  llvm::ConstantArray::get(type, elements));
}

void Tables::appendTable(SmallVectorImpl<llvm::Constant *> &fields, ArrayRef<llvm::Constant *> rows,
                         size_t rowBytes) {
  layoutBroken |=
      !rows.empty() && module->getDataLayout().getTypeAllocSize(rows[0]->getType()) != rowBytes;
  fields.push_back(array(rows));
  fields.push_back(i64(static_cast<int64_t>(rows.size())));
}

int32_t dtypeOf(Type element) {
  return llvm::TypeSwitch<Type, int32_t>(element)
      .Case<Float32Type>([](Type) { return DESCENT_F32; })
      .Case<BFloat16Type>([](Type) { return DESCENT_BF16; })
      .Case<Float16Type>([](Type) { return DESCENT_F16; })
      .Case<Float8E4M3FNType>([](Type) { return DESCENT_F8E4M3; })
      .Case<Float8E5M2Type>([](Type) { return DESCENT_F8E5M2; })
      .Default([](Type type) {
        return type.isInteger(32) ? DESCENT_I32 : type.isInteger(64) ? DESCENT_I64 : DESCENT_I1;
      });
}

llvm::Constant *Tables::shape(ShapedType type) {
  SmallVector<llvm::Constant *> sizes(DESCENT_MAX_RANK, i64(0));
  for (auto [axis, size] : llvm::enumerate(type.getShape()))
    sizes[axis] = i64(size);
  return llvm::ConstantArray::get(llvm::ArrayType::get(builder.getInt64Ty(), DESCENT_MAX_RANK),
                                  sizes);
}

int64_t bytesOf(ShapedType type) {
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

llvm::Constant *Tables::tensor(StringRef name, ShapedType type, int64_t offset) {
  return structure({text(name), i32(dtypeOf(type.getElementType())), i32(type.getRank()),
                    shape(type), i64(offset), i64(bytesOf(type))});
}

llvm::Constant *Tables::bytes(StringRef value) {
  auto *data = llvm::ConstantDataArray::getRaw(value, value.size(), builder.getInt8Ty());
  auto *variable = new llvm::GlobalVariable(*module, data->getType(), true,
                                            llvm::GlobalValue::PrivateLinkage, data);
  variable->setAlignment(llvm::Align(64));
  return variable;
}

llvm::Constant *Tables::external(StringRef name) {
  return module->getOrInsertGlobal(name, builder.getInt8Ty());
}

} // namespace descent
