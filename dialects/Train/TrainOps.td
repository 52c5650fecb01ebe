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
    `train.schedule`, `train.clip_norm` (f64), `train.groups` (array of #train.group), and for mixed precision `train.compute` (the type of narrow ops),
    `train.overrides` (array of #train.override), `train.loss_scale` (#train.dynamic_scale or #train.static_scale), `train.quantize`
    (#train.quantize), `train.storage` (#train.storage).
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

def Train_DynamicScaleAttr : Train_Attr<"DynamicScale", "dynamic_scale"> {
  let summary = "a loss scale that grows while gradients stay finite";
  let description = [{
    Starts at `initial`; after `interval` committed steps in a row it is multiplied by `growth` (unless that overflows f32), after a step that was skipped by
    `backoff`, never below `floor`. Micikevicius et al., "Mixed Precision Training", ICLR 2018; defaults of torch.amp.GradScaler.
  }];
  let parameters = (ins NN_Double:$initial, NN_Double:$growth, NN_Double:$backoff, "int64_t":$interval, NN_Double:$floor);
}
def Train_StaticScaleAttr : Train_Attr<"StaticScale", "static_scale"> {
  let summary = "a loss scale that does not change";
  let parameters = (ins NN_Double:$scale);
}
def Train_OverrideAttr : Train_Attr<"Override", "override"> {
  let summary = "ops that run in a type other than their class says";
  let description = [{
    An op matches if its kind (`matmul`) is `op` and its name matches `match`; an empty string matches all. The names of an op are its instance's
    path (`h.0.attn`), that with its kind (`h.0.attn.matmul`), and those of the parameters among its operands. The last match wins.
  }];
  let parameters = (ins StringRefParameter<>:$op, StringRefParameter<>:$match, "::mlir::Type":$type);
}
def Train_QuantizeAttr : Train_Attr<"Quantize", "quantize"> {
  let summary = "what the operands of products are rounded to right before them";
  let description = [{
    `format` is "tf32" or "fp8": E4M3 in the forward pass, E5M2 for gradients (Micikevicius et al., arXiv:2209.05433), each tensor with a scale of its own:
    2^-margin * largest / amax, where amax is the largest magnitude of the tensor itself (`scaling` "current") or over its last `history` steps ("delayed").
  }];
  let parameters = (ins StringRefParameter<>:$format, StringRefParameter<>:$scaling, "int64_t":$history, "int64_t":$margin);
}
def Train_StorageAttr : Train_Attr<"Storage", "storage"> {
  let summary = "the types that parameters and optimizer state are kept in";
  let description = [{
    With `master` parameters are kept in f32, else in bf16. `state` is the type of the optimizer's per-parameter states. What is kept in bf16 is rounded
    stochastically or to nearest.
  }];
  let parameters = (ins "bool":$master, "::mlir::Type":$state, "bool":$stochastic);
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

def Train_WorkingCopyOp : Train_Op<"working_copy", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "a parameter rounded to the type it is computed with";
  let description = [{
    Written by the update together with the parameter, read by the products, and never saved: @refresh computes it from the parameter. It has the
    parameter's shape.

    ```mlir
    train.working_copy @wte.bf16 of @wte : tensor<65x128xbf16>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$parameter, TypeAttr:$type);
  let assemblyFormat = "$sym_name `of` $parameter `:` $type attr-dict";
  let extraClassDeclaration = [{ ::mlir::RankedTensorType getTensorType() { return ::llvm::cast<::mlir::RankedTensorType>(getType()); } }];
}

def Train_SlabOp : Train_Op<"slab", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "several tensors of one kind and type, contiguous, so that one flat kernel updates them";
  let description = [{
    `members` are symbols of parameters, states or working copies, or for gradients the parameters they belong to. Member i starts at element offsets[i], a
    multiple of 32; what lies between members is zero and stays zero under every optimizer. The type is [rows, 1024].

    ```mlir
    train.slab @decay.m "optimizer" [@w.m, @v.m] at [0, 32] : tensor<1x1024xf32>
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
  let summary = "named results: loss_sum, loss_weight, grad_norm, learning_rate, committed, unscale, loss_scale, predictions";
  let description = [{
    As many names as values (C1). The runtime finds results by these names.

    ```mlir
    train.return ["loss_sum", "loss_weight"] %sum, %weight : tensor<f32>, tensor<f32>
    ```
  }];
  let arguments = (ins StrArrayAttr:$names, Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "$names attr-dict ($values^ `:` type($values))?";
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

def Train_SeedOp : Train_Op<"seed", [Pure]> {
  let summary = "the gradient of the sum of losses with respect to itself: where the backward pass starts";
  let description = [{
    Left by differentiate, replaced by insert-loss-scaling: by one, or by the loss scale.

    ```mlir
    %seed = train.seed
    ```
  }];
  let results = (outs Train_Scalar:$seed);
  let assemblyFormat = "attr-dict";
}

def Train_ScaleLossOp : Train_Op<"scale_loss", [Pure]> {
  let summary = "scale / expected: the seed of the backward pass with loss scaling";
  let description = [{
    `expected` is the weight of a full batch rounded up to a power of two, so that dividing by it rounds nothing and narrow gradients have the range of a mean's.

    ```mlir
    %seed = train.scale_loss %scale expected 256.0
    ```
  }];
  let arguments = (ins Train_Scalar:$scale, F64Attr:$expected);
  let results = (outs Train_Scalar:$seed);
  let assemblyFormat = "$scale `expected` $expected attr-dict";
}

def Train_UnscaleOp : Train_Op<"unscale", [Pure, AllTypesMatch<["gradient", "result"]>]> {
  let summary = "a gradient times expected / scale: the gradient of the sum of losses again";
  let description = [{
    In f32, once for each gradient, before anything looks at it. The gradient in memory stays scaled: lower-updates multiplies where it is read.

    ```mlir
    %u = train.unscale %g by %factor : tensor<65x128xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$gradient, Train_Scalar:$factor);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$gradient `by` $factor attr-dict `:` type($gradient)";
}

def Train_AllFiniteOp : Train_Op<"all_finite", [Pure]> {
  let summary = "whether no element of any operand is infinite or NaN";
  let description = [{
    ```mlir
    %ok = train.all_finite %u0, %u1 : (tensor<5x3xf32>, tensor<2xf32>) -> tensor<i1>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let results = (outs AnyRankedTensor:$finite);
  let assemblyFormat = "$values attr-dict `:` functional-type($values, $finite)";
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
  let summary = "the only place where state changes: all of it, or what a skipped step changes when the condition is false";
  let description = [{
    The condition is tensor<i1> (C1); the regions hold train.update and train.write only, the one after `else` no train.update (C2), and end without a
    terminator. When the condition is false every parameter and state keeps its bits but those that `else` writes: the loss scale and its counters.

    ```mlir
    train.commit if %ok : tensor<i1> {
      train.update "decay" [@wte] with (%g) scale %scale rate %rate count %t by #train.adam<...> decay 1.0e-01 : tensor<65x128xf32>
      train.write @updates, %t1 : tensor<i64>
    } else {
      train.write @loss_scale, %half : tensor<f32>
    }
    ```
  }];
  let arguments = (ins AnyRankedTensor:$condition);
  let regions = (region SizedRegion<1>:$body, AnyRegion:$skipped);
  let assemblyFormat = "`if` $condition attr-dict `:` type($condition) $body (`else` $skipped^)?";
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
