//===- NNOps.td - The model level -----------------------------------------===//
//
// Pure ops on ranked tensors, named parameters, one loss. See Rationale.md for what is not here and why. The file is long because it is the
// level's reference, one entry an op; it holds no code.
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

// The two f8 types are storage for operands of products: nn.cast makes them, products read them.
def NN_Float : AnyTypeOf<[F32, BF16, F16, F8E4M3FN, F8E5M2]>;
def NN_Index : AnyTypeOf<[I32, I64]>;
def NN_Element : AnyTypeOf<[F32, BF16, F16, F8E4M3FN, F8E5M2, I32, I64, I1]>;
def NN_Tensor : RankedTensorOf<[NN_Element]>;
def NN_FloatTensor : RankedTensorOf<[NN_Float]>;
def NN_F32Tensor : RankedTensorOf<[F32]>;
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
  let description = [{
    A function from tensors to tensors with parameters of its own per instance. It is not called but inlined, see nn.instantiate.

    C1: arguments are ranked tensors of f32, bf16, f16, i32, i64 or i1, without empty axes, '?' only leading. C2: at least one result. C3: names of
    parameters, and of instances, are unique.

    ```mlir
    nn.module @double(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
      %y = nn.add %x, %x : tensor<?x4xf32>, tensor<?x4xf32>
      nn.return %y : tensor<?x4xf32>
    }
    ```
  }];
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
  let description = [{
    C1: the types are the results that the nn.module declares.

    ```mlir
    nn.return %y : tensor<?x4xf32>
    ```
  }];
  let arguments = (ins Variadic<NN_Tensor>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let hasVerifier = 1;
}

