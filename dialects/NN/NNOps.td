//===- NNOps.td - The model level -----------------------------------------===//
//
// Pure ops on ranked tensors, named parameters, one loss. See Rationale.md for what is not here and why.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_DIALECTS_NN_NNOPS
#define DESCENT_DIALECTS_NN_NNOPS

include "dialects/NN/DoubleParameter.td"
include "dialects/NN/Interfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def NN_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::descent::nn";
  let summary = "Neural networks as pure tensor programs.";
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def NN_Float : AnyTypeOf<[F32, BF16, F16]>;
def NN_Index : AnyTypeOf<[I32, I64]>;
def NN_Element : AnyTypeOf<[F32, BF16, F16, I32, I64, I1]>;
def NN_Tensor : RankedTensorOf<[NN_Element]>;
def NN_FloatTensor : RankedTensorOf<[NN_Float]>;
def NN_IndexTensor : RankedTensorOf<[NN_Index]>;
def NN_BoolTensor : RankedTensorOf<[I1]>;
def NN_Scalar : Type<CPred<"::llvm::isa<::mlir::RankedTensorType>($_self) && "
                           "::llvm::cast<::mlir::RankedTensorType>($_self).getRank() == 0 && "
                           "::llvm::cast<::mlir::RankedTensorType>($_self).getElementType().isF32()">,
                     "tensor<f32>", "::mlir::RankedTensorType">;
// Buildable, so that assembly need not spell `tensor<f32>`. Only for operands: on results it would generate a second inferReturnTypes.
def NN_ScalarOperand : Type<NN_Scalar.predicate, "tensor<f32>", "::mlir::RankedTensorType">,
                       BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getF32Type())">;
def NN_RowWeights : 1DTensorOf<[F32]>;
def NN_RngTensor : Type<CPred<"::llvm::isa<::mlir::RankedTensorType>($_self) && "
                              "::llvm::cast<::mlir::RankedTensorType>($_self).getShape() == ::llvm::ArrayRef<int64_t>{4} && "
                              "::llvm::cast<::mlir::RankedTensorType>($_self).getElementType().isInteger(32)">,
                        "tensor<4xi32>", "::mlir::RankedTensorType">,
                   BuildableType<"::mlir::RankedTensorType::get({4}, $_builder.getI32Type())">;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class NN_Attr<string name, string attrMnemonic> : AttrDef<NN_Dialect, name> {
  let mnemonic = attrMnemonic;
}
def NN_ConstantInitAttr : NN_Attr<"ConstantInit", "constant"> {
  let summary = "Every element has one value.";
  let parameters = (ins NN_Double:$value);
  let assemblyFormat = "`<` $value `>`";
}
def NN_NormalInitAttr : NN_Attr<"NormalInit", "normal"> {
  let summary = "Independent normal values.";
  let parameters = (ins NN_Double:$mean, NN_Double:$deviation);
  let assemblyFormat = "`<` $mean `,` $deviation `>`";
}
def NN_UniformInitAttr : NN_Attr<"UniformInit", "uniform"> {
  let summary = "Independent uniform values in [low, high).";
  let parameters = (ins NN_Double:$low, NN_Double:$high);
  let assemblyFormat = "`<` $low `,` $high `>`";
}
def NN_InitAttr : AnyAttrOf<[NN_ConstantInitAttr, NN_NormalInitAttr, NN_UniformInitAttr], "initialiser">;

def NN_ComparePredicate : I32EnumAttr<"ComparePredicate", "comparison", [
    I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>, I32EnumAttrCase<"lt", 2>,
    I32EnumAttrCase<"le", 3>, I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>]> {
  let cppNamespace = "::descent::nn";
}
def NN_GeluForm : I32EnumAttr<"GeluForm", "which GELU", [
    I32EnumAttrCase<"erf", 0>, I32EnumAttrCase<"tanh", 1>]> {
  let cppNamespace = "::descent::nn";
}

//===----------------------------------------------------------------------===//
// Op classes
//===----------------------------------------------------------------------===//

class NN_Op<string mnemonic, list<Trait> traits = []> : Op<NN_Dialect, mnemonic, traits>;

/// A pure computation: result types from InferTypeOpInterface, cost, precision class, fusion class, reference.
class NN_ComputeOp<string mnemonic, list<Trait> traits = []> : NN_Op<mnemonic, !listconcat([
    Pure, InferTypeOpAdaptor, DeclareOpInterfaceMethods<PrecisionOp>, DeclareOpInterfaceMethods<FusibleOp>,
    DeclareOpInterfaceMethods<ReferenceOp>], traits)>;

