// A kernel as the compiler writes it, in the gpu dialect: lowered by MLIR's own pipeline, then run.
// A block of 64 sums a row of 256 with 16-byte loads, shuffles and memory of the workgroup.

// RUN: mlir-opt %s --pass-pipeline='builtin.module(gpu.module(convert-scf-to-cf,convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=1 index-bitwidth=32},reconcile-unrealized-casts,canonicalize,cse))' \
// RUN:   | sed -e 1d -e '/^}$/d' -e 's/gpu.module @kernels/module/' > %t.nvvm.mlir
// RUN: mlir-translate --mlir-to-llvmir %t.nvvm.mlir -o %t.ll
// RUN: descent-emulate %t.ll --list | FileCheck %s --check-prefix=LIST
// LIST: kernel row_sum
// LIST-NEXT: parameter 0: ptr
// LIST-NEXT: parameter 1: ptr
// LIST-NEXT: shared @{{.*}}: 8 bytes
// LIST-NEXT: at most 64 threads in a block
// RUN: descent-emulate %t.ll --grid 3 --block 64 --arg f32[3x256]=iota --arg f32[3] --print 1 | FileCheck %s
// RUN: descent-emulate %t.ll --grid 3 --block 64 --arg f32[3x256]=iota --arg f32[3] --print 1 --order shuffled:5 | FileCheck %s
// CHECK: f32[3] = 32640 98176 163712

gpu.module @kernels {
  gpu.func @row_sum(%x: memref<3x256xf32>, %out: memref<3xf32>)
      workgroup(%partial: memref<2xf32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %width = arith.constant 32 : i32
    %row = gpu.block_id x
    %t = gpu.thread_id x
    %column = arith.muli %t, %c4 : index
    %v = vector.load %x[%row, %column] {alignment = 16 : i64} : memref<3x256xf32>, vector<4xf32>
    %s0 = vector.reduction <add>, %v : vector<4xf32> into f32
    %o16 = arith.constant 16 : i32
    %a16, %p16 = gpu.shuffle xor %s0, %o16, %width : f32
    %s1 = arith.addf %s0, %a16 : f32
    %o8 = arith.constant 8 : i32
    %a8, %p8 = gpu.shuffle xor %s1, %o8, %width : f32
    %s2 = arith.addf %s1, %a8 : f32
    %o4 = arith.constant 4 : i32
    %a4, %p4 = gpu.shuffle xor %s2, %o4, %width : f32
    %s3 = arith.addf %s2, %a4 : f32
    %o2 = arith.constant 2 : i32
    %a2, %p2 = gpu.shuffle xor %s3, %o2, %width : f32
    %s4 = arith.addf %s3, %a2 : f32
    %o1 = arith.constant 1 : i32
    %a1, %p1 = gpu.shuffle xor %s4, %o1, %width : f32
    %s5 = arith.addf %s4, %a1 : f32
    %warp = arith.divui %t, %c32 : index
    %lane = arith.remui %t, %c32 : index
    %first = arith.cmpi eq, %lane, %c0 : index
    scf.if %first {
      memref.store %s5, %partial[%warp] : memref<2xf32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %writes = arith.cmpi eq, %t, %c0 : index
    scf.if %writes {
      %a = memref.load %partial[%c0] : memref<2xf32, #gpu.address_space<workgroup>>
      %b = memref.load %partial[%c1] : memref<2xf32, #gpu.address_space<workgroup>>
      %sum = arith.addf %a, %b : f32
      memref.store %sum, %out[%row] : memref<3xf32>
    }
    gpu.return
  }
}