def NN_InstantiateOp : NN_Op<"instantiate", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one use of an nn.module, with its own parameters";
  let description = [{
    Stands for the body of the module with its parameters' names prefixed by the instance's name and a dot. Two instances of one module share nothing.

    C1: the module exists. C2: the name is not empty. C3: operands have the types of its arguments, C4: results those of its results. C5: no module contains
    itself, directly or through others.

    ```mlir
    %y = nn.instantiate @block as "h.0" (%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, StrAttr:$name, Variadic<NN_Tensor>:$operands);
  let results = (outs Variadic<NN_Tensor>:$outputs);
  let assemblyFormat = "$callee `as` $name `(` $operands `)` attr-dict `:` functional-type($operands, $outputs)";
}

def NN_ModelOp : NN_Op<"model", [FunctionOpInterface, IsolatedFromAbove, SingleBlock, HasParent<"::mlir::ModuleOp">]> {
  let summary = "the model: inputs to one loss";
  let description = [{
    One batch in, one loss out. Arguments carry nn.role: "data" or "target"; import passes add inputs of the roles "row_weights" and "rng", and the
    attributes nn.range and nn.ignore_index on integer inputs.

    C1: no results, ends in nn.loss. C2: arguments as C1 of nn.module. C3: each has a known role and no other nn attribute. C4: one at least is data.
    C5: names as C3 of nn.module.

    ```mlir
    nn.model @m(%x: tensor<?x4xf32> {nn.role = "data"}, %t: tensor<?x4xf32> {nn.role = "target"}) {
      %w = nn.parameter "w" zeros : tensor<4xf32>
      %y = nn.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
      %s, %n = nn.mse %y, %t : tensor<?x4xf32>, tensor<?x4xf32>
      nn.loss %s, %n, %y : tensor<?x4xf32>
    }
    ```
  }];
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
  let description = [{
    Sum and weight are tensor<f32> and are not divided here: the training step divides once, after all parts of a batch are added.

    ```mlir
    nn.loss %s, %n, %y : tensor<?x4xf32>
    ```
  }];
  let arguments = (ins NN_ScalarOperand:$sum, NN_ScalarOperand:$weight, NN_Tensor:$predictions);
  let assemblyFormat = "$sum `,` $weight `,` $predictions attr-dict `:` type($predictions)";
}

def NN_ParameterOp : NN_Op<"parameter", [Pure]> {
  let summary = "a named trainable (or frozen) tensor";
  let description = [{
    One op is one parameter; using its value twice ties it. A frozen one is never changed and has no gradient. Initial values are drawn per parameter name
    from the run's seed.

    C1: the name is not empty. C2: the shape is known and not empty. C3: the initialiser's numbers are finite, a deviation is not negative, bounds are in
    order.

    ```mlir
    %w = nn.parameter "wte" normal(0.0, 0.02) : tensor<256x128xf32>
    %b = nn.parameter "bias" zeros frozen : tensor<128xf32>     // also ones, constant(2.0), uniform(-1.0, 1.0)
    ```
  }];
  let arguments = (ins StrAttr:$name, NN_InitAttr:$init, UnitAttr:$frozen);
  let results = (outs NN_FloatTensor:$value);
  // %w = nn.parameter "wte" normal(0.0, 0.02) : tensor<256x128xf32>      also zeros, ones, constant(2.0), uniform(-1.0, 1.0)
  let assemblyFormat = "$name custom<Initialiser>($init) (`frozen` $frozen^)? attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def NN_ConstantOp : NN_Op<"constant", [Pure, ConstantLike, InferTypeOpAdaptor, DeclareOpInterfaceMethods<FusibleOp>,
    DeclareOpInterfaceMethods<PrecisionOp>, DeclareOpInterfaceMethods<ReferenceOp>, DeclareOpInterfaceMethods<LinalgLowerable, ["lowerToLinalg"]>]> {
  let summary = "a literal tensor";
  let description = [{
    C1: a ranked tensor of the dialect's element types.

    ```mlir
    %c = nn.constant dense<1.0> : tensor<4xf32>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

def NN_NegOp : NN_UnaryOp<"neg"> {
  let summary = "-x";
  let description = [{
    The result has the operand's type.

    C1: the element type is not i1.

    ```mlir
    %y = nn.neg %x : tensor<?x4xf32>
    ```
  }];
}
def NN_AbsOp : NN_UnaryOp<"abs"> {
  let summary = "|x|";
  let description = [{
    The gradient at 0 is 0. The result has the operand's type.

    C1: the element type is not i1.

    ```mlir
    %y = nn.abs %x : tensor<?x4xf32>
    ```
  }];
}
def NN_ExpOp : NN_FloatUnaryOp<"exp"> {
  let summary = "e to the x";
  let description = [{
    The result has the operand's type.

    C1: the element type is not i1.

    ```mlir
    %y = nn.exp %x : tensor<?x4xf32>
    ```
  }];
}
def NN_LogOp : NN_FloatUnaryOp<"log"> {
  let summary = "natural logarithm";
  let description = [{
    Negative operands give NaN, 0 gives -inf. The result has the operand's type.

    C1: the element type is not i1.

    ```mlir
    %y = nn.log %x : tensor<?x4xf32>
    ```
  }];
}
def NN_SqrtOp : NN_FloatUnaryOp<"sqrt"> {
  let summary = "square root";
  let description = [{
    Negative operands give NaN. The result has the operand's type.

    C1: the element type is not i1.

    ```mlir
    %y = nn.sqrt %x : tensor<?x4xf32>
    ```
  }];
}
def NN_RsqrtOp : NN_FloatUnaryOp<"rsqrt"> {
  let summary = "1 / sqrt(x)";
  let description = [{
    The result has the operand's type.

    C1: the element type is not i1.

    ```mlir
    %y = nn.rsqrt %x : tensor<?x4xf32>
    ```
  }];
}
def NN_SinOp : NN_FloatUnaryOp<"sin"> {
  let summary = "sine of radians";
  let description = [{
    The result has the operand's type.

    C1: the element type is not i1.

    ```mlir
    %y = nn.sin %x : tensor<?x4xf32>
    ```
  }];
}
def NN_CosOp : NN_FloatUnaryOp<"cos"> {
  let summary = "cosine of radians";
  let description = [{
    The result has the operand's type.

    C1: the element type is not i1.

    ```mlir
    %y = nn.cos %x : tensor<?x4xf32>
    ```
  }];
}
def NN_TanhOp : NN_FloatUnaryOp<"tanh"> {
  let summary = "hyperbolic tangent";
  let description = [{
    The result has the operand's type.

    C1: the element type is not i1.

    ```mlir
    %y = nn.tanh %x : tensor<?x4xf32>
    ```
  }];
}
def NN_ErfOp : NN_FloatUnaryOp<"erf"> {
  let summary = "error function";
  let description = [{
    2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x. The result has the operand's type.

    C1: the element type is not i1.

    ```mlir
    %y = nn.erf %x : tensor<?x4xf32>
    ```
  }];
}
def NN_SigmoidOp : NN_FloatUnaryOp<"sigmoid"> {
  let summary = "1 / (1 + e^-x)";
  let description = [{
    The result has the operand's type.

    C1: the element type is not i1.

    ```mlir
    %y = nn.sigmoid %x : tensor<?x4xf32>
    ```
  }];
}
def NN_ReluOp : NN_FloatUnaryOp<"relu"> {
  let summary = "x where positive, else 0";
  let description = [{
    NaN stays NaN. The gradient at 0 is 0. The result has the operand's type.

    C1: the element type is not i1.

    ```mlir
    %y = nn.relu %x : tensor<?x4xf32>
    ```
  }];
}
def NN_SiluOp : NN_FloatUnaryOp<"silu"> {
  let summary = "x * sigmoid(x)";
  let description = [{
    The result has the operand's type.

    C1: the element type is not i1.

    ```mlir
    %y = nn.silu %x : tensor<?x4xf32>
    ```
  }];
}
def NN_GeluOp : NN_FloatUnaryOp<"gelu"> {
  let summary = "Gaussian error linear unit";
  let description = [{
    erf: x / 2 (1 + erf(x / sqrt 2)); tanh: x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel, 2016). The result has the operand's type.

    ```mlir
    %y = nn.gelu %x tanh : tensor<?x4xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, DefaultValuedAttr<NN_GeluForm, "::descent::nn::GeluForm::erf">:$form);
  // nn.gelu %x tanh : tensor<...>
  let assemblyFormat = "$x $form attr-dict `:` type($x)";
}
def NN_GeluGradOp : NN_ElementwiseOp<"gelu_grad", [NN_GradientOnly]> {
  let summary = "derivative of nn.gelu at x";
  let description = [{
    Elementwise d gelu(x) / dx of the same form; to be multiplied with the incoming gradient.

    ```mlir
    %y = nn.gelu_grad %x erf : tensor<8x4xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, DefaultValuedAttr<NN_GeluForm, "::descent::nn::GeluForm::erf">:$form);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$x $form attr-dict `:` type($x)";
}

def NN_AddOp : NN_BinaryOp<"add", [Commutative]> {
  let summary = "a + b";
  let description = [{
    C1: shapes broadcast like NumPy's; '?' fits '?' and 1. C2: element types are equal. C3: the element type is not i1.

    ```mlir
    %y = nn.add %a, %b : tensor<?x4xf32>, tensor<4xf32>
    ```
  }];
}
def NN_SubOp : NN_BinaryOp<"sub"> {
  let summary = "a - b";
  let description = [{
    C1: shapes broadcast like NumPy's; '?' fits '?' and 1. C2: element types are equal. C3: the element type is not i1.

    ```mlir
    %y = nn.sub %a, %b : tensor<?x4xf32>, tensor<4xf32>
    ```
  }];
}
def NN_MulOp : NN_BinaryOp<"mul", [Commutative]> {
  let summary = "a * b";
  let description = [{
    C1: shapes broadcast like NumPy's; '?' fits '?' and 1. C2: element types are equal. C3: the element type is not i1.

    ```mlir
    %y = nn.mul %a, %b : tensor<?x4xf32>, tensor<4xf32>
    ```
  }];
}
def NN_DivOp : NN_BinaryOp<"div"> {
  let summary = "a / b";
  let description = [{
    Integers round towards zero; dividing an integer by zero is unspecified.

    C1: shapes broadcast like NumPy's; '?' fits '?' and 1. C2: element types are equal. C3: the element type is not i1.

    ```mlir
    %y = nn.div %a, %b : tensor<?x4xf32>, tensor<4xf32>
    ```
  }];
}
def NN_MaximumOp : NN_BinaryOp<"maximum", [Commutative]> {
  let summary = "the larger of a and b";
  let description = [{
    NaN if one is NaN. Where they are equal, the gradients of both add up to the incoming one.

    C1: shapes broadcast like NumPy's; '?' fits '?' and 1. C2: element types are equal. C3: the element type is not i1.

    ```mlir
    %y = nn.maximum %a, %b : tensor<?x4xf32>, tensor<4xf32>
    ```
  }];
}
def NN_MinimumOp : NN_BinaryOp<"minimum", [Commutative]> {
  let summary = "the smaller of a and b";
  let description = [{
    NaN if one is NaN. Where they are equal, the gradients of both add up to the incoming one.

    C1: shapes broadcast like NumPy's; '?' fits '?' and 1. C2: element types are equal. C3: the element type is not i1.

    ```mlir
    %y = nn.minimum %a, %b : tensor<?x4xf32>, tensor<4xf32>
    ```
  }];
}
def NN_PowOp : NN_BinaryOp<"pow"> {
  let summary = "a to the b";
  let description = [{
    C1: shapes broadcast like NumPy's; '?' fits '?' and 1. C2: element types are equal. C3: the element type is not i1.

    ```mlir
    %y = nn.pow %a, %b : tensor<?x4xf32>, tensor<4xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$a, NN_FloatTensor:$b);
  let results = (outs NN_FloatTensor:$y);
}

def NN_CompareOp : NN_ElementwiseOp<"compare"> {
  let summary = "elementwise comparison";
  let description = [{
    eq, ne, lt, le, gt or ge; yields i1. Comparisons with NaN are false but for ne.

    C1: shapes broadcast like NumPy's; '?' fits '?' and 1. C2: element types are equal.

    ```mlir
    %y = nn.compare gt %a, %b : tensor<?x4xf32>, tensor<4xf32>
    ```
  }];
  let arguments = (ins NN_ComparePredicate:$predicate, NN_Tensor:$a, NN_Tensor:$b);
  let results = (outs NN_BoolTensor:$y);
  // nn.compare gt %a, %b : tensor<4xf32>, tensor<4xf32>
  let assemblyFormat = "$predicate $a `,` $b attr-dict `:` type($a) `,` type($b)";
}
def NN_WhereOp : NN_ElementwiseOp<"where", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "a where the condition holds, else b";
  let description = [{
    A select: what is not chosen has no influence, NaN and inf included, and gets no gradient.

    C1: shapes broadcast like NumPy's. C2: the element types of a and b are equal.

    ```mlir
    %y = nn.where %c, %a, %b : tensor<?x4xi1>, tensor<?x4xf32>, tensor<f32>
    ```
  }];
  let arguments = (ins NN_BoolTensor:$condition, NN_Tensor:$a, NN_Tensor:$b);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$condition `,` $a `,` $b attr-dict `:` type($condition) `,` type($a) `,` type($b)";
}
/// Ops that round otherwise than to nearest even with overflow to infinity.
defvar NN_roundsItself = [{
  ::llvm::LogicalResult evaluateRounded(::llvm::ArrayRef<::descent::reference::Tensor> operands,
                                        ::llvm::SmallVectorImpl<::descent::reference::Tensor> &results);
}];

def NN_CastOp : NN_ElementwiseOp<"cast", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "converts the element type";
  let description = [{
    Rounds to nearest even; floats to integers round towards zero and are unspecified out of range; i1 is 0 or 1, and anything but 0 becomes true.

    C1: `to` is f32, bf16, f16, i32, i64 or i1.

    ```mlir
    %y = nn.cast %x to f32 : tensor<?x4xi32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x, TypeAttr:$to);
  let results = (outs NN_Tensor:$y);
  // nn.cast %x to f32 : tensor<4xi32>
  let assemblyFormat = "$x `to` $to attr-dict `:` type($x)";
  let extraClassDeclaration = NN_roundsItself;
}
def NN_RoundTf32Op : NN_UnaryOp<"round_tf32"> {
  let summary = "x rounded to 10 explicit mantissa bits, the precision of TF32";
  let description = [{
    To nearest, ties to even; exponent range as f32, infinities and NaN as they are. The gradient passes through. Numbers as in "NVIDIA A100 Tensor Core GPU
    Architecture", 2020, TF32.

    C1: the element type is f32.

    ```mlir
    %y = nn.round_tf32 %x : tensor<?x4xf32>
    ```
  }];
  let arguments = (ins NN_F32Tensor:$x);
  let results = (outs NN_F32Tensor:$y);
  let extraClassDeclaration = NN_roundsItself;
}
def NN_RoundStochasticallyOp : NN_ElementwiseOp<"round_stochastically"> {
  let summary = "x rounded to bf16, up with the probability of its distance from the value below";
  let description = [{
    u is uniform in [0, 1) (nn.random). floor(65536 u) is added to the 16 low bits of x's pattern, which are then cut off: the expected value is x, so that
    updates smaller than half a unit in the last place are not lost. Infinities and NaN stay. Gupta et al., "Deep Learning with Limited Numerical
    Precision", ICML 2015.

    C1: shapes broadcast.

    ```mlir
    %y = nn.round_stochastically %x, %u to bf16 : tensor<?x4xf32>, tensor<?x4xf32>
    ```
  }];
  let arguments = (ins NN_F32Tensor:$x, NN_F32Tensor:$u, TypeAttr:$to);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$x `,` $u `to` $to attr-dict `:` type($x) `,` type($u)";
  let extraClassDeclaration = NN_roundsItself;
}
def NN_IotaOp : NN_ComputeOp<"iota", [DeclareOpInterfaceMethods<LinalgLowerable, ["lowerToLinalg"]>, DeclareOpInterfaceMethods<CostOp, ["getFlops"]>]> {
  let summary = "each element is its own index along an axis";
  let description = [{
    C1: sizes are positive. C2: the axis is one of the shape's. C3: the type is not i1.

    ```mlir
    %y = nn.iota [4, 8] axis 1 i32
    ```
  }];
  let arguments = (ins DenseI64ArrayAttr:$shape, I64Attr:$axis, TypeAttr:$type);
  let results = (outs NN_Tensor:$y);
  // nn.iota [4, 8] axis 1 i32
  let assemblyFormat = "$shape `axis` $axis $type attr-dict";
}
def NN_RandomOp : NN_ComputeOp<"random", [DeclareOpInterfaceMethods<LinalgLowerable, ["lowerToLinalg"]>, DeclareOpInterfaceMethods<CostOp, ["getFlops"]>]> {
  let summary = "uniform [0, 1) values, Philox 4x32-10 with key rng[0..1] and counter (element, id, rng[2], rng[3]), word 0";
  let description = [{
    Yields f32. The counter is the element's place in row-major order, so a mask depends on nothing but the seed, the step and the id.

    C1: sizes are positive. C2: the id is not negative.

    ```mlir
    %y = nn.random %rng [4, 8] id 0
    ```
  }];
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
  let summary = "the same elements in another shape";
  let description = [{
    Row-major order is kept. At most one size may be -1: it takes what is left.

    C1: sizes are positive, one at most -1. C2: with the batch '?', the leading size is -1 and no other. C3: the numbers of elements agree.

    ```mlir
    %y = nn.reshape %x [-1, 64] : tensor<?x8x8xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$shape);
  let results = (outs NN_Tensor:$y);
  // nn.reshape %x [-1, 64] : tensor<?x8x8xf32>     (at most one -1; it takes what is left, or the batch)
  let assemblyFormat = "$x $shape attr-dict `:` type($x)";
  let hasFolder = 1;
}
def NN_TransposeOp : NN_ShapeOp<"transpose"> {
  let summary = "reorders axes";
  let description = [{
    Axis i of the result is axis permutation[i] of the operand.

    C1: a permutation of the operand's axes.

    ```mlir
    %y = nn.transpose %x [0, 2, 1] : tensor<?x6x4xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$permutation);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$x $permutation attr-dict `:` type($x)";
  let hasFolder = 1;
}
def NN_BroadcastOp : NN_ShapeOp<"broadcast"> {
  let summary = "NumPy broadcast to a shape";
  let description = [{
    -1 keeps the operand's size, the batch included.

    C1: no fewer axes than the operand. C2: aligned at the right, sizes are equal, or the operand's is 1.

    ```mlir
    %y = nn.broadcast %x [2, 6, 5] : tensor<6x1xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$shape);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$x $shape attr-dict `:` type($x)";
}
def NN_SliceOp : NN_ShapeOp<"slice"> {
  let summary = "elements start, start + stride, ... below limit on each axis; limit -1 is the axis's size";
  let description = [{
    C1: three numbers an axis. C2: 0 <= start < limit <= size, stride >= 1. C3: the batch '?' is taken whole.

    ```mlir
    %y = nn.slice %x from [0, 1] to [-1, 6] by [1, 2] : tensor<?x6xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$limits, DenseI64ArrayAttr:$strides);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$x `from` $starts `to` $limits `by` $strides attr-dict `:` type($x)";
}
def NN_PadOp : NN_ShapeOp<"pad"> {
  let summary = "zeros around and between the elements: the transpose of nn.slice";
  let description = [{
    An axis of size n becomes low + n + (n - 1) interior + high.

    C1: three numbers an axis. C2: none negative. C3: nothing around the batch '?'.

    ```mlir
    %y = nn.pad %x low [0, 1] high [0, 0] interior [0, 1] : tensor<?x6xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high, DenseI64ArrayAttr:$interior);
  let results = (outs NN_Tensor:$y);
  let assemblyFormat = "$x `low` $low `high` $high `interior` $interior attr-dict `:` type($x)";
}
def NN_ConcatOp : NN_ShapeOp<"concat"> {
  let summary = "joins tensors along an axis";
  let description = [{
    C1: one input at least. C2: the axis is in [-rank, rank). C3: element types, and all other sizes, are equal. C4: not along the batch '?'.

    ```mlir
    %y = nn.concat %a, %b axis -1 : tensor<?x4xf32>, tensor<?x5xf32>
    ```
  }];
  let arguments = (ins Variadic<NN_Tensor>:$inputs, I64Attr:$axis);
  let results = (outs NN_Tensor:$y);
  // nn.concat %a, %b axis 1 : tensor<..>, tensor<..>
  let assemblyFormat = "$inputs `axis` $axis attr-dict `:` type($inputs)";
}
def NN_SplitOp : NN_ShapeOp<"split"> {
  let summary = "equal parts along an axis";
  let description = [{
    C1: the axis is in [-rank, rank). C2: the sections divide its size. C3: it is not the batch '?'.

    ```mlir
    %q, %k, %v = nn.split %x axis -1 sections 3 : tensor<?x6x24xf32>
    ```
  }];
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
def NN_ReduceSumOp : NN_ReduceOp<"reduce_sum"> {
  let summary = "sum over axes";
  let description = [{
    Added in f32 or wider, in a fixed order. `keep` leaves the axes with size 1.

    C1: axes are in [-rank, rank), each once. C2: none is the batch '?'.

    ```mlir
    %y = nn.reduce_sum %x [-1] keep : tensor<?x6x4xf32>
    ```
  }];
}
def NN_ReduceMeanOp : NN_ReduceOp<"reduce_mean"> {
  let summary = "mean over axes";
  let description = [{
    Added in f32 or wider, in a fixed order. `keep` leaves the axes with size 1.

    C1: axes are in [-rank, rank), each once. C2: none is the batch '?'.

    ```mlir
    %y = nn.reduce_mean %x [-1] keep : tensor<?x6x4xf32>
    ```
  }];
}
def NN_ReduceMaxOp : NN_ReduceOp<"reduce_max"> {
  let summary = "maximum over axes";
  let description = [{
    NaN if one is NaN. The gradient goes to the maxima in parts that add up to the incoming one. `keep` leaves the axes with size 1.

    C1: axes are in [-rank, rank), each once. C2: none is the batch '?'.

    ```mlir
    %y = nn.reduce_max %x [-1] keep : tensor<?x6x4xf32>
    ```
  }];
}

class NN_RowOp<string mnemonic, list<Trait> traits = []> : NN_ComputeOp<mnemonic, !listconcat([
    DeclareOpInterfaceMethods<DifferentiableOp>, DeclareOpInterfaceMethods<DecomposableOp>,
    DeclareOpInterfaceMethods<CostOp, ["getFlops"]>], traits)>;

def NN_SoftmaxOp : NN_RowOp<"softmax"> {
  let summary = "exp(x) over its sum along an axis";
  let description = [{
    Computed from x - max(x). The result has the operand's type.

    C1: the axis is in [-rank, rank). C2: it is not the batch '?'.

    ```mlir
    %y = nn.softmax %x axis -1 : tensor<?x6x4xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, I64Attr:$axis);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$x `axis` $axis attr-dict `:` type($x)";
}
def NN_LogSoftmaxOp : NN_RowOp<"log_softmax"> {
  let summary = "x minus the log of the sum of exp(x) along an axis";
  let description = [{
    Computed from x - max(x). The result has the operand's type.

    C1: the axis is in [-rank, rank). C2: it is not the batch '?'.

    ```mlir
    %y = nn.log_softmax %x axis -1 : tensor<?x6x4xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, I64Attr:$axis);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$x `axis` $axis attr-dict `:` type($x)";
}
def NN_LayerNormOp : NN_RowOp<"layer_norm"> {
  let summary = "normalises the last axis, then gain and bias";
  let description = [{
    (x - mean) / sqrt(variance + epsilon) * gain + bias (Ba et al., 2016), with the two-pass variance over n, not n - 1.

    C1: the last axis has a known size. C2: element types are equal. C3: gain and bias have one element for each of the last axis. C4: epsilon is finite and
    not negative.

    ```mlir
    %y = nn.layer_norm %x, %gain, %bias {epsilon = 1.0e-5} : tensor<?x6x8xf32>, tensor<8xf32>, tensor<8xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$gain, NN_FloatTensor:$bias, DefaultValuedAttr<F64Attr, "1e-5">:$epsilon);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$x `,` $gain `,` $bias attr-dict `:` type($x) `,` type($gain) `,` type($bias)";
  let hasVerifier = 1;
}
def NN_DropoutOp : NN_RowOp<"dropout", [RandomizedOp]> {
  let summary = "zeroes elements with probability `rate`, scales the rest by 1 / (1 - rate); identity in evaluation";
  let description = [{
    attach-row-weights adds rng and id; ids are unique, so that no two ops share a mask (see nn.random).

    C1: the rate is in [0, 1). C2: rng and id come together. C3: the id is not negative.

    ```mlir
    %y = nn.dropout %x {rate = 0.1} : tensor<?x6x8xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, Optional<NN_RngTensor>:$rng, F64Attr:$rate, OptionalAttr<I64Attr>:$id);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$x (`rng` $rng^)? attr-dict `:` type($x)";
  let hasVerifier = 1;
}
def NN_CrossEntropyOp : NN_RowOp<"cross_entropy", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<RowWeightedOp, ["getRows", "getExpectedWeight"]>,
                                                   DeclareOpInterfaceMethods<IndexingOp>]> {
  let summary = "softmax cross entropy over the last axis: (sum, weight)";
  let description = [{
    sum = row weight * class weight[target] * -log softmax(logits)[target], added over all targets but those equal to ignore_index, which give zero loss, weight and
    gradient; weight is the sum of row weight * class weight[target] over the same. With label smoothing e over C classes the target's share is 1 - e, and e / C of
    the class-weighted -log softmax of every class is added. In f32, from log-softmax, whatever the logits' type.

    C1: logits are [batch, ..., classes]. C2: class_weights is [classes]. C3: targets have the shape of logits without classes. C4: row_weights is [batch].
    C5: label_smoothing is in [0, 1].

    ```mlir
    %s, %n = nn.cross_entropy %x, %t {ignore_index = -1 : i64} : tensor<?x6x11xf32>, tensor<?x6xi32>
    ```
  }];
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
def NN_MseOp : NN_RowOp<"mse", [DeclareOpInterfaceMethods<RowWeightedOp, ["getRows", "getExpectedWeight"]>]> {
  let summary = "squared error: (sum over elements, number of elements)";
  let description = [{
    sum = row weight * (prediction - target)^2 over all elements, weight = row weight over all elements; in f32.

    C1: predictions are [batch, ...]. C2: element types, and C3: shapes, are equal. C4: row_weights is [batch].

    ```mlir
    %s, %n = nn.mse %y, %t : tensor<?x3xf32>, tensor<?x3xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$predictions, NN_FloatTensor:$targets, Optional<NN_RowWeights>:$row_weights);
  let results = (outs NN_Scalar:$sum, NN_Scalar:$weight);
  let assemblyFormat = [{
    $predictions `,` $targets (`row_weights` $row_weights^ `:` type($row_weights))? attr-dict `:` type($predictions) `,` type($targets)
  }];
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

def NN_MatmulOp : NN_ComputeOp<"matmul", [AccumulatingOp, DeclareOpInterfaceMethods<DifferentiableOp>, DeclareOpInterfaceMethods<CostOp, ["getFlops"]>,
                                          DeclareOpInterfaceMethods<ContractionOp>, DeclareOpInterfaceMethods<FusibleOp, ["getKernelKind"]>]> {
  let summary = "matrix product over the last two axes, leading axes are a batch; B of rank 2 serves every batch";
  let description = [{
    Accumulates in f32; the sum is rounded to `result_type`, by default the operands' type. transpose_a and transpose_b say that the last two axes are stored
    the other way round.

    C1: two axes at least. C2: element types are equal, or both are f8; f8 operands need a result_type. C3: inner dimensions are equal. C4: they are not the batch '?'. C5: leading axes are equal, unless b has
    rank 2. C6: no transpose_a where a has more than two axes and b two.

    ```mlir
    %y = nn.matmul %x, %w {transpose_b} : tensor<?x6x8xf32>, tensor<11x8xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$a, NN_FloatTensor:$b, UnitAttr:$transpose_a, UnitAttr:$transpose_b, OptionalAttr<TypeAttr>:$result_type);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a) `,` type($b)";
}

/// Images are [N, H, W, C], weights [KH, KW, IC, OC]; padding is [top, bottom, left, right].
class NN_ConvOp<string mnemonic, list<Trait> traits = []> : NN_ComputeOp<mnemonic, !listconcat([AccumulatingOp,
    DeclareOpInterfaceMethods<CostOp, ["getFlops"]>, DeclareOpInterfaceMethods<FusibleOp, ["getKernelKind"]>], traits)>;
def NN_Conv2DOp : NN_ConvOp<"conv2d", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "convolution of images in NHWC";
  let description = [{
    Cross-correlation, accumulated in f32 and rounded to `result_type` (see nn.matmul); out = (in + padding - dilation (kernel - 1) - 1) / stride + 1, rounded down.

    C1: two strides and dilations of at least 1, four paddings of at least 0. C2: element types are equal. C3: [N, H, W, IC] and [KH, KW, IC, OC]. C4: a window fits.

    ```mlir
    %y = nn.conv2d %x, %w strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] : tensor<?x8x8x3xf32>, tensor<3x3x3x5xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$w, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilations,
                       OptionalAttr<TypeAttr>:$result_type);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$x `,` $w `strides` $strides `padding` $padding `dilations` $dilations attr-dict `:` type($x) `,` type($w)";
}
def NN_Conv2DGradInputOp : NN_ConvOp<"conv2d_grad_input", [NN_GradientOnly]> {
  let summary = "gradient of nn.conv2d with respect to the images";
  let description = [{
    C1: two strides and dilations of at least 1, four paddings of at least 0. C2: element types are equal. C3: [N, H, W, IC] and [KH, KW, IC, OC]. C4: a window fits. C5: dy has the shape of the result.

    ```mlir
    %dx = nn.conv2d_grad_input %dy, %w strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] input [2, 8, 8, 3] : tensor<2x8x8x5xf32>, tensor<3x3x3x5xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$dy, NN_FloatTensor:$w, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$input_shape, OptionalAttr<TypeAttr>:$result_type);
  let results = (outs NN_FloatTensor:$dx);
  let assemblyFormat = "$dy `,` $w `strides` $strides `padding` $padding `dilations` $dilations `input` $input_shape attr-dict `:` type($dy) `,` type($w)";
}
def NN_Conv2DGradWeightOp : NN_ConvOp<"conv2d_grad_weight", [NN_GradientOnly]> {
  let summary = "gradient of nn.conv2d with respect to the weights";
  let description = [{
    C1: two strides and dilations of at least 1, four paddings of at least 0. C2: element types are equal. C3: [N, H, W, IC] and [KH, KW, IC, OC]. C4: a window fits. C5: dy has the shape of the result.

    ```mlir
    %dw = nn.conv2d_grad_weight %x, %dy strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] kernel [3, 3, 3, 5] : tensor<2x8x8x3xf32>, tensor<2x8x8x5xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$dy, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$kernel_shape, OptionalAttr<TypeAttr>:$result_type);
  let results = (outs NN_FloatTensor:$dw);
  let assemblyFormat = "$x `,` $dy `strides` $strides `padding` $padding `dilations` $dilations `kernel` $kernel_shape attr-dict `:` type($x) `,` type($dy)";
}

/// Ops that are always a kernel of their own.
class NN_OpaqueOp<string mnemonic, list<Trait> traits = []> : NN_ComputeOp<mnemonic, !listconcat([
    DeclareOpInterfaceMethods<CostOp, ["getFlops"]>, DeclareOpInterfaceMethods<FusibleOp, ["getKernelKind"]>], traits)>;

def NN_MaxPool2DOp : NN_OpaqueOp<"max_pool2d", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "maximum of each window";
  let description = [{
    Padding never wins. NaN if one is NaN.

    C1: positive kernel and strides, no negative padding. C2: images are [N, H, W, C]. C3: padding is smaller than the kernel, so that no window is empty. C4: a
    window fits.

    ```mlir
    %y = nn.max_pool2d %x kernel [2, 2] strides [2, 2] padding [0, 0, 0, 0] : tensor<?x8x8x3xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$padding);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$x `kernel` $kernel `strides` $strides `padding` $padding attr-dict `:` type($x)";
}
def NN_MaxPool2DGradOp : NN_OpaqueOp<"max_pool2d_grad", [NN_GradientOnly]> {
  let summary = "gradient goes to the first maximum of each window";
  let description = [{
    C1: positive kernel and strides, no negative padding. C2: images are [N, H, W, C]. C3: padding is smaller than the kernel, so that no window is empty. C4: a
    window fits. C5: dy has the shape of the result.

    ```mlir
    %dx = nn.max_pool2d_grad %dy, %x kernel [2, 2] strides [2, 2] padding [0, 0, 0, 0] : tensor<2x4x4x3xf32>, tensor<2x8x8x3xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$dy, NN_FloatTensor:$x, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$padding);
  let results = (outs NN_FloatTensor:$dx);
  let assemblyFormat = "$dy `,` $x `kernel` $kernel `strides` $strides `padding` $padding attr-dict `:` type($dy) `,` type($x)";
}

def NN_EmbeddingOp : NN_OpaqueOp<"embedding", [DeclareOpInterfaceMethods<DifferentiableOp>, DeclareOpInterfaceMethods<IndexingOp>]> {
  let summary = "rows of a table by index; a negative index counts from the end";
  let description = [{
    An index outside of [-rows, rows) is an error found at the model's input (see bound-inputs).

    C1: the table is [rows, width].

    ```mlir
    %y = nn.embedding %i, %table : tensor<?x6xi32>, tensor<11x8xf32>
    ```
  }];
  let arguments = (ins NN_IndexTensor:$indices, NN_FloatTensor:$table);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$indices `,` $table attr-dict `:` type($indices) `,` type($table)";
}
def NN_EmbeddingGradOp : NN_OpaqueOp<"embedding_grad", [AccumulatingOp, NN_GradientOnly]> {
  let summary = "adds dy's rows into a table of zeros, in the order of the indices, in f32";
  let description = [{
    Repeated indices add; rows without an index are exactly 0. Sums are rounded to `result_type`, by default dy's type.

    C1: dy has one row for each index. C2: rows is positive.

    ```mlir
    %dt = nn.embedding_grad %dy, %i rows 11 : tensor<2x6x8xf32>, tensor<2x6xi32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$dy, NN_IndexTensor:$indices, I64Attr:$rows, OptionalAttr<TypeAttr>:$result_type);
  let results = (outs NN_FloatTensor:$dtable);
  let assemblyFormat = "$dy `,` $indices `rows` $rows attr-dict `:` type($dy) `,` type($indices)";
}

/// q, k, v and o are [B, T, H * D] with the heads side by side.
def NN_AttentionOp : NN_OpaqueOp<"attention", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "softmax(q k^T / sqrt(D)) v per head; `causal` masks keys behind the query";
  let description = [{
    Vaswani et al., 2017. With save_logsumexp also yields log(sum of exp(scores)), [B, H, T] in f32, from which the gradient rebuilds the softmax; no T x T matrix
    is stored.

    C1: q is [B, T, heads * D]. C2: q, k, v have one type. C3: heads divides the last axis.

    ```mlir
    %o = nn.attention %q, %k, %v heads 4 causal : tensor<?x6x8xf32>, tensor<?x6x8xf32>, tensor<?x6x8xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$q, NN_FloatTensor:$k, NN_FloatTensor:$v, I64Attr:$heads, UnitAttr:$causal, UnitAttr:$save_logsumexp);
  let results = (outs NN_FloatTensor:$o, Variadic<NN_FloatTensor>:$logsumexp);
  // %o = nn.attention %q, %k, %v heads 4 causal : tensor<..>      with save_logsumexp also [B, H, T]
  let assemblyFormat = "$q `,` $k `,` $v `heads` $heads (`causal` $causal^)? (`save_logsumexp` $save_logsumexp^)? attr-dict `:` type($q) `,` type($k) `,` type($v)";
}
def NN_AttentionGradOp : NN_OpaqueOp<"attention_grad", [NN_GradientOnly]> {
  let summary = "gradients of nn.attention with respect to q, k and v";
  let description = [{
    C1..C3 as nn.attention, for dout and o too. C4: logsumexp is [B, H, T] in f32.

    ```mlir
    %dq, %dk, %dv = nn.attention_grad %do, %q, %k, %v, %o, %l heads 2 causal : tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x2x6xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$dout, NN_FloatTensor:$q, NN_FloatTensor:$k, NN_FloatTensor:$v, NN_FloatTensor:$o, NN_FloatTensor:$logsumexp,
                       I64Attr:$heads, UnitAttr:$causal);
  let results = (outs NN_FloatTensor:$dq, NN_FloatTensor:$dk, NN_FloatTensor:$dv);
  let assemblyFormat = [{ $dout `,` $q `,` $k `,` $v `,` $o `,` $logsumexp `heads` $heads (`causal` $causal^)? attr-dict `:`
    type($dout) `,` type($q) `,` type($k) `,` type($v) `,` type($o) `,` type($logsumexp) }];
}

#endif // DESCENT_DIALECTS_NN_NNOPS
