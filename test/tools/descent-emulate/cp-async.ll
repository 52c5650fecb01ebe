; Asynchronous copies: groups, sizes, and what is forbidden while one is in flight.

; Zero fill: 8 of the 16 bytes are read, though the source has no more.
; RUN: descent-emulate %s --kernel copy --grid 1 --block 1 --arg i32[2]=iota --arg i32[4] --arg i32:8 --arg i1:1 --print 1 | FileCheck %s
; CHECK: i32[4] = 0 1 0 0
; RUN: descent-emulate %s --kernel copy --grid 1 --block 1 --arg ptr:0 --arg i32[4] --arg i32:0 --arg i1:1 --expect 1=zeros
; RUN: not descent-emulate %s --kernel copy --grid 1 --block 1 --arg i32[2]=iota --arg i32[4] --arg i32:16 --arg i1:1 2>&1 | FileCheck %s --check-prefix=SOURCE
; SOURCE: error: out of bounds read of 16 bytes
; SOURCE-NEXT: in @copy: call void @llvm.nvvm.cp.async.cg.shared.global.16.s

; Without the wait the data is not there, not even for the thread that asked for it.
; RUN: not descent-emulate %s --kernel copy --grid 1 --block 1 --arg i32[4]=iota --arg i32[4] --arg i32:16 --arg i1:0 2>&1 | FileCheck %s --check-prefix=WAIT
; WAIT: error: race: read of bytes that a cp.async is still writing
; WAIT: the copy was issued by thread (0, 0, 0)
; WAIT: cure: the thread that issues a cp.async waits for its group

; wait_group 1 leaves the newest of two groups in flight, wait_group 0 none.
; RUN: descent-emulate %s --kernel groups --grid 1 --block 1 --arg i32[2]=iota --arg i32:0
; RUN: not descent-emulate %s --kernel groups --grid 1 --block 1 --arg i32[2]=iota --arg i32:1 2>&1 | FileCheck %s --check-prefix=GROUPS
; GROUPS: error: race: read of bytes that a cp.async is still writing
; GROUPS: is byte 0 of shared variable @second

; The wait is of one thread: others need a barrier behind it.
; RUN: not descent-emulate %s --kernel neighbour --grid 1 --block 2 --arg i32[2]=iota --arg i1:0 --disable uninitialised 2>&1 | FileCheck %s --check-prefix=NEIGHBOUR
; NEIGHBOUR: error: race:
; RUN: descent-emulate %s --kernel neighbour --grid 1 --block 2 --arg i32[2]=iota --arg i1:1

; RUN: not descent-emulate %s --kernel copy --grid 1 --block 1 --arg i32[8]=iota --arg i32[4] --arg i32:17 --arg i1:1 2>&1 | FileCheck %s --check-prefix=SIZE
; SIZE: error: cp.async of 16 bytes reads 17
; RUN: not descent-emulate %s --kernel misaligned --grid 1 --block 1 --arg i32[8]=iota 2>&1 | FileCheck %s --check-prefix=ALIGN
; ALIGN: error: misaligned cp.async of 16 bytes
; ALIGN: from {{.*}} byte 4 of argument 0

@first = internal addrspace(3) global [4 x i32] undef, align 16
@second = internal addrspace(3) global [4 x i32] undef, align 16

define ptx_kernel void @copy(ptr addrspace(1) %x, ptr addrspace(1) %y, i32 %bytes, i1 %sound) {
  call void @llvm.nvvm.cp.async.cg.shared.global.16.s(ptr addrspace(3) @first, ptr addrspace(1) %x, i32 %bytes)
  call void @llvm.nvvm.cp.async.commit.group()
  br i1 %sound, label %wait, label %read
wait:
  call void @llvm.nvvm.cp.async.wait.all()
  br label %read
read:
  %v = load <4 x i32>, ptr addrspace(3) @first, align 16
  store <4 x i32> %v, ptr addrspace(1) %y, align 16
  ret void
}

define ptx_kernel void @groups(ptr addrspace(1) %x, i32 %all) {
  %p = getelementptr i32, ptr addrspace(1) %x, i32 1
  call void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3) @first, ptr addrspace(1) %x)
  call void @llvm.nvvm.cp.async.commit.group()
  call void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3) @second, ptr addrspace(1) %p)
  call void @llvm.nvvm.cp.async.commit.group()
  call void @llvm.nvvm.cp.async.wait.group(i32 1)
  %v = load i32, ptr addrspace(3) @first, align 4
  %early = icmp ne i32 %all, 0
  br i1 %early, label %read, label %wait
wait:
  call void @llvm.nvvm.cp.async.wait.group(i32 0)
  br label %read
read:
  %w = load i32, ptr addrspace(3) @second, align 4
  ret void
}

; Each of two threads copies a word and reads the other's.
define ptx_kernel void @neighbour(ptr addrspace(1) %x, i1 %sound) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %n = xor i32 %t, 1
  %g = getelementptr i32, ptr addrspace(1) %x, i32 %t
  %mine = getelementptr i32, ptr addrspace(3) @first, i32 %t
  %other = getelementptr i32, ptr addrspace(3) @first, i32 %n
  call void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3) %mine, ptr addrspace(1) %g)
  call void @llvm.nvvm.cp.async.wait.all()
  br i1 %sound, label %barrier, label %read
barrier:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %read
read:
  %v = load i32, ptr addrspace(3) %other, align 4
  ret void
}

define ptx_kernel void @misaligned(ptr addrspace(1) %x) {
  %p = getelementptr i32, ptr addrspace(1) %x, i32 1
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) @first, ptr addrspace(1) %p)
  ret void
}
