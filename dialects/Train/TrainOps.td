//===- TrainOps.td - The whole training step ------------------------------===//
//
// Tensor programs over named parameters and state. See Rationale.md for what is refused here and why.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_DIALECTS_TRAIN_TRAINOPS
#define DESCENT_DIALECTS_TRAIN_TRAINOPS

include "dialects/NN/DoubleParameter.td"
include "dialects/Train/TrainInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Train_Dialect : Dialect {
  let name = "train";
  let cppNamespace = "::descent::train";
  let summary = "The training step: parameters, state, gradients, update.";
  let description = [{
    What the recipe asks for stands on the builtin.module as attributes, so that each pass can be run alone on printed IR: `train.optimizer`,
    `train.schedule`, `train.clip_norm` (f64), `train.groups` (array of #train.group).
  }];
  let useDefaultAttributePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class Train_Attr<string name, string attrMnemonic, list<Trait> traits = []> : AttrDef<Train_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
  let assemblyFormat = "`<` struct(params) `>`";
}

def Train_SgdAttr : Train_Attr<"Sgd", "sgd", [DeclareAttrInterfaceMethods<OptimizerAttrInterface>]> {
  let summary = "stochastic gradient descent, optionally with (Nesterov) momentum";
  let description = [{
    g += decay * p; with momentum b = momentum * b + g (b starts at zero, no dampening) and g = b, or g + momentum * b for Nesterov; p -= rate * g.
    Sutskever et al., "On the importance of initialization and momentum in deep learning", ICML 2013, in the form PyTorch documents.
  }];
  let parameters = (ins NN_Double:$momentum, "bool":$nesterov);
}
def Train_AdamAttr : Train_Attr<"Adam", "adam", [DeclareAttrInterfaceMethods<OptimizerAttrInterface>]> {
  let summary = "Adam, or AdamW when decoupled";
  let description = [{
    m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; p -= rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon). Decay adds
    decay * p to g, or when decoupled multiplies p by 1 - rate * decay first. Kingma and Ba, arXiv:1412.6980; Loshchilov and Hutter, arXiv:1711.05101.
  }];
  let parameters = (ins NN_Double:$beta1, NN_Double:$beta2, NN_Double:$epsilon, "bool":$decoupled);
}

def Train_ConstantScheduleAttr : Train_Attr<"ConstantSchedule", "constant", [DeclareAttrInterfaceMethods<ScheduleAttrInterface>]> {
  let summary = "rate, after a linear warm-up over the first `warmup` updates (update s of them has rate * s / warmup)";
  let parameters = (ins NN_Double:$rate, "int64_t":$warmup);
}
def Train_LinearScheduleAttr : Train_Attr<"LinearSchedule", "linear", [DeclareAttrInterfaceMethods<ScheduleAttrInterface>]> {
  let summary = "warm-up, then a straight line from rate to min_rate at update `steps`";
  let parameters = (ins NN_Double:$rate, NN_Double:$min_rate, "int64_t":$warmup, "int64_t":$steps);
}
def Train_CosineScheduleAttr : Train_Attr<"CosineSchedule", "cosine", [DeclareAttrInterfaceMethods<ScheduleAttrInterface>]> {
  let summary = "warm-up, then half a cosine from rate to min_rate at update `steps`";
  let description = "Loshchilov and Hutter, arXiv:1608.03983, one period.";
  let parameters = (ins NN_Double:$rate, NN_Double:$min_rate, "int64_t":$warmup, "int64_t":$steps);
}

def Train_GroupAttr : Train_Attr<"Group", "group"> {
  let summary = "settings of the parameters whose names match a pattern; the last matching group wins";
  let description = "`*` matches any run of characters, `?` one. A negative weight_decay means: as the optimizer's default rule has it.";
  let parameters = (ins StringRefParameter<>:$match, NN_Double:$rate_scale, NN_Double:$weight_decay);
}

// Buildable, so that assembly need not spell `tensor<f32>`.
def Train_Scalar : Type<CPred<"$_self == ::mlir::RankedTensorType::get({}, ::mlir::Float32Type::get($_self.getContext()))">,
                        "tensor<f32>", "::mlir::TypedValue<::mlir::RankedTensorType>">,
                   BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getF32Type())">;

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

