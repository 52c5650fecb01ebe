//===- Passes.td - Every pass, by phase -----------------------------------===//

#ifndef DESCENT_PASSES
#define DESCENT_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Import
//===----------------------------------------------------------------------===//

def InlineModules : Pass<"inline-modules", "::mlir::ModuleOp"> {
  let summary = "Replace every nn.instantiate by the body of its module";
  let description = [{
    Parameters inside are prefixed with the names of the instances around them; so are the locations of the other ops, which is how plans and
    profiles name them. The modules are removed.

    ```mlir
    nn.module @linear(%x) { %w = nn.parameter "w" zeros : ...  %y = nn.matmul %x, %w  nn.return %y }
    nn.model @m(%x, %t) { %y = nn.instantiate @linear as "fc" (%x) ... }
    // becomes
    nn.model @m(%x, %t) { %w = nn.parameter "fc.w" zeros : ...  %y = nn.matmul %x, %w ... }
    ```

    Numerics: bit-exact.
  }];
  let statistics = [
    Statistic<"instancesInlined", "instances-inlined", "instances that were replaced by a body">,
    Statistic<"parametersNamed", "parameters-named", "parameters whose name got a prefix">];
}

def BindBatch : Pass<"bind-batch", "::mlir::ModuleOp"> {
  let summary = "Replace the batch '?' by a number";
  let description = [{
    The size is the option, else the module's attribute `train.batch`, else what a model without '?' has written. Result types are inferred again.
    `train.batch` records the size.

    ```mlir
    nn.model @m(%x: tensor<?x4xf32>, ...) { %y = nn.relu %x : tensor<?x4xf32> ... }
    // becomes, with batch=32
    nn.model @m(%x: tensor<32x4xf32>, ...) { %y = nn.relu %x : tensor<32x4xf32> ... }
    ```

    Numerics: bit-exact.
  }];
  let options = [Option<"batch", "batch", "int64_t", "0", "the size of a batch; 0 takes the module's train.batch">];
  let statistics = [
    Statistic<"argumentsBound", "arguments-bound", "inputs whose '?' became a number">,
    Statistic<"typesRefined", "types-refined", "results whose type changed">];
}

def AttachRowWeights : Pass<"attach-row-weights", "::mlir::ModuleOp"> {
  let summary = "Give losses the weights of their rows, and dropout its random numbers";
  let description = [{
    Adds the hidden input `row_weights : tensor<Bxf32>` to the model and to each of its loss ops, and, only if an op draws random numbers,
    `rng : tensor<4xi32>`, with a different id for each such op.

    ```mlir
    nn.model @m(%x: tensor<8x4xf32> {nn.role = "data"}, ...) { ...  %s, %n = nn.mse %y, %t ... }
    // becomes
    nn.model @m(%x: tensor<8x4xf32> {nn.role = "data"}, ..., %w: tensor<8xf32> {nn.role = "row_weights"}) {
      ...  %s, %n = nn.mse %y, %t row_weights %w : tensor<8xf32> ...
    }
    ```

    Numerics: bit-exact while all weights are 1.
  }];
  let statistics = [
    Statistic<"lossesWeighted", "losses-weighted", "loss ops that got row weights">,
    Statistic<"opsSeeded", "ops-seeded", "ops that got random numbers">];
}

def BoundInputs : Pass<"bound-inputs", "::mlir::ModuleOp"> {
  let summary = "Record which integers each input may hold";
  let description = [{
    Follows the integers of every op that indexes back to the model's input and records there the range that all uses allow, for the runtime to check
    on every batch.

    ```mlir
    nn.model @m(%t: tensor<8x6xi32> {nn.role = "data"}, ...) { %e = nn.embedding %t, %table : tensor<8x6xi32>, tensor<11x8xf32> ... }
    // becomes
    nn.model @m(%t: tensor<8x6xi32> {nn.role = "data", nn.range = array<i64: -11, 11>}, ...) { ... }
    ```

    Numerics: bit-exact.
  }];
  let statistics = [Statistic<"inputsBounded", "inputs-bounded", "inputs that got a range">];
}

def VerifyModel : Pass<"verify-model", "::mlir::ModuleOp"> {
  let summary = "Refuse models that cannot be trained; the end of the Import phase";
  let description = [{
    One nn.model alone, static sizes, nn ops only and none that training creates, every parameter used, every trainable one on a path to the loss and
    none behind the loss's weight. The IR is not changed, so before and after are the same.

    Numerics: bit-exact.
  }];
  let statistics = [Statistic<"parametersChecked", "parameters-checked", "parameters whose path to the loss was sought">];
}

