; Arithmetic intrinsics: rounding, flushing, narrow types. Expected values were computed by hand from
; the definitions: 1 + 2^-24 lies half way between two floats, 2^-140 is subnormal.

; RUN: descent-emulate %s --kernel rounding --grid 1 --block 1 --arg f32:1 --arg f32:5.9604644775390625e-08 --arg i32[4] --print 2 | FileCheck %s --check-prefix=ROUND
; ROUND: i32[4] = 1065353216 1065353216 1065353216 1065353217
; RUN: descent-emulate %s --kernel flush --grid 1 --block 1 --arg f32:7.174648137343064e-43 --arg f32[4] --print 1 | FileCheck %s --check-prefix=FLUSH
; FLUSH: f32[4] = 7.17465e-43 0 7.17465e-43 0
; RUN: descent-emulate %s --kernel approximations --grid 1 --block 1 --arg f32[6] --print 0 | FileCheck %s --check-prefix=APPROX
; APPROX: f32[6] = 8 0.25 0.5 3 0 1
; RUN: descent-emulate %s --kernel extremes --grid 1 --block 1 --arg f32:nan --arg f32[4] --print 1 | FileCheck %s --check-prefix=EXTREME
; EXTREME: f32[4] = 1 nan 0 0

; Conversions round to nearest even: 1.00390625 = 1 + 2^-8 is a tie in bf16, 1.01171875 = 1 + 3 2^-8 too.
; RUN: descent-emulate %s --kernel narrow --grid 1 --block 1 --arg f32:1.00390625 --arg f32:1.01171875 --arg bf16[4] --arg f16[2] --print 2 --print 3 | FileCheck %s --check-prefix=NARROW
; NARROW: bf16[4] = 1 1.01562 1.01562 1
; NARROW: f16[2] = 1.01172 1.00391
; Subnormals of bf16 stay, whatever the host's instructions do; 65520 is beyond f16.
; RUN: descent-emulate %s --kernel cast --grid 1 --block 1 --arg f32:1e-40 --arg f32:65520 --arg bf16[1] --arg f16[2] --print 2 --print 3 | FileCheck %s --check-prefix=CAST
; CAST: bf16[1] = 9.18355e-41
; CAST: f16[2] = 0 inf

; One rounding: (1 + 2^-7) 1 + 2^-9 is above the tie between neighbours only if nothing is lost.
; RUN: descent-emulate %s --kernel pair --grid 1 --block 1 --arg bf16[2]=1.5 --arg bf16[2]=3 --arg bf16[2] --print 2 | FileCheck %s --check-prefix=PAIR
; PAIR: bf16[2] = 7.5 7.5

; libdevice by name, and LLVM's own intrinsics.
; RUN: descent-emulate %s --kernel library --grid 1 --block 1 --arg f32[4] --print 0 | FileCheck %s --check-prefix=LIBRARY
; LIBRARY: f32[4] = 1 0.761594 4 2.71828

; Bytes: prmt with selector 0x3210 is the first operand, 0x7654 the second.
; RUN: descent-emulate %s --kernel bytes --grid 1 --block 1 --arg i32[3] --print 0 | FileCheck %s --check-prefix=BYTES
; BYTES: i32[3] = 16909060 84281096 -1

define internal void @put(ptr addrspace(1) %out, i32 %i, float %v) {
  %p = getelementptr float, ptr addrspace(1) %out, i32 %i
  store float %v, ptr addrspace(1) %p, align 4
  ret void
}

define ptx_kernel void @rounding(float %a, float %b, ptr addrspace(1) %out) {
  %n = call float @llvm.nvvm.add.rn.f(float %a, float %b)
  %z = call float @llvm.nvvm.add.rz.f(float %a, float %b)
  %m = call float @llvm.nvvm.add.rm.f(float %a, float %b)
  %p = call float @llvm.nvvm.fma.rp.f(float %b, float %a, float %a)
  call void @put(ptr addrspace(1) %out, i32 0, float %n)
  call void @put(ptr addrspace(1) %out, i32 1, float %z)
  call void @put(ptr addrspace(1) %out, i32 2, float %m)
  call void @put(ptr addrspace(1) %out, i32 3, float %p)
  ret void
}

define ptx_kernel void @flush(float %tiny, ptr addrspace(1) %out) {
  %a = call float @llvm.nvvm.add.rn.f(float %tiny, float 0.0)
  %b = call float @llvm.nvvm.add.rn.ftz.f(float %tiny, float 0.0)
  %c = call float @llvm.nvvm.mul.rn.f(float %tiny, float 1.0)
  %d = call float @llvm.nvvm.mul.rn.ftz.f(float %tiny, float 1.0)
  call void @put(ptr addrspace(1) %out, i32 0, float %a)
  call void @put(ptr addrspace(1) %out, i32 1, float %b)
  call void @put(ptr addrspace(1) %out, i32 2, float %c)
  call void @put(ptr addrspace(1) %out, i32 3, float %d)
  ret void
}

