//===- Interfaces.td - What an op tells the passes ------------------------===//
//
// Passes talk to these interfaces and never to op names, so that a new op is one .td entry and its methods.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_DIALECTS_NN_INTERFACES
#define DESCENT_DIALECTS_NN_INTERFACES

include "mlir/IR/OpBase.td"

def DifferentiableOp : OpInterface<"DifferentiableOp"> {
  let description = [{
    Builds the vector-Jacobian product of an op. Masks are selects, never products, so that the gradient of a branch not taken cannot
    leak; where a derivative may be infinite (sqrt, log, exp, division), a zero incoming gradient gives a zero outgoing one.
  }];
  let cppNamespace = "::descent";
  let methods = [InterfaceMethod<[{
      Creates, at the builder's insertion point, the gradients of the operands. `resultGradients` has one value per result, null where
      no gradient flows. `needed[i]` says whether operand i is on a path from a parameter. Appends one value per operand to
      `operandGradients`: of the operand's type, or null where not needed or not defined (integer operands).
      The builder may be placed anywhere below the op. Fails after emitting an error.
    }],
    "::mlir::LogicalResult", "buildGradient",
    (ins "::mlir::OpBuilder &":$builder, "::llvm::ArrayRef<::mlir::Value>":$resultGradients,
         "::llvm::ArrayRef<bool>":$needed, "::llvm::SmallVectorImpl<::mlir::Value> &":$operandGradients)>];
}

def PrecisionOp : OpInterface<"PrecisionOp"> {
  let description = [{
    The class of an op in mixed precision, after torch.autocast's published lists: *narrow* ops run in the compute type, *wide* ops in
    f32, *widest-operand* ops in the widest type among their operands, *follows-input* ops in whatever type comes in.
  }];
  let cppNamespace = "::descent";
  let methods = [InterfaceMethod<"The op's class.", "::descent::PrecisionClass", "getPrecisionClass">];
}

def AccumulatingOp : OpInterface<"AccumulatingOp"> {
  let description = [{
    An op that sums in f32 whatever its operands' type and can yield the sum in any float type: `result_type`, or its operands' type if absent. Rounding
    the sum to a narrow type and widening it again is what fold-casts avoids with it.
  }];
  let cppNamespace = "::descent";
  let methods = [
    InterfaceMethod<"The element type of the result, or null for the operands' own.", "::mlir::TypeAttr", "getResultTypeAttr">,
    InterfaceMethod<"Sets it. The caller changes the result's type with it.", "void", "setResultTypeAttr", (ins "::mlir::TypeAttr":$type)>];
}

def CostOp : OpInterface<"CostOp"> {
  let description = "What one execution costs. Static shapes are required.";
  let cppNamespace = "::descent";
  let methods = [
    InterfaceMethod<"Floating-point operations; a fused multiply-add counts two, exp and its like one.", "double", "getFlops",
      (ins), "", [{ return ::descent::defaultFlops($_op); }]>,
    InterfaceMethod<"Bytes read and written when nothing is fused: every operand and result once.", "double", "getBytes",
      (ins), "", [{ return ::descent::defaultBytes($_op); }]>];
}

def DecomposableOp : OpInterface<"DecomposableOp"> {
  let description = [{
    An op that is only a name for a computation in elementwise ops, single-axis-group reductions and views (softmax, layer_norm,
    cross_entropy). `decompose-ops` replaces it after differentiation, so that fusion sees only primitives.
  }];
  let cppNamespace = "::descent";
  let methods = [InterfaceMethod<"Creates the replacement and returns one value per result.",
    "::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>>", "decompose", (ins "::mlir::OpBuilder &":$builder)>];
}

def FusibleOp : OpInterface<"FusibleOp"> {
  let description = "How an op may share a kernel with others.";
  let cppNamespace = "::descent";
  let methods = [
    InterfaceMethod<"The class of the op; see the enumeration.", "::descent::FusionClass", "getFusionClass">,
    InterfaceMethod<"For opaque ops and contractions: the kind of kernel that holds it (\"gemm\", \"conv\", \"attention\", ...).",
      "::llvm::StringRef", "getKernelKind", (ins), "", [{ return "rows"; }]>];
}

def ContractionOp : OpInterface<"ContractionOp"> {
  let description = [{
    A (batched) matrix product C[b, m, n] = sum over k of A[b, m, k] B[b, k, n]. Leading axes of A are folded into m where B has no batch.
  }];
  let cppNamespace = "::descent";
  let methods = [InterfaceMethod<"The sizes and the storage order of the operands.", "::descent::Contraction", "getContraction">];
}

