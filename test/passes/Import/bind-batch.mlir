// The batch becomes a number, from the option, the module's attribute or what is written; every result type follows.
// RUN: descent-opt --bind-batch=batch=6 %s -split-input-file | FileCheck %s

// CHECK: module attributes {train.batch = 6 : i64}
// CHECK-LABEL: nn.model @by_option
// CHECK-SAME:  tensor<6x2x4xf32> {nn.name = "x", nn.role = "data"}
nn.model @by_option(%x: tensor<?x2x4xf32> {nn.role = "data"}, %t: tensor<?x8xf32> {nn.role = "target"}) {
  // CHECK: nn.reshape %{{.*}} [-1, 8] : tensor<6x2x4xf32>
  %0 = nn.reshape %x [-1, 8] : tensor<?x2x4xf32>
  // CHECK: nn.relu %{{.*}} : tensor<6x8xf32>
  %1 = nn.relu %0 : tensor<?x8xf32>
  %s, %n = nn.mse %1, %t : tensor<?x8xf32>, tensor<?x8xf32>
  nn.loss %s, %n, %1 : tensor<?x8xf32>
}

// -----

// A recorded batch that agrees with the option is no conflict, nor is a model written for that size.
// CHECK-LABEL: nn.model @recorded
// CHECK-SAME:  tensor<6x4xf32> {nn.name = "x", nn.role = "data"}
module attributes {train.batch = 6 : i64} {
  nn.model @recorded(%x: tensor<6x4xf32> {nn.role = "data"}, %t: tensor<?x4xf32> {nn.role = "target"}) {
    // CHECK: nn.mse {{.*}} : tensor<6x4xf32>, tensor<6x4xf32>
    %0 = nn.broadcast %x [-1, -1] : tensor<6x4xf32>
    %s, %n = nn.mse %t, %t : tensor<?x4xf32>, tensor<?x4xf32>
    nn.loss %s, %n, %0 : tensor<6x4xf32>
  }
}