/// Ops that training creates and a model file may not contain; verify-model refuses them.
def NN_GradientOnly : NativeOpTrait<"GradientOnly"> {
  let cppNamespace = "::descent::nn";
}

class NN_ElementwiseOp<string mnemonic, list<Trait> traits = []> : NN_ComputeOp<mnemonic, !listconcat([
    DeclareOpInterfaceMethods<ElementwiseOp>, LinalgLowerable, DeclareOpInterfaceMethods<CostOp, ["getFlops"]>], traits)>;

class NN_UnaryOp<string mnemonic, list<Trait> traits = []> : NN_ElementwiseOp<mnemonic,
    !listconcat([DeclareOpInterfaceMethods<DifferentiableOp>], traits)> {
  let arguments = (ins NN_Tensor:$x);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}
class NN_FloatUnaryOp<string mnemonic, list<Trait> traits = []> : NN_UnaryOp<mnemonic, traits> {
  let arguments = (ins NN_FloatTensor:$x);
  let results = (outs NN_FloatTensor:$y);
}
class NN_BinaryOp<string mnemonic, list<Trait> traits = []> : NN_ElementwiseOp<mnemonic,
    !listconcat([DeclareOpInterfaceMethods<DifferentiableOp>], traits)> {
  let arguments = (ins NN_Tensor:$a, NN_Tensor:$b);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a) `,` type($b)";
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

def NN_ModuleOp : NN_Op<"module", [FunctionOpInterface, IsolatedFromAbove, SingleBlock,
                                   SingleBlockImplicitTerminator<"ReturnOp">, HasParent<"::mlir::ModuleOp">]> {
  let summary = "a reusable part of a model";
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
  }];
}

def NN_ReturnOp : NN_Op<"return", [Pure, Terminator, HasParent<"ModuleOp">]> {
  let summary = "results of an nn.module";
  let arguments = (ins Variadic<NN_Tensor>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let hasVerifier = 1;
}

def NN_InstantiateOp : NN_Op<"instantiate", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one use of an nn.module, with its own parameters";
  let arguments = (ins FlatSymbolRefAttr:$callee, StrAttr:$name, Variadic<NN_Tensor>:$operands);
  let results = (outs Variadic<NN_Tensor>:$outputs);
  let assemblyFormat = "$callee `as` $name `(` $operands `)` attr-dict `:` functional-type($operands, $outputs)";
}

def NN_ModelOp : NN_Op<"model", [FunctionOpInterface, IsolatedFromAbove, SingleBlock, HasParent<"::mlir::ModuleOp">]> {
  let summary = "the model: inputs to one loss";
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    LossOp getLoss();
  }];
}

def NN_LossOp : NN_Op<"loss", [Pure, Terminator, HasParent<"ModelOp">]> {
  let summary = "ends a model: loss sum, loss weight, and the predictions that `sample` and validation read";
  let arguments = (ins NN_ScalarOperand:$sum, NN_ScalarOperand:$weight, NN_Tensor:$predictions);
  let assemblyFormat = "$sum `,` $weight `,` $predictions attr-dict `:` type($predictions)";
}