//===----------------------------------------------------------------------===//
// Precision
//===----------------------------------------------------------------------===//

def InsertPrecisionCasts : Pass<"insert-precision-casts", "::mlir::ModuleOp"> {
  let summary = "Cast the operands of every op to the type that its class and the recipe say";
  let description = [{
    Reads `train.compute` and `train.overrides`. Narrow ops (PrecisionOp) run in the compute type, wide ones in f32, the others in the widest type of their
    operands; an override decides alone. A product whose result goes only into the addition of its bias yields its f32 sum. Parameters stay f32.
    `descent plan` prints the type of every tensor and the rule that gave it.

    ```mlir
    %h = nn.matmul %x, %w : tensor<8x4xf32>, tensor<4x3xf32>
    %y = nn.add %h, %b : tensor<8x3xf32>, tensor<3xf32>
    // becomes, with train.compute = bf16
    %0 = nn.cast %x to bf16   %1 = nn.cast %w to bf16
    %h = nn.matmul %0, %1 {result_type = f32} : tensor<8x4xbf16>, tensor<4x3xbf16>
    %2 = nn.add %h, %b : tensor<8x3xf32>, tensor<3xf32>
    %y = nn.cast %2 to bf16
    ```

    Numerics: rounds to `train.compute`.
  }];
  let dependentDialects = ["::descent::train::TrainDialect", "::descent::nn::NNDialect"];
  let statistics = [Statistic<"casts", "casts", "casts inserted">,
                    Statistic<"narrowed", "results-narrowed", "results in a type narrower than f32">];
}

def FoldCasts : Pass<"fold-casts", "::mlir::ModuleOp"> {
  let summary = "Drop casts that change nothing, and roundings that are undone";
  let description = [{
    A cast of an exact cast becomes one or none; a product whose narrow result is widened to be the gradient of a parameter yields its f32 sum, so that
    gradients of weights leave the backward pass unrounded. Other narrow products stay narrow, whoever reads them.

    ```mlir
    %0 = nn.matmul %x, %dy {transpose_a} : tensor<8x4xbf16>, tensor<8x3xbf16>
    %dw = nn.cast %0 to f32 : tensor<4x3xbf16>   train.gradient @w, %dw : tensor<4x3xf32>
    // becomes
    %dw = nn.matmul %x, %dy {result_type = f32, transpose_a} : tensor<8x4xbf16>, tensor<8x3xbf16>   train.gradient @w, %dw : tensor<4x3xf32>
    ```

    Numerics: bit-exact, but for products that yield f32: they no longer round to the narrow type.
  }];
  let dependentDialects = ["::descent::nn::NNDialect"];
  let statistics = [Statistic<"folded", "casts-folded", "casts of exact casts">,
                    Statistic<"sums", "sums-widened", "products that yield f32">,
                    Statistic<"moved", "casts-moved", "casts moved before a reshape or transpose">];
}

def KeepWorkingCopies : Pass<"keep-working-copies", "::mlir::ModuleOp"> {
  let summary = "Casts of parameters become copies that the update keeps";
  let description = [{
    ```mlir
    %w = train.read @w : tensor<4x3xf32>
    %0 = nn.cast %w to bf16 : tensor<4x3xf32>
    // becomes
    train.working_copy @w.bf16 of @w : tensor<4x3xbf16>
    %0 = train.read @w.bf16 : tensor<4x3xbf16>
    ```
    Frozen parameters are cast in each step.

    Numerics: bit-exact.
  }];
  let dependentDialects = ["::descent::train::TrainDialect"];
  let statistics = [Statistic<"copies", "copies", "working copies declared">,
                    Statistic<"frozen", "frozen", "casts left: the parameter is frozen">];
}

//===----------------------------------------------------------------------===//
// Differentiate
//===----------------------------------------------------------------------===//

