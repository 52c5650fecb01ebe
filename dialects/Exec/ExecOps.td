//===- ExecOps.td - Kernels, launches, buffers ----------------------------===//
//
// The level goes through two forms. First, still on tensors: exec.fusion groups ops into what will be one kernel, exec.kernel is an outlined
// fusion, exec.launch calls it. Then, after plan-memory, on buffers: exec.program is an exact schedule of exec.run on exec.buffer.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_DIALECTS_EXEC_EXECOPS
#define DESCENT_DIALECTS_EXEC_EXECOPS

include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::descent::exec";
  let summary = "Kernels, launches and buffers at fixed arena offsets.";
}

class Exec_Op<string mnemonic, list<Trait> traits = []> : Op<Exec_Dialect, mnemonic, traits>;

def Exec_FusionOp : Exec_Op<"fusion", [Pure, IsolatedFromAbove, SingleBlock]> {
  let summary = "ops that will be one kernel";
  let description = [{
    The region's arguments are the inputs in order; it holds nn ops and ends in exec.yield.

    ```mlir
    %y = exec.fusion "rows" (%x, %b) : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32> {
    ^bb0(%0: tensor<8x64xf32>, %1: tensor<64xf32>):
      %2 = nn.add %0, %1 : tensor<8x64xf32>, tensor<64xf32>
      %3 = nn.relu %2 : tensor<8x64xf32>
      exec.yield %3 : tensor<8x64xf32>
    }
    ```
  }];
  let arguments = (ins StrAttr:$kind, Variadic<AnyRankedTensor>:$inputs);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$kind `(` $inputs `)` `:` functional-type($inputs, $outputs) attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Exec_YieldOp : Exec_Op<"yield", [Pure, Terminator, ParentOneOf<["FusionOp", "KernelOp"]>]> {
  let summary = "results of a fusion or kernel";
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Exec_KernelOp : Exec_Op<"kernel", [FunctionOpInterface, IsolatedFromAbove, SingleBlock, HasParent<"::mlir::ModuleOp">]> {
  let summary = "an outlined fusion: one function of the generated code";
  let description = [{
    `kind` selects the generator (docs/architecture.md, Kernels). `sources` names the source ops it holds, for the plan and the profile.

    ```mlir
    exec.kernel @rows_0 "rows" (%0: tensor<8x64xf32>) -> tensor<8x64xf32> attributes {sources = ["nn.relu h.0.act"]} { ... exec.yield ... }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type, StrAttr:$kind,
                       OptionalAttr<StrArrayAttr>:$sources,
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

def Exec_LaunchOp : Exec_Op<"launch", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one execution of a kernel, on tensors";
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyRankedTensor>:$inputs);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = "$kernel `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)";
}

//===----------------------------------------------------------------------===//
// On buffers
//===----------------------------------------------------------------------===//

def Exec_ArenaOp : Exec_Op<"arena", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "how large the one allocation is, and what it holds; all in bytes";
  let description = [{
    `size` is all of it, the first `persistent` bytes keep their contents from step to step. `lower_bound` is what no placement can go below with this
    order of launches: the persistent part and the largest sum of transient buffers alive at one time. `activations` (needed again by the backward
    pass) and `workspace` are what is alive at that time.

    ```mlir
    exec.arena size 4096 persistent 1024 lower_bound 4096 parameters 512 gradients 256 optimizer 256 activations 2048 workspace 1024
    ```
  }];
  let arguments = (ins I64Attr:$size, I64Attr:$persistent, I64Attr:$lower_bound, I64Attr:$parameters, I64Attr:$gradients, I64Attr:$optimizer,
                       I64Attr:$activations, I64Attr:$workspace);
  let assemblyFormat = [{
    `size` $size `persistent` $persistent `lower_bound` $lower_bound `parameters` $parameters `gradients` $gradients `optimizer` $optimizer
    `activations` $activations `workspace` $workspace attr-dict
  }];
}

def Exec_StorageOp : Exec_Op<"storage", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "a persistent place of the arena: a parameter, state, slab or input";
  let description = [{
    ```mlir
    exec.storage @wte "parameters" at 4096 : tensor<65x128xf32>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$category, I64Attr:$offset, TypeAttr:$type);
  let assemblyFormat = "$sym_name $category `at` $offset `:` $type attr-dict";
  let extraClassDeclaration = [{ ::mlir::RankedTensorType getTensorType() { return ::llvm::cast<::mlir::RankedTensorType>(getType()); } }];
}

def Exec_ProgramOp : Exec_Op<"program", [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator, HasParent<"::mlir::ModuleOp">]> {
  let summary = "an exact schedule: exec.run in this order, nothing else is decided";
  let description = [{
    Holds exec.buffer, exec.get, exec.run and exec.output only (C1). Launches are numbered from 0 in the order of exec.run.

    ```mlir
    exec.program @step { ... }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Exec_BufferOp : Exec_Op<"buffer", [Pure, HasParent<"ProgramOp">]> {
  let summary = "a place of the arena for the launches `first` to `last`";
  let description = [{
    ```mlir
    %h = exec.buffer "nn.gelu h.0.act" "activations" at 8192 live [3, 17] : memref<768x512xf32>
    ```
  }];
  let arguments = (ins StrAttr:$source, StrAttr:$category, I64Attr:$offset, I64Attr:$first, I64Attr:$last);
  let results = (outs AnyMemRef:$buffer);
  let assemblyFormat = "$source $category `at` $offset `live` ` ` `[` $first `,` $last `]` attr-dict `:` type($buffer)";
}

def Exec_GetOp : Exec_Op<"get", [Pure, HasParent<"ProgramOp">]> {
  let summary = "the place of an exec.storage, or of a part of a slab";
  let description = [{
    The offset is in bytes from the start of the arena.

    ```mlir
    %w = exec.get @decay.parameters at 4096 : memref<65x128xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$storage, I64Attr:$offset);
  let results = (outs AnyMemRef:$buffer);
  let assemblyFormat = "$storage `at` $offset attr-dict `:` type($buffer)";
}

def Exec_RunOp : Exec_Op<"run", [AttrSizedOperandSegments, HasParent<"ProgramOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one execution of a kernel, on buffers";
  let description = [{
    An output may be the same buffer as an input where the kernel allows it. On a device `stream` says where it runs (0 compute, 1 communication);
    behind it the event `record` is recorded, and it waits for the events `waits` of launches on the other stream (assign-streams).

    ```mlir
    exec.run @rows_relu_8x64 ins(%x : memref<8x64xf32>) outs(%y : memref<8x64xf32>) {sources = ["nn.relu h.0.act"]}
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyMemRef>:$inputs, Variadic<AnyMemRef>:$outputs, OptionalAttr<StrArrayAttr>:$sources,
                       DefaultValuedAttr<I64Attr, "0">:$stream, OptionalAttr<I64Attr>:$record, OptionalAttr<DenseI64ArrayAttr>:$waits);
  let assemblyFormat = [{
    $kernel (`ins` `(` $inputs^ `:` type($inputs) `)`)? `outs` `(` $outputs `:` type($outputs) `)` attr-dict
  }];
}

def Exec_OutputOp : Exec_Op<"output", [HasParent<"ProgramOp">]> {
  let summary = "where a named result lies after the program has run";
  let description = [{
    ```mlir
    exec.output "loss_sum" %7 : memref<f32>
    ```
  }];
  let arguments = (ins StrAttr:$name, AnyMemRef:$buffer);
  let assemblyFormat = "$name $buffer attr-dict `:` type($buffer)";
}

include "dialects/Exec/DeviceOps.td"

#endif // DESCENT_DIALECTS_EXEC_EXECOPS
