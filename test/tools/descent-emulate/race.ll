; Accesses of one byte by two threads of a block with nothing between them that orders them.

; A missing barrier between writing and reading shared memory, whatever the order of threads.
; RUN: not descent-emulate %s --kernel shared --grid 1 --block 64 --arg i32[64] --arg i1:0 --disable uninitialised 2>&1 | FileCheck %s
; CHECK: error: race: {{read of bytes that another thread wrote|write of bytes that another thread read}} since the last barrier
; CHECK: of shared variable @buffer (256 bytes)
; RUN: not descent-emulate %s --kernel shared --grid 1 --block 64 --arg i32[64] --arg i1:0 --disable uninitialised --order reverse 2>&1 | FileCheck %s
; RUN: not descent-emulate %s --kernel shared --grid 1 --block 64 --arg i32[64] --arg i1:0 --disable uninitialised --order shuffled:7 2>&1 | FileCheck %s
; The same fault leaves a word that was never written, in one order at least.
; RUN: not descent-emulate %s --kernel shared --grid 1 --block 64 --arg i32[64] --arg i1:0 2>&1 | FileCheck %s --check-prefix=FIRST
; FIRST: error: uninitialised read of 4 bytes
; In global memory.
; RUN: not descent-emulate %s --kernel global --grid 1 --block 64 --arg i32[64]=zeros --arg i1:0 2>&1 | FileCheck %s --check-prefix=GLOBAL
; GLOBAL: error: race: write of bytes that another thread read since the last barrier
; GLOBAL-NEXT: in @global: store i32 %t, ptr addrspace(1) %mine, align 4
; GLOBAL-NEXT: in kernel @global, block (0, 0, 0), thread (1, 0, 0)
; GLOBAL-NEXT: is byte 4 of argument 0 (%x): i32[64]
; GLOBAL-NEXT: the other access: read by thread (0, 0, 0)
; GLOBAL-NEXT: in @global: %v = load i32, ptr addrspace(1) %next, align 4
; GLOBAL-NEXT: cure: put a barrier between the two accesses; inside a warp bar.warp.sync is enough
; RUN: not descent-emulate %s --kernel global --grid 1 --block 64 --arg i32[64]=zeros --arg i1:0 --order reverse 2>&1 | FileCheck %s --check-prefix=REVERSE
; REVERSE: error: race: read of bytes that another thread wrote since the last barrier
; RUN: descent-emulate %s --kernel shared --grid 1 --block 64 --arg i32[64] --arg i1:1
; RUN: descent-emulate %s --kernel global --grid 1 --block 64 --arg i32[64]=zeros --arg i1:1

; Two threads write one word; neighbours of 16 bits are not a race.
; RUN: not descent-emulate %s --kernel narrow --grid 1 --block 64 --arg i16[64] --arg i32:0 2>&1 | FileCheck %s --check-prefix=WRITES
; WRITES: error: race: write of bytes that another thread wrote since the last barrier
; RUN: descent-emulate %s --kernel narrow --grid 1 --block 64 --arg i16[64] --arg i32:1

; bar.warp.sync orders the lanes that meet, and those alone: 1 warp is sound, 2 are not.
; RUN: descent-emulate %s --kernel warp --grid 1 --block 32 --arg i32[64]=zeros --arg i32:1
; RUN: not descent-emulate %s --kernel warp --grid 1 --block 64 --arg i32[64]=zeros --arg i32:1 2>&1 | FileCheck %s --check-prefix=WARP
; WARP: error: race:
; WARP: thread (32, 0, 0)
; WARP: cure: put a barrier between the two accesses, or make both atomic

; Atomic accesses do not race with each other, but with others.
; RUN: descent-emulate %s --kernel atomic --grid 4 --block 64 --arg i32[1]=zeros --arg i32:-1 --expect 0=256
; RUN: not descent-emulate %s --kernel atomic --grid 4 --block 64 --arg i32[1]=zeros --arg i32:17 2>&1 | FileCheck %s --check-prefix=ATOMIC
; ATOMIC: error: race: read of bytes that another thread wrote since the last barrier
; ATOMIC: the other access: atomic access by thread (16, 0, 0)

