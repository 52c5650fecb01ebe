; C = A B' of a 16 x 8 tile with depth 16 by one warp: cp.async brings the operands to shared memory,
; ldmatrix to registers. Values have few bits, so that products and sums are exact.

; RUN: python3 %S/Inputs/npy.py product 16 8 16 %t.a.npy %t.b.npy %t.c.npy
; RUN: descent-emulate %s --kernel product_bf16 --grid 1 --block 32 --arg bf16[16x16]=%t.a.npy --arg bf16[8x16]=%t.b.npy --arg f32[16x8] --expect c=%t.c.npy
; RUN: descent-emulate %s --kernel product_bf16 --grid 1 --block 32 --arg bf16[16x16]=%t.a.npy --arg bf16[8x16]=%t.b.npy --arg f32[16x8] --expect c=%t.c.npy --order reverse
; RUN: descent-emulate %s --kernel product_f16 --grid 1 --block 32 --arg f16[16x16]=%t.a.npy --arg f16[8x16]=%t.b.npy --arg f32[16x8] --expect c=%t.c.npy

; stmatrix, then ldmatrix with .trans: each 8 x 8 matrix comes back transposed.
; RUN: descent-emulate %s --kernel transpose --grid 1 --block 32 --arg i16[16x8] --print 0 | FileCheck %s --check-prefix=TRANSPOSE
; TRANSPOSE: i16[16x8] =
; TRANSPOSE-NEXT: 0 4 8 12 16 20 24 28
; TRANSPOSE-NEXT: 100 104 108 112 116 120 124 128
; TRANSPOSE-NEXT: 1 5 9 13 17 21 25 29
; TRANSPOSE-NEXT: 101 105 109 113 117 121 125 129

; Half a warp cannot: the instruction is one of all lanes.
; RUN: not descent-emulate %s --kernel product_bf16 --grid 1 --block 16 --arg bf16[16x16]=%t.a.npy --arg bf16[8x16]=%t.b.npy --arg f32[16x8] 2>&1 | FileCheck %s --check-prefix=HALF
; HALF: error: a matrix operation of a whole warp, but lane 16 takes no part

@a = internal addrspace(3) global [256 x i16] undef, align 16
@b = internal addrspace(3) global [128 x i16] undef, align 16

; Lane i copies row i / 2, half i % 2 of A, and lanes 0 to 15 the same of B.
define internal void @fetch(ptr addrspace(1) %ga, ptr addrspace(1) %gb) {
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %bytes = mul i32 %lane, 16
  %pa = getelementptr i8, ptr addrspace(1) %ga, i32 %bytes
  %sa = getelementptr i8, ptr addrspace(3) @a, i32 %bytes
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %sa, ptr addrspace(1) %pa)
  call void @llvm.nvvm.cp.async.commit.group()
  %inside = icmp ult i32 %lane, 16
  br i1 %inside, label %copy, label %wait
copy:
  %pb = getelementptr i8, ptr addrspace(1) %gb, i32 %bytes
  %sb = getelementptr i8, ptr addrspace(3) @b, i32 %bytes
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %sb, ptr addrspace(1) %pb)
  br label %wait
wait:
  call void @llvm.nvvm.cp.async.commit.group()
  call void @llvm.nvvm.cp.async.wait.group(i32 0)
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  ret void
}

; Lane i points at row i % 16, half i / 16 of A: matrices (rows, k) = (0, 0), (8, 0), (0, 8), (8, 8).
define internal { i32, i32, i32, i32 } @loadA() {
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %row = and i32 %lane, 15
  %half = lshr i32 %lane, 4
  %r = mul i32 %row, 32
  %h = mul i32 %half, 16
  %o = add i32 %r, %h
  %p = getelementptr i8, ptr addrspace(3) @a, i32 %o
  %f = call { i32, i32, i32, i32 } @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3(ptr addrspace(3) %p)
  ret { i32, i32, i32, i32 } %f
}

; Lane i of the first 16 points at row i % 8, half i / 8 of B.
define internal { i32, i32 } @loadB() {
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %row = and i32 %lane, 7
  %up = lshr i32 %lane, 3
  %half = and i32 %up, 1
  %r = mul i32 %row, 32
  %h = mul i32 %half, 16
  %o = add i32 %r, %h
  %p = getelementptr i8, ptr addrspace(3) @b, i32 %o
  %f = call { i32, i32 } @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.b16.p3(ptr addrspace(3) %p)
  ret { i32, i32 } %f
}

