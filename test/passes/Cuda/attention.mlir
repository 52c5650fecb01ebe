// Attention and its gradient on a GPU against the interpreter: every head size that has a layout of its own in shared memory, lengths around a tile,
// causal or not, operands apart or packed, one and several heads and sequences. 130 rows are an odd number of tiles, where a barrier too few shows.
// bf16 and f16 run on the tensor cores, with weights rounded to their type; f32 and heads of more than 128 columns do not.
// RUN: split-file %s %t
// RUN: descent-run --compiled --target=cuda-emulated --tolerance=1e-2 %t/bf16.mlir
// RUN: descent-run --compiled --target=cuda-emulated --tolerance=1.2e-3 %t/f16.mlir
// RUN: descent-run --compiled --target=cuda-emulated --tolerance=2e-6 %t/f32.mlir


//--- bf16.mlir
func.func @one_row(%x: tensor<3x1x48xbf16>) -> tensor<3x1x16xbf16> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<3x1x48xbf16>
  %y = nn.attention %q, %k, %v heads 2 causal : tensor<3x1x16xbf16>, tensor<3x1x16xbf16>, tensor<3x1x16xbf16>
  return %y : tensor<3x1x16xbf16>
}
func.func @two_rows(%q: tensor<1x2x16xbf16>, %k: tensor<1x2x16xbf16>, %v: tensor<1x2x16xbf16>) -> tensor<1x2x16xbf16> {
  %y = nn.attention %q, %k, %v heads 1 : tensor<1x2x16xbf16>, tensor<1x2x16xbf16>, tensor<1x2x16xbf16>
  return %y : tensor<1x2x16xbf16>
}
func.func @head_of_24(%x: tensor<1x17x216xbf16>) -> tensor<1x17x72xbf16> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<1x17x216xbf16>
  %y = nn.attention %q, %k, %v heads 3 causal : tensor<1x17x72xbf16>, tensor<1x17x72xbf16>, tensor<1x17x72xbf16>
  return %y : tensor<1x17x72xbf16>
}
func.func @rows_63(%x: tensor<3x63x96xbf16>) -> tensor<3x63x32xbf16> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<3x63x96xbf16>
  %y = nn.attention %q, %k, %v heads 1 : tensor<3x63x32xbf16>, tensor<3x63x32xbf16>, tensor<3x63x32xbf16>
  return %y : tensor<3x63x32xbf16>
}
func.func @rows_64(%x: tensor<1x64x384xbf16>) -> tensor<1x64x128xbf16> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<1x64x384xbf16>
  %y = nn.attention %q, %k, %v heads 2 causal : tensor<1x64x128xbf16>, tensor<1x64x128xbf16>, tensor<1x64x128xbf16>
  return %y : tensor<1x64x128xbf16>
}
func.func @rows_65(%q: tensor<1x65x64xbf16>, %k: tensor<1x65x64xbf16>, %v: tensor<1x65x64xbf16>) -> tensor<1x65x64xbf16> {
  %y = nn.attention %q, %k, %v heads 1 : tensor<1x65x64xbf16>, tensor<1x65x64xbf16>, tensor<1x65x64xbf16>
  return %y : tensor<1x65x64xbf16>
}
func.func @rows_130(%x: tensor<1x130x192xbf16>) -> tensor<1x130x64xbf16> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<1x130x192xbf16>
  %y = nn.attention %q, %k, %v heads 1 causal : tensor<1x130x64xbf16>, tensor<1x130x64xbf16>, tensor<1x130x64xbf16>
  return %y : tensor<1x130x64xbf16>
}
func.func @rows_130_full(%q: tensor<1x130x32xbf16>, %k: tensor<1x130x32xbf16>, %v: tensor<1x130x32xbf16>) -> tensor<1x130x32xbf16> {
  %y = nn.attention %q, %k, %v heads 2 : tensor<1x130x32xbf16>, tensor<1x130x32xbf16>, tensor<1x130x32xbf16>
  return %y : tensor<1x130x32xbf16>
}
func.func @head_of_128(%q: tensor<1x130x128xbf16>, %k: tensor<1x130x128xbf16>, %v: tensor<1x130x128xbf16>) -> tensor<1x130x128xbf16> {
  %y = nn.attention %q, %k, %v heads 1 causal : tensor<1x130x128xbf16>, tensor<1x130x128xbf16>, tensor<1x130x128xbf16>
  return %y : tensor<1x130x128xbf16>
}
func.func @head_of_128_full(%x: tensor<1x65x384xbf16>) -> tensor<1x65x128xbf16> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<1x65x384xbf16>
  %y = nn.attention %q, %k, %v heads 1 : tensor<1x65x128xbf16>, tensor<1x65x128xbf16>, tensor<1x65x128xbf16>
  return %y : tensor<1x65x128xbf16>
}
func.func @head_of_48(%x: tensor<1x70x288xbf16>) -> tensor<1x70x96xbf16> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<1x70x288xbf16>
  %y = nn.attention %q, %k, %v heads 2 causal : tensor<1x70x96xbf16>, tensor<1x70x96xbf16>, tensor<1x70x96xbf16>
  return %y : tensor<1x70x96xbf16>
}
func.func @head_of_80(%q: tensor<1x33x80xbf16>, %k: tensor<1x33x80xbf16>, %v: tensor<1x33x80xbf16>) -> tensor<1x33x80xbf16> {
  %y = nn.attention %q, %k, %v heads 1 : tensor<1x33x80xbf16>, tensor<1x33x80xbf16>, tensor<1x33x80xbf16>
  return %y : tensor<1x33x80xbf16>
}
func.func @head_of_96(%x: tensor<1x66x288xbf16>) -> tensor<1x66x96xbf16> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<1x66x288xbf16>
  %y = nn.attention %q, %k, %v heads 1 causal : tensor<1x66x96xbf16>, tensor<1x66x96xbf16>, tensor<1x66x96xbf16>
  return %y : tensor<1x66x96xbf16>
}
func.func @head_of_112(%x: tensor<1x40x336xbf16>) -> tensor<1x40x112xbf16> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<1x40x336xbf16>
  %y = nn.attention %q, %k, %v heads 1 causal : tensor<1x40x112xbf16>, tensor<1x40x112xbf16>, tensor<1x40x112xbf16>
  return %y : tensor<1x40x112xbf16>
}
func.func @odd_head(%q: tensor<1x37x21xbf16>, %k: tensor<1x37x21xbf16>, %v: tensor<1x37x21xbf16>) -> tensor<1x37x21xbf16> {
  %y = nn.attention %q, %k, %v heads 3 : tensor<1x37x21xbf16>, tensor<1x37x21xbf16>, tensor<1x37x21xbf16>
  return %y : tensor<1x37x21xbf16>
}
func.func @odd_head_packed(%x: tensor<2x19x30xbf16>) -> tensor<2x19x10xbf16> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<2x19x30xbf16>
  %y = nn.attention %q, %k, %v heads 2 causal : tensor<2x19x10xbf16>, tensor<2x19x10xbf16>, tensor<2x19x10xbf16>
  return %y : tensor<2x19x10xbf16>
}
func.func @head_of_20(%x: tensor<1x66x120xbf16>) -> tensor<1x66x40xbf16> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<1x66x120xbf16>
  %y = nn.attention %q, %k, %v heads 2 causal : tensor<1x66x40xbf16>, tensor<1x66x40xbf16>, tensor<1x66x40xbf16>
  return %y : tensor<1x66x40xbf16>
}
func.func @wide_head(%x: tensor<1x9x408xbf16>) -> tensor<1x9x136xbf16> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<1x9x408xbf16>
  %y = nn.attention %q, %k, %v heads 1 causal : tensor<1x9x136xbf16>, tensor<1x9x136xbf16>, tensor<1x9x136xbf16>
  return %y : tensor<1x9x136xbf16>
}

