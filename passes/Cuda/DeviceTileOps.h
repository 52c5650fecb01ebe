//===- DeviceTileOps.h - Ops that tiles of products are made of -----------===//
//
// Emitter (passes/Codegen/Emitter.h) with what a block of threads has beyond it: addresses in
// shared and global memory, copies that bypass registers, fragments of the tensor cores. Integers
// are `index`, 32 or 64 bits wide as the module's operands need; shared addresses are
// !llvm.ptr<3> and offsets from them bytes, global ones are !llvm.ptr<1> and offsets elements.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CUDA_DEVICETILEOPS_H
#define DESCENT_PASSES_CUDA_DEVICETILEOPS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "passes/Codegen/Emitter.h"

namespace descent {

class TileOps : public Emitter {
public:
  TileOps(mlir::OpBuilder &builder, mlir::Location loc, bool index64);

  Index thread();
  Index block();
  Index bitXor(Index a, Index b);
  /// 0 <= a < bound, `a` being any number, `bound` positive.
  mlir::Value within(Index a, int64_t bound);
  /// Null stands for true.
  mlir::Value both(mlir::Value a, mlir::Value b);

  // Addresses. `bytes` and `elements` may be negative.
  mlir::Value globalPointer(mlir::Value memref);
  mlir::Value sharedAt(mlir::Value pointer, Index bytes);
  mlir::Value globalAt(mlir::Value pointer, Index elements, mlir::Type element);
  mlir::Value loadFrom(mlir::Value pointer, mlir::Type type, int64_t alignment);
  void storeTo(mlir::Value pointer, mlir::Value value, int64_t alignment);

  // Copies from global to shared memory that bypass registers: 4, 8 or 16 bytes, zeros where
  // `exists` is false.
  void copyAsync(mlir::Value shared, mlir::Value global, int64_t bytes, mlir::Value exists);
  void commitCopies();
  void awaitCopies(int64_t groups);
  void barrier();

  // Vectors of a few elements; a vector of one is a scalar.
  mlir::Value extract(mlir::Value vector, int64_t number);
  mlir::Value join(llvm::ArrayRef<mlir::Value> elements);

  // Tensor cores, as TensorCoreOps.h says.
  llvm::SmallVector<mlir::Value> loadMatrices(mlir::Value shared, bool transposed);
  llvm::SmallVector<mlir::Value> multiply(mlir::Type element, mlir::ValueRange a,
                                          mlir::ValueRange b, mlir::ValueRange sums);

  /// `then` yields values where the condition holds (null: always), zeros of their types stand for
  /// them elsewhere.
  llvm::SmallVector<mlir::Value>
  whenElseZero(mlir::Value condition, mlir::TypeRange types,
               llvm::function_ref<llvm::SmallVector<mlir::Value>()> then);

private:
  mlir::LLVM::LLVMPointerType global;
  bool index64;
};

} // namespace descent

#endif // DESCENT_PASSES_CUDA_DEVICETILEOPS_H
