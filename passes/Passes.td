//===- Passes.td - Every pass, by phase -----------------------------------===//

#ifndef DESCENT_PASSES
#define DESCENT_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Codegen: kernel functions to LLVM. The pipeline `lower-kernel-functions` runs these among MLIR's own conversions.
//===----------------------------------------------------------------------===//

def CheckKernelFunctions : Pass<"check-kernel-functions", "::mlir::ModuleOp"> {
  let summary = "Refuse kernel functions that break their contract, and make their helpers internal";
  let description = [{
    A kernel function is a `func.func` with the attribute `descent.tasks`. Its last three arguments must be the first and the last task
    (index) and the thread's scratch, a `memref<Sxi8>` with S = `descent.scratch`; those before must be memrefs of static shape and identity
    layout, because the ABI passes each as one pointer. It returns nothing and allocates nothing on the heap.
    Private functions with a body get internal linkage, so that two objects may each hold a helper of one name.

    Numerics: none.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def ExpandMath : Pass<"expand-math"> {
  let summary = "Expand elementary functions on f32 into arithmetic, and divisions that round up or down into ones that truncate";
  let description = [{
    Scalars and vectors of f32 alike: exp, log, tanh, erf, sin, cos and their kin become polynomials, since LLVM would call libm once per
    lane. With `bf16`, conversions to and from bf16 become integer arithmetic, for CPUs without the instruction.

    Numerics: results differ from libm's by a few units in the last place; NaN and infinity behave as libm's.
  }];
  let options = [Option<"bf16", "bf16", "bool", "true", "Expand conversions to and from bf16 too.">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
}

def WrapKernelFunctions : Pass<"wrap-kernel-functions", "::mlir::ModuleOp"> {
  let summary = "Give kernel functions in the LLVM dialect the signature of the ABI";
  let description = [{
    ```mlir
    llvm.func @k(%a: !llvm.ptr, %b: !llvm.ptr, %first: i64, %last: i64, %scratch: !llvm.ptr) attributes {descent.tasks = 4, ...}
    ```
    becomes an internal `@k.body` of that signature and
    ```mlir
    llvm.func @k(%buffers: !llvm.ptr, %first: i64, %last: i64, %scratch: !llvm.ptr) attributes {descent.tasks = 4, ...}
    ```
    which loads the pointers from `%buffers` and calls it.

    Numerics: none.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // DESCENT_PASSES
