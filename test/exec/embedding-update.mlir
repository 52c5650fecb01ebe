// RUN: descent-opt %s --phase-fusion | FileCheck %s

// A tied embedding: its gradient's two contributions, the norm of the gradient over many elements, clipping and an Adam update in one flat kernel.

// CHECK-DAG: exec.kernel @gather{{.*}} "gather"
// CHECK-DAG: exec.kernel @scatter{{.*}} "scatter"
// CHECK-DAG: attributes {accumulate = 2 : i64
// CHECK-LABEL: func.func @update
func.func @update(%tokens: tensor<6x9xi32>, %table: tensor<300x64xf32>, %dl: tensor<6x9x300xf32>, %dx: tensor<6x9x64xf32>, %m: tensor<19200xf32>, %v: tensor<19200xf32>)
    -> (tensor<6x9x64xf32>, tensor<f32>, tensor<300x64xf32>, tensor<19200xf32>, tensor<19200xf32>) {
  %limit = nn.constant dense<1.0> : tensor<f32>
  %b1 = nn.constant dense<0.9> : tensor<f32>
  %a1 = nn.constant dense<0.1> : tensor<f32>
  %b2 = nn.constant dense<0.95> : tensor<f32>
  %a2 = nn.constant dense<0.05> : tensor<f32>
  %eps = nn.constant dense<1.0e-8> : tensor<f32>
  %lr = nn.constant dense<0.01> : tensor<f32>
  %e = nn.embedding %tokens, %table : tensor<6x9xi32>, tensor<300x64xf32>
  %g1 = nn.embedding_grad %dx, %tokens rows 300 : tensor<6x9x64xf32>, tensor<6x9xi32>
  %dlf = nn.reshape %dl [54, 300] : tensor<6x9x300xf32>
  %ef = nn.reshape %e [54, 64] : tensor<6x9x64xf32>
  %g2 = nn.matmul %dlf, %ef {transpose_a} : tensor<54x300xf32>, tensor<54x64xf32>
  %g = nn.add %g1, %g2 : tensor<300x64xf32>, tensor<300x64xf32>
  %gf = nn.reshape %g [19200] : tensor<300x64xf32>
  %gg = nn.mul %gf, %gf : tensor<19200xf32>, tensor<19200xf32>
  %ss = nn.reduce_sum %gg [0] : tensor<19200xf32>
  %norm = nn.sqrt %ss : tensor<f32>
  %ratio = nn.div %limit, %norm : tensor<f32>, tensor<f32>
  %clip = nn.minimum %ratio, %limit : tensor<f32>, tensor<f32>
  %gc = nn.mul %gf, %clip : tensor<19200xf32>, tensor<f32>
  %m1 = nn.mul %m, %b1 : tensor<19200xf32>, tensor<f32>
  %m2 = nn.mul %gc, %a1 : tensor<19200xf32>, tensor<f32>
  %mn = nn.add %m1, %m2 : tensor<19200xf32>, tensor<19200xf32>
  %v1 = nn.mul %v, %b2 : tensor<19200xf32>, tensor<f32>
  %gs = nn.mul %gc, %gc : tensor<19200xf32>, tensor<19200xf32>
  %v2 = nn.mul %gs, %a2 : tensor<19200xf32>, tensor<f32>
  %vn = nn.add %v1, %v2 : tensor<19200xf32>, tensor<19200xf32>
  %va = nn.abs %vn : tensor<19200xf32>
  %root = nn.sqrt %va : tensor<19200xf32>
  %den = nn.add %root, %eps : tensor<19200xf32>, tensor<f32>
  %step = nn.div %mn, %den : tensor<19200xf32>, tensor<19200xf32>
  %s2 = nn.mul %step, %lr : tensor<19200xf32>, tensor<f32>
  %tf = nn.reshape %table [19200] : tensor<300x64xf32>
  %tn = nn.sub %tf, %s2 : tensor<19200xf32>, tensor<19200xf32>
  %new = nn.reshape %tn [300, 64] : tensor<19200xf32>
  return %e, %norm, %new, %mn, %vn : tensor<6x9x64xf32>, tensor<f32>, tensor<300x64xf32>, tensor<19200xf32>, tensor<19200xf32>
}