class Train_Op<string mnemonic, list<Trait> traits = []> : Op<Train_Dialect, mnemonic, traits>;

def Train_ParameterOp : Train_Op<"parameter", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "a parameter of the model, f32";
  let description = [{
    Identity is the symbol: two parameters with equal values are two. `init` is one of nn's initialisers. A frozen one has no gradient, no state and no group;
    `group`, `rate_scale` and `weight_decay` are written by insert-optimizer.

    ```mlir
    train.parameter @wte : tensor<65x128xf32> {init = #nn.normal<0.0, 0.02>, group = "decay"}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type, AnyAttr:$init, UnitAttr:$frozen, OptionalAttr<StrAttr>:$group,
                       DefaultValuedAttr<F64Attr, "1.0">:$rate_scale, DefaultValuedAttr<F64Attr, "0.0">:$weight_decay);
  let assemblyFormat = "$sym_name `:` $type attr-dict";
  let extraClassDeclaration = [{ ::mlir::RankedTensorType getTensorType() { return ::llvm::cast<::mlir::RankedTensorType>(getType()); } }];
}

def Train_StateOp : Train_Op<"state", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "a persistent value that is not a parameter: a moment, a counter";
  let description = [{
    Every element starts at `initial`. A state `of` a parameter has its type; checkpoints hold all of them by name.

    ```mlir
    train.state @wte.m of @wte : tensor<65x128xf32>
    train.state @updates : tensor<i64>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<FlatSymbolRefAttr>:$parameter, TypeAttr:$type,
                       DefaultValuedAttr<F64Attr, "0.0">:$initial);
  let assemblyFormat = "$sym_name (`of` $parameter^)? `:` $type attr-dict";
  let extraClassDeclaration = [{ ::mlir::RankedTensorType getTensorType() { return ::llvm::cast<::mlir::RankedTensorType>(getType()); } }];
}

def Train_SlabOp : Train_Op<"slab", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "several f32 tensors of one kind, contiguous, so that one flat kernel updates them";
  let description = [{
    `members` are symbols of parameters or states, or for gradients the parameters they belong to. Member i starts at element offsets[i], a
    multiple of 16; what lies between members is zero and stays zero under every optimizer. The type is [rows, 1024].

    ```mlir
    train.slab @decay.m "optimizer" [@w.m, @v.m] at [0, 16] : tensor<1x1024xf32>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$category, FlatSymbolRefArrayAttr:$members, DenseI64ArrayAttr:$offsets, TypeAttr:$type);
  let assemblyFormat = "$sym_name $category $members `at` $offsets `:` $type attr-dict";
  let extraClassDeclaration = [{ ::mlir::RankedTensorType getTensorType() { return ::llvm::cast<::mlir::RankedTensorType>(getType()); } }];
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

def Train_FuncOp : Train_Op<"func", [FunctionOpInterface, IsolatedFromAbove, SingleBlock, HasParent<"::mlir::ModuleOp">]> {
  let summary = "a tensor program over parameters and state: @step or @evaluate";
  let description = [{
    Arguments are the model's inputs, with the attributes they have there. One block that ends in train.return (C1), whose values have the types of the
    signature (C2).

    ```mlir
    train.func @step(%x: tensor<8x4xf32> {nn.name = "x", nn.role = "data"}) -> tensor<f32> { ... }
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
    ReturnOp getReturn();
  }];
}

