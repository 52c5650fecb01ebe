// Sums and weights of micro-batches are added before the one division: micro A has 1 target of loss 4, micro B 3 of loss 1, together 7 / 4 = 1.75,
// not the mean of means 2.5.
// RUN: descent-run %s | FileCheck %s
// RUN: descent-run --linalg-forward %s

func.func @micro_batches() -> tensor<f32> {
  %a = nn.constant dense<[[2.0]]> : tensor<1x1xf32>
  %b = nn.constant dense<[[1.0], [1.0], [1.0]]> : tensor<3x1xf32>
  %za = nn.constant dense<0.0> : tensor<1x1xf32>
  %zb = nn.constant dense<0.0> : tensor<3x1xf32>
  %sa, %wa = nn.mse %a, %za : tensor<1x1xf32>, tensor<1x1xf32>
  %sb, %wb = nn.mse %b, %zb : tensor<3x1xf32>, tensor<3x1xf32>
  %s = nn.add %sa, %sb : tensor<f32>, tensor<f32>
  %w = nn.add %wa, %wb : tensor<f32>, tensor<f32>
  %y = nn.div %s, %w : tensor<f32>, tensor<f32>
  return %y : tensor<f32>
}
// CHECK: @micro_batches result 0 = [1.75]

// Variance in two passes: {4096, 4096.5, 4096, 4096.5} has variance 0.0625, so layer_norm gives -1, 1, -1, 1 (with a tiny epsilon).
func.func @variance() -> tensor<1x4xf32> {
  %x = nn.constant dense<[[4096.0, 4096.5, 4096.0, 4096.5]]> : tensor<1x4xf32>
  %gain = nn.constant dense<1.0> : tensor<4xf32>
  %bias = nn.constant dense<0.0> : tensor<4xf32>
  %y = nn.layer_norm %x, %gain, %bias {epsilon = 1.0e-12} : tensor<1x4xf32>, tensor<4xf32>, tensor<4xf32>
  return %y : tensor<1x4xf32>
}
// CHECK: @variance result 0 = [-1, 1, -1, 1]
