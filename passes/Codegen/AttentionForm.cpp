//===- AttentionForm.cpp - What an attention kernel reads and writes ------===//
//
// Operands are followed back through at most one nn.split to an argument, results forward through
// at most one nn.concat to the yield. Anything else in the body is refused: fusion forms only
// these, and a generator that skipped an op would compute something else.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/AttentionForm.h"
#include "mlir/IR/BuiltinTypes.h"
#include "passes/Codegen/Attention.h"
#include "passes/Codegen/Lanes.h"

using namespace mlir;

namespace descent {

namespace {

class Parser {
public:
  explicit Parser(exec::KernelOp kernel) : kernel(kernel), body(kernel.getBody().front()) {}

  FailureOr<AttentionForm> run() {
    nn::AttentionOp forward;
    nn::AttentionGradOp gradient;
    unsigned count = 0;
    for (Operation &op : body) {
      if (auto found = dyn_cast<nn::AttentionOp>(op))
        forward = found, ++count;
      else if (auto found = dyn_cast<nn::AttentionGradOp>(op))
        gradient = found, ++count;
      else if (!isa<nn::SplitOp, nn::ConcatOp, exec::YieldOp>(op))
        return op.emitError()
               << "'" << op.getName() << "' cannot be in a kernel of kind \"" << kernel.getKind()
               << "\"; only nn.split and nn.concat may stand beside the attention op";
    }
    bool wantGradient = kernel.getKind() == "attention_grad";
    if (count != 1 || bool(gradient) != wantGradient)
      return kernel.emitError() << "a kernel of kind \"" << kernel.getKind()
                                << "\" must hold exactly one "
                                << (wantGradient ? "nn.attention_grad" : "nn.attention")
                                << " and no other attention op";
    if (failed(collectBuffers()))
      return failure();
    if (failed(wantGradient ? parseGradient(gradient) : parseForward(forward)) ||
        failed(checkOutputs()))
      return failure();
    return form;
  }

private:
  exec::KernelOp kernel;
  Block &body;
  AttentionForm form;

  LogicalResult collectBuffers() {
    SmallVector<Type> types(kernel.getArgumentTypes());
    llvm::append_range(types, kernel.getResultTypes());
    for (Type type : types) {
      auto tensor = cast<RankedTensorType>(type);
      if (!tensor.hasStaticShape())
        return kernel.emitError() << "needs static shapes, not " << tensor
                                  << "; bind-batch makes them static";
      Type element = tensor.getElementType();
      if (!element.isF32() && !element.isBF16() && !element.isF16())
        return kernel.emitError() << "attention kernels read and write f32, bf16 or f16, not "
                                  << tensor;
      form.buffers.push_back(bufferType(tensor));
    }
    return success();
  }

  /// Shapes and their agreement are the ops' own business, already verified.
  LogicalResult setSizes(Operation *op, Value q, int64_t heads, bool causal) {
    auto type = cast<RankedTensorType>(q.getType());
    if (type.getNumElements() == 0)
      return op->emitError() << "has no elements to work on: q is " << type;
    form.batch = type.getDimSize(0);
    form.length = type.getDimSize(1);
    form.heads = heads;
    form.depth = type.getDimSize(2) / heads;
    form.causal = causal;
    if (!type.getElementType().isF32())
      form.narrow = cast<FloatType>(type.getElementType());
    return success();
  }

  LogicalResult read(Operation *op, Value value, AttentionOperand &operand) {
    int64_t width = cast<RankedTensorType>(value.getType()).getShape().back();
    int64_t offset = 0;
    if (auto split = value.getDefiningOp<nn::SplitOp>()) {
      auto whole = cast<RankedTensorType>(split.getX().getType());
      if (int64_t(split.getAxis()) != whole.getRank() - 1)
        return split.emitError()
               << "splits axis " << split.getAxis() << " of " << whole
               << "; an attention kernel can only read parts of the last axis in place";
      offset = width * cast<OpResult>(value).getResultNumber();
      width = whole.getShape().back();
      value = split.getX();
    }
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument)
      return op->emitError() << "an operand is neither an input of the kernel nor a part of one";
    operand = {argument.getArgNumber(), offset, width};
    return success();
  }

