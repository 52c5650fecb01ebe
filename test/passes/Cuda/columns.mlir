// Reductions over leading axes in device code, run by the emulator with all its checks, against the interpreter: columns that no access of 16 bytes
// divides, one row and one column, rows that one launch adds up and rows that take two, sums of sums, several results, kept axes.
// RUN: descent-run --compiled --tolerance=2e-5 --target=cuda-emulated %s

func.func @sum_1x1(%x: tensor<1x1xf32>) -> tensor<1xf32> {
  %y = nn.reduce_sum %x [0] : tensor<1x1xf32>
  return %y : tensor<1xf32>
}
func.func @sum_1x127(%x: tensor<1x127xf32>) -> tensor<127xf32> {
  %y = nn.reduce_sum %x [0] : tensor<1x127xf32>
  return %y : tensor<127xf32>
}
func.func @sum_2x1(%x: tensor<2x1xf32>) -> tensor<1xf32> {
  %y = nn.reduce_sum %x [0] : tensor<2x1xf32>
  return %y : tensor<1xf32>
}
func.func @sum_2x3(%x: tensor<2x3xf32>) -> tensor<3xf32> {
  %y = nn.reduce_sum %x [0] : tensor<2x3xf32>
  return %y : tensor<3xf32>
}
func.func @sum_2x64(%x: tensor<2x64xf32>) -> tensor<64xf32> {
  %y = nn.reduce_sum %x [0] : tensor<2x64xf32>
  return %y : tensor<64xf32>
}
func.func @sum_1000x1(%x: tensor<1000x1xf32>) -> tensor<1xf32> {
  %y = nn.reduce_sum %x [0] : tensor<1000x1xf32>
  return %y : tensor<1xf32>
}
func.func @sum_1000x3(%x: tensor<1000x3xf32>) -> tensor<3xf32> {
  %y = nn.reduce_sum %x [0] : tensor<1000x3xf32>
  return %y : tensor<3xf32>
}
func.func @sum_1000x4(%x: tensor<1000x4xf32>) -> tensor<4xf32> {
  %y = nn.reduce_sum %x [0] : tensor<1000x4xf32>
  return %y : tensor<4xf32>
}
func.func @sum_1000x5(%x: tensor<1000x5xf32>) -> tensor<5xf32> {
  %y = nn.reduce_sum %x [0] : tensor<1000x5xf32>
  return %y : tensor<5xf32>
}
func.func @sum_1000x31(%x: tensor<1000x31xf32>) -> tensor<31xf32> {
  %y = nn.reduce_sum %x [0] : tensor<1000x31xf32>
  return %y : tensor<31xf32>
}
func.func @sum_40x64(%x: tensor<40x64xf32>) -> tensor<64xf32> {
  %y = nn.reduce_sum %x [0] : tensor<40x64xf32>
  return %y : tensor<64xf32>
}
func.func @sum_300x127(%x: tensor<300x127xf32>) -> tensor<127xf32> {
  %y = nn.reduce_sum %x [0] : tensor<300x127xf32>
  return %y : tensor<127xf32>
}
func.func @sum_70x260(%x: tensor<70x260xf32>) -> tensor<260xf32> {
  %y = nn.reduce_sum %x [0] : tensor<70x260xf32>
  return %y : tensor<260xf32>
}
// A part adds more rows than one sum takes.
func.func @sum_of_sums(%x: tensor<140000x1xf32>) -> tensor<1xf32> {
  %s = nn.mul %x, %x : tensor<140000x1xf32>, tensor<140000x1xf32>
  %y = nn.reduce_sum %s [0] : tensor<140000x1xf32>
  return %y : tensor<1xf32>
}
func.func @max(%x: tensor<300x20xf32>) -> tensor<20xf32> {
  %y = nn.reduce_max %x [0] : tensor<300x20xf32>
  return %y : tensor<20xf32>
}
func.func @mean_middle(%x: tensor<3x200x12xf32>) -> tensor<3x12xf32> {
  %y = nn.reduce_mean %x [1] : tensor<3x200x12xf32>
  return %y : tensor<3x12xf32>
}
// Two sums from one sweep, with what all rows share, and results that need the sums.
func.func @batch_statistics(%x: tensor<200x24xf32>, %scale: tensor<24xf32>) -> (tensor<24xf32>, tensor<24xf32>) {
  %a = nn.mul %x, %scale : tensor<200x24xf32>, tensor<24xf32>
  %m = nn.reduce_mean %a [0] : tensor<200x24xf32>
  %s = nn.mul %a, %x : tensor<200x24xf32>, tensor<200x24xf32>
  %q = nn.reduce_mean %s [0] : tensor<200x24xf32>
  %r = nn.add %q, %scale : tensor<24xf32>, tensor<24xf32>
  return %m, %r : tensor<24xf32>, tensor<24xf32>
}
