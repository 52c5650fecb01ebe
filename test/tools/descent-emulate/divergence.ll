; Threads that should meet and do not.

; A barrier under a condition, the other threads at another barrier.
; RUN: not descent-emulate %s --kernel two --grid 1 --block 64 2>&1 | FileCheck %s --check-prefix=TWO
; TWO: error: divergent barrier: threads of one block wait at different barriers
; TWO-NEXT: at {{.*}}divergence.ll:[[# @LINE + 41]], in @two: call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
; TWO-NEXT: block (0, 0, 0), thread (5, 0, 0)
; TWO-NEXT: thread (0, 0, 0) and 4 others are at
; TWO-NEXT: at {{.*}}divergence.ll:[[# @LINE + 35]]
; TWO: cure: move the barrier out of the condition

; Threads that returned early.
; RUN: not descent-emulate %s --kernel gone --grid 1 --block 64 2>&1 | FileCheck %s --check-prefix=GONE
; GONE: error: divergent barrier: 5 of 64 threads wait here, but thread (5, 0, 0) has exited
; RUN: not descent-emulate %s --kernel gone --grid 1 --block 64 --order reverse 2>&1 | FileCheck %s --check-prefix=EARLY
; EARLY: error: divergent barrier: 59 of 64 threads have exited
; RUN: descent-emulate %s --kernel gone --grid 1 --block 5

; A warp operation that some lanes do not reach, while they wait elsewhere.
; RUN: not descent-emulate %s --kernel lanes --grid 1 --block 32 2>&1 | FileCheck %s --check-prefix=LANES
; LANES: error: lanes of one warp that should meet are at different operations
; LANES: thread (0, 0, 0) is at
; LANES-NEXT: in @lanes: %all = call i1 @llvm.nvvm.vote.all.sync(i32 -1, i1 true)
; RUN: not descent-emulate %s --kernel mask --grid 1 --block 32 2>&1 | FileCheck %s --check-prefix=MASK
; MASK: error: lane 1 executes an operation of lanes 0x00000001

; One warp waits for a barrier that the other never reaches, since its lanes wait for each other.
; RUN: not descent-emulate %s --kernel deadlock --grid 1 --block 64 2>&1 | FileCheck %s --check-prefix=DEADLOCK
; DEADLOCK: error: deadlock: no thread of the block can go on
; DEADLOCK: 33 threads at a barrier, the first is (0, 0, 0):
; DEADLOCK: 31 threads at a warp operation, the first is (33, 0, 0):
; RUN: not descent-emulate %s --kernel spin --grid 1 --block 2 --arg i32[1]=zeros 2>&1 | FileCheck %s --check-prefix=SPIN
; SPIN: error: deadlock: threads read 0x{{[0-9a-f]+}} over and over, and nobody is left to change it
; SPIN: is byte 0 of argument 0 (%flag): i32[1]
; A loop that waits for a thread that runs later is sound.
; RUN: descent-emulate %s --kernel wait --grid 1 --block 2 --arg i32[1]=zeros
; RUN: descent-emulate %s --kernel wait --grid 1 --block 2 --arg i32[1]=zeros --order reverse

define ptx_kernel void @two() {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %few = icmp ult i32 %t, 5
  br i1 %few, label %first, label %second
first:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  ret void
second:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  ret void
}

define ptx_kernel void @gone() {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %few = icmp ult i32 %t, 5
  br i1 %few, label %meet, label %end
meet:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  ret void
end:
  ret void
}

define ptx_kernel void @lanes() {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %few = icmp ult i32 %t, 5
  br i1 %few, label %vote, label %sync
vote:
  %all = call i1 @llvm.nvvm.vote.all.sync(i32 -1, i1 true)
  ret void
sync:
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  ret void
}

define ptx_kernel void @mask() {
  call void @llvm.nvvm.bar.warp.sync(i32 1)
  ret void
}

define ptx_kernel void @deadlock() {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %barrier = icmp ult i32 %t, 33
  br i1 %barrier, label %meet, label %vote
meet:
  call void @llvm.nvvm.barrier.cta.sync.all(i32 0)
  ret void
vote:
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  ret void
}

define ptx_kernel void @spin(ptr addrspace(1) %flag) {
  br label %loop
loop:
  %v = load atomic i32, ptr addrspace(1) %flag syncscope("block") acquire, align 4
  %set = icmp ne i32 %v, 0
  br i1 %set, label %end, label %loop
end:
  ret void
}

; Each of two threads waits for its turn.
define ptx_kernel void @wait(ptr addrspace(1) %flag) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %loop
loop:
  %v = load atomic i32, ptr addrspace(1) %flag syncscope("block") acquire, align 4
  %set = icmp eq i32 %v, %t
  br i1 %set, label %end, label %loop
end:
  %n = add i32 %t, 1
  store atomic i32 %n, ptr addrspace(1) %flag syncscope("block") release, align 4
  ret void
}