def NN_ParameterOp : NN_Op<"parameter", [Pure]> {
  let summary = "a named trainable (or frozen) tensor";
  let arguments = (ins StrAttr:$name, NN_InitAttr:$init, UnitAttr:$frozen);
  let results = (outs NN_FloatTensor:$value);
  // %w = nn.parameter "wte" normal(0.0, 0.02) : tensor<256x128xf32>      also zeros, ones, constant(2.0), uniform(-1.0, 1.0)
  let assemblyFormat = "$name custom<Initialiser>($init) (`frozen` $frozen^)? attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def NN_ConstantOp : NN_Op<"constant", [Pure, ConstantLike, InferTypeOpAdaptor, DeclareOpInterfaceMethods<FusibleOp>,
    DeclareOpInterfaceMethods<PrecisionOp>, DeclareOpInterfaceMethods<ReferenceOp>, DeclareOpInterfaceMethods<LinalgLowerable, ["lowerToLinalg"]>]> {
  let summary = "a literal tensor";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

def NN_NegOp : NN_UnaryOp<"neg">;
def NN_AbsOp : NN_UnaryOp<"abs">;
def NN_ExpOp : NN_FloatUnaryOp<"exp">;
def NN_LogOp : NN_FloatUnaryOp<"log">;
def NN_SqrtOp : NN_FloatUnaryOp<"sqrt">;
def NN_RsqrtOp : NN_FloatUnaryOp<"rsqrt">;
def NN_SinOp : NN_FloatUnaryOp<"sin">;
def NN_CosOp : NN_FloatUnaryOp<"cos">;
def NN_TanhOp : NN_FloatUnaryOp<"tanh">;
def NN_ErfOp : NN_FloatUnaryOp<"erf">;
def NN_SigmoidOp : NN_FloatUnaryOp<"sigmoid">;
def NN_ReluOp : NN_FloatUnaryOp<"relu">;
def NN_SiluOp : NN_FloatUnaryOp<"silu">;
def NN_GeluOp : NN_FloatUnaryOp<"gelu"> {
  let arguments = (ins NN_FloatTensor:$x, DefaultValuedAttr<NN_GeluForm, "::descent::nn::GeluForm::erf">:$form);
  // nn.gelu %x tanh : tensor<...>
  let assemblyFormat = "$x $form attr-dict `:` type($x)";
}
def NN_GeluGradOp : NN_ElementwiseOp<"gelu_grad", [NN_GradientOnly]> {
  let summary = "derivative of nn.gelu at x";
  let arguments = (ins NN_FloatTensor:$x, DefaultValuedAttr<NN_GeluForm, "::descent::nn::GeluForm::erf">:$form);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$x $form attr-dict `:` type($x)";
}

def NN_AddOp : NN_BinaryOp<"add", [Commutative]>;
def NN_SubOp : NN_BinaryOp<"sub">;
def NN_MulOp : NN_BinaryOp<"mul", [Commutative]>;
def NN_DivOp : NN_BinaryOp<"div">;
def NN_MaximumOp : NN_BinaryOp<"maximum", [Commutative]>;
def NN_MinimumOp : NN_BinaryOp<"minimum", [Commutative]>;
def NN_PowOp : NN_BinaryOp<"pow"> {
  let arguments = (ins NN_FloatTensor:$a, NN_FloatTensor:$b);
  let results = (outs NN_FloatTensor:$y);
}

def NN_CompareOp : NN_ElementwiseOp<"compare"> {
  let arguments = (ins NN_ComparePredicate:$predicate, NN_Tensor:$a, NN_Tensor:$b);
  let results = (outs NN_BoolTensor:$y);
  // nn.compare gt %a, %b : tensor<4xf32>, tensor<4xf32>
  let assemblyFormat = "$predicate $a `,` $b attr-dict `:` type($a) `,` type($b)";
}
def NN_WhereOp : NN_ElementwiseOp<"where", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let arguments = (ins NN_BoolTensor:$condition, NN_Tensor:$a, NN_Tensor:$b);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$condition `,` $a `,` $b attr-dict `:` type($condition) `,` type($a) `,` type($b)";
}
def NN_CastOp : NN_ElementwiseOp<"cast", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let arguments = (ins NN_Tensor:$x, TypeAttr:$to);
  let results = (outs NN_Tensor:$y);
  // nn.cast %x to f32 : tensor<4xi32>
  let assemblyFormat = "$x `to` $to attr-dict `:` type($x)";
}
def NN_IotaOp : NN_ComputeOp<"iota", [DeclareOpInterfaceMethods<LinalgLowerable, ["lowerToLinalg"]>, DeclareOpInterfaceMethods<CostOp, ["getFlops"]>]> {
  let summary = "each element is its own index along an axis";
  let arguments = (ins DenseI64ArrayAttr:$shape, I64Attr:$axis, TypeAttr:$type);
  let results = (outs NN_Tensor:$y);
  // nn.iota [4, 8] axis 1 i32
  let assemblyFormat = "$shape `axis` $axis $type attr-dict";
}
def NN_RandomOp : NN_ComputeOp<"random", [DeclareOpInterfaceMethods<LinalgLowerable, ["lowerToLinalg"]>, DeclareOpInterfaceMethods<CostOp, ["getFlops"]>]> {
  let summary = "uniform [0, 1) values, Philox 4x32-10 with key rng[0..1] and counter (element, id, rng[2], rng[3]), word 0";
  let arguments = (ins NN_RngTensor:$rng, DenseI64ArrayAttr:$shape, I64Attr:$id);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$rng $shape `id` $id attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

class NN_ShapeOp<string mnemonic, list<Trait> traits = []> : NN_ComputeOp<mnemonic, !listconcat([
    DeclareOpInterfaceMethods<DifferentiableOp>, DeclareOpInterfaceMethods<LinalgLowerable, ["lowerToLinalg"]>,
    DeclareOpInterfaceMethods<CostOp, ["getFlops"]>], traits)>;

def NN_ReshapeOp : NN_ShapeOp<"reshape"> {
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$shape);
  let results = (outs NN_Tensor:$y);
  // nn.reshape %x [-1, 64] : tensor<?x8x8xf32>     (at most one -1; it takes what is left, or the batch)
  let assemblyFormat = "$x $shape attr-dict `:` type($x)";
  let hasFolder = 1;
}
def NN_TransposeOp : NN_ShapeOp<"transpose"> {
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$permutation);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$x $permutation attr-dict `:` type($x)";
  let hasFolder = 1;
}
def NN_BroadcastOp : NN_ShapeOp<"broadcast"> {
  let summary = "NumPy broadcast to a shape";
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$shape);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$x $shape attr-dict `:` type($x)";
}
def NN_SliceOp : NN_ShapeOp<"slice"> {
  let summary = "elements start, start + stride, ... below limit on each axis; limit -1 is the axis's size";
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$limits, DenseI64ArrayAttr:$strides);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$x `from` $starts `to` $limits `by` $strides attr-dict `:` type($x)";
}
def NN_PadOp : NN_ShapeOp<"pad"> {
  let summary = "zeros around and between the elements: the transpose of nn.slice";
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high, DenseI64ArrayAttr:$interior);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$x `low` $low `high` $high `interior` $interior attr-dict `:` type($x)";
}
def NN_ConcatOp : NN_ShapeOp<"concat"> {
  let arguments = (ins Variadic<NN_Tensor>:$inputs, I64Attr:$axis);
  let results = (outs NN_Tensor:$y);
  // nn.concat %a, %b axis 1 : tensor<..>, tensor<..>
  let assemblyFormat = "$inputs `axis` $axis attr-dict `:` type($inputs)";
}
def NN_SplitOp : NN_ShapeOp<"split"> {
  let summary = "equal parts along an axis";
  let arguments = (ins NN_Tensor:$x, I64Attr:$axis, I64Attr:$sections);
  let results = (outs Variadic<NN_Tensor>:$parts);
  // %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<..>
  let assemblyFormat = "$x `axis` $axis `sections` $sections attr-dict `:` type($x)";
}

