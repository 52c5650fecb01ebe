//===- Tables.h - Constants of the ABI's tables ---------------------------===//
//
// Tables are constant structs whose layout must be that of abi.h. Each row's size is checked
// against the size the C compiler gives it.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_COMPILER_TARGET_TABLES_H
#define DESCENT_COMPILER_TARGET_TABLES_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace descent {

/// The ABI's number of an element type.
int32_t dtypeOf(mlir::Type element);
/// Bytes of a tensor or buffer; elements narrower than a byte take one.
int64_t bytesOf(mlir::ShapedType type);

class Tables {
public:
  Tables(llvm::LLVMContext &context, llvm::StringRef name)
      : builder(context), module(std::make_unique<llvm::Module>(name, context)),
        pointer(builder.getPtrTy()) {}

  llvm::Constant *text(llvm::StringRef value);
  llvm::Constant *i32(int64_t value) { return builder.getInt32(static_cast<uint32_t>(value)); }
  llvm::Constant *i64(int64_t value) { return builder.getInt64(static_cast<uint64_t>(value)); }
  llvm::Constant *f64(double value) { return llvm::ConstantFP::get(builder.getDoubleTy(), value); }
  llvm::Constant *null() { return llvm::ConstantPointerNull::get(pointer); }
  llvm::Constant *structure(llvm::ArrayRef<llvm::Constant *> fields) {
    return llvm::ConstantStruct::getAnon(fields);
  }
  /// An array as a value, of elements of one type.
  llvm::Constant *inlineArray(llvm::ArrayRef<llvm::Constant *> elements) {
    return llvm::ConstantArray::get(llvm::ArrayType::get(elements[0]->getType(), elements.size()),
                                    elements);
  }
  /// A pointer to a private array of equal constants, null if there are none.
  llvm::Constant *array(llvm::ArrayRef<llvm::Constant *> elements);
  /// A pointer to private bytes.
  llvm::Constant *bytes(llvm::StringRef value);
  /// A private array and its length, as two fields.
  void appendTable(llvm::SmallVectorImpl<llvm::Constant *> &fields,
                   llvm::ArrayRef<llvm::Constant *> rows, size_t rowBytes);
  /// DESCENT_MAX_RANK sizes.
  llvm::Constant *shape(mlir::ShapedType type);
  llvm::Constant *tensor(llvm::StringRef name, mlir::ShapedType type, int64_t offset);
  /// A variable that somebody else defines.
  llvm::Constant *external(llvm::StringRef name);

  llvm::IRBuilder<> builder;
  std::unique_ptr<llvm::Module> module;
  llvm::PointerType *pointer;
  bool layoutBroken = false;

private:
  llvm::StringMap<llvm::Constant *> texts;
};

} // namespace descent

#endif // DESCENT_COMPILER_TARGET_TABLES_H
