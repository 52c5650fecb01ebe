; Addresses that are wrong by themselves: of the host, of freed memory, of another space, not aligned.

; RUN: not descent-emulate %s --kernel read --grid 1 --block 1 --arg ptr:0x7fffdeadbee0 --arg f32[4] 2>&1 | FileCheck %s --check-prefix=HOST
; HOST: read of 16 bytes through a host pointer: 0x7fffdeadbee0 is no address of the device
; HOST: cure: copy the data to memory of the device

; RUN: not descent-emulate %s --kernel read --grid 1 --block 1 --arg f32[4]=freed --arg f32[4] 2>&1 | FileCheck %s --check-prefix=FREED
; FREED: read of 16 bytes after free
; FREED: is byte 0 of the freed argument 0 (%x): f32[4]

; RUN: not descent-emulate %s --kernel read --grid 1 --block 1 --arg f32[8]=ones --arg same:0+8 2>&1 | FileCheck %s --check-prefix=MISALIGNED
; MISALIGNED: misaligned write of 16 bytes: the instruction needs 16-byte alignment
; MISALIGNED: is byte 8 of argument 0 (%x): f32[8]
; MISALIGNED-SAME: 8 bytes past a multiple of 16
; RUN: descent-emulate %s --kernel read --grid 1 --block 1 --arg f32[8]=ones --arg same:0+8 --disable misaligned --disable race
; RUN: descent-emulate %s --kernel read --grid 1 --block 1 --arg f32[8]=ones --arg same:0+16

; Buffers have the alignment that the driver promises, and no more.
; RUN: not descent-emulate %s --kernel aligned --grid 1 --block 1 --arg f32[4] 2>&1 | FileCheck %s --check-prefix=DRIVER
; DRIVER: misaligned write of 4 bytes: the instruction needs 512-byte alignment
; DRIVER: 256 bytes past a multiple of 512

; A cast between address spaces does not move memory.
; RUN: not descent-emulate %s --kernel cast --grid 1 --block 1 2>&1 | FileCheck %s --check-prefix=SPACE
; SPACE: write of 4 bytes through a pointer of address space 1, but the address is of another
; SPACE: is byte 0 of shared variable @buffer

; RUN: not descent-emulate %s --kernel constant --grid 1 --block 1 2>&1 | FileCheck %s --check-prefix=CONSTANT
; CONSTANT: write of 4 bytes to read-only memory
; CONSTANT: is byte 4 of variable @table

define ptx_kernel void @read(ptr addrspace(1) %x, ptr addrspace(1) %y) {
  %v = load <4 x float>, ptr addrspace(1) %x, align 16
  store <4 x float> %v, ptr addrspace(1) %y, align 16
  ret void
}

define ptx_kernel void @aligned(ptr addrspace(1) %x) {
  store float 1.0, ptr addrspace(1) %x, align 512
  ret void
}

@buffer = internal addrspace(3) global [1 x i32] undef, align 4

define ptx_kernel void @cast() {
  %generic = addrspacecast ptr addrspace(3) @buffer to ptr
  %global = addrspacecast ptr %generic to ptr addrspace(1)
  store i32 1, ptr addrspace(1) %global, align 4
  ret void
}

@table = internal addrspace(4) constant [2 x i32] [i32 1, i32 2], align 4

define ptx_kernel void @constant() {
  %p = getelementptr i32, ptr addrspace(4) @table, i32 1
  %generic = addrspacecast ptr addrspace(4) %p to ptr
  store i32 1, ptr %generic, align 4
  ret void
}
