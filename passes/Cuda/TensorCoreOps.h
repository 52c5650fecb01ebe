//===- TensorCoreOps.h - Ops of tensor cores, and copies that feed them ---===//
//
// The one spelling of addresses, ldmatrix, mma.sync and cp.async, which the tiles of products and
// the attention kernels share. Fragments are those of m16n8k16 (m16n8k8 for f32) as the PTX ISA
// lays them out over the lanes of a warp; every chip from sm_80 on has them. Shared addresses are
// !llvm.ptr<3>, global ones !llvm.ptr<1>, offsets in bytes.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CUDA_TENSORCOREOPS_H
#define DESCENT_PASSES_CUDA_TENSORCOREOPS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace descent::tensorcore {

mlir::LLVM::LLVMPointerType sharedPointer(mlir::MLIRContext *context);
mlir::LLVM::LLVMPointerType globalPointer(mlir::MLIRContext *context);

/// The address of a function's buffer in global memory. Not by way of an index, which may have
/// fewer bits than an address (64 if `index64`, else 32): from the descriptor that lowering makes
/// of the buffer.
mlir::Value globalAddress(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer,
                          bool index64);

/// The address `bytes` further: a number of 32 bits that is known, or a value of any width.
mlir::Value addressAt(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value pointer,
                      mlir::LLVM::GEPArg bytes);

/// Four matrices of 8 rows of 16 bytes, in i32.
llvm::SmallVector<mlir::Value> loadMatrices(mlir::OpBuilder &builder, mlir::Location loc,
                                            mlir::Value shared, bool transposed);

/// a (4 i32) times b (2 i32) plus sums (4 f32), of bf16 or f16, or of f32 in tf32.
llvm::SmallVector<mlir::Value> multiply(mlir::OpBuilder &builder, mlir::Location loc,
                                        mlir::Type element, mlir::ValueRange a, mlir::ValueRange b,
                                        mlir::ValueRange sums);

/// Copies 4, 8 or 16 bytes from global to shared memory past the registers; of them only the first
/// `read` (i32) are read and the others become zeros. Null: all are read.
void copyAsync(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value shared, mlir::Value global,
               int64_t bytes, mlir::Value read);
void commitCopies(mlir::OpBuilder &builder, mlir::Location loc);
/// Until at most `groups` of the committed groups are under way.
void awaitCopies(mlir::OpBuilder &builder, mlir::Location loc, int64_t groups);

} // namespace descent::tensorcore

#endif // DESCENT_PASSES_CUDA_TENSORCOREOPS_H