//===----------------------------------------------------------------------===//
// Reductions and row ops
//===----------------------------------------------------------------------===//

class NN_ReduceOp<string mnemonic> : NN_ComputeOp<mnemonic, [DeclareOpInterfaceMethods<DifferentiableOp>,
    DeclareOpInterfaceMethods<DecomposableOp>, DeclareOpInterfaceMethods<LinalgLowerable, ["lowerToLinalg"]>, DeclareOpInterfaceMethods<CostOp, ["getFlops"]>]> {
  let arguments = (ins NN_FloatTensor:$x, DenseI64ArrayAttr:$axes, UnitAttr:$keep);
  let results = (outs NN_FloatTensor:$y);
  // nn.reduce_sum %x [0, 1] keep : tensor<..>
  let assemblyFormat = "$x $axes (`keep` $keep^)? attr-dict `:` type($x)";
}
def NN_ReduceSumOp : NN_ReduceOp<"reduce_sum">;
def NN_ReduceMeanOp : NN_ReduceOp<"reduce_mean">;
def NN_ReduceMaxOp : NN_ReduceOp<"reduce_max">;

class NN_RowOp<string mnemonic, list<Trait> traits = []> : NN_ComputeOp<mnemonic, !listconcat([
    DeclareOpInterfaceMethods<DifferentiableOp>, DeclareOpInterfaceMethods<DecomposableOp>,
    DeclareOpInterfaceMethods<CostOp, ["getFlops"]>], traits)>;