def Train_ReturnOp : Train_Op<"return", [Pure, Terminator, HasParent<"FuncOp">]> {
  let summary = "named results: loss_sum, loss_weight, grad_norm, learning_rate, committed, predictions";
  let description = [{
    As many names as values (C1). The runtime finds results by these names.

    ```mlir
    train.return ["loss_sum", "loss_weight"] %sum, %weight : tensor<f32>, tensor<f32>
    ```
  }];
  let arguments = (ins StrArrayAttr:$names, Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "$names $values attr-dict `:` type($values)";
  let hasVerifier = 1;
}

def Train_ReadOp : Train_Op<"read", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the value of a parameter, state or slab before this step";
  let description = [{
    Reads see the value before the step wherever they stand, so they may be moved and merged. The symbol exists and has the type (C1).

    ```mlir
    %w = train.read @wte : tensor<65x128xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$symbol);
  let results = (outs AnyRankedTensor:$value);
  let assemblyFormat = "$symbol attr-dict `:` type($value)";
}

def Train_GradientOp : Train_Op<"gradient", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "this is the gradient of the sum of losses with respect to a parameter";
  let description = [{
    Left by differentiate, consumed by insert-optimizer. The gradient has the parameter's type (C1).

    ```mlir
    train.gradient @wte, %g : tensor<65x128xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$parameter, AnyRankedTensor:$gradient);
  let assemblyFormat = "$parameter `,` $gradient attr-dict `:` type($gradient)";
}

def Train_NormOp : Train_Op<"norm", [Pure]> {
  let summary = "Euclidean norm over all elements of all operands, each counted once";
  let description = [{
    In f32. lower-updates takes it over packed slabs, in fixed blocks of 1024 elements, so the order of the sum depends on nothing but the parameters.

    ```mlir
    %n = train.norm %g0, %g1 : (tensor<5x3xf32>, tensor<2xf32>) -> tensor<f32>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let results = (outs AnyRankedTensor:$norm);
  let assemblyFormat = "$values attr-dict `:` functional-type($values, $norm)";
}

def Train_CommitOp : Train_Op<"commit", [SingleBlock, NoTerminator]> {
  let summary = "the only place where state changes: all of it, or none when the condition is false";
  let description = [{
    The condition is tensor<i1> (C1); the region holds train.update and train.write only (C2) and ends without a terminator. When the condition is false every
    parameter and state keeps its bits.

    ```mlir
    train.commit if %ok : tensor<i1> {
      train.update "decay" [@wte] with (%g) scale %scale rate %rate count %t by #train.adam<...> decay 1.0e-01 : tensor<65x128xf32>
      train.write @updates, %t1 : tensor<i64>
    }
    ```
  }];
  let arguments = (ins AnyRankedTensor:$condition);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`if` $condition attr-dict `:` type($condition) $body";
  let hasRegionVerifier = 1;
}

def Train_UpdateOp : Train_Op<"update", [HasParent<"CommitOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one optimizer step of the parameters of a group";
  let description = [{
    Gradient i belongs to parameter i; each is multiplied by `scale` (one over the weight of the loss, times the clip factor) before the rule
    of `optimizer` applies. The states are those declared `of` the parameters.
  }];
  let arguments = (ins StrAttr:$group, FlatSymbolRefArrayAttr:$parameters, Variadic<AnyRankedTensor>:$gradients, Train_Scalar:$scale,
                       Train_Scalar:$rate, Train_Scalar:$count, AnyAttr:$optimizer, F64Attr:$weight_decay);
  let assemblyFormat = [{
    $group $parameters `with` ` ` `(` $gradients `)` `scale` $scale `rate` $rate `count` $count `by` $optimizer `decay` $weight_decay attr-dict `:`
    type($gradients)
  }];
  let hasVerifier = 1;
}

def Train_WriteOp : Train_Op<"write", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the value of a state or slab after this step";
  let description = [{
    Inside train.commit it is conditional. After lower-updates it stands at the end of @step and the condition is in the value. The symbol exists and has the
    type (C1).

    ```mlir
    train.write @updates, %t1 : tensor<i64>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$symbol, AnyRankedTensor:$value);
  let assemblyFormat = "$symbol `,` $value attr-dict `:` type($value)";
}

def Train_PackOp : Train_Op<"pack", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "tensors laid out as a slab: member i is operand i, the rest is zero";
  let description = [{
    The symbol is a train.slab of the result's type (C1) with as many members as operands (C2), of their types (C3). Nothing is copied: plan-memory places each
    operand in the slab.

    ```mlir
    %g = train.pack @decay.gradients(%g0, %g1) : (tensor<5x3xf32>, tensor<2xf32>) -> tensor<1x1024xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$slab, Variadic<AnyRankedTensor>:$members);
  let results = (outs AnyRankedTensor:$packed);
  let assemblyFormat = "$slab `(` $members `)` attr-dict `:` functional-type($members, $packed)";
}

#endif // DESCENT_DIALECTS_TRAIN_TRAINOPS
