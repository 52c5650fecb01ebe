; An index that is wrong by one, in each space, and one that is wrong by much.

; One thread too many: the message tells instruction, place in the grid, address and buffer.
; RUN: not descent-emulate %s --kernel global --grid 3,2 --block 4,2 --arg f32[47] --arg i32:1 2>&1 | FileCheck %s
; CHECK: error: out of bounds write of 4 bytes
; CHECK-NEXT: at {{.*}}out-of-bounds.ll:[[# @LINE + 36]], in @global: store float 1.000000e+00, ptr addrspace(1) %p, align 4
; CHECK-NEXT: in kernel @global, block (2, 1, 0), thread (3, 1, 0)
; CHECK-NEXT: address 0x{{[0-9a-f]+}} is 0 bytes behind the end of argument 0 (%x): f32[47] (188 bytes at 0x{{[0-9a-f]+}})
; CHECK-NEXT: cure: guard the access by the size of the buffer, or launch fewer threads
; RUN: descent-emulate %s --kernel global --grid 3,2 --block 4,2 --arg f32[48] --arg i32:1 --expect 0=ones

; A stride of 64 MiB lands in no other buffer; one in front of the buffer is caught too.
; RUN: not descent-emulate %s --kernel global --grid 3,2 --block 4,2 --arg f32[48] --arg i32:16777216 2>&1 | FileCheck %s --check-prefix=FAR
; FAR: 67108672 bytes behind the end of argument 0
; RUN: not descent-emulate %s --kernel global --grid 3,2 --block 4,2 --arg f32[48] --arg i32:-1 2>&1 | FileCheck %s --check-prefix=FRONT
; FRONT: 4 bytes before the start of argument 0
; RUN: not descent-emulate %s --kernel global --grid 1 --block 1 --arg ptr:0 --arg i32:1 2>&1 | FileCheck %s --check-prefix=NULL
; NULL: out of bounds write of 4 bytes: null pointer

; A vector that begins inside and ends outside.
; RUN: not descent-emulate %s --kernel vector --grid 1 --block 2 --arg f32[6]=iota 2>&1 | FileCheck %s --check-prefix=VECTOR
; VECTOR: out of bounds read of 16 bytes
; VECTOR: begins inside; its last byte {{.*}} is 7 bytes behind the end of argument 0

; The end of a shared variable, though another variable could lie behind it; and of a local one.
; RUN: not descent-emulate %s --kernel shared --grid 1 --block 9 2>&1 | FileCheck %s --check-prefix=SHARED
; SHARED: out of bounds write of 4 bytes
; SHARED: thread (8, 0, 0)
; SHARED-NEXT: 0 bytes behind the end of shared variable @first (32 bytes)
; RUN: descent-emulate %s --kernel shared --grid 1 --block 8
; RUN: not descent-emulate %s --kernel dynamic --grid 1 --block 8 --shared 31 2>&1 | FileCheck %s --check-prefix=DYNAMIC
; DYNAMIC: address {{.*}} begins inside; its last byte {{.*}} is 0 bytes behind the end of dynamic shared memory @buffer (31 bytes)
; RUN: not descent-emulate %s --kernel local --grid 1 --block 5 2>&1 | FileCheck %s --check-prefix=LOCAL
; LOCAL: thread (4, 0, 0)
; LOCAL-NEXT: 0 bytes behind the end of local variable (16 bytes)
; RUN: descent-emulate %s --kernel local --grid 1 --block 4

define ptx_kernel void @global(ptr addrspace(1) %x, i32 %stride) {
  %number = call i32 @number()
  %i = mul i32 %number, %stride
  %p = getelementptr float, ptr addrspace(1) %x, i32 %i
  store float 1.0, ptr addrspace(1) %p, align 4
  ret void
}

; The thread's number in a grid of 3 x 2 blocks of 4 x 2 threads.
define internal i32 @number() {
  %tx = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %ty = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  %bx = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %by = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %width = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %row = mul i32 %by, %width
  %block = add i32 %row, %bx
  %b = mul i32 %block, 8
  %t = mul i32 %ty, 4
  %u = add i32 %t, %tx
  %n = add i32 %b, %u
  ret i32 %n
}

define ptx_kernel void @vector(ptr addrspace(1) %x) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr <4 x float>, ptr addrspace(1) %x, i32 %t
  %v = load <4 x float>, ptr addrspace(1) %p, align 16
  ret void
}

@first = internal addrspace(3) global [8 x i32] undef, align 4
@second = internal addrspace(3) global [8 x i32] undef, align 4

define ptx_kernel void @shared() {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr i32, ptr addrspace(3) @first, i32 %t
  %q = getelementptr i32, ptr addrspace(3) @second, i32 %t
  store i32 1, ptr addrspace(3) %p, align 4
  store i32 1, ptr addrspace(3) %q, align 4
  ret void
}

@buffer = external addrspace(3) global [0 x i32], align 4

define ptx_kernel void @dynamic() {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr i32, ptr addrspace(3) @buffer, i32 %t
  store i32 1, ptr addrspace(3) %p, align 4
  ret void
}

define ptx_kernel void @local() {
  %array = alloca [4 x i32], align 4
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr i32, ptr %array, i32 %t
  store i32 1, ptr %p, align 4
  ret void
}
