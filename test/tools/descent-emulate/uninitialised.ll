; Reads of memory that nobody wrote, in each space. Hardware gives whatever was there.

; RUN: not descent-emulate %s --kernel global --grid 1 --block 1 --arg f32[4] --arg f32[1] 2>&1 | FileCheck %s
; CHECK: error: uninitialised read of 4 bytes: byte 0 was never written
; CHECK-NEXT: in @global: %v = load float, ptr addrspace(1) %x, align 4
; CHECK: is byte 0 of argument 0 (%x): f32[4]
; CHECK-NEXT: cure: initialise the memory before the kernel reads it
; RUN: descent-emulate %s --kernel global --grid 1 --block 1 --arg f32[4]=ones --arg f32[1] --expect 1=ones
; Turned off, the value is NaN.
; RUN: descent-emulate %s --kernel global --grid 1 --block 1 --arg f32[4] --arg f32[1] --disable uninitialised --expect 1=nan

; Half of a word is enough.
; RUN: not descent-emulate %s --kernel half --grid 1 --block 1 2>&1 | FileCheck %s --check-prefix=SHARED
; SHARED: uninitialised read of 4 bytes: byte 2 was never written
; SHARED: is byte 2 of shared variable @buffer (4 bytes)

; A block does not see what the one before it left in shared memory.
; RUN: not descent-emulate %s --kernel left --grid 2 --block 1 2>&1 | FileCheck %s --check-prefix=BLOCK
; BLOCK: uninitialised read of 4 bytes
; BLOCK: block (1, 0, 0)
; RUN: descent-emulate %s --kernel left --grid 1 --block 1

; RUN: not descent-emulate %s --kernel local --grid 1 --block 1 --arg i32:0 2>&1 | FileCheck %s --check-prefix=LOCAL
; LOCAL: is byte 4 of local variable (8 bytes)

; An atomic update reads what it adds to.
; RUN: not descent-emulate %s --kernel count --grid 1 --block 1 --arg i32[1] 2>&1 | FileCheck %s --check-prefix=ATOMIC
; ATOMIC: uninitialised atomic access of 4 bytes

define ptx_kernel void @global(ptr addrspace(1) %x, ptr addrspace(1) %y) {
  %v = load float, ptr addrspace(1) %x, align 4
  store float %v, ptr addrspace(1) %y, align 4
  ret void
}

@buffer = internal addrspace(3) global i32 undef, align 4

define ptx_kernel void @half() {
  store i16 1, ptr addrspace(3) @buffer, align 4
  %v = load i32, ptr addrspace(3) @buffer, align 4
  ret void
}

define ptx_kernel void @left() {
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %first = icmp eq i32 %block, 0
  br i1 %first, label %write, label %read
write:
  store i32 1, ptr addrspace(3) @buffer, align 4
  ret void
read:
  %v = load i32, ptr addrspace(3) @buffer, align 4
  ret void
}

define ptx_kernel void @local(i32 %i) {
  %array = alloca [2 x i32], align 4
  %p = getelementptr i32, ptr %array, i32 %i
  store i32 1, ptr %p, align 4
  %q = getelementptr i32, ptr %array, i32 1
  %v = load i32, ptr %q, align 4
  ret void
}

define ptx_kernel void @count(ptr addrspace(1) %x) {
  %old = atomicrmw add ptr addrspace(1) %x, i32 1 monotonic, align 4
  ret void
}
