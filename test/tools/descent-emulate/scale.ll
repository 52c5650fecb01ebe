; A kernel of one multiplication: what the command line does with values, results and mistakes.

; RUN: descent-emulate %s --grid 2 --block 4 --arg f32[8]=iota --arg f32:0.5 --arg i32:7 --print x | FileCheck %s
; CHECK: argument 0 (%x): f32[8] = 0 0.5 1 1.5 2 2.5 3 7

; A saved buffer is an expected one; shapes and positions stand for names.
; RUN: descent-emulate %s --grid 2 --block 4 --arg f32[2x4]=iota --arg f32:0.5 --arg i32:8 --save 0=%t.npy --expect %%x=%t.npy | FileCheck %s --check-prefix=SAME
; SAME: argument 0 (%x): f32[2x4]: as expected, largest error 0 (tolerance 0)

; A wrong result names the first element that differs; NaN is never close to anything.
; RUN: not descent-emulate %s --grid 2 --block 4 --arg f32[2x4]=ones --arg f32:0.5 --arg i32:6 --expect 0=0.5 --tolerance 0.1 2>&1 | FileCheck %s --check-prefix=WRONG
; WRONG: error: argument 0 (%x): f32[2x4] differs from 0.5 in 2 of 8 elements; the first is [1, 2]: 1 instead of 0.5; largest error 0.5, tolerance 0.1
; RUN: not descent-emulate %s --grid 2 --block 4 --arg f32[8]=ones --arg f32:nan --arg i32:8 --expect 0=1 --tolerance 1e30 2>&1 | FileCheck %s --check-prefix=NAN
; NAN: differs from 1 in 8 of 8 elements; the first is [0]: nan instead of 1; largest error inf

; RUN: descent-emulate %s --list | FileCheck %s --check-prefix=LIST
; LIST: kernel scale
; LIST-NEXT: parameter 0: ptr addrspace(1) %x
; LIST-NEXT: parameter 1: float %factor
; LIST-NEXT: parameter 2: i32 %count

; RUN: not descent-emulate %s --grid 1 --block 4 --arg f32[4] 2>&1 | FileCheck %s --check-prefix=COUNT
; COUNT: kernel 'scale' has 3 parameters, 1 --arg given; they are:
; COUNT-NEXT: 0: ptr addrspace(1) %x
; RUN: not descent-emulate %s --grid 1 --block 4 --arg f32[4] --arg i32:1 --arg i32:1 2>&1 | FileCheck %s --check-prefix=TYPE
; TYPE: --arg i32:1: parameter 1 of kernel 'scale' is float; give f32:NUMBER
; RUN: not descent-emulate %s --grid 1 --block 4 --arg f32:1 --arg f32:1 --arg i32:1 2>&1 | FileCheck %s --check-prefix=POINTER
; POINTER: parameter 0 of kernel 'scale' is a pointer; give a buffer
; RUN: not descent-emulate %s --grid 1 --block 4 --arg q7[4] --arg f32:1 --arg i32:1 2>&1 | FileCheck %s --check-prefix=UNKNOWN
; UNKNOWN: --arg q7[4]: 'q7' is no type; types are f32, f64, bf16
; RUN: not descent-emulate %s --grid 1 --block 4 --arg f32[4x]=ones --arg f32:1 --arg i32:1 2>&1 | FileCheck %s --check-prefix=SHAPE
; SHAPE: '4x' is no shape
; RUN: not descent-emulate %s --grid 1 --block 4 --arg f32[4]=twos --arg f32:1 --arg i32:1 2>&1 | FileCheck %s --check-prefix=INITIAL
; INITIAL: 'twos' is no initial value; it is zeros, ones, iota
; RUN: not descent-emulate %s --grid 1,x --block 4 --arg f32[4] --arg f32:1 --arg i32:1 2>&1 | FileCheck %s --check-prefix=GRID
; GRID: --grid 1,x: expected one to three numbers
; RUN: not descent-emulate %s --grid 1 --block 2048 --arg f32[4] --arg f32:1 --arg i32:1 2>&1 | FileCheck %s --check-prefix=BLOCK
; BLOCK: kernel 'scale' cannot be launched: a block of 2048 x 1 x 1 threads; at most 1024
; RUN: not descent-emulate %s --grid 1 --block 4 --arg f32[4] --arg f32:1 --arg i32:1 --print y 2>&1 | FileCheck %s --check-prefix=NAME
; NAME: --print: 'y' names no argument; kernel 'scale' has 3
; RUN: not descent-emulate %s --grid 1 --block 4 --arg f32[4] --arg f32:1 --arg i32:1 --disable bounds 2>&1 | FileCheck %s --check-prefix=DISABLE
; DISABLE: --disable bounds: the checks that can be turned off are misaligned, uninitialised, race, shuffle
; RUN: not descent-emulate %s --grid 1 --block 4 --kernel copy --arg f32[4] --arg f32:1 --arg i32:1 2>&1 | FileCheck %s --check-prefix=KERNEL
; KERNEL: there is no kernel 'copy'; the module has scale
; RUN: not descent-emulate %s.missing --list 2>&1 | FileCheck %s --check-prefix=FILE
; FILE: error: Could not open input file

define ptx_kernel void @scale(ptr addrspace(1) %x, float %factor, i32 %count) {
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %threads = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %first = mul i32 %block, %threads
  %i = add i32 %first, %thread
  %inside = icmp slt i32 %i, %count
  br i1 %inside, label %then, label %end
then:
  %p = getelementptr float, ptr addrspace(1) %x, i32 %i
  %old = load float, ptr addrspace(1) %p, align 4
  %new = fmul float %old, %factor
  store float %new, ptr addrspace(1) %p, align 4
  br label %end
end:
  ret void
}
