// RUN: descent-opt %s --generate-device-kernels="target=cuda:sm_86" --split-input-file --verify-diagnostics

exec.kernel @shape "gemm" (%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @below {{descent.tile is [rows, columns, depth, stages, splits]: rows x columns one of 128x128 64x64 128x32 32x128 32x32, a depth that is a power of two from 4 to 32, 2 to 4 stages, at least one split}}
  %y = nn.matmul %a, %b {descent.tile = array<i64: 48, 64, 32, 2, 1>} : tensor<8x8xf32>, tensor<8x8xf32>
  exec.yield %y : tensor<8x8xf32>
}

// -----

exec.kernel @depth "gemm" (%a: tensor<8x8xbf16>, %b: tensor<8x8xbf16>) -> tensor<8x8xbf16> {
  // expected-error @below {{a depth that is a power of two from 16 to 64, 2 to 4 stages}}
  %y = nn.matmul %a, %b {descent.tile = array<i64: 64, 64, 8, 2, 1>} : tensor<8x8xbf16>, tensor<8x8xbf16>
  exec.yield %y : tensor<8x8xbf16>
}

// -----

// expected-error @below {{@shared: its tile needs 131072 bytes of shared memory, sm_86 lets a block have 101376}}
exec.kernel @shared "gemm" (%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64: 128, 128, 32, 4, 1>} : tensor<8x8xf32>, tensor<8x8xf32>
  exec.yield %y : tensor<8x8xf32>
}
