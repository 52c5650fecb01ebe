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

def InsertOptimizer : Pass<"insert-optimizer", "::mlir::ModuleOp"> {
  let summary = "train.gradient ops become one atomic, clipped update";
  let description = [{
    Reads what the recipe put on the module (`train.optimizer`, `train.schedule`, `train.weight_decay`, `train.clip_norm`, `train.groups`), sorts the
    parameters into groups, declares their states and the counter @step, and ends @step with

    ```mlir
    %norm = train.norm %dw, %db ...            // of the gradient of the sum
    %inverse = 1 / %weight                     // the only division by the weight
    %grad_norm = %norm * %inverse
    %scale = %inverse * (%grad_norm > clip ? clip / %grad_norm : 1)
    %ok = %grad_norm < inf                     // false for NaN, for inf, and for a step without a counted target
    train.commit if %ok { train.update "decay" [@w] with (%dw) scale %scale rate %rate count %t by #train.adam<...> ...  train.write @step, %t1 }
    ```

    Weight decay skips parameters of rank 0 and 1 unless a group asks for it. A group that matches no parameter is an error.

    Numerics: defines the update.
  }];
  let dependentDialects = ["::descent::train::TrainDialect", "::descent::nn::NNDialect"];
  let statistics = [Statistic<"groups", "groups", "optimizer groups">, Statistic<"parameters", "parameters", "parameters updated">];
}

def VerifyTrain : Pass<"verify-train", "::mlir::ModuleOp"> {
  let summary = "Refuse a training program that is not complete";
  let description = [{
    @step exists, ends in one train.commit and returns loss_sum, loss_weight, grad_norm, learning_rate, committed; @evaluate exists, changes nothing and
    returns loss_sum, loss_weight, predictions; no train.gradient is left; every trainable parameter is updated exactly once.

    Numerics: none.
  }];
}

//===----------------------------------------------------------------------===//
// Fusion
//===----------------------------------------------------------------------===//

def LowerUpdates : Pass<"lower-updates", "::mlir::ModuleOp"> {
  let summary = "train.update and train.commit become flat elementwise programs over slabs";
  let description = [{
    Parameters, gradients and each state of a group become one contiguous slab of type [rows, 1024], so that an optimizer step is one kernel whatever
    the number of parameters. The commit's condition becomes a select between the new and the old value of every element.

    ```mlir
    train.commit if %ok { train.update "decay" [@w, @v] with (%dw, %dv) ... }
    // becomes
    train.slab @decay.parameters "parameters" [@w, @v] at [0, 8192] : tensor<12x1024xf32>
    %g = train.pack @decay.gradients(%dw, %dv)   %p = train.read @decay.parameters   ... nn ops ...
    train.write @decay.parameters, %selected
    ```

    Numerics: bit-exact.
  }];
  let dependentDialects = ["::descent::train::TrainDialect", "::descent::nn::NNDialect"];
  let statistics = [Statistic<"slabs", "slabs", "slabs declared">, Statistic<"padding", "padding-bytes", "bytes between members">];
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
