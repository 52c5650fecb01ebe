// Launches on the communication stream wait for what they read and are waited for by who reads theirs, also where the planner gave bytes to another
// value. Launch 3 conflicts with launch 1 as well, which is implied by its wait for launch 2.
// RUN: descent-opt %s --assign-streams --verify-plan | FileCheck %s

exec.arena size 1024 persistent 0 lower_bound 1024 parameters 0 gradients 0 optimizer 0 activations 0 workspace 1024
exec.kernel @one "rows" (%x: tensor<16xf32>) -> tensor<16xf32> {
  %y = nn.relu %x : tensor<16xf32>
  exec.yield %y : tensor<16xf32>
}
exec.storage @in "inputs" at 0 : tensor<16xf32>
// CHECK-LABEL: exec.program @step
exec.program @step {
  %x = exec.get @in at 0 : memref<16xf32>
  %a = exec.buffer "a" "workspace" at 64 live [0, 2] : memref<16xf32>
  %b = exec.buffer "b" "workspace" at 128 live [1, 3] : memref<16xf32>
  %c = exec.buffer "c" "workspace" at 192 live [2, 3] : memref<16xf32>
  %d = exec.buffer "d" "workspace" at 256 live [3, 4] : memref<16xf32>
  // The bytes of %a, which launch 2 reads on the other stream.
  %e = exec.buffer "e" "workspace" at 64 live [4, 5] : memref<16xf32>
  // CHECK: exec.run @one ins({{.*}}) outs({{.*}}) {record = 0 : i64}
  exec.run @one ins(%x : memref<16xf32>) outs(%a : memref<16xf32>)
  // CHECK-NEXT: exec.run @one ins({{.*}}) outs({{.*}}) {stream = 1 : i64, waits = array<i64: 0>}
  exec.run @one ins(%a : memref<16xf32>) outs(%b : memref<16xf32>) {stream = 1 : i64}
  // CHECK-NEXT: exec.run @one ins({{.*}}) outs({{.*}}) {record = 1 : i64, stream = 1 : i64}
  exec.run @one ins(%a : memref<16xf32>) outs(%c : memref<16xf32>) {stream = 1 : i64}
  // CHECK-NEXT: exec.run @one ins({{.*}}) outs({{.*}}) {waits = array<i64: 1>}
  exec.run @one ins(%c : memref<16xf32>) outs(%d : memref<16xf32>)
  // CHECK-NEXT: exec.run @one ins({{.*}}) outs({{.*}} : memref<16xf32>){{$}}
  exec.run @one ins(%d : memref<16xf32>) outs(%e : memref<16xf32>)
}