//--- f16.mlir
func.func @one_row(%x: tensor<3x1x48xf16>) -> tensor<3x1x16xf16> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<3x1x48xf16>
  %y = nn.attention %q, %k, %v heads 2 causal : tensor<3x1x16xf16>, tensor<3x1x16xf16>, tensor<3x1x16xf16>
  return %y : tensor<3x1x16xf16>
}
func.func @head_of_24(%x: tensor<1x17x216xf16>) -> tensor<1x17x72xf16> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<1x17x216xf16>
  %y = nn.attention %q, %k, %v heads 3 causal : tensor<1x17x72xf16>, tensor<1x17x72xf16>, tensor<1x17x72xf16>
  return %y : tensor<1x17x72xf16>
}
func.func @rows_63(%x: tensor<3x63x96xf16>) -> tensor<3x63x32xf16> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<3x63x96xf16>
  %y = nn.attention %q, %k, %v heads 1 : tensor<3x63x32xf16>, tensor<3x63x32xf16>, tensor<3x63x32xf16>
  return %y : tensor<3x63x32xf16>
}
func.func @rows_130(%x: tensor<1x130x192xf16>) -> tensor<1x130x64xf16> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<1x130x192xf16>
  %y = nn.attention %q, %k, %v heads 1 causal : tensor<1x130x64xf16>, tensor<1x130x64xf16>, tensor<1x130x64xf16>
  return %y : tensor<1x130x64xf16>
}
func.func @head_of_128_full(%x: tensor<1x65x384xf16>) -> tensor<1x65x128xf16> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<1x65x384xf16>
  %y = nn.attention %q, %k, %v heads 1 : tensor<1x65x128xf16>, tensor<1x65x128xf16>, tensor<1x65x128xf16>
  return %y : tensor<1x65x128xf16>
}
func.func @odd_head(%q: tensor<1x37x21xf16>, %k: tensor<1x37x21xf16>, %v: tensor<1x37x21xf16>) -> tensor<1x37x21xf16> {
  %y = nn.attention %q, %k, %v heads 3 : tensor<1x37x21xf16>, tensor<1x37x21xf16>, tensor<1x37x21xf16>
  return %y : tensor<1x37x21xf16>
}

