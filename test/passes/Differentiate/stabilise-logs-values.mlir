// logits [10, 0, -100], label 2: the negative log likelihood is 110.0000454 in f32, not infinity; log(sigmoid(x)) at -infinity, -200 and infinity.
// RUN: descent-opt %s --stabilise-logs | descent-run --gradients - | FileCheck %s
// RUN: descent-opt %s --stabilise-logs | descent-run --linalg -

func.func @likelihood(%x: tensor<1x3xf32> {check.value = dense<[[10.0, 0.0, -100.0]]> : tensor<1x3xf32>}) -> tensor<1x1xf32> {
  %p = nn.softmax %x axis 1 : tensor<1x3xf32>
  %l = nn.log %p : tensor<1x3xf32>
  %n = nn.neg %l : tensor<1x3xf32>
  %y = nn.slice %n from [0, 2] to [1, 3] by [1, 1] : tensor<1x3xf32>
  return %y : tensor<1x1xf32>
}
// CHECK: @likelihood result 0 = [110.0000454]
// CHECK: @likelihood gradient of argument 0 = [0.9999546021, 4.539786{{[0-9]+}}e-05, -1]

func.func @log_sigmoid(%x: tensor<3xf32> {check.value = dense<[-200.0, 0.0, 200.0]> : tensor<3xf32>}) -> tensor<3xf32> {
  %p = nn.sigmoid %x : tensor<3xf32>
  %y = nn.log %p : tensor<3xf32>
  return %y : tensor<3xf32>
}
// CHECK: @log_sigmoid result 0 = [-200, -0.6931471806, 0]

func.func @log_sigmoid_at_infinity() -> tensor<2xf32> {
  %x = nn.constant dense<[0xFF800000, 0x7F800000]> : tensor<2xf32>
  %p = nn.sigmoid %x : tensor<2xf32>
  %y = nn.log %p : tensor<2xf32>
  return %y : tensor<2xf32>
}
// CHECK: @log_sigmoid_at_infinity result 0 = [-inf, 0]