define ptx_kernel void @approximations(ptr addrspace(1) %out) {
  %a = call float @llvm.nvvm.ex2.approx.ftz.f32(float 3.0)
  %b = call float @llvm.nvvm.rcp.approx.ftz.f(float 4.0)
  %c = call float @llvm.nvvm.rsqrt.approx.f(float 4.0)
  %d = call float @llvm.nvvm.lg2.approx.ftz.f(float 8.0)
  %e = call float @llvm.nvvm.saturate.f(float -2.0)
  %f = call float @llvm.nvvm.cos.approx.f(float 0.0)
  call void @put(ptr addrspace(1) %out, i32 0, float %a)
  call void @put(ptr addrspace(1) %out, i32 1, float %b)
  call void @put(ptr addrspace(1) %out, i32 2, float %c)
  call void @put(ptr addrspace(1) %out, i32 3, float %d)
  call void @put(ptr addrspace(1) %out, i32 4, float %e)
  call void @put(ptr addrspace(1) %out, i32 5, float %f)
  ret void
}

define ptx_kernel void @extremes(float %nan, ptr addrspace(1) %out) {
  %a = call float @llvm.nvvm.fmax.f(float %nan, float 1.0)
  %b = call float @llvm.nvvm.fmax.nan.f(float %nan, float 1.0)
  %c = call float @llvm.nvvm.fmax.f(float -0.0, float 0.0)
  %d = call float @llvm.nvvm.fmax.f(float 0.0, float -0.0)
  call void @put(ptr addrspace(1) %out, i32 0, float %a)
  call void @put(ptr addrspace(1) %out, i32 1, float %b)
  call void @put(ptr addrspace(1) %out, i32 2, float %c)
  call void @put(ptr addrspace(1) %out, i32 3, float %d)
  ret void
}

define ptx_kernel void @narrow(float %a, float %b, ptr addrspace(1) %brain, ptr addrspace(1) %half) {
  ; The first operand becomes the upper half.
  %pair = call <2 x bfloat> @llvm.nvvm.ff2bf16x2.rn(float %b, float %a)
  store <2 x bfloat> %pair, ptr addrspace(1) %brain, align 4
  %p = getelementptr bfloat, ptr addrspace(1) %brain, i32 2
  %c = call bfloat @llvm.nvvm.f2bf16.rn(float %b)
  store bfloat %c, ptr addrspace(1) %p, align 2
  %q = getelementptr bfloat, ptr addrspace(1) %brain, i32 3
  %d = call bfloat @llvm.nvvm.f2bf16.rz(float %a)
  store bfloat %d, ptr addrspace(1) %q, align 2
  %halves = call <2 x half> @llvm.nvvm.ff2f16x2.rn(float %a, float %b)
  store <2 x half> %halves, ptr addrspace(1) %half, align 4
  ret void
}

define ptx_kernel void @cast(float %a, float %b, ptr addrspace(1) %brain, ptr addrspace(1) %half) {
  %c = fptrunc float %a to bfloat
  store bfloat %c, ptr addrspace(1) %brain, align 2
  %d = fptrunc float %a to half
  store half %d, ptr addrspace(1) %half, align 2
  %p = getelementptr half, ptr addrspace(1) %half, i32 1
  %e = fptrunc float %b to half
  store half %e, ptr addrspace(1) %p, align 2
  ret void
}

define ptx_kernel void @pair(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr addrspace(1) %z) {
  %a = load <2 x bfloat>, ptr addrspace(1) %x, align 4
  %b = load <2 x bfloat>, ptr addrspace(1) %y, align 4
  %c = call <2 x bfloat> @llvm.nvvm.fma.rn.bf16x2(<2 x bfloat> %a, <2 x bfloat> %b, <2 x bfloat> %b)
  store <2 x bfloat> %c, ptr addrspace(1) %z, align 4
  ret void
}

declare float @__nv_expf(float)
declare float @__nv_tanhf(float)

define ptx_kernel void @library(ptr addrspace(1) %out) {
  %a = call float @__nv_expf(float 0.0)
  %b = call float @__nv_tanhf(float 1.0)
  %c = call float @llvm.exp2.f32(float 2.0)
  %d = call float @__nv_expf(float 1.0)
  call void @put(ptr addrspace(1) %out, i32 0, float %a)
  call void @put(ptr addrspace(1) %out, i32 1, float %b)
  call void @put(ptr addrspace(1) %out, i32 2, float %c)
  call void @put(ptr addrspace(1) %out, i32 3, float %d)
  ret void
}

define ptx_kernel void @bytes(ptr addrspace(1) %out) {
  %a = call i32 @llvm.nvvm.prmt(i32 16909060, i32 84281096, i32 12816)
  %b = call i32 @llvm.nvvm.prmt(i32 16909060, i32 84281096, i32 30292)
  %c = call i32 @llvm.nvvm.prmt(i32 128, i32 0, i32 34952) ; 0x8888: the sign of byte 0
  store i32 %a, ptr addrspace(1) %out, align 4
  %p = getelementptr i32, ptr addrspace(1) %out, i32 1
  store i32 %b, ptr addrspace(1) %p, align 4
  %q = getelementptr i32, ptr addrspace(1) %out, i32 2
  store i32 %c, ptr addrspace(1) %q, align 4
  ret void
}