def StabiliseLogs : Pass<"stabilise-logs"> {
  let summary = "log(softmax(x)) and log(sigmoid(x)) become forms that cannot underflow";
  let description = [{
    ```mlir
    %p = nn.softmax %x axis 1 : tensor<2x3xf32>
    %y = nn.log %p : tensor<2x3xf32>
    // becomes
    %y = nn.log_softmax %x axis 1 : tensor<2x3xf32>
    ```
    likewise log(sigmoid(x)) becomes min(x, 0) - log(1 + exp(-|x|)); a float cast between the two ops is seen through.

    Numerics: more exact; finite where the chain was infinite.
  }];
  let dependentDialects = ["::descent::nn::NNDialect"];
  let statistics = [Statistic<"softmaxes", "softmax-chains", "log(softmax) chains replaced">,
                    Statistic<"sigmoids", "sigmoid-chains", "log(sigmoid) chains replaced">];
}

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
    parameters into groups, declares their states and the counter @updates, and ends @step with

    ```mlir
    %norm = train.norm %dw, %db ...            // of the gradient of the sum
    %inverse = 1 / %weight                     // the only division by the weight
    %grad_norm = %norm * %inverse
    %scale = %inverse * (%grad_norm > clip ? clip / %grad_norm : 1)
    %ok = train.all_finite %dw, %db ... and |%sum| < inf and %grad_norm < inf   // the last is false for a step without a counted target
    train.commit if %ok { train.update "decay" [@w] with (%dw) scale %scale rate %rate count %t by #train.adam<...> ...  train.write @updates, %t1 }
    ```

    Weight decay skips parameters of rank 0 and 1 unless a group asks for it. A group that matches no parameter is an error.

    Numerics: defines the update.
  }];
  let dependentDialects = ["::descent::train::TrainDialect", "::descent::nn::NNDialect"];
  let statistics = [Statistic<"groups", "groups", "optimizer groups">, Statistic<"parameters", "parameters", "parameters updated">];
}

def NarrowStorage : Pass<"narrow-storage", "::mlir::ModuleOp"> {
  let summary = "Keep parameters or optimizer state in bf16, as the recipe asks";
  let description = [{
    Reads `train.storage`. Without masters parameters are bf16 and serve the products themselves; optimizer states become bf16 where that is asked for.
    The update computes in f32 all the same (lower-updates).

    ```mlir
    train.parameter @w : tensor<4x3xf32>   train.working_copy @w.bf16 of @w : tensor<4x3xbf16>   %0 = train.read @w.bf16 : tensor<4x3xbf16>
    // becomes, with #train.storage<master = false, ...>
    train.parameter @w : tensor<4x3xbf16>  %0 = train.read @w : tensor<4x3xbf16>
    ```

    Numerics: rounds to bf16, once a step.
  }];
  let dependentDialects = ["::descent::train::TrainDialect", "::descent::nn::NNDialect"];
  let statistics = [Statistic<"parameters", "parameters", "parameters kept in bf16">,
                    Statistic<"states", "states", "states kept in bf16">];
}

def QuantizeProducts : Pass<"quantize-products", "::mlir::ModuleOp"> {
  let summary = "Round the operands of products to fp8 or TF32";
  let description = [{
    Reads `train.quantize`. "tf32" rounds every operand of a matrix product or convolution by nn.round_tf32. "fp8" scales it, casts it to f8E4M3FN (gradients,
    known by their dependence on train.seed, to f8E5M2), and divides the product by the two scales. A scale is largest / amax, a power of two smaller by
    `margin`; amax is the operand's own largest magnitude ("current") or the largest of the last `history` committed steps ("delayed", a state of one row
    for each operand; evaluation reads it).

    ```mlir
    %y = nn.matmul %x, %w : tensor<8x4xbf16>, tensor<4x3xbf16>
    // becomes
    %0 = nn.cast %x_scaled to f8E4M3FN   %1 = nn.cast %w_scaled to f8E4M3FN
    %2 = nn.matmul %0, %1 {result_type = f32} : tensor<8x4xf8E4M3FN>, tensor<4x3xf8E4M3FN>
    %3 = nn.mul %2, %inverse : tensor<8x3xf32>, tensor<f32>   %y = nn.cast %3 to bf16
    ```

    Numerics: rounds to f8E4M3FN and f8E5M2, or to TF32.
  }];
  let dependentDialects = ["::descent::train::TrainDialect", "::descent::nn::NNDialect"];
  let statistics = [Statistic<"products", "products", "products whose operands are rounded">,
                    Statistic<"tensors", "tensors", "operands rounded, each once">];
}