def NN_SoftmaxOp : NN_RowOp<"softmax"> {
  let arguments = (ins NN_FloatTensor:$x, I64Attr:$axis);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$x `axis` $axis attr-dict `:` type($x)";
}
def NN_LogSoftmaxOp : NN_RowOp<"log_softmax"> {
  let arguments = (ins NN_FloatTensor:$x, I64Attr:$axis);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$x `axis` $axis attr-dict `:` type($x)";
}
def NN_LayerNormOp : NN_RowOp<"layer_norm"> {
  let summary = "normalises the last axis, then gain and bias";
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$gain, NN_FloatTensor:$bias, DefaultValuedAttr<F64Attr, "1e-5">:$epsilon);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$x `,` $gain `,` $bias attr-dict `:` type($x) `,` type($gain) `,` type($bias)";
  let hasVerifier = 1;
}
def NN_DropoutOp : NN_RowOp<"dropout", [RandomizedOp]> {
  let summary = "zeroes elements with probability `rate`, scales the rest by 1 / (1 - rate); identity in evaluation";
  let arguments = (ins NN_FloatTensor:$x, Optional<NN_RngTensor>:$rng, F64Attr:$rate, OptionalAttr<I64Attr>:$id);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$x (`rng` $rng^)? attr-dict `:` type($x)";
  let hasVerifier = 1;
}
def NN_CrossEntropyOp : NN_RowOp<"cross_entropy", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<RowWeightedOp, ["getRows"]>,
                                                   DeclareOpInterfaceMethods<IndexingOp>]> {
  let summary = "softmax cross entropy over the last axis: (sum, weight)";
  let arguments = (ins NN_FloatTensor:$logits, NN_IndexTensor:$targets, Optional<NN_FloatTensor>:$class_weights,
                       Optional<NN_RowWeights>:$row_weights,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index, DefaultValuedAttr<F64Attr, "0.0">:$label_smoothing);
  let results = (outs NN_Scalar:$sum, NN_Scalar:$weight);
  let assemblyFormat = [{
    $logits `,` $targets (`class_weights` $class_weights^ `:` type($class_weights))?
    (`row_weights` $row_weights^ `:` type($row_weights))? attr-dict `:` type($logits) `,` type($targets)
  }];
  let hasVerifier = 1;
}
def NN_MseOp : NN_RowOp<"mse", [DeclareOpInterfaceMethods<RowWeightedOp, ["getRows"]>]> {
  let summary = "squared error: (sum over elements, number of elements)";
  let arguments = (ins NN_FloatTensor:$predictions, NN_FloatTensor:$targets, Optional<NN_RowWeights>:$row_weights);
  let results = (outs NN_Scalar:$sum, NN_Scalar:$weight);
  let assemblyFormat = [{
    $predictions `,` $targets (`row_weights` $row_weights^ `:` type($row_weights))? attr-dict `:` type($predictions) `,` type($targets)
  }];
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

def NN_MatmulOp : NN_ComputeOp<"matmul", [DeclareOpInterfaceMethods<DifferentiableOp>, DeclareOpInterfaceMethods<CostOp, ["getFlops"]>,
                                          DeclareOpInterfaceMethods<ContractionOp>, DeclareOpInterfaceMethods<FusibleOp, ["getKernelKind"]>]> {
  let summary = "matrix product over the last two axes, leading axes are a batch; B of rank 2 serves every batch";
  let arguments = (ins NN_FloatTensor:$a, NN_FloatTensor:$b, UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a) `,` type($b)";
}

/// Images are [N, H, W, C], weights [KH, KW, IC, OC]; padding is [top, bottom, left, right].
class NN_ConvOp<string mnemonic, list<Trait> traits = []> : NN_ComputeOp<mnemonic, !listconcat([
    DeclareOpInterfaceMethods<CostOp, ["getFlops"]>, DeclareOpInterfaceMethods<FusibleOp, ["getKernelKind"]>], traits)>;
def NN_Conv2DOp : NN_ConvOp<"conv2d", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$w, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilations);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$x `,` $w `strides` $strides `padding` $padding `dilations` $dilations attr-dict `:` type($x) `,` type($w)";
}
def NN_Conv2DGradInputOp : NN_ConvOp<"conv2d_grad_input", [NN_GradientOnly]> {
  let arguments = (ins NN_FloatTensor:$dy, NN_FloatTensor:$w, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$input_shape);
  let results = (outs NN_FloatTensor:$dx);
  let assemblyFormat = "$dy `,` $w `strides` $strides `padding` $padding `dilations` $dilations `input` $input_shape attr-dict `:` type($dy) `,` type($w)";
}
def NN_Conv2DGradWeightOp : NN_ConvOp<"conv2d_grad_weight", [NN_GradientOnly]> {
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$dy, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$kernel_shape);
  let results = (outs NN_FloatTensor:$dw);
  let assemblyFormat = "$x `,` $dy `strides` $strides `padding` $padding `dilations` $dilations `kernel` $kernel_shape attr-dict `:` type($x) `,` type($dy)";
}