def ElementwiseOp : OpInterface<"ElementwiseOp"> {
  let description = [{
    One result element from one element of each operand (after NumPy broadcasting). Rows kernels and the epilogues of matrix products build
    their bodies from this.
  }];
  let cppNamespace = "::descent";
  let methods = [InterfaceMethod<[{
      Emits arith and math ops for one element. Operands are scalars of the operands' element types, or vectors of one common
      length of them; the result is a scalar or vector of the result's element type likewise.
    }], "::mlir::Value", "emitElement",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::ValueRange":$operands)>];
}

def LinalgLowerable : OpInterface<"LinalgLowerable"> {
  let description = "Ops that have a form in linalg on tensors.";
  let cppNamespace = "::descent";
  let methods = [InterfaceMethod<[{
      Creates the linalg form with `operands` in place of the op's own and returns one value per result.
      The default serves ElementwiseOp: one linalg.generic with broadcasting indexing maps.
    }], "::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>>", "lowerToLinalg",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands),
    "", [{ return ::descent::lowerElementwiseToLinalg($_op, builder, operands); }]>];
}

def ReferenceOp : OpInterface<"ReferenceOp"> {
  let description = [{
    Evaluation in double precision (integers exactly), written for obviousness: the truth the compiled code is measured against.
  }];
  let cppNamespace = "::descent";
  let methods = [
    InterfaceMethod<[{
      Appends one tensor per result. Nothing is rounded to the element types: an op whose purpose is rounding is the identity. Fails after emitting an
      error (an index out of range).
    }],
    "::mlir::LogicalResult", "evaluate",
    (ins "::llvm::ArrayRef<::descent::reference::Tensor>":$operands,
         "::llvm::SmallVectorImpl<::descent::reference::Tensor> &":$results)>,
    InterfaceMethod<[{
      The same with each result rounded to its element type, once: what a program in these types should compute. The default rounds what `evaluate`
      gives, to nearest even; ops that round otherwise have their own.
    }],
    "::mlir::LogicalResult", "evaluateRounded",
    (ins "::llvm::ArrayRef<::descent::reference::Tensor>":$operands,
         "::llvm::SmallVectorImpl<::descent::reference::Tensor> &":$results),
    "", [{ return ::descent::roundResults($_op, $_op.evaluate(operands, results), results); }]>];
}

def RowWeightedOp : OpInterface<"RowWeightedOp"> {
  let description = [{
    A loss: reduces over the batch, and weighs each row of it, so that the padding rows of a ragged last batch count nothing. `attach-row-weights`
    gives it the weights.
  }];
  let cppNamespace = "::descent";
  let methods = [
    InterfaceMethod<"The operand whose leading axis is the batch.", "::mlir::Value", "getRows">,
    InterfaceMethod<"The weight of a full batch whose targets all count once: what the seed of the backward pass is scaled by.",
      "double", "getExpectedWeight">,
    InterfaceMethod<"The optional operand that weighs the rows.", "::mlir::MutableOperandRange", "getRowWeightsMutable">];
}

def RandomizedOp : OpInterface<"RandomizedOp"> {
  let description = "An op that draws random numbers; `attach-row-weights` gives it the generator's key and an id no other op has.";
  let cppNamespace = "::descent";
  let methods = [
    InterfaceMethod<"The optional operand of type tensor<4xi32>.", "::mlir::MutableOperandRange", "getRngMutable">,
    InterfaceMethod<"Sets the id that tells the op's numbers from those of others.", "void", "setIdAttr", (ins "::mlir::IntegerAttr":$id)>,
    InterfaceMethod<"What stands for the op's one result in evaluation, where nothing is random.", "::mlir::Value", "getEvaluationValue",
      (ins), "", [{ return $_op->getOperand(0); }]>];
}

def IndexingOp : OpInterface<"IndexingOp"> {
  let description = [{
    An op with an integer operand that must stay in a range. Kernels do not check it: `bound-inputs` carries the range to the model input that the
    integers come from, and the runtime checks every batch there.
  }];
  let cppNamespace = "::descent";
  let methods = [
    InterfaceMethod<"The integer operand.", "::mlir::OpOperand &", "getIndexOperand">,
    InterfaceMethod<"The least allowed value, the first too large, and the one value allowed besides them.", "::descent::IndexRange",
      "getIndexRange">];
}

#endif // DESCENT_DIALECTS_NN_INTERFACES
