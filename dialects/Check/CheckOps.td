//===- CheckOps.td - Execution tests as programs --------------------------===//
//
// Test-only ops: a function makes its inputs, computes, and says what it expects. `descent-run` executes it.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_DIALECTS_CHECK_CHECKOPS
#define DESCENT_DIALECTS_CHECK_CHECKOPS

include "dialects/NN/Interfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Check_Dialect : Dialect {
  let name = "check";
  let cppNamespace = "::descent::check";
  let summary = "Inputs and expectations of execution tests.";
  let description = [{
    Arguments of a func.func carry how `descent-run` fills them:

    | attribute | meaning |
    |---|---|
    | `check.value = dense<...>` | these values |
    | `check.range = [low, high]` | uniform in [low, high); without it [-2, 2), [0, 2) for integers |
  }];
}

class Check_Op<string mnemonic, list<Trait> traits = []> :
  Op<Check_Dialect, mnemonic, !listconcat([DeclareOpInterfaceMethods<ReferenceOp>], traits)>;

def Check_RandomInputOp : Check_Op<"random_input", [Pure]> {
  let summary = "uniform values in [low, high), the same on every machine";
  let description = [{
    ```mlir
    %x = check.random_input seed 1 from -1.0 to 1.0 : tensor<3x5xf32>
    ```
  }];
  let arguments = (ins I64Attr:$seed, F64Attr:$low, F64Attr:$high);
  let results = (outs AnyStaticShapeTensor:$y);
  let assemblyFormat = "`seed` $seed `from` $low `to` $high attr-dict `:` type($y)";
}

def Check_ExpectCloseOp : Check_Op<"expect_close", [SameTypeOperands]> {
  let summary = "fails the run where |actual - expected| <= tolerance max(1, |expected|) does not hold; NaN equals NaN alone";
  let description = [{
    ```mlir
    check.expect_close %y, %expected within 1.0e-6 : tensor<3x5xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$actual, AnyStaticShapeTensor:$expected, F64Attr:$tolerance);
  let assemblyFormat = "$actual `,` $expected `within` $tolerance attr-dict `:` type($actual)";
}

#endif // DESCENT_DIALECTS_CHECK_CHECKOPS