  /// Absent if the value has no use.
  LogicalResult write(Value value, std::optional<AttentionOperand> &operand) {
    if (value.use_empty())
      return success();
    Operation *op = value.getDefiningOp();
    if (!value.hasOneUse())
      return op->emitError()
             << "result " << cast<OpResult>(value).getResultNumber()
             << " is used more than once; the kernel can write it to one place only";
    int64_t width = cast<RankedTensorType>(value.getType()).getShape().back();
    int64_t offset = 0;
    if (auto concat = dyn_cast<nn::ConcatOp>(*value.user_begin())) {
      auto whole = cast<RankedTensorType>(concat.getY().getType());
      if (int64_t(concat.getAxis()) != whole.getRank() - 1)
        return concat.emitError()
               << "joins along axis " << concat.getAxis() << " of " << whole
               << "; an attention kernel can only write parts of the last axis in place";
      if (!concat->hasOneUse())
        return concat.emitError()
               << "must have one use, the yield; the kernel can write it to one place only";
      for (Value before : concat.getInputs().take_front(value.use_begin()->getOperandNumber()))
        offset += cast<RankedTensorType>(before.getType()).getShape().back();
      width = whole.getShape().back();
      value = concat.getY();
    }
    OpOperand &use = *value.use_begin();
    if (!isa<exec::YieldOp>(use.getOwner()))
      return use.getOwner()->emitError()
             << "cannot use a result of the attention op here; only nn.concat and the yield can";
    operand = AttentionOperand{
        static_cast<unsigned>(kernel.getArgumentTypes().size() + use.getOperandNumber()), offset,
        width};
    return success();
  }

  LogicalResult parseForward(nn::AttentionOp op) {
    if (failed(setSizes(op, op.getQ(), op.getHeads(), op.getCausal())) ||
        failed(read(op, op.getQ(), form.q)) || failed(read(op, op.getK(), form.k)) ||
        failed(read(op, op.getV(), form.v)) || failed(write(op.getO(), form.o)))
      return failure();
    if (!form.o)
      return op.emitError() << "its output must be yielded";
    for (Value value : op.getLogsumexp())
      if (failed(write(value, form.logsumexp)))
        return failure();
    return success();
  }

  LogicalResult parseGradient(nn::AttentionGradOp op) {
    if (failed(setSizes(op, op.getQ(), op.getHeads(), op.getCausal())))
      return failure();
    form.o.emplace();
    form.logsumexp.emplace();
    return success(
        succeeded(read(op, op.getQ(), form.q)) && succeeded(read(op, op.getK(), form.k)) &&
        succeeded(read(op, op.getV(), form.v)) && succeeded(read(op, op.getDout(), form.dout)) &&
        succeeded(read(op, op.getO(), *form.o)) &&
        succeeded(read(op, op.getLogsumexp(), *form.logsumexp)) &&
        succeeded(write(op.getDq(), form.dq)) && succeeded(write(op.getDk(), form.dk)) &&
        succeeded(write(op.getDv(), form.dv)));
  }

  /// Every output must be written by the attention op, whole.
  LogicalResult checkOutputs() {
    auto fromAttention = [](Value value) {
      return isa_and_nonnull<nn::AttentionOp, nn::AttentionGradOp>(value.getDefiningOp());
    };
    auto yield = cast<exec::YieldOp>(body.getTerminator());
    for (auto [index, value] : llvm::enumerate(yield.getValues())) {
      auto concat = value.getDefiningOp<nn::ConcatOp>();
      if (concat ? !llvm::all_of(concat.getInputs(), fromAttention) : !fromAttention(value))
        return yield.emitError() << "value " << index << " does not come from the attention op";
    }
    return success();
  }
};

} // namespace

FailureOr<AttentionForm> AttentionForm::parse(exec::KernelOp kernel) {
  if (kernel.getKind() != "attention" && kernel.getKind() != "attention_grad")
    return kernel.emitError() << "has kind \"" << kernel.getKind()
                              << "\"; expected \"attention\" or \"attention_grad\"";
  return Parser(kernel).run();
}

/// A generator of one kind, applied to a kernel of that kind.
template <typename Emit>
static FailureOr<func::FuncOp> emitKernel(exec::KernelOp kernel, StringRef kind, ModuleOp module,
                                          const CpuTarget &target, Emit emit) {
  if (kernel.getKind() != kind)
    return kernel.emitError() << "has kind \"" << kernel.getKind() << "\"; expected \"" << kind
                              << "\"";
  FailureOr<AttentionForm> form = AttentionForm::parse(kernel);
  if (failed(form))
    return failure();
  return emit(*form, kernel.getLoc(), kernel.getName(), module, target);
}

FailureOr<func::FuncOp> emitAttentionKernel(exec::KernelOp kernel, ModuleOp module,
                                            const CpuTarget &target) {
  return emitKernel(kernel, "attention", module, target, emitAttention);
}

FailureOr<func::FuncOp> emitAttentionGradKernel(exec::KernelOp kernel, ModuleOp module,
                                                const CpuTarget &target) {
  return emitKernel(kernel, "attention_grad", module, target, emitAttentionGrad);
}

} // namespace descent
