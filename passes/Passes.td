//===- Passes.td - Every pass, by phase -----------------------------------===//

#ifndef DESCENT_PASSES
#define DESCENT_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Import
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Differentiate
//===----------------------------------------------------------------------===//

def Differentiate : Pass<"differentiate", "::mlir::ModuleOp"> {
  let summary = "nn.model becomes train.func @step with gradients, and @evaluate";
  let description = [{
    Reverse-mode differentiation of the model's one loss, by DifferentiableOp alone. Every nn.parameter becomes a train.parameter symbol and reads of
    it; each trainable one gets a train.gradient. Contributions of several uses are added in reverse order of use. @evaluate is the forward pass
    without dropout and also returns the predictions.

    ```mlir
    nn.model @m(%x, %t) { %w = nn.parameter "w" zeros : ...  %y = nn.matmul %x, %w  %s, %n = nn.mse %y, %t  nn.loss %s, %n, %y }
    // becomes
    train.parameter @w : ...
    train.func @step(%x, %t) -> (tensor<f32>, tensor<f32>) {
      %w = train.read @w ... forward ... backward ...
      train.gradient @w, %dw
      train.return ["loss_sum", "loss_weight"] %s, %n
    }
    train.func @evaluate(%x, %t) { ... train.return ["loss_sum", "loss_weight", "predictions"] ... }
    ```

    Numerics: defines the gradients; they are exact but for the rounding of their own ops.
  }];
  let dependentDialects = ["::descent::train::TrainDialect", "::descent::nn::NNDialect"];
  let statistics = [
    Statistic<"differentiated", "ops-differentiated", "ops that got a gradient">,
    Statistic<"skipped", "ops-skipped", "forward ops that no gradient flows through">,
    Statistic<"accumulated", "gradients-added", "values whose gradient is a sum over several uses">];
}

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
