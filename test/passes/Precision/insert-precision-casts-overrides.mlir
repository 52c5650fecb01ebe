// Overrides by kind and by name, the last match wins; a mask constant that f16 cannot hold keeps its op in f32, and so does an epsilon that would become zero
// or lose its bits; one that it can hold becomes f16.
// RUN: descent-opt --inline-modules --insert-precision-casts --split-input-file %s | FileCheck %s

module attributes {train.compute = f16, train.overrides = [
    #train.override<op = "matmul", match = "head*", type = f32>,
    #train.override<op = "softmax", match = "", type = f16>]} {
  nn.module @linear(%x: tensor<5x6xf32>) -> tensor<5x6xf32> {
    %w = nn.parameter "weight" normal(0.0, 0.5) : tensor<6x6xf32>
    %y = nn.matmul %x, %w : tensor<5x6xf32>, tensor<6x6xf32>
    nn.return %y : tensor<5x6xf32>
  }
  // CHECK-LABEL: nn.model @m
  nn.model @m(%x: tensor<5x6xf32> {nn.role = "data"}, %t: tensor<5x6xf32> {nn.role = "target"}) {
    // CHECK: %[[BODY:.*]] = nn.matmul {{.*}} : tensor<5x6xf16>, tensor<6x6xf16>
    %0 = nn.instantiate @linear as "body" (%x) : (tensor<5x6xf32>) -> tensor<5x6xf32>
    // CHECK: %[[TWO:.*]] = nn.constant dense<2.000000e+00> : tensor<f16>
    // CHECK: %[[D:.*]] = nn.mul %[[BODY]], %[[TWO]] : tensor<5x6xf16>, tensor<f16>
    %two = nn.constant dense<2.0> : tensor<f32>
    %1 = nn.mul %0, %two : tensor<5x6xf32>, tensor<f32>
    // CHECK: %[[WIDE:.*]] = nn.cast %[[D]] to f32
    // CHECK: %[[M:.*]] = nn.add %[[WIDE]], %{{.*}} : tensor<5x6xf32>, tensor<f32>
    %mask = nn.constant dense<-1.0e9> : tensor<f32>
    %2 = nn.add %1, %mask : tensor<5x6xf32>, tensor<f32>
    // CHECK: nn.maximum %{{.*}}, %{{.*}} : tensor<5x6xf32>, tensor<f32>
    %epsilon = nn.constant dense<1.0e-8> : tensor<f32>
    %unused = nn.maximum %1, %epsilon : tensor<5x6xf32>, tensor<f32>
    // CHECK: nn.maximum %{{.*}}, %{{.*}} : tensor<5x6xf32>, tensor<f32>
    %few = nn.constant dense<1.1e-6> : tensor<f32>
    %unused2 = nn.maximum %1, %few : tensor<5x6xf32>, tensor<f32>
    // CHECK: nn.maximum %[[D]], %{{.*}} : tensor<5x6xf16>, tensor<f16>
    %tenth = nn.constant dense<0.1> : tensor<f32>
    %unused3 = nn.maximum %1, %tenth : tensor<5x6xf32>, tensor<f32>
    // CHECK: nn.softmax %{{.*}} axis 1 : tensor<5x6xf16>
    %3 = nn.softmax %2 axis 1 : tensor<5x6xf32>
    // CHECK: nn.matmul %{{.*}} : tensor<5x6xf32>, tensor<6x6xf32>
    %4 = nn.instantiate @linear as "head" (%3) : (tensor<5x6xf32>) -> tensor<5x6xf32>
    %sum, %weight = nn.mse %4, %t : tensor<5x6xf32>, tensor<5x6xf32>
    nn.loss %sum, %weight, %4 : tensor<5x6xf32>
  }
}

// -----

// `inner.*` holds what stands right in the instance, and `*.neg` every op of that kind.
module attributes {train.compute = bf16, train.overrides = [
    #train.override<op = "", match = "inner.*", type = f16>, #train.override<op = "", match = "*.neg", type = f32>]} {
  nn.module @part(%x: tensor<5x6xf32>) -> tensor<5x6xf32> {
    %y = nn.relu %x : tensor<5x6xf32>
    %z = nn.neg %y : tensor<5x6xf32>
    nn.return %z : tensor<5x6xf32>
  }
  // CHECK-LABEL: nn.model @paths
  nn.model @paths(%x: tensor<5x6xf32> {nn.role = "data"}, %t: tensor<5x6xf32> {nn.role = "target"}) {
    // CHECK: nn.relu %{{.*}} : tensor<5x6xf16>
    // CHECK: nn.neg %{{.*}} : tensor<5x6xf32>
    %0 = nn.instantiate @part as "inner" (%x) : (tensor<5x6xf32>) -> tensor<5x6xf32>
    // CHECK: nn.relu %{{.*}} : tensor<5x6xf32>
    %1 = nn.relu %0 : tensor<5x6xf32>
    %sum, %weight = nn.mse %1, %t : tensor<5x6xf32>, tensor<5x6xf32>
    nn.loss %sum, %weight, %1 : tensor<5x6xf32>
  }
}
