; printf and assert of a kernel, as clang lowers them: vprintf with the arguments in local memory.

; RUN: descent-emulate %s --kernel hello --grid 1 --block 2 | FileCheck %s
; CHECK: thread 0 of 2: 0.5% is half, -1
; CHECK-NEXT: thread 1 of 2: 1.5% is half, -1
; RUN: descent-emulate %s --kernel hello --grid 1 --block 2 --order reverse | FileCheck %s --check-prefix=REVERSE
; REVERSE: thread 1 of 2
; REVERSE-NEXT: thread 0 of 2

; RUN: not descent-emulate %s --kernel checks --grid 1 --block 1 --arg i32:0 2>&1 | FileCheck %s --check-prefix=ASSERT
; ASSERT: error: assertion failed: half
; ASSERT: in kernel @checks, block (0, 0, 0), thread (0, 0, 0)
; ASSERT-NEXT: at %s is:7, in half
; RUN: descent-emulate %s --kernel checks --grid 1 --block 1 --arg i32:1

@text = private addrspace(4) constant [37 x i8] c"thread %d of %u: %.1f%% is %s, %lld\0A\00", align 1
@half = private addrspace(4) constant [5 x i8] c"half\00", align 1
@file = private addrspace(4) constant [6 x i8] c"%s is\00", align 1

%arguments = type { i32, i32, double, ptr, i64 }

declare i32 @vprintf(ptr, ptr)
declare void @__assertfail(ptr, ptr, i32, ptr, i64)

define ptx_kernel void @hello() {
  %buffer = alloca %arguments, align 8
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %n = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %d = sitofp i32 %t to double
  %v = fadd double %d, 0.5
  %p1 = getelementptr %arguments, ptr %buffer, i32 0, i32 1
  %p2 = getelementptr %arguments, ptr %buffer, i32 0, i32 2
  %p3 = getelementptr %arguments, ptr %buffer, i32 0, i32 3
  %p4 = getelementptr %arguments, ptr %buffer, i32 0, i32 4
  store i32 %t, ptr %buffer, align 8
  store i32 %n, ptr %p1, align 4
  store double %v, ptr %p2, align 8
  store ptr addrspacecast (ptr addrspace(4) @half to ptr), ptr %p3, align 8
  store i64 -1, ptr %p4, align 8
  %r = call i32 @vprintf(ptr addrspacecast (ptr addrspace(4) @text to ptr), ptr %buffer)
  ret void
}

define ptx_kernel void @checks(i32 %holds) {
  %bad = icmp eq i32 %holds, 0
  br i1 %bad, label %fail, label %end
fail:
  call void @__assertfail(ptr addrspacecast (ptr addrspace(4) @half to ptr), ptr addrspacecast (ptr addrspace(4) @file to ptr), i32 7, ptr addrspacecast (ptr addrspace(4) @half to ptr), i64 1)
  unreachable
end:
  ret void
}
