//===- AttentionForm.h - What an attention kernel reads and writes --------===//
//
// The body of an attention kernel, as the sizes and the places of its operands: what remains of the
// nn ops once splits and concatenations are strides.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_ATTENTIONFORM_H
#define DESCENT_PASSES_CODEGEN_ATTENTIONFORM_H

#include "dialects/Exec/Exec.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Codegen/CpuTarget.h"
#include <optional>

namespace descent {

/// Where a [B, T, H*D] operand lies: element (b, t, c) is element (b * T + t) * rowStride + offset
/// + c of a buffer of the kernel function (inputs first, then outputs).
struct AttentionOperand {
  unsigned buffer = 0;
  int64_t offset = 0;
  int64_t rowStride = 0;
};

struct AttentionForm {
  int64_t batch = 0, length = 0, heads = 0, depth = 0; ///< B, T, H, D
  bool causal = false;
  /// Of q, k, v, o and their gradients: bf16 or f16, whose buffers hold i16; null for f32.
  mlir::FloatType narrow;
  AttentionOperand q, k, v;
  std::optional<AttentionOperand> o; ///< result of the forward kernel, operand of the gradient
  std::optional<AttentionOperand> logsumexp; ///< [B, H, T]; likewise; absent if nobody asks for it
  AttentionOperand dout;                     ///< gradient only
  std::optional<AttentionOperand> dq, dk, dv;
  llvm::SmallVector<mlir::Type> buffers; ///< memrefs of the kernel function, inputs first

  /// Fails after emitting an error at the op that does not fit.
  static mlir::FailureOr<AttentionForm> parse(exec::KernelOp kernel);
};

/// The kernel function of a form, added to `module` with the tiles that it calls. Neither can fail.
mlir::func::FuncOp emitAttention(const AttentionForm &form, mlir::Location loc,
                                 llvm::StringRef name, mlir::ModuleOp module,
                                 const CpuTarget &target);
mlir::func::FuncOp emitAttentionGrad(const AttentionForm &form, mlir::Location loc,
                                     llvm::StringRef name, mlir::ModuleOp module,
                                     const CpuTarget &target);

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_ATTENTIONFORM_H
