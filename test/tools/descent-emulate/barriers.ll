; Barriers beyond bar.sync 0: numbers, counts, arrival without waiting, and names of older LLVM.

; A producer that arrives and does not wait, a consumer that waits: 64 threads in all, at two places.
; RUN: descent-emulate %s --kernel arrive --grid 1 --block 64 --arg i32[32] --expect 0=iota
; RUN: descent-emulate %s --kernel arrive --grid 1 --block 64 --arg i32[32] --expect 0=iota --order reverse
; RUN: not descent-emulate %s --kernel arrive --grid 1 --block 96 --arg i32[32] 2>&1 | FileCheck %s --check-prefix=TWICE
; TWICE: error: deadlock: no thread of the block can go on
; TWICE: 32 threads at a barrier, the first is (64, 0, 0):

; RUN: descent-emulate %s --kernel older --grid 2 --block 64 --arg i32[1] --expect 0=64
; RUN: not descent-emulate %s --kernel number --grid 1 --block 64 --arg i32:16 --arg i32:64 2>&1 | FileCheck %s --check-prefix=NUMBER
; NUMBER: error: there is no barrier 16
; RUN: not descent-emulate %s --kernel number --grid 1 --block 64 --arg i32:1 --arg i32:33 2>&1 | FileCheck %s --check-prefix=THREADS
; THREADS: error: a barrier of 33 threads
; RUN: not descent-emulate %s --kernel number --grid 1 --block 64 --arg i32:1 --arg i32:96 2>&1 | FileCheck %s --check-prefix=MANY
; MANY: error: a barrier of 96 threads in a block of 64
; RUN: descent-emulate %s --kernel number --grid 1 --block 64 --arg i32:15 --arg i32:32

; barrier.sync may stand at several places; its aligned form may not, at least not inside a warp.
; RUN: descent-emulate %s --kernel places --grid 1 --block 64
; RUN: sed -e 's/barrier.cta.sync.count/barrier.cta.sync.aligned.count/' %s > %t.ll
; RUN: not descent-emulate %t.ll --kernel places --grid 1 --block 64 2>&1 | FileCheck %s --check-prefix=PLACES
; PLACES: error: divergent barrier: lanes of one warp are at different barriers

@buffer = internal addrspace(3) global [32 x i32] undef, align 4

; The first warp writes, the second reads.
define ptx_kernel void @arrive(ptr addrspace(1) %out) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %p = getelementptr i32, ptr addrspace(3) @buffer, i32 %lane
  %first = icmp ult i32 %t, 32
  br i1 %first, label %produce, label %consume
produce:
  store i32 %lane, ptr addrspace(3) %p, align 4
  call void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32 1, i32 64)
  ret void
consume:
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 64)
  %v = load i32, ptr addrspace(3) %p, align 4
  %q = getelementptr i32, ptr addrspace(1) %out, i32 %lane
  store i32 %v, ptr addrspace(1) %q, align 4
  ret void
}

declare void @llvm.nvvm.barrier0()
declare i32 @llvm.nvvm.barrier0.popc(i32)
declare void @llvm.nvvm.bar.sync(i32)

define ptx_kernel void @older(ptr addrspace(1) %out) {
  call void @llvm.nvvm.barrier0()
  %n = call i32 @llvm.nvvm.barrier0.popc(i32 1)
  call void @llvm.nvvm.bar.sync(i32 3)
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %first = icmp eq i32 %t, 0
  br i1 %first, label %write, label %end
write:
  store i32 %n, ptr addrspace(1) %out, align 4
  br label %end
end:
  ret void
}

define ptx_kernel void @number(i32 %id, i32 %count) {
  call void @llvm.nvvm.barrier.cta.sync.count(i32 %id, i32 %count)
  ret void
}

; Even lanes at one barrier instruction, odd ones at another, of the same barrier.
define ptx_kernel void @places() {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %odd = trunc i32 %t to i1
  br i1 %odd, label %one, label %other
one:
  call void @llvm.nvvm.barrier.cta.sync.count(i32 1, i32 64)
  ret void
other:
  call void @llvm.nvvm.barrier.cta.sync.count(i32 1, i32 64)
  ret void
}
