// What the rules on gradients and statistics say holds in narrow types, with their rounding: masks are selects in bf16 and f16 too, and statistics are taken
// in f32 or wider from f32 values.
// RUN: descent-run --gradients -rounded %s | FileCheck %s

func.func @where_sqrt(%x: tensor<2xf16> {check.value = dense<[-1.0, -4.0]> : tensor<2xf16>}) -> tensor<2xf16> {
  %zero = nn.constant dense<0.0> : tensor<f16>
  %positive = nn.compare gt %x, %zero : tensor<2xf16>, tensor<f16>
  %root = nn.sqrt %x : tensor<2xf16>
  %y = nn.where %positive, %root, %x : tensor<2xi1>, tensor<2xf16>, tensor<2xf16>
  return %y : tensor<2xf16>
}
// CHECK: @where_sqrt gradient of argument 0 = [1, 1]

// exp(100) is infinite in bf16 as in f32.
func.func @where_exp(%x: tensor<bf16> {check.value = dense<100.0> : tensor<bf16>}) -> tensor<bf16> {
  %zero = nn.constant dense<0.0> : tensor<bf16>
  %one = nn.constant dense<1.0> : tensor<bf16>
  %low = nn.compare le %x, %zero : tensor<bf16>, tensor<bf16>
  %e = nn.exp %x : tensor<bf16>
  %next = nn.add %one, %x : tensor<bf16>, tensor<bf16>
  %y = nn.where %low, %e, %next : tensor<i1>, tensor<bf16>, tensor<bf16>
  return %y : tensor<bf16>
}
// CHECK: @where_exp result 0 = [101]
// CHECK: @where_exp gradient of argument 0 = [1]

// Binary cross entropy of logits x with targets t, as max(x, 0) - x t + log(1 + exp(-|x|)) with the product selected where t is 0: at +-infinity it is 0 or
// infinity, never NaN.
func.func @bce(%x: tensor<4xf16> {check.value = dense<[0x7C00, 0xFC00, 0x7C00, 0xFC00]> : tensor<4xf16>}) -> tensor<4xf32> {
  %t = nn.constant dense<[1.0, 0.0, 0.0, 1.0]> : tensor<4xf32>
  %zero = nn.constant dense<0.0> : tensor<f32>
  %one = nn.constant dense<1.0> : tensor<f32>
  %half = nn.constant dense<0.5> : tensor<f32>
  %wide = nn.cast %x to f32 : tensor<4xf16>
  %positive = nn.compare gt %t, %half : tensor<4xf32>, tensor<f32>
  %negated = nn.neg %wide : tensor<4xf32>
  %signed = nn.where %positive, %negated, %wide : tensor<4xi1>, tensor<4xf32>, tensor<4xf32>
  %hinge = nn.maximum %signed, %zero : tensor<4xf32>, tensor<f32>
  %magnitude = nn.abs %wide : tensor<4xf32>
  %decay = nn.neg %magnitude : tensor<4xf32>
  %e = nn.exp %decay : tensor<4xf32>
  %s = nn.add %one, %e : tensor<f32>, tensor<4xf32>
  %log = nn.log %s : tensor<4xf32>
  %y = nn.add %hinge, %log : tensor<4xf32>, tensor<4xf32>
  return %y : tensor<4xf32>
}
// CHECK: @bce result 0 = [0, 0, inf, inf]

// {4096, 4096.5, 4096, 4096.5} has variance 0.0625: neither bf16 nor f16 could hold the values' difference, E[x^2] - E[x]^2 in f32 would lose it.
func.func @variance() -> tensor<f32> {
  %x = nn.constant dense<[4096.0, 4096.5, 4096.0, 4096.5]> : tensor<4xf32>
  %mean = nn.reduce_mean %x [0] : tensor<4xf32>
  %centred = nn.sub %x, %mean : tensor<4xf32>, tensor<f32>
  %squares = nn.mul %centred, %centred : tensor<4xf32>, tensor<4xf32>
  %variance = nn.reduce_mean %squares [0] : tensor<4xf32>
  return %variance : tensor<f32>
}
// CHECK: @variance result 0 = [0.0625]

// Softmax of f16 logits with a mask constant added twice stays finite: a fully open row sums to one.
func.func @masked_twice() -> tensor<1x3xf16> {
  %x = nn.constant dense<[[1.0, 2.0, 3.0]]> : tensor<1x3xf16>
  %mask = nn.constant dense<[[0.0, 0.0, -65504.0]]> : tensor<1x3xf16>
  %0 = nn.add %x, %mask : tensor<1x3xf16>, tensor<1x3xf16>
  %1 = nn.cast %0 to f32 : tensor<1x3xf16>
  %wide = nn.cast %mask to f32 : tensor<1x3xf16>
  %2 = nn.add %1, %wide : tensor<1x3xf32>, tensor<1x3xf32>
  %3 = nn.softmax %2 axis 1 : tensor<1x3xf32>
  %y = nn.cast %3 to f16 : tensor<1x3xf32>
  return %y : tensor<1x3xf16>
}
// CHECK: @masked_twice result 0 = [0.2690429688, 0.7309570312, 0]
