// The checker sees what it should: at a kink the gradient and the difference quotient disagree, and the run fails.
// RUN: not descent-run --finite-difference %s | FileCheck %s

// CHECK: kink {{ *}}d argument 0 {{.*}} WRONG
func.func @kink(%x: tensor<1xf32> {check.value = dense<0.0> : tensor<1xf32>}) -> tensor<1xf32> {
  %y = nn.relu %x : tensor<1xf32>
  return %y : tensor<1xf32>
}
