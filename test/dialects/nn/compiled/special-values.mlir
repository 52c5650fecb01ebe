// NaN, infinities, zeros, subnormal and very large numbers through elementary functions, forward only (their gradients are not all defined there). The
// interpreter says what C's functions say.
// RUN: descent-run --compiled --tolerance=1e-6 %s
// RUN: descent-run --compiled --tolerance=1e-6 --target=cuda-emulated %s

// Quotients of integers, since arguments of floats would be asked for their gradients.
func.func @functions(%a: tensor<13xi32> {check.value = dense<[0, 0, 1, -1, 0, 1, -1, 2, -2, 1, 60, -60, 3]> : tensor<13xi32>}, %b: tensor<13xi32> {check.value = dense<[1, -1, 0, 0, 0, 1, 1, 1, 1, 2, 1, 1, 2]> : tensor<13xi32>}) -> (tensor<13xf32>, tensor<13xf32>, tensor<13xf32>, tensor<13xf32>, tensor<13xf32>, tensor<13xf32>, tensor<13xf32>, tensor<13xf32>) {
  %0 = nn.cast %a to f32 : tensor<13xi32>
  %1 = nn.cast %b to f32 : tensor<13xi32>
  %x = nn.div %0, %1 : tensor<13xf32>, tensor<13xf32>
  %exp = nn.exp %x : tensor<13xf32>
  %log = nn.log %x : tensor<13xf32>
  %sqrt = nn.sqrt %x : tensor<13xf32>
  %rsqrt = nn.rsqrt %x : tensor<13xf32>
  %tanh = nn.tanh %x : tensor<13xf32>
  %sigmoid = nn.sigmoid %x : tensor<13xf32>
  %erf = nn.erf %x : tensor<13xf32>
  %abs = nn.abs %x : tensor<13xf32>
  return %exp, %log, %sqrt, %rsqrt, %tanh, %sigmoid, %erf, %abs : tensor<13xf32>, tensor<13xf32>, tensor<13xf32>, tensor<13xf32>, tensor<13xf32>, tensor<13xf32>, tensor<13xf32>, tensor<13xf32>
}
func.func @powers(%a: tensor<13x1xi32> {check.value = dense<[[0], [0], [1], [-1], [0], [1], [-1], [2], [-2], [1], [-1], [3], [3]]> : tensor<13x1xi32>}, %b: tensor<13x1xi32> {check.value = dense<[[1], [-1], [0], [0], [0], [1], [1], [1], [1], [2], [2], [1], [2]]> : tensor<13x1xi32>},
                  %c: tensor<14xi32> {check.value = dense<[0, 0, 1, -1, 0, 1, -1, 2, -2, 1, -1, 3, -3, 3]> : tensor<14xi32>}, %d: tensor<14xi32> {check.value = dense<[1, -1, 0, 0, 0, 1, 1, 1, 1, 2, 2, 1, 1, 2]> : tensor<14xi32>}) -> tensor<13x14xf32> {
  %0 = nn.cast %a to f32 : tensor<13x1xi32>
  %1 = nn.cast %b to f32 : tensor<13x1xi32>
  %2 = nn.cast %c to f32 : tensor<14xi32>
  %3 = nn.cast %d to f32 : tensor<14xi32>
  %x = nn.div %0, %1 : tensor<13x1xf32>, tensor<13x1xf32>
  %e = nn.div %2, %3 : tensor<14xf32>, tensor<14xf32>
  %y = nn.pow %x, %e : tensor<13x1xf32>, tensor<14xf32>
  return %y : tensor<13x14xf32>
}
// A NaN passes maxima and minima, and comparisons with it fail.
func.func @order(%a: tensor<13x1xi32> {check.value = dense<[[0], [0], [1], [-1], [0], [1], [-1], [2], [-2], [1], [-1], [3], [3]]> : tensor<13x1xi32>}, %b: tensor<13x1xi32> {check.value = dense<[[1], [-1], [0], [0], [0], [1], [1], [1], [1], [2], [2], [1], [2]]> : tensor<13x1xi32>},
                 %c: tensor<14xi32> {check.value = dense<[0, 0, 1, -1, 0, 1, -1, 2, -2, 1, -1, 3, -3, 3]> : tensor<14xi32>}, %d: tensor<14xi32> {check.value = dense<[1, -1, 0, 0, 0, 1, 1, 1, 1, 2, 2, 1, 1, 2]> : tensor<14xi32>}) -> (tensor<13x14xf32>, tensor<13x14xf32>, tensor<13xf32>) {
  %0 = nn.cast %a to f32 : tensor<13x1xi32>
  %1 = nn.cast %b to f32 : tensor<13x1xi32>
  %2 = nn.cast %c to f32 : tensor<14xi32>
  %3 = nn.cast %d to f32 : tensor<14xi32>
  %x = nn.div %0, %1 : tensor<13x1xf32>, tensor<13x1xf32>
  %e = nn.div %2, %3 : tensor<14xf32>, tensor<14xf32>
  %4 = nn.maximum %x, %e : tensor<13x1xf32>, tensor<14xf32>
  %5 = nn.minimum %x, %e : tensor<13x1xf32>, tensor<14xf32>
  %6 = nn.reduce_max %4 [1] : tensor<13x14xf32>
  return %4, %5, %6 : tensor<13x14xf32>, tensor<13x14xf32>, tensor<13xf32>
}
