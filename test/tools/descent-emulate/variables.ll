; Variables of a module, local arrays, aggregates by value, block copies, several kernels in one file,
; debug information, and kernels that are named by metadata only.

; RUN: descent-emulate %s --kernel table --grid 1 --block 4 --arg i32[4] --print 0 | FileCheck %s --check-prefix=TABLE
; TABLE: i32[4] = 10 20 30 40
; Every launch is a new device: the counter starts at its initial value, and counts all blocks.
; RUN: descent-emulate %s --kernel count --grid 3 --block 4 --arg i32[1]=zeros --print 0 | FileCheck %s --check-prefix=COUNT
; COUNT: i32[1] = 19

; RUN: descent-emulate %s --kernel aggregate --grid 1 --block 1 --arg bytes:0500000000000040 --arg f32[2] --print 1 | FileCheck %s --check-prefix=AGGREGATE
; AGGREGATE: f32[2] = 5 2
; RUN: descent-emulate %s --kernel aggregate --grid 1 --block 1 --arg struct:i32:5,f32:2 --arg f32[2] --print 1 | FileCheck %s --check-prefix=AGGREGATE
; A pointer in a struct is a buffer like others; members lie at multiples of their sizes.
; RUN: descent-emulate %s --kernel nested --grid 1 --block 3 --arg struct:i32:7,i32[3],i16:1 --print 0.1 | FileCheck %s --check-prefix=NESTED
; NESTED: argument 0.1 (%s): i32[3] = 7 7 7
; RUN: not descent-emulate %s --kernel nested --grid 1 --block 4 --arg struct:i32:7,i32[3],i16:1 2>&1 | FileCheck %s --check-prefix=INSIDE
; INSIDE: 0 bytes behind the end of argument 0.1 (%s): i32[3]
; RUN: not descent-emulate %s --kernel nested --grid 1 --block 3 --arg i32[3] 2>&1 | FileCheck %s --check-prefix=STRUCT
; STRUCT: parameter 0 of kernel 'nested' is a struct of 24 bytes by value; give struct:VALUE,VALUE... or bytes:HEX
; RUN: not descent-emulate %s --kernel table --grid 1 --block 1 --arg struct:i32:1 2>&1 | FileCheck %s --check-prefix=SCALAR
; SCALAR: parameter 0 of kernel 'table' is ptr addrspace(1), not a struct by value
; RUN: not descent-emulate %s --kernel table --grid 1 --block 1 --arg same:0 2>&1 | FileCheck %s --check-prefix=LATER
; LATER: --arg same:0: names no buffer among the arguments before it
; RUN: not descent-emulate %s --kernel aggregate --grid 1 --block 1 --arg bytes:05000000 --arg f32[2] 2>&1 | FileCheck %s --check-prefix=BYTES
; BYTES: parameter 0 (ptr) has 8 bytes, the value given has 4

; RUN: descent-emulate %s --kernel copies --grid 1 --block 1 --arg i32[4]=iota --arg i32[4] --print 1 | FileCheck %s --check-prefix=COPY
; COPY: i32[4] = 2 3 -1 -1
; RUN: not descent-emulate %s --kernel copies --grid 1 --block 1 --arg i32[3]=iota --arg i32[4] 2>&1 | FileCheck %s --check-prefix=OVER
; OVER: error: out of bounds read of 8 bytes
; OVER: call void @llvm.memcpy.p5.p1.i64

; What a kernel was compiled for.
; RUN: not descent-emulate %s --kernel bounded --grid 1 --block 65 2>&1 | FileCheck %s --check-prefix=MAX
; MAX: 65 threads, but it was compiled for at most 64 (nvvm.maxntid)
; RUN: not descent-emulate %s --kernel bounded --grid 1 --block 64 --shared 232449 2>&1 | FileCheck %s --check-prefix=SHARED
; SHARED: 0 bytes of static and 232449 of dynamic shared memory; a block has at most 232448

; A trap, and its place in the source.
; RUN: not descent-emulate %s --kernel asserts --grid 1 --block 4 --arg i32:2 2>&1 | FileCheck %s --check-prefix=TRAP
; TRAP: error: the kernel trapped
; TRAP-NEXT: at model.cu:12:7, {{.*}}variables.ll:{{[0-9]+}}, in @asserts: call void @llvm.trap()
; TRAP-NEXT: thread (2, 0, 0)
; RUN: descent-emulate %s --kernel asserts --grid 1 --block 4 --arg i32:4

