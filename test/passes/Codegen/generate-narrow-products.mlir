// RUN: descent-opt %s --generate-kernels="cpu=haswell" | FileCheck %s --check-prefixes=CHECK,WIDEN --implicit-check-not=x86vector
// RUN: descent-opt %s --generate-kernels="cpu=skylake-avx512" | FileCheck %s --check-prefixes=CHECK,WIDEN --implicit-check-not=x86vector
// RUN: descent-opt %s --generate-kernels="cpu=znver4" | FileCheck %s --check-prefixes=CHECK,PAIRS

// Narrow floats lie in buffers as integers of their width. Without instructions for bf16 packing widens both operands, and the tile of f32 products
// multiplies them; with AVX512_BF16 packing puts neighbours in k into pairs, and a tile of its own multiplies those. f8 is widened to bf16 there. Half
// floats, which have no such instruction, are widened everywhere.

// CHECK-DAG: func.func @gemm_bf16({{.*}}: memref<32x24xi16>, {{.*}}: memref<24x64xi16>, {{.*}}: memref<64xi16>, {{.*}}: memref<32x64xi16>,
// CHECK-DAG: func.func @gemm_f8({{.*}}: memref<32x24xi8>, {{.*}}: memref<24x64xi8>, {{.*}}: memref<32x64xf32>,
// CHECK-DAG: func.func @gemm_f16({{.*}}: memref<32x24xi16>, {{.*}}: memref<24x64xi16>, {{.*}}: memref<32x64xi16>,

// WIDEN-DAG: func.func private @descent_pack_{{[0-9]+}}_bf16({{.*}}: memref<1099511627776xi16>, {{.*}}: memref<1099511627776xf32>,
// WIDEN-DAG: func.func private @descent_pack_{{[0-9]+}}_f8E5M2({{.*}}: memref<1099511627776xi8>, {{.*}}: memref<1099511627776xf32>,
// WIDEN-DAG: vector.fma

// PAIRS-DAG: func.func private @descent_pack_32_bf16_pairs({{.*}}: memref<1099511627776xi16>, {{.*}}: memref<1099511627776xi32>,
// PAIRS-DAG: func.func private @descent_pack_32_f8E5M2_pairs({{.*}}: memref<1099511627776xi8>, {{.*}}: memref<1099511627776xi32>,
// PAIRS-DAG: func.func private @descent_pack_32_f16({{.*}}: memref<1099511627776xi16>, {{.*}}: memref<1099511627776xf32>,
// PAIRS-DAG: x86vector.avx512.dot {{.*}} : vector<32xbf16> -> vector<16xf32>
// PAIRS-DAG: vector.fma

exec.kernel @gemm_bf16 "gemm" (%x: tensor<32x24xbf16>, %w: tensor<24x64xbf16>, %b: tensor<64xbf16>) -> tensor<32x64xbf16> {
  %0 = nn.matmul %x, %w : tensor<32x24xbf16>, tensor<24x64xbf16>
  %1 = nn.add %0, %b : tensor<32x64xbf16>, tensor<64xbf16>
  exec.yield %1 : tensor<32x64xbf16>
}
exec.kernel @gemm_f8 "gemm" (%x: tensor<32x24xf8E4M3FN>, %w: tensor<24x64xf8E5M2>) -> tensor<32x64xf32> {
  %0 = nn.matmul %x, %w {result_type = f32} : tensor<32x24xf8E4M3FN>, tensor<24x64xf8E5M2>
  exec.yield %0 : tensor<32x64xf32>
}
exec.kernel @gemm_f16 "gemm" (%x: tensor<32x24xf16>, %w: tensor<24x64xf16>) -> tensor<32x64xf16> {
  %0 = nn.matmul %x, %w : tensor<32x24xf16>, tensor<24x64xf16>
  exec.yield %0 : tensor<32x64xf16>
}