; A barrier of one warp of the two (bar.sync 1, 64 would be of both).
; RUN: descent-emulate %s --kernel named --grid 1 --block 96 --arg i32[96]=zeros --arg i32:64
; RUN: not descent-emulate %s --kernel named --grid 1 --block 96 --arg i32[96]=zeros --arg i32:32 2>&1 | FileCheck %s --check-prefix=NAMED
; NAMED: error: race:

; RUN: descent-emulate %s --kernel global --grid 1 --block 64 --arg i32[64]=zeros --arg i1:0 --disable race

@buffer = internal addrspace(3) global [64 x i32] undef, align 4

; Each thread writes its word and reads its neighbour's.
define ptx_kernel void @shared(ptr addrspace(1) %out, i1 %sound) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %n = add i32 %t, 1
  %wrap = and i32 %n, 63
  %mine = getelementptr i32, ptr addrspace(3) @buffer, i32 %t
  %next = getelementptr i32, ptr addrspace(3) @buffer, i32 %wrap
  store i32 %t, ptr addrspace(3) %mine, align 4
  br i1 %sound, label %barrier, label %read
barrier:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %read
read:
  %v = load i32, ptr addrspace(3) %next, align 4
  %p = getelementptr i32, ptr addrspace(1) %out, i32 %t
  store i32 %v, ptr addrspace(1) %p, align 4
  ret void
}

define ptx_kernel void @global(ptr addrspace(1) %x, i1 %sound) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %n = add i32 %t, 1
  %wrap = and i32 %n, 63
  %mine = getelementptr i32, ptr addrspace(1) %x, i32 %t
  %next = getelementptr i32, ptr addrspace(1) %x, i32 %wrap
  store i32 %t, ptr addrspace(1) %mine, align 4
  br i1 %sound, label %barrier, label %read
barrier:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %read
read:
  %v = load i32, ptr addrspace(1) %next, align 4
  ret void
}

define ptx_kernel void @narrow(ptr addrspace(1) %x, i32 %stride) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %i = mul i32 %t, %stride
  %p = getelementptr i16, ptr addrspace(1) %x, i32 %i
  store i16 7, ptr addrspace(1) %p, align 2
  ret void
}

define ptx_kernel void @warp(ptr addrspace(1) %x, i32 %distance) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %n = add i32 %t, %distance
  %wrap = and i32 %n, 63
  %mine = getelementptr i32, ptr addrspace(1) %x, i32 %t
  %next = getelementptr i32, ptr addrspace(1) %x, i32 %wrap
  store i32 %t, ptr addrspace(1) %mine, align 4
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %v = load i32, ptr addrspace(1) %next, align 4
  ret void
}

; One thread reads what all add to.
define ptx_kernel void @atomic(ptr addrspace(1) %x, i32 %reader) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %reads = icmp eq i32 %t, %reader
  br i1 %reads, label %read, label %add
read:
  %v = load i32, ptr addrspace(1) %x, align 4
  br label %add
add:
  %old = atomicrmw add ptr addrspace(1) %x, i32 1 monotonic, align 4
  ret void
}

; The first two warps exchange words across a barrier of %count threads; the third does nothing.
define ptx_kernel void @named(ptr addrspace(1) %x, i32 %count) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %third = icmp uge i32 %t, 64
  br i1 %third, label %end, label %exchange
exchange:
  %warp = lshr i32 %t, 5
  %one = icmp eq i32 %count, 32
  %other = add i32 %warp, 1
  %id = select i1 %one, i32 %other, i32 1
  %n = xor i32 %t, 32
  %mine = getelementptr i32, ptr addrspace(1) %x, i32 %t
  %next = getelementptr i32, ptr addrspace(1) %x, i32 %n
  store i32 %t, ptr addrspace(1) %mine, align 4
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 %id, i32 %count)
  %v = load i32, ptr addrspace(1) %next, align 4
  br label %end
end:
  ret void
}