; RUN: not descent-emulate %s --grid 1 --block 1 2>&1 | FileCheck %s --check-prefix=SEVERAL
; SEVERAL: the file has several kernels; choose one with --kernel

; RUN: descent-emulate %s --kernel old --grid 1 --block 32 --arg i32[1] --expect 0=7

@values = internal addrspace(4) constant [4 x i32] [i32 10, i32 20, i32 30, i32 40], align 4
@counter = addrspace(1) global i32 7, align 4

define ptx_kernel void @table(ptr addrspace(1) %out) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr i32, ptr addrspace(4) @values, i32 %t
  %v = load i32, ptr addrspace(4) %p, align 4
  %q = getelementptr i32, ptr addrspace(1) %out, i32 %t
  store i32 %v, ptr addrspace(1) %q, align 4
  ret void
}

define ptx_kernel void @count(ptr addrspace(1) %out) {
  %old = atomicrmw add ptr addrspacecast (ptr addrspace(1) @counter to ptr), i32 1 syncscope("device") monotonic, align 4
  %n = add i32 %old, 1
  %max = atomicrmw max ptr addrspace(1) %out, i32 %n monotonic, align 4
  ret void
}

%struct = type { i32, float }

define ptx_kernel void @aggregate(ptr byval(%struct) align 4 %s, ptr addrspace(1) %out) {
  %i = load i32, ptr %s, align 4
  %f = sitofp i32 %i to float
  store float %f, ptr addrspace(1) %out, align 4
  %p = getelementptr %struct, ptr %s, i32 0, i32 1
  %v = load float, ptr %p, align 4
  %q = getelementptr float, ptr addrspace(1) %out, i32 1
  store float %v, ptr addrspace(1) %q, align 4
  ret void
}

define ptx_kernel void @nested(ptr byval({ i32, ptr, i16 }) align 8 %s) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %i = load i32, ptr %s, align 8
  %p = getelementptr { i32, ptr, i16 }, ptr %s, i32 0, i32 1
  %x = load ptr, ptr %p, align 8
  %q = getelementptr i32, ptr %x, i32 %t
  store i32 %i, ptr %q, align 4
  ret void
}

; The last two of four words by way of local memory, then two of all ones.
define ptx_kernel void @copies(ptr addrspace(1) %x, ptr addrspace(1) %y) {
  %buffer = alloca [2 x i32], align 4, addrspace(5)
  %from = getelementptr i32, ptr addrspace(1) %x, i32 2
  %rest = getelementptr i32, ptr addrspace(1) %y, i32 2
  call void @llvm.memcpy.p5.p1.i64(ptr addrspace(5) align 4 %buffer, ptr addrspace(1) align 4 %from, i64 8, i1 false)
  call void @llvm.memcpy.p1.p5.i64(ptr addrspace(1) align 4 %y, ptr addrspace(5) align 4 %buffer, i64 8, i1 false)
  call void @llvm.memset.p1.i64(ptr addrspace(1) align 4 %rest, i8 -1, i64 8, i1 false)
  ret void
}

define ptx_kernel void @bounded() "nvvm.maxntid"="64" {
  ret void
}

define ptx_kernel void @asserts(i32 %limit) !dbg !4 {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %holds = icmp ult i32 %t, %limit
  br i1 %holds, label %end, label %fail
fail:
  call void @llvm.trap(), !dbg !7
  unreachable
end:
  ret void
}

define void @old(ptr addrspace(1) %out) {
  %seven = load i32, ptr addrspace(1) @counter, align 4
  store atomic i32 %seven, ptr addrspace(1) %out monotonic, align 4
  ret void
}

!nvvm.annotations = !{!0}
!llvm.dbg.cu = !{!1}
!llvm.module.flags = !{!3}
!0 = !{ptr @old, !"kernel", i32 1}
!1 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus, file: !2, emissionKind: LineTablesOnly)
!2 = !DIFile(filename: "model.cu", directory: "/src")
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = distinct !DISubprogram(name: "asserts", file: !2, line: 10, unit: !1, type: !5, spFlags: DISPFlagDefinition)
!5 = !DISubroutineType(types: !6)
!6 = !{}
!7 = !DILocation(line: 12, column: 7, scope: !4)
