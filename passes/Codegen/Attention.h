//===- Attention.h - Fused attention kernels for CPUs ---------------------===//
//
// Code for exec.kernel of kind "attention" and "attention_grad": one pass over blocks of queries
// and keys, with the scores of one block pair in the cache and no T x T matrix anywhere.
//
// The kernel's body may hold, besides the one nn.attention or nn.attention_grad: nn.split along the
// last axis between an input and q, k, v, dout or o (the parts are read in place, with the row
// stride of the whole), and nn.concat along the last axis between gradients and the yield (written
// in place likewise). Results of the gradient that nobody uses are not computed.
//
// Any T >= 1 and D >= 1. The scale is 1/sqrt(D). Inputs and outputs must not overlap.
// q, k, v, o, their gradients and dout are of one type, f32, bf16 or f16; the logsumexp is f32.
// Scores, probabilities and every sum are f32 whatever that type: narrow rows are widened into the
// scratch, next to their use, and results are summed there and rounded once.
//
// NaN and infinity: a row with a non-finite score, and a column of v with a non-finite value, give
// NaN where IEEE arithmetic does. A non-finite key or value may also reach the queries right before
// it (those that share a register tile with it: at most 11), whose weight for it is 0, as 0 * inf
// does in any implementation by matrix products.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_ATTENTION_H
#define DESCENT_PASSES_CODEGEN_ATTENTION_H

#include "dialects/Exec/Exec.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Codegen/CpuTarget.h"

namespace descent {

/// Adds the kernel function of a kernel of kind "attention" to `module`, with the tiles that it
/// calls. A task is a block of the queries of one head. Fails after emitting an error if the body
/// is of another form.
mlir::FailureOr<mlir::func::FuncOp>
emitAttentionKernel(exec::KernelOp kernel, mlir::ModuleOp module, const CpuTarget &target);

/// Likewise for a kernel of kind "attention_grad". A task is one head.
mlir::FailureOr<mlir::func::FuncOp>
emitAttentionGradKernel(exec::KernelOp kernel, mlir::ModuleOp module, const CpuTarget &target);

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_ATTENTION_H
