// The interpreter's two arithmetics. Exact: types do not round and a cast between floats is nothing. Rounded: each op's result is rounded to its type once,
// sums and statistics inside an op in double.
// RUN: descent-run %s | FileCheck %s --check-prefix=EXACT
// RUN: descent-run -rounded %s | FileCheck %s --check-prefix=ROUNDED

// A running sum in bf16 stops at 1: 1 + 2^-9 is nearer to 1 than to the next number. One reduction over the same numbers is 2.
func.func @running_sum() -> tensor<bf16> {
  %one = nn.constant dense<1.0> : tensor<bf16>
  %small = nn.constant dense<0.001953125> : tensor<bf16>
  %0 = nn.add %one, %small : tensor<bf16>, tensor<bf16>
  %1 = nn.add %0, %small : tensor<bf16>, tensor<bf16>
  %2 = nn.add %1, %small : tensor<bf16>, tensor<bf16>
  %3 = nn.add %2, %small : tensor<bf16>, tensor<bf16>
  return %3 : tensor<bf16>
}
// EXACT: @running_sum result 0 = [1.0078125]
// ROUNDED: @running_sum result 0 = [1]

func.func @sum() -> tensor<1xbf16> {
  %one = nn.constant dense<1.0> : tensor<1x1xbf16>
  %small = nn.constant dense<0.001953125> : tensor<1x512xbf16>
  %x = nn.concat %one, %small axis 1 : tensor<1x1xbf16>, tensor<1x512xbf16>
  %y = nn.reduce_sum %x [1] : tensor<1x513xbf16>
  return %y : tensor<1xbf16>
}
// EXACT: @sum result 0 = [2]
// ROUNDED: @sum result 0 = [2]

// A product in f16 rounds its sum, unless the result is to stay f32.
func.func @products(%a: tensor<1x2xf16> {check.value = dense<[[1.0, 0.00048828125]]> : tensor<1x2xf16>}) -> (tensor<1x1xf16>, tensor<1x1xf32>) {
  %ones = nn.constant dense<1.0> : tensor<2x1xf16>
  %narrow = nn.matmul %a, %ones : tensor<1x2xf16>, tensor<2x1xf16>
  %wide = nn.matmul %a, %ones {result_type = f32} : tensor<1x2xf16>, tensor<2x1xf16>
  return %narrow, %wide : tensor<1x1xf16>, tensor<1x1xf32>
}
// EXACT: @products result 0 = [1.000488281]
// EXACT: @products result 1 = [1.000488281]
// ROUNDED: @products result 0 = [1]
// ROUNDED: @products result 1 = [1.000488281]

// To f16 what is too large becomes infinite, to the 8-bit types it saturates; NaN stays.
func.func @overflow(%x: tensor<4xf32> {check.value = dense<[70000.0, -70000.0, 65519.0, 0x7FC00000]> : tensor<4xf32>})
    -> (tensor<4xf16>, tensor<4xf8E4M3FN>, tensor<4xf8E5M2>, tensor<4xbf16>) {
  %half = nn.cast %x to f16 : tensor<4xf32>
  %e4m3 = nn.cast %x to f8E4M3FN : tensor<4xf32>
  %e5m2 = nn.cast %x to f8E5M2 : tensor<4xf32>
  %bf16 = nn.cast %x to bf16 : tensor<4xf32>
  return %half, %e4m3, %e5m2, %bf16 : tensor<4xf16>, tensor<4xf8E4M3FN>, tensor<4xf8E5M2>, tensor<4xbf16>
}
// EXACT: @overflow result 1 = [70000, -70000, 65519, nan]
// ROUNDED: @overflow result 0 = [inf, -inf, 65504, nan]
// ROUNDED: @overflow result 1 = [448, -448, 448, nan]
// ROUNDED: @overflow result 2 = [57344, -57344, 57344, nan]
// ROUNDED: @overflow result 3 = [70144, -70144, 65536, nan]

// 10 bits of mantissa, ties to even.
func.func @tf32(%x: tensor<3xf32> {check.value = dense<[1.00048828125, 1.00146484375, 1.0e-30]> : tensor<3xf32>}) -> tensor<3xf32> {
  %y = nn.round_tf32 %x : tensor<3xf32>
  return %y : tensor<3xf32>
}
// EXACT: @tf32 result 0 = [1.000488281, 1.001464844,
// ROUNDED: @tf32 result 0 = [1, 1.001953125,

// 1 + 2^-8 lies in the middle between two bf16: up from a draw of one half.
func.func @stochastic(%u: tensor<4xf32> {check.value = dense<[0.0, 0.49, 0.5, 0.99]> : tensor<4xf32>}) -> tensor<4xbf16> {
  %x = nn.constant dense<1.00390625> : tensor<f32>
  %y = nn.round_stochastically %x, %u to bf16 : tensor<f32>, tensor<4xf32>
  return %y : tensor<4xbf16>
}
// EXACT: @stochastic result 0 = [1.00390625, 1.00390625, 1.00390625, 1.00390625]
// ROUNDED: @stochastic result 0 = [1, 1, 1.0078125, 1.0078125]

// A small gradient in f16 is lost; a scaled one is not.
func.func @gradients(%g: tensor<2xf32> {check.value = dense<[2.0e-8, 1.0e-7]> : tensor<2xf32>}) -> (tensor<2xf32>, tensor<2xf32>) {
  %scale = nn.constant dense<65536.0> : tensor<f32>
  %0 = nn.cast %g to f16 : tensor<2xf32>
  %lost = nn.cast %0 to f32 : tensor<2xf16>
  %1 = nn.mul %g, %scale : tensor<2xf32>, tensor<f32>
  %2 = nn.cast %1 to f16 : tensor<2xf32>
  %3 = nn.cast %2 to f32 : tensor<2xf16>
  %kept = nn.div %3, %scale : tensor<2xf32>, tensor<f32>
  return %lost, %kept : tensor<2xf32>, tensor<2xf32>
}
// ROUNDED: @gradients result 0 = [0, 1.192092896e-07]
// ROUNDED: @gradients result 1 = [1.999433152e-08, 1.000007614e-07]