; C's fragment: lane l holds (l / 4, 2 (l % 4)) and the next, and the same eight rows below.
define internal void @put(ptr addrspace(1) %gc, { float, float, float, float } %c) {
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %row = lshr i32 %lane, 2
  %q = and i32 %lane, 3
  %r = mul i32 %row, 8
  %col = mul i32 %q, 2
  %o = add i32 %r, %col
  %p0 = getelementptr float, ptr addrspace(1) %gc, i32 %o
  %p1 = getelementptr float, ptr addrspace(1) %p0, i32 64
  %c0 = extractvalue { float, float, float, float } %c, 0
  %c1 = extractvalue { float, float, float, float } %c, 1
  %c2 = extractvalue { float, float, float, float } %c, 2
  %c3 = extractvalue { float, float, float, float } %c, 3
  %u0 = insertelement <2 x float> poison, float %c0, i32 0
  %u1 = insertelement <2 x float> %u0, float %c1, i32 1
  %v0 = insertelement <2 x float> poison, float %c2, i32 0
  %v1 = insertelement <2 x float> %v0, float %c3, i32 1
  store <2 x float> %u1, ptr addrspace(1) %p0, align 8
  store <2 x float> %v1, ptr addrspace(1) %p1, align 8
  ret void
}

define ptx_kernel void @product_bf16(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c) {
  call void @fetch(ptr addrspace(1) %a, ptr addrspace(1) %b)
  %fa = call { i32, i32, i32, i32 } @loadA()
  %fb = call { i32, i32 } @loadB()
  %a0 = extractvalue { i32, i32, i32, i32 } %fa, 0
  %a1 = extractvalue { i32, i32, i32, i32 } %fa, 1
  %a2 = extractvalue { i32, i32, i32, i32 } %fa, 2
  %a3 = extractvalue { i32, i32, i32, i32 } %fa, 3
  %b0 = extractvalue { i32, i32 } %fb, 0
  %b1 = extractvalue { i32, i32 } %fb, 1
  %d = call { float, float, float, float } @llvm.nvvm.mma.m16n8k16.row.col.bf16(i32 %a0, i32 %a1, i32 %a2, i32 %a3, i32 %b0, i32 %b1, float 0.0, float 0.0, float 0.0, float 0.0)
  call void @put(ptr addrspace(1) %c, { float, float, float, float } %d)
  ret void
}

define ptx_kernel void @product_f16(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c) {
  call void @fetch(ptr addrspace(1) %a, ptr addrspace(1) %b)
  %fa = call { i32, i32, i32, i32 } @loadA()
  %fb = call { i32, i32 } @loadB()
  %i0 = extractvalue { i32, i32, i32, i32 } %fa, 0
  %i1 = extractvalue { i32, i32, i32, i32 } %fa, 1
  %i2 = extractvalue { i32, i32, i32, i32 } %fa, 2
  %i3 = extractvalue { i32, i32, i32, i32 } %fa, 3
  %i4 = extractvalue { i32, i32 } %fb, 0
  %i5 = extractvalue { i32, i32 } %fb, 1
  %a0 = bitcast i32 %i0 to <2 x half>
  %a1 = bitcast i32 %i1 to <2 x half>
  %a2 = bitcast i32 %i2 to <2 x half>
  %a3 = bitcast i32 %i3 to <2 x half>
  %b0 = bitcast i32 %i4 to <2 x half>
  %b1 = bitcast i32 %i5 to <2 x half>
  %d = call { float, float, float, float } @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %a0, <2 x half> %a1, <2 x half> %a2, <2 x half> %a3, <2 x half> %b0, <2 x half> %b1, float 0.0, float 0.0, float 0.0, float 0.0)
  call void @put(ptr addrspace(1) %c, { float, float, float, float } %d)
  ret void
}

; Matrix 0 holds lane numbers l in column pairs (l, l + 100), matrix 1 the same with 1000 more.
define ptx_kernel void @transpose(ptr addrspace(1) %out) {
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %high = shl i32 %lane, 16
  %pair = or i32 %high, %lane
  %m0 = add i32 %pair, 6553600
  %m1 = add i32 %m0, 65537000
  %row = and i32 %lane, 15
  %o = mul i32 %row, 16
  %p = getelementptr i8, ptr addrspace(3) @a, i32 %o
  call void @llvm.nvvm.stmatrix.sync.aligned.m8n8.x2.b16.p3(ptr addrspace(3) %p, i32 %m0, i32 %m1)
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %t = call { i32, i32 } @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.trans.b16.p3(ptr addrspace(3) %p)
  %t0 = extractvalue { i32, i32 } %t, 0
  %t1 = extractvalue { i32, i32 } %t, 1
  %q0 = getelementptr i32, ptr addrspace(1) %out, i32 %lane
  %q1 = getelementptr i32, ptr addrspace(1) %q0, i32 32
  store i32 %t0, ptr addrspace(1) %q0, align 4
  store i32 %t1, ptr addrspace(1) %q1, align 4
  ret void
}