//--- f32.mlir
func.func @one_row(%x: tensor<3x1x48xf32>) -> tensor<3x1x16xf32> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<3x1x48xf32>
  %y = nn.attention %q, %k, %v heads 2 causal : tensor<3x1x16xf32>, tensor<3x1x16xf32>, tensor<3x1x16xf32>
  return %y : tensor<3x1x16xf32>
}
func.func @two_rows(%q: tensor<1x2x16xf32>, %k: tensor<1x2x16xf32>, %v: tensor<1x2x16xf32>) -> tensor<1x2x16xf32> {
  %y = nn.attention %q, %k, %v heads 1 : tensor<1x2x16xf32>, tensor<1x2x16xf32>, tensor<1x2x16xf32>
  return %y : tensor<1x2x16xf32>
}
func.func @head_of_24(%x: tensor<1x17x216xf32>) -> tensor<1x17x72xf32> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<1x17x216xf32>
  %y = nn.attention %q, %k, %v heads 3 causal : tensor<1x17x72xf32>, tensor<1x17x72xf32>, tensor<1x17x72xf32>
  return %y : tensor<1x17x72xf32>
}
func.func @rows_63(%x: tensor<3x63x96xf32>) -> tensor<3x63x32xf32> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<3x63x96xf32>
  %y = nn.attention %q, %k, %v heads 1 : tensor<3x63x32xf32>, tensor<3x63x32xf32>, tensor<3x63x32xf32>
  return %y : tensor<3x63x32xf32>
}
func.func @rows_65(%q: tensor<1x65x64xf32>, %k: tensor<1x65x64xf32>, %v: tensor<1x65x64xf32>) -> tensor<1x65x64xf32> {
  %y = nn.attention %q, %k, %v heads 1 : tensor<1x65x64xf32>, tensor<1x65x64xf32>, tensor<1x65x64xf32>
  return %y : tensor<1x65x64xf32>
}
func.func @rows_130(%x: tensor<1x130x192xf32>) -> tensor<1x130x64xf32> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<1x130x192xf32>
  %y = nn.attention %q, %k, %v heads 1 causal : tensor<1x130x64xf32>, tensor<1x130x64xf32>, tensor<1x130x64xf32>
  return %y : tensor<1x130x64xf32>
}
func.func @rows_130_full(%q: tensor<1x130x32xf32>, %k: tensor<1x130x32xf32>, %v: tensor<1x130x32xf32>) -> tensor<1x130x32xf32> {
  %y = nn.attention %q, %k, %v heads 2 : tensor<1x130x32xf32>, tensor<1x130x32xf32>, tensor<1x130x32xf32>
  return %y : tensor<1x130x32xf32>
}
func.func @head_of_128(%q: tensor<1x130x128xf32>, %k: tensor<1x130x128xf32>, %v: tensor<1x130x128xf32>) -> tensor<1x130x128xf32> {
  %y = nn.attention %q, %k, %v heads 1 causal : tensor<1x130x128xf32>, tensor<1x130x128xf32>, tensor<1x130x128xf32>
  return %y : tensor<1x130x128xf32>
}
func.func @head_of_48(%x: tensor<1x70x288xf32>) -> tensor<1x70x96xf32> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<1x70x288xf32>
  %y = nn.attention %q, %k, %v heads 2 causal : tensor<1x70x96xf32>, tensor<1x70x96xf32>, tensor<1x70x96xf32>
  return %y : tensor<1x70x96xf32>
}
func.func @odd_head(%q: tensor<1x37x21xf32>, %k: tensor<1x37x21xf32>, %v: tensor<1x37x21xf32>) -> tensor<1x37x21xf32> {
  %y = nn.attention %q, %k, %v heads 3 : tensor<1x37x21xf32>, tensor<1x37x21xf32>, tensor<1x37x21xf32>
  return %y : tensor<1x37x21xf32>
}
func.func @odd_head_packed(%x: tensor<2x19x30xf32>) -> tensor<2x19x10xf32> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<2x19x30xf32>
  %y = nn.attention %q, %k, %v heads 2 causal : tensor<2x19x10xf32>, tensor<2x19x10xf32>, tensor<2x19x10xf32>
  return %y : tensor<2x19x10xf32>
}
func.func @head_of_20(%x: tensor<1x66x120xf32>) -> tensor<1x66x40xf32> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<1x66x120xf32>
  %y = nn.attention %q, %k, %v heads 2 causal : tensor<1x66x40xf32>, tensor<1x66x40xf32>, tensor<1x66x40xf32>
  return %y : tensor<1x66x40xf32>
}
func.func @wide_head(%x: tensor<1x9x408xf32>) -> tensor<1x9x136xf32> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<1x9x408xf32>
  %y = nn.attention %q, %k, %v heads 1 causal : tensor<1x9x136xf32>, tensor<1x9x136xf32>, tensor<1x9x136xf32>
  return %y : tensor<1x9x136xf32>
}
func.func @two_groups(%q: tensor<1x67x192xf32>, %k: tensor<1x67x192xf32>, %v: tensor<1x67x192xf32>) -> tensor<1x67x192xf32> {
  %y = nn.attention %q, %k, %v heads 1 : tensor<1x67x192xf32>, tensor<1x67x192xf32>, tensor<1x67x192xf32>
  return %y : tensor<1x67x192xf32>
}
