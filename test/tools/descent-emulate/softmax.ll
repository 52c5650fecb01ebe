; Softmax of a row of 128 by a block of two warps: shuffles inside a warp, shared memory between the
; two, dynamic shared memory for the row. Against math.exp in double precision, in every order.

; RUN: python3 %S/Inputs/npy.py softmax 5 128 %t.x.npy %t.y.npy
; RUN: descent-emulate %s --grid 5 --block 64 --shared 512 --arg f32[5x128]=%t.x.npy --arg f32[5x128] --expect out=%t.y.npy --tolerance 2e-7 --save out=%t.forward.npy
; RUN: descent-emulate %s --grid 5 --block 64 --shared 512 --arg f32[5x128]=%t.x.npy --arg f32[5x128] --expect out=%t.forward.npy --order reverse
; RUN: descent-emulate %s --grid 5 --block 64 --shared 512 --arg f32[5x128]=%t.x.npy --arg f32[5x128] --expect out=%t.forward.npy --order shuffled:1
; RUN: descent-emulate %s --grid 5 --block 64 --shared 512 --arg f32[5x128]=%t.x.npy --arg f32[5x128] --expect out=%t.forward.npy --order shuffled:2

; RUN: not descent-emulate %s --grid 5 --block 64 --arg f32[5x128]=%t.x.npy --arg f32[5x128] 2>&1 | FileCheck %s
; CHECK: kernel 'softmax' cannot be launched: it uses dynamic shared memory, but the launch asks for 0 bytes of it

@row = external addrspace(3) global [0 x float], align 16
@partial = internal addrspace(3) global [2 x float] undef, align 4

define internal float @warpMax(float %v0) {
  %o0 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v0, i32 16, i32 31)
  %v1 = call float @llvm.maxnum.f32(float %v0, float %o0)
  %o1 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v1, i32 8, i32 31)
  %v2 = call float @llvm.maxnum.f32(float %v1, float %o1)
  %o2 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v2, i32 4, i32 31)
  %v3 = call float @llvm.maxnum.f32(float %v2, float %o2)
  %o3 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v3, i32 2, i32 31)
  %v4 = call float @llvm.maxnum.f32(float %v3, float %o3)
  %o4 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v4, i32 1, i32 31)
  %v5 = call float @llvm.maxnum.f32(float %v4, float %o4)
  ret float %v5
}

define internal float @warpSum(float %v0) {
  %o0 = call float @llvm.nvvm.shfl.sync.down.f32(i32 -1, float %v0, i32 16, i32 31)
  %v1 = fadd float %v0, %o0
  %o1 = call float @llvm.nvvm.shfl.sync.down.f32(i32 -1, float %v1, i32 8, i32 31)
  %v2 = fadd float %v1, %o1
  %o2 = call float @llvm.nvvm.shfl.sync.down.f32(i32 -1, float %v2, i32 4, i32 31)
  %v3 = fadd float %v2, %o2
  %o3 = call float @llvm.nvvm.shfl.sync.down.f32(i32 -1, float %v3, i32 2, i32 31)
  %v4 = fadd float %v3, %o3
  %o4 = call float @llvm.nvvm.shfl.sync.down.f32(i32 -1, float %v4, i32 1, i32 31)
  %v5 = fadd float %v4, %o4
  %all = call float @llvm.nvvm.shfl.sync.idx.f32(i32 -1, float %v5, i32 0, i32 31)
  ret float %all
}

; Every thread's value to @partial[its warp], and back both of them.
define internal { float, float } @exchange(float %mine) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %warp = lshr i32 %tid, 5
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %first = icmp eq i32 %lane, 0
  br i1 %first, label %write, label %meet
write:
  %p = getelementptr float, ptr addrspace(3) @partial, i32 %warp
  store float %mine, ptr addrspace(3) %p, align 4
  br label %meet
meet:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %a = load float, ptr addrspace(3) @partial, align 4
  %b = load float, ptr addrspace(3) getelementptr (float, ptr addrspace(3) @partial, i32 1), align 4
  ; The next exchange writes where this one reads.
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %r0 = insertvalue { float, float } poison, float %a, 0
  %r1 = insertvalue { float, float } %r0, float %b, 1
  ret { float, float } %r1
}

define ptx_kernel void @softmax(ptr addrspace(1) noalias readonly %x, ptr addrspace(1) noalias %out) "nvvm.maxntid"="64" {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %base = mul i32 %block, 128
  %mine = mul i32 %tid, 2
  %at = add i32 %base, %mine
  %px = getelementptr float, ptr addrspace(1) %x, i32 %at
  %po = getelementptr float, ptr addrspace(1) %out, i32 %at
  %pair = load <2 x float>, ptr addrspace(1) %px, align 8
  %ps = getelementptr float, ptr addrspace(3) @row, i32 %mine
  store <2 x float> %pair, ptr addrspace(3) %ps, align 8
  %p0 = extractelement <2 x float> %pair, i32 0
  %p1 = extractelement <2 x float> %pair, i32 1
  %m = call float @llvm.maxnum.f32(float %p0, float %p1)
  %mw = call float @warpMax(float %m)
  %ms = call { float, float } @exchange(float %mw)
  %m0 = extractvalue { float, float } %ms, 0
  %m1 = extractvalue { float, float } %ms, 1
  %largest = call float @llvm.maxnum.f32(float %m0, float %m1)
  ; The row again from shared memory, as a longer row would have it.
  %again = load <2 x float>, ptr addrspace(3) %ps, align 8
  %a0 = extractelement <2 x float> %again, i32 0
  %a1 = extractelement <2 x float> %again, i32 1
  %d0 = fsub float %a0, %largest
  %d1 = fsub float %a1, %largest
  %s0 = fmul float %d0, 0x3FF7154760000000 ; log2(e)
  %s1 = fmul float %d1, 0x3FF7154760000000
  %e0 = call float @llvm.nvvm.ex2.approx.ftz.f32(float %s0)
  %e1 = call float @llvm.nvvm.ex2.approx.ftz.f32(float %s1)
  %e = fadd float %e0, %e1
  %ew = call float @warpSum(float %e)
  %es = call { float, float } @exchange(float %ew)
  %es0 = extractvalue { float, float } %es, 0
  %es1 = extractvalue { float, float } %es, 1
  %sum = fadd float %es0, %es1
  %r = call float @llvm.nvvm.rcp.approx.ftz.f(float %sum)
  %y0 = fmul float %e0, %r
  %y1 = fmul float %e1, %r
  %y = insertelement <2 x float> poison, float %y0, i32 0
  %z = insertelement <2 x float> %y, float %y1, i32 1
  store <2 x float> %z, ptr addrspace(1) %po, align 8
  ret void
}
