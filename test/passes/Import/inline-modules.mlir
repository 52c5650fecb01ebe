// Instances become the bodies of their modules, nested ones too; names inside are prefixed by the instances around them, in parameters and in locations.
// RUN: descent-opt --inline-modules %s | FileCheck %s
// RUN: descent-opt --inline-modules --mlir-print-debuginfo %s | FileCheck %s --check-prefix=NAMES

// CHECK-NOT: nn.module
nn.module @linear(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %w = nn.parameter "weight" zeros : tensor<4x4xf32>
  %y = nn.matmul %x, %w : tensor<?x4xf32>, tensor<4x4xf32>
  nn.return %y : tensor<?x4xf32>
}
nn.module @pair(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = nn.instantiate @linear as "first" (%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = nn.instantiate @linear as "second" (%0) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  nn.return %1 : tensor<?x4xf32>
}

// CHECK-LABEL: nn.model @m
// CHECK-SAME:  (%[[X:.*]]: tensor<?x4xf32> {nn.name = "x", nn.role = "data"}
nn.model @m(%x: tensor<?x4xf32> {nn.role = "data"}, %t: tensor<?x4xf32> {nn.role = "target"}) {
  // CHECK:      %[[W0:.*]] = nn.parameter "a.first.weight" zeros : tensor<4x4xf32>
  // CHECK-NEXT: %[[Y0:.*]] = nn.matmul %[[X]], %[[W0]]
  // CHECK-NEXT: %[[W1:.*]] = nn.parameter "a.second.weight" zeros : tensor<4x4xf32>
  // CHECK-NEXT: %[[Y1:.*]] = nn.matmul %[[Y0]], %[[W1]]
  // NAMES-DAG: loc("a.first"(#
  // NAMES-DAG: loc("a.second"(#
  %0 = nn.instantiate @pair as "a" (%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  // CHECK:      nn.mse %[[Y1]]
  %s, %n = nn.mse %0, %t : tensor<?x4xf32>, tensor<?x4xf32>
  nn.loss %s, %n, %0 : tensor<?x4xf32>
}