def InsertLossScaling : Pass<"insert-loss-scaling", "::mlir::ModuleOp"> {
  let summary = "Start the backward pass from the loss scale, and unscale what leaves it";
  let description = [{
    train.seed becomes one, or, with `train.loss_scale` on the module (#train.dynamic_scale or #train.static_scale), scale / expected weight. All that
    looks at gradients gets them from train.unscale. A dynamic scale is a state, with the number of clean steps and of skipped ones.

    ```mlir
    %scale = train.read @loss_scale : tensor<f32>
    %seed = train.scale_loss %scale expected 256.0
    ... backward ...
    %u = train.unscale %dw by %factor : tensor<4x3xf32>      // expected / scale
    %finite = train.all_finite %u ...
    train.commit if %ok { train.update ... (%u) ...  train.write @loss_scale, %grown ... } else { train.write @loss_scale, %shrunk ... }
    ```

    Numerics: bit-exact for powers of two, while nothing overflows or underflows.
  }];
  let dependentDialects = ["::descent::train::TrainDialect", "::descent::nn::NNDialect"];
  let statistics = [Statistic<"unscaled", "gradients-unscaled", "gradients that were scaled">];
}

def VerifyTrain : Pass<"verify-train", "::mlir::ModuleOp"> {
  let summary = "Refuse a training program that is not complete";
  let description = [{
    @step exists, ends in one train.commit and returns loss_sum, loss_weight, grad_norm, learning_rate, committed and perhaps more; @evaluate exists, changes nothing and
    returns loss_sum, loss_weight, predictions; no train.gradient and no train.seed is left; every trainable parameter is updated exactly once.

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
    the number of parameters. The commit's condition becomes a select between the new and the old value of every element. Working copies are slabs too,
    written with the parameters and by @refresh.

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

def DecomposeOps : Pass<"decompose-ops"> {
  let summary = "Softmax, norms, losses, dropout and general reductions become elementwise ops and row or column reductions";
  let description = [{
    ```mlir
    %y = nn.softmax %x axis 1 : tensor<2x3xf32>
    // becomes
    %m = nn.reduce_max %x [1] keep   %s = nn.sub %x, %m   %e = nn.exp %s   %t = nn.reduce_sum %e [1] keep
    %r = nn.div %one, %t             %y = nn.mul %e, %r
    ```
    Left over are reductions over one group of adjacent axes that includes the first or the last axis. CSE should follow.

    Numerics: reassociates sums over several axes.
  }];
  let dependentDialects = ["::descent::nn::NNDialect"];
  let statistics = [Statistic<"decomposed", "ops-decomposed", "ops replaced">];
}

def SplitReductions : Pass<"split-reductions", "::mlir::ModuleOp"> {
  let summary = "Bring reductions into the two forms that kernels have, and cut long ones into blocks";
  let description = [{
    Kernels reduce the last axis or the leading axes. A reduction over several trailing axes reduces the last one first; one over axes in the
    middle moves them to the front. A reduction with few results over many elements would occupy one thread, so it becomes partial results
    over blocks of fixed size and their total; the size depends on the shape alone, so that the number of threads never changes a sum.

    ```mlir
    %s = nn.reduce_sum %x [0] : tensor<65536xf32>
    ```
    becomes
    ```mlir
    %v = nn.reshape %x [64, 1024] : tensor<65536xf32>
    %p = nn.reduce_sum %v [1] : tensor<64x1024xf32>
    %s = nn.reduce_sum %p [0] : tensor<64xf32>
    ```

    Numerics: reassociates sums and means.
  }];
  let options = [
    Option<"minLength", "min-length", "int64_t", "16384", "Elements per result from which a reduction is cut.">,
    Option<"block", "block", "int64_t", "1024", "Elements of a block; the nearest divisor of the length is taken.">];
  let statistics = [
    Statistic<"reductionsSplit", "reductions-split", "Reductions cut into blocks">,
    Statistic<"trailingAxesSplit", "trailing-axes-split", "Reductions over several trailing axes">,
    Statistic<"axesMoved", "axes-moved", "Reductions over axes in the middle">,
    Statistic<"declinedNoDivisor", "declined-no-divisor", "Long reductions left whole: no block size divides them">,
    Statistic<"declinedManyResults", "declined-many-results", "Long reductions left whole: enough results for all threads">];
  let dependentDialects = ["::descent::nn::NNDialect"];
}

def FormKernels : Pass<"form-kernels", "::mlir::ModuleOp"> {
  let summary = "Group ops into exec.fusion, one for each future kernel";
  let description = [{
    ```mlir
    %0 = nn.add %x, %b : tensor<8x64xf32>, tensor<64xf32>
    %1 = nn.relu %0 : tensor<8x64xf32>
    return %1 : tensor<8x64xf32>
    ```
    becomes
    ```mlir
    %0 = exec.fusion "rows"(%x, %b) : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32> {
    ^bb0(%1: tensor<8x64xf32>, %2: tensor<64xf32>):
      %3 = nn.add %1, %2 : tensor<8x64xf32>, tensor<64xf32>
      %4 = nn.relu %3 : tensor<8x64xf32>
      exec.yield %4 : tensor<8x64xf32>
    }
    return %0 : tensor<8x64xf32>
    ```
    Afterwards only fusions, views and ops of other dialects are left at the top level.

    Numerics: bit-exact; a value may be computed by two kernels, with the same operations.
  }];
  let options = [
    Option<"maxOps", "max-ops", "unsigned", "96", "Most ops in one kernel.">,
    Option<"maxStreams", "max-streams", "unsigned", "24", "Most tensors, scalars apart, that one kernel reads and writes.">];
  let statistics = [
    Statistic<"kernelsFormed", "kernels", "Fusions formed">,
    Statistic<"merges", "merges", "Merges of two groups of ops">,
    Statistic<"copiesPulled", "copies-pulled", "Splits and concats moved into attention kernels">,
    Statistic<"valuesRecomputed", "values-recomputed", "Tensors computed again by their readers instead of stored">,
    Statistic<"declinedByDomain", "declined-domain", "Merges declined: no common domain">,
    Statistic<"declinedBySize", "declined-size", "Merges declined: too many ops or tensors">,
    Statistic<"declinedByCycle", "declined-cycle", "Merges declined: a third kernel lies between">,
    Statistic<"recomputesDeclined", "recomputes-declined", "Tensors stored although cheap: a reader would read more or cannot">];
  let dependentDialects = ["::descent::exec::ExecDialect", "::descent::nn::NNDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def FoldEpilogues : Pass<"fold-epilogues", "::mlir::ModuleOp"> {
  let summary = "Move elementwise ops behind a product into its kernel";
  let description = [{
    The consumers are computed on the register tile before it is stored: bias, activation, residual, the product with an activation's
    derivative. What is needed elsewhere, such as a saved pre-activation, becomes a further result.

    With `target=cuda`, matrix products are a library's, which has a few epilogues: a bias, relu or gelu (tanh) of that, the product with gelu's
    derivative, and adding onto a tensor. Nothing else moves. The derivative of an activation is computed by the backward pass, from the
    pre-activation (gelu) or the result (relu), and products of tensors that nn.round_tf32 made get `compute = "tf32"`.
    Kernels of a library's products have the attribute `library`: their results lie over no operand but the one that they accumulate onto.

    ```mlir
    %0 = exec.fusion "gemm"(%x, %w) : ... { %y = nn.matmul ...; exec.yield %y }
    %1 = exec.fusion "rows"(%0, %b) : ... { %z = nn.add ...; %r = nn.relu %z; exec.yield %r }
    ```
    becomes
    ```mlir
    %1 = exec.fusion "gemm"(%x, %w, %b) : ... { %y = nn.matmul ...; %z = nn.add %y, ...; %r = nn.relu %z; exec.yield %r }
    ```

    Numerics: bit-exact.
  }];
  let options = [
    Option<"maxOps", "max-ops", "unsigned", "24", "Most ops in one epilogue.">,
    Option<"target", "target", "std::string", "\"cpu\"", "cpu: generated products, any epilogue. cuda: matrix products of a library, its epilogues.">];
  let statistics = [
    Statistic<"opsFolded", "ops-folded", "Elementwise ops moved into a product's kernel">,
    Statistic<"derivativesSunk", "derivatives-sunk", "Derivatives of activations left to the backward pass">,
    Statistic<"kernelsRemoved", "kernels-removed", "Rows kernels that moved completely">,
    Statistic<"declinedOrder", "declined-order", "Ops declined: another operand waits for the product">,
    Statistic<"declinedTraffic", "declined-traffic", "Ops declined: the product would write more tensors">,
    Statistic<"declinedReduction", "declined-reduction", "Ops declined: they need a reduction">,
    Statistic<"declinedSize", "declined-size", "Ops declined: the epilogue is full">];
  let dependentDialects = ["::descent::exec::ExecDialect", "::descent::nn::NNDialect"];
}

def FoldAccumulations : Pass<"fold-accumulations", "::mlir::ModuleOp"> {
  let summary = "Let a product add onto a dead tensor in place";
  let description = [{
    A weight that is used twice has two gradient contributions, added by an epilogue. Where the epilogue is nothing but this addition and
    the other contribution has no later use, the fusion gets `accumulate = I`, I being the index of that input: plan-memory places the result
    over it.

    ```mlir
    %2 = exec.fusion "gemm"(%x, %dy, %1) : ... { %y = nn.matmul ...; %z = nn.add %y, %1; exec.yield %z }
    ```
    becomes the same with `attributes {accumulate = 2 : i64}`.

    Numerics: bit-exact.
  }];
  let statistics = [
    Statistic<"accumulations", "accumulations", "Products that accumulate in place">,
    Statistic<"declinedLive", "declined-live", "Declined: the other operand has another use or is not a kernel's result">,
    Statistic<"declinedEpilogue", "declined-epilogue", "Declined: the epilogue does more than add">];
}

def FoldBiasGradients : Pass<"fold-bias-gradients", "::mlir::ModuleOp"> {
  let summary = "Let a library's product add up the rows of an operand too";
  let description = [{
    The gradients of a linear layer, dW = x^T dy and db = the sum of dy's rows, read dy twice. A library adds up an operand along k while it multiplies.
    A kernel of columns that is nothing but such a sum, of an operand that a plain product of a library reads along the same axis, becomes the product's
    second result, in f32. The result of the product is f32 too, since the library has one type for both. Sums whose readers stand in front of the product
    stay, as do those beside a product that adds onto a tensor.

    ```mlir
    %0 = exec.fusion "columns"(%dy) : ... { %s = nn.reduce_sum %dy [0]; exec.yield %s }
    %1 = exec.fusion "gemm"(%x, %dy) : ... attributes {library} { %y = nn.matmul %x, %dy {transpose_a}; exec.yield %y }
    ```
    becomes
    ```mlir
    %1:2 = exec.fusion "gemm"(%x, %dy) : ... attributes {library} { %y = nn.matmul %x, %dy {transpose_a}; %s = nn.reduce_sum %dy [0]; exec.yield %y, %s }
    ```

    Numerics: the sums are f32 in another order.
  }];
  let statistics = [
    Statistic<"gradientsFolded", "gradients-folded", "Sums that became a result of a product">,
    Statistic<"declinedOrder", "declined-order", "Sums declined: a reader stands in front of the product">,
    Statistic<"declinedProduct", "declined-product", "Sums declined: the library has no such product with a sum">];
  let dependentDialects = ["::descent::exec::ExecDialect", "::descent::nn::NNDialect"];
}

def OutlineKernels : Pass<"outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Turn fusions into exec.kernel symbols and launches";
  let description = [{
    Fusions with equal kind, types, attributes and ops share one kernel. Names follow from kind, ops and sizes. `sources` on a launch names the
    ops of the program that it computes; on the kernel, the ops of its first launch.

    ```mlir
    %1 = exec.fusion "rows"(%x) : (tensor<8x64xf32>) -> tensor<8x64xf32> { ... nn.relu ... }
    ```
    becomes
    ```mlir
    exec.kernel @rows_relu_8x64 "rows" (%0: tensor<8x64xf32>) -> tensor<8x64xf32> attributes {sources = [...]} { ... }
    %1 = exec.launch @rows_relu_8x64(%x) {sources = [...]} : (tensor<8x64xf32>) -> tensor<8x64xf32>
    ```

    Numerics: bit-exact.
  }];
  let statistics = [
    Statistic<"kernelsOutlined", "kernels", "Kernels made">,
    Statistic<"launchesMade", "launches", "Launches made">,
    Statistic<"kernelsShared", "shared", "Fusions that use the kernel of an equal one">];
  let dependentDialects = ["::descent::exec::ExecDialect"];
}

def VerifyKernels : Pass<"verify-kernels", "::mlir::ModuleOp"> {
  let summary = "Check the end of the Fusion phase";
  let description = [{
    At the top level of programs nothing but views, launches and ops of other dialects is left, every launch fits its kernel, and every kernel
    has a kind with a generator and obeys that kind's rules.

    Numerics: bit-exact, nothing is changed.
  }];
}

//===----------------------------------------------------------------------===//
// Schedule
//===----------------------------------------------------------------------===//

def InsertCopies : Pass<"insert-copies", "::mlir::ModuleOp"> {
  let summary = "Copy values that the plan would need in two places";
  let description = [{
    ```mlir
    %p = train.pack @decay.gradients(%g, %g)
    // becomes
    %c = exec.launch @copy_128_f32(%g)   %p = train.pack @decay.gradients(%g, %c)
    ```

    Numerics: bit-exact.
  }];
  let dependentDialects = ["::descent::exec::ExecDialect", "::descent::nn::NNDialect"];
  let statistics = [Statistic<"copies", "copies", "copies inserted">];
}

def OrderOperations : Pass<"order-operations", "::mlir::ModuleOp"> {
  let summary = "Order launches for a low peak of memory";
  let description = [{
    Tries program order and a greedy order by bytes freed, keeps the better; launches that overwrite state come after all that read its old value.

    Numerics: bit-exact.
  }];
  let statistics = [Statistic<"reordered", "functions-reordered", "functions where the greedy order won">,
                    Statistic<"bytesSaved", "bytes-saved", "transient bytes the greedy order saves at the peak">];
}

def PlanMemory : Pass<"plan-memory", "::mlir::ModuleOp"> {
  let summary = "Give every value a place in one arena; train.func becomes exec.program";
  let description = [{
    ```mlir
    train.func @step(%x: tensor<8x64xf32>) { %y = exec.launch @k(%x) ... }
    // becomes
    exec.arena size 4096 ...
    exec.storage @"input:x" "inputs" at 0 : tensor<8x64xf32>
    exec.program @step {
      %0 = exec.get @"input:x" at 0 : memref<8x64xf32>
      %1 = exec.buffer "k" "workspace" at 2048 live [0, 3] : memref<8x64xf32>
      exec.run @k ins(%0 : ...) outs(%1 : ...)
    ```

    Numerics: bit-exact.
  }];
  let dependentDialects = ["::descent::exec::ExecDialect"];
  let statistics = [Statistic<"peak", "peak-bytes", "size of the arena">, Statistic<"bound", "lower-bound-bytes", "what no placement can go below">,
                    Statistic<"reused", "results-in-place", "results written over an input that dies">,
                    Statistic<"launches", "launches", "launches scheduled">];
}

def AssignStreams : Pass<"assign-streams", "::mlir::ModuleOp"> {
  let summary = "Order launches on different streams by events";
  let description = [{
    A launch whose `stream` is 1 runs on the communication stream beside the others, which are the compute stream's. Where launches of two streams touch
    the same bytes, one of them writing, the earlier one records an event and the later one waits for it, unless that follows from other waits. The order
    of the program is kept wherever it matters, so the plan stays right.

    Numerics: bit-exact.
  }];
  let statistics = [Statistic<"eventsMade", "events", "Events that launches record">,
                    Statistic<"waitsMade", "waits", "Launches that wait for events">];
}

def VerifyPlan : Pass<"verify-plan", "::mlir::ModuleOp"> {
  let summary = "Refuse a plan in which bytes are used for two things at once, or by two streams without order";
  let description = [{
    Numerics: none.
  }];
}

//===----------------------------------------------------------------------===//
// Codegen: kernels to kernel functions. emit-loop-kernels and emit-attention-kernels show one generator each.
//===----------------------------------------------------------------------===//

def GenerateKernels : Pass<"generate-kernels", "::mlir::ModuleOp"> {
  let summary = "Generate the kernel function of every exec.kernel into a nested module @kernels";
  let description = [{
    The kind of each kernel chooses its generator (docs/architecture.md, Kernels). A function has its kernel's name; what it promises is written
    there too. The kernels stay, since the plan and the program still speak of them.

    ```mlir
    exec.kernel @rows_relu_8x64 "rows" (%0: tensor<8x64xf32>) -> tensor<8x64xf32> { ... }
    ```
    adds
    ```mlir
    module @kernels {
      func.func @rows_relu_8x64(%0: memref<8x64xf32>, %1: memref<8x64xf32>, %first: index, %last: index, %scratch: memref<0xi8>)
          attributes {descent.tasks = 1 : i64, descent.scratch = 0 : i64} { ... }
    }
    ```

    Numerics: reassociates, in an order that only the kernel's shape and the CPU decide; never by the number of threads.
  }];
  let options = [Option<"cpu", "cpu", "std::string", "\"native\"", "CPU to generate for, as LLVM names it.">];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect", "::mlir::vector::VectorDialect", "::mlir::affine::AffineDialect"];
}

def EmitLoopKernels : Pass<"emit-loop-kernels", "::mlir::ModuleOp"> {
  let summary = "Turn functions on tensors with `descent.kind` into kernel functions";
  let description = [{
    For tests of the rows and columns generators without nn ops: a `func.func` whose body is linalg.generic, linalg.fill, reshapes and constants becomes the kernel function
    of its name. Rows kernels get the attribute `reusable`, the (result, input) pairs that may share memory.

    Numerics: sums are taken in lanes; the order depends on sizes and on the CPU's vector width only.
  }];
  let options = [Option<"cpu", "cpu", "std::string", "\"native\"", "LLVM name of the CPU to generate for.">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def EmitAttentionKernels : Pass<"emit-attention-kernels", "::mlir::ModuleOp"> {
  let summary = "Turn kernels of kind \"attention\" and \"attention_grad\" into kernel functions";
  let description = [{
    For tests of the generator alone; other kernels stay. Before, `exec.kernel @a "attention" (%qkv: tensor<2x64x384xf32>) -> tensor<2x64x128xf32>
    {...}`; after, `func.func @a(memref<2x64x384xf32>, memref<2x64x128xf32>, index, index, memref<Sxi8>)` and the tiles that it calls.

    Numerics: reassociates; sums depend on the sizes and on the CPU's vector width only.
  }];
  let options = [Option<"cpu", "cpu", "std::string", "\"native\"", "LLVM name of the CPU to generate for.">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
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

//===----------------------------------------------------------------------===//
// Cuda: kernels to device code
//===----------------------------------------------------------------------===//

def GenerateDeviceKernels : Pass<"generate-device-kernels", "::mlir::ModuleOp"> {
  let summary = "Generate the device code of every exec.kernel into a nested module @kernels";
  let description = [{
    The kind of each kernel chooses its generator. Each becomes a gpu.module with its functions and an exec.device_kernel with the commands that launch
    them. The kernels stay, since the plan and the program still speak of them.

    ```mlir
    module @kernels {
      gpu.module @rows_relu_8x64.gpu { gpu.func @rows_relu_8x64(%x: memref<8x64xf32>, %y: memref<8x64xf32>) kernel { ... } }
      exec.device_kernel @rows_relu_8x64 inputs 1 workspace 0 {
      ^bb0(%x: memref<8x64xf32>, %y: memref<8x64xf32>):
        exec.device_launch @rows_relu_8x64.gpu::@rows_relu_8x64 grid [1, 1, 1] block [128, 1, 1] (%x, %y) : ...
      }
    }
    ```

    Numerics: sums are taken in parts; their order depends on shapes only, never on the number of multiprocessors.
  }];
  let options = [Option<"target", "target", "std::string", "\"cuda:sm_80\"", "Chip to generate for, as descent compile --target.">];
  let dependentDialects = ["::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"];
}

def ExpandDeviceMath : Pass<"expand-device-math"> {
  let summary = "Expand elementary functions into what a device has instructions for";
  let description = [{
    The base-2 exponential, square roots, rounding to integers and their kin become the instructions; exp and powf are built on the base-2 exponential, the
    other functions on f32 become polynomials. Ops that lower to libdevice elsewhere become LLVM's intrinsics. What is left of the math dialect is an error.

    ```mlir
    %y = math.rsqrt %x : f32
    // becomes
    %y = llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"(%x) : (f32) -> f32
    ```

    Numerics: results are within 3 units in the last place of f32 or are those of the CPU's polynomials; NaN, infinities and zeros are as in C.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::vector::VectorDialect", "::mlir::LLVM::LLVMDialect"];
}

def LowerDeviceModules : Pass<"lower-device-modules", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Lower device functions to the LLVM dialect with NVVM's intrinsics";
  let description = [{
    Buffers become bare pointers, the index type 32 bits, or 64 where the module says `descent.index64`. Nothing is left that would need CUDA's libdevice.

    Numerics: bit-exact, apart from expand-device-math.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"];
}

#endif // DESCENT_PASSES
