// Products as the emulated library computes them and as generated code does in its stead, with their gradients, against the interpreter.
// RUN: descent-run --compiled --target=cuda-emulated %s
// RUN: env DESCENT_EMULATOR_CUBLASLT=none descent-run --compiled --target=cuda-emulated %s

func.func @linear(%x: tensor<8x16xf32>, %w: tensor<16x24xf32>, %b: tensor<24xf32>) -> tensor<8x24xf32> {
  %0 = nn.matmul %x, %w : tensor<8x16xf32>, tensor<16x24xf32>
  %1 = nn.add %0, %b : tensor<8x24xf32>, tensor<24xf32>
  return %1 : tensor<8x24xf32>
}
// Sizes that are multiples of nothing.
func.func @odd(%x: tensor<2x3x5xf32>, %w: tensor<7x5xf32>, %b: tensor<7xf32>) -> tensor<2x3x7xf32> {
  %0 = nn.matmul %x, %w {transpose_b} : tensor<2x3x5xf32>, tensor<7x5xf32>
  %1 = nn.add %0, %b : tensor<2x3x7xf32>, tensor<7xf32>
  %2 = nn.relu %1 : tensor<2x3x7xf32>
  return %2 : tensor<2x3x7xf32>
}
// The pre-activation goes to the backward product.
func.func @mlp(%x: tensor<8x16xf32>, %w: tensor<16x24xf32>, %b: tensor<24xf32>, %v: tensor<24x8xf32>) -> tensor<8x8xf32> {
  %0 = nn.matmul %x, %w : tensor<8x16xf32>, tensor<16x24xf32>
  %1 = nn.add %0, %b : tensor<8x24xf32>, tensor<24xf32>
  %2 = nn.gelu %1 tanh : tensor<8x24xf32>
  %3 = nn.matmul %2, %v : tensor<8x24xf32>, tensor<24x8xf32>
  return %3 : tensor<8x8xf32>
}
func.func @relu_mlp(%x: tensor<8x16xf32>, %w: tensor<16x24xf32>, %v: tensor<24x8xf32>) -> tensor<8x8xf32> {
  %0 = nn.matmul %x, %w : tensor<8x16xf32>, tensor<16x24xf32>
  %1 = nn.relu %0 : tensor<8x24xf32>
  %2 = nn.matmul %1, %v : tensor<8x24xf32>, tensor<24x8xf32>
  return %2 : tensor<8x8xf32>
}
// One weight, two products: its gradients are added in place.
func.func @tied(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> tensor<8x16xf32> {
  %0 = nn.matmul %x, %w : tensor<8x16xf32>, tensor<16x16xf32>
  %1 = nn.matmul %0, %w {transpose_b} : tensor<8x16xf32>, tensor<16x16xf32>
  return %1 : tensor<8x16xf32>
}
func.func @batched(%q: tensor<2x3x8x16xf32>, %k: tensor<2x3x8x16xf32>) -> tensor<2x3x8x8xf32> {
  %0 = nn.matmul %q, %k {transpose_b} : tensor<2x3x8x16xf32>, tensor<2x3x8x16xf32>
  return %0 : tensor<2x3x8x8xf32>
}
// Weights that lie the other way round: the bias gradient is the sum of the first operand. With 600 rows the sum has two launches where it is apart.
func.func @transposed(%x: tensor<600x8xf32>, %w: tensor<12x8xf32>, %b: tensor<12xf32>) -> tensor<600x12xf32> {
  %0 = nn.matmul %x, %w {transpose_b} : tensor<600x8xf32>, tensor<12x8xf32>
  %1 = nn.add %0, %b : tensor<600x12xf32>, tensor<12xf32>
  return %1 : tensor<600x12xf32>
}
