; What the emulator does not know is an error with its place, before anything runs; all of it at once.

; RUN: not descent-emulate %s --grid 1 --block 1 2>&1 | FileCheck %s
; CHECK: unknown.ll:[[# @LINE + 14]]:{{[0-9]+}}: error: the emulator does not know the intrinsic llvm.nvvm.fns
; CHECK-NEXT: in @kernel: %a = call i32 @llvm.nvvm.fns(i32 1, i32 1, i32 1)
; CHECK-NEXT: unknown.ll:[[# @LINE + 13]]:{{[0-9]+}}: error: inline PTX has no emulation; use the llvm.nvvm intrinsic of the same meaning
; CHECK-NEXT: in @kernel: %b = call i32 asm "mov.u32 $0, %clock;", "=r"()

; A function that is nowhere, and what is no device code at all.
; RUN: sed -e 's/@llvm.nvvm.fns/@somewhere/' %s | sed -e '$adeclare i32 @somewhere(i32, i32, i32)' > %t.ll
; RUN: not descent-emulate %t.ll --grid 1 --block 1 2>&1 | FileCheck %s --check-prefix=FUNCTION
; FUNCTION: error: @somewhere is called, but neither defined in the file nor known to the emulator
; RUN: echo 'target triple = "x86_64-pc-linux-gnu"' > %t.host.ll
; RUN: not descent-emulate %t.host.ll --list 2>&1 | FileCheck %s --check-prefix=HOST
; HOST: error: the module is for x86_64-pc-linux-gnu, not for nvptx64

define ptx_kernel void @kernel() {
  %a = call i32 @llvm.nvvm.fns(i32 1, i32 1, i32 1)
  %b = call i32 asm "mov.u32 $0, %clock;", "=r"()
  ret void
}