/// Ops that are always a kernel of their own.
class NN_OpaqueOp<string mnemonic, list<Trait> traits = []> : NN_ComputeOp<mnemonic, !listconcat([
    DeclareOpInterfaceMethods<CostOp, ["getFlops"]>, DeclareOpInterfaceMethods<FusibleOp, ["getKernelKind"]>], traits)>;

def NN_MaxPool2DOp : NN_OpaqueOp<"max_pool2d", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let arguments = (ins NN_FloatTensor:$x, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$padding);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$x `kernel` $kernel `strides` $strides `padding` $padding attr-dict `:` type($x)";
}
def NN_MaxPool2DGradOp : NN_OpaqueOp<"max_pool2d_grad", [NN_GradientOnly]> {
  let summary = "gradient goes to the first maximum of each window";
  let arguments = (ins NN_FloatTensor:$dy, NN_FloatTensor:$x, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$padding);
  let results = (outs NN_FloatTensor:$dx);
  let assemblyFormat = "$dy `,` $x `kernel` $kernel `strides` $strides `padding` $padding attr-dict `:` type($dy) `,` type($x)";
}

def NN_EmbeddingOp : NN_OpaqueOp<"embedding", [DeclareOpInterfaceMethods<DifferentiableOp>, DeclareOpInterfaceMethods<IndexingOp>]> {
  let summary = "rows of a table by index; a negative index counts from the end";
  let arguments = (ins NN_IndexTensor:$indices, NN_FloatTensor:$table);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$indices `,` $table attr-dict `:` type($indices) `,` type($table)";
}
def NN_EmbeddingGradOp : NN_OpaqueOp<"embedding_grad", [NN_GradientOnly]> {
  let summary = "adds dy's rows into a table of zeros, in the order of the indices, in f32";
  let arguments = (ins NN_FloatTensor:$dy, NN_IndexTensor:$indices, I64Attr:$rows);
  let results = (outs NN_FloatTensor:$dtable);
  let assemblyFormat = "$dy `,` $indices `rows` $rows attr-dict `:` type($dy) `,` type($indices)";
}

/// q, k, v and o are [B, T, H * D] with the heads side by side.
def NN_AttentionOp : NN_OpaqueOp<"attention", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "softmax(q k^T / sqrt(D)) v per head; `causal` masks keys behind the query";
  let arguments = (ins NN_FloatTensor:$q, NN_FloatTensor:$k, NN_FloatTensor:$v, I64Attr:$heads, UnitAttr:$causal, UnitAttr:$save_logsumexp);
  let results = (outs NN_FloatTensor:$o, Variadic<NN_FloatTensor>:$logsumexp);
  // %o = nn.attention %q, %k, %v heads 4 causal : tensor<..>      with save_logsumexp also [B, H, T]
  let assemblyFormat = "$q `,` $k `,` $v `heads` $heads (`causal` $causal^)? (`save_logsumexp` $save_logsumexp^)? attr-dict `:` type($q) `,` type($k) `,` type($v)";
}
def NN_AttentionGradOp : NN_OpaqueOp<"attention_grad", [NN_GradientOnly]> {
  let arguments = (ins NN_FloatTensor:$dout, NN_FloatTensor:$q, NN_FloatTensor:$k, NN_FloatTensor:$v, NN_FloatTensor:$o, NN_FloatTensor:$logsumexp,
                       I64Attr:$heads, UnitAttr:$causal);
  let results = (outs NN_FloatTensor:$dq, NN_FloatTensor:$dk, NN_FloatTensor:$dv);
  let assemblyFormat = [{ $dout `,` $q `,` $k `,` $v `,` $o `,` $logsumexp `heads` $heads (`causal` $causal^)? attr-dict `:`
    type($dout) `,` type($q) `,` type($k) `,` type($v) `,` type($o) `,` type($logsumexp) }];
}

#endif // DESCENT_DIALECTS_NN_NNOPS
