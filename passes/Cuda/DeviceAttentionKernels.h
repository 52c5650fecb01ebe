//===- DeviceAttentionKernels.h - Device functions of attention -----------===//
//
// Bodies of the functions that DeviceAttention.cpp launches. Each takes a function whose entry
// block ends in gpu.return, the addresses of what it reads and writes (in global memory), the
// block's dynamic shared memory, and fills it.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CUDA_DEVICEATTENTIONKERNELS_H
#define DESCENT_PASSES_CUDA_DEVICEATTENTIONKERNELS_H

#include "passes/Cuda/DeviceAttentionTiles.h"

namespace descent {

/// Addresses of a form's operands; null where the form has none or the function does not use it.
struct AttentionPointers {
  mlir::Value q, k, v, o, logsumexp, dout, dq, dk, dv;
  mlir::Value delta; ///< f32 [B, H, T]: rowsum(dO * O)
};

/// What a function of the gradient computes. The first of each line comes before the second.
enum class GradientPart {
  Queries, ///< delta and, where the form has it, dq: a block owns queries and walks the keys
  Keys     ///< dk, dv: a block owns keys and walks the queries; reads delta if there is dk
};

/// Products on the tensor cores, of bf16 or f16. Grid: ceil(T / cut.blockRows()) * B * H blocks of
/// attentionThreads.
void emitTensorAttention(mlir::gpu::GPUFuncOp function, const AttentionForm &form,
                         const AttentionPointers &pointers, mlir::Value shared,
                         const AttentionCut &cut);
void emitTensorAttentionGrad(mlir::gpu::GPUFuncOp function, const AttentionForm &form,
                             GradientPart part, const AttentionPointers &pointers,
                             mlir::Value shared, const AttentionCut &cut);
/// Bytes of dynamic shared memory of these.
int64_t tensorAttentionShared(const AttentionForm &form, const AttentionCut &cut);
int64_t tensorAttentionGradShared(const AttentionForm &form, GradientPart part,
                                  const AttentionCut &cut);

/// Products on the ordinary units in f32, of any type and head size.
constexpr int64_t scalarAttentionThreads = 256;
void emitScalarAttention(mlir::gpu::GPUFuncOp function, const AttentionForm &form,
                         const AttentionPointers &pointers, mlir::Value shared);
void emitScalarAttentionGrad(mlir::gpu::GPUFuncOp function, const AttentionForm &form,
                             GradientPart part, const AttentionPointers &pointers,
                             mlir::Value shared);
int64_t scalarAttentionBlocks(const AttentionForm &form);
int64_t scalarAttentionShared(const AttentionForm &form);

} // namespace descent

#endif // DESCENT_PASSES_CUDA_DEVICEATTENTIONKERNELS_H
