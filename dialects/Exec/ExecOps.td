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

#endif // DESCENT_DIALECTS_EXEC_EXECOPS
