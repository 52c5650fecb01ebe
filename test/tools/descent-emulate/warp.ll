; Operations of a warp and special registers, lane by lane, as the PTX ISA defines them.

; Shuffles: up and down keep the lane's own value at the ends; a segment of 8 lanes is mask 0x1800.
; RUN: descent-emulate %s --kernel shuffles --grid 1 --block 32 --arg i32[6x32] --print 0 | FileCheck %s --check-prefix=SHUFFLE
; SHUFFLE: i32[6x32] =
; SHUFFLE-NEXT: 100 101 102 100 101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116 117 118 119 120 121 122 123 124 125 126 127 128
; SHUFFLE-NEXT: 103 104 105 106 107 108 109 110 111 112 113 114 115 116 117 118 119 120 121 122 123 124 125 126 127 128 129 130 131 129 130 131
; SHUFFLE-NEXT: 105 104 107 106 101 100 103 102 113 112 115 114 109 108 111 110 121 120 123 122 117 116 119 118 129 128 131 130 125 124 127 126
; SHUFFLE-NEXT: 102 102 102 102 102 102 102 102 110 110 110 110 110 110 110 110 118 118 118 118 118 118 118 118 126 126 126 126 126 126 126 126
; SHUFFLE-NEXT: 103 104 105 106 107 105 106 107 111 112 113 114 115 113 114 115 119 120 121 122 123 121 122 123 127 128 129 130 131 129 130 131
; SHUFFLE-NEXT: 1 1 1 1 1 0 0 0 1 1 1 1 1 0 0 0 1 1 1 1 1 0 0 0 1 1 1 1 1 0 0 0

; A shuffle of half a warp, and one that asks a lane that is not there.
; RUN: descent-emulate %s --kernel half --grid 1 --block 32 --arg i32[16] --arg i32:15 --print 0 | FileCheck %s --check-prefix=HALF
; HALF: i32[16] = 15 14 13 12 11 10 9 8 7 6 5 4 3 2 1 0
; RUN: not descent-emulate %s --kernel half --grid 1 --block 32 --arg i32[16] --arg i32:16 2>&1 | FileCheck %s --check-prefix=ABSENT
; ABSENT: error: shuffle: lane 0 takes the value of lane 16, which takes no part

; Votes of lanes with even numbers, matches of lane / 12, reductions, the elected lane.
; RUN: descent-emulate %s --kernel votes --grid 1 --block 32 --arg i32[9x32] --print 0 | FileCheck %s --check-prefix=VOTE
; VOTE: i32[9x32] =
; VOTE-NEXT: 1431655765 1431655765
; VOTE-NEXT: {{^  0( 0)*$}}
; VOTE-NEXT: {{^  1( 1)*$}}
; VOTE-NEXT: 4095 4095 4095 4095 4095 4095 4095 4095 4095 4095 4095 4095 16773120 {{.*}} -16777216
; VOTE-NEXT: {{^  0( 0)*$}}
; VOTE-NEXT: {{^  496( 496)*$}}
; VOTE-NEXT: {{^  31( 31)*$}}
; VOTE-NEXT: {{^  1( 0)*$}}
; VOTE-NEXT: {{^  32( 32)*$}}

; Reductions of the block's barrier: 40 of 64 predicates hold.
; RUN: descent-emulate %s --kernel reductions --grid 1 --block 64 --arg i32[3x64] --print 0 | FileCheck %s --check-prefix=REDUCE
; REDUCE: i32[3x64] =
; REDUCE-NEXT: {{^  40( 40)*$}}
; REDUCE-NEXT: {{^  0( 0)*$}}
; REDUCE-NEXT: {{^  1( 1)*$}}

; Registers of the last thread of 3 x 2 blocks of 33 x 2 threads, and the masks of lane 1 of warp 2.
; RUN: descent-emulate %s --kernel registers --grid 3,2 --block 33,2 --arg i32[12] --print 0 | FileCheck %s --check-prefix=REGISTER
; REGISTER: i32[12] = 32 1 0 33 2 2 1 3 2 1 2 3
; RUN: descent-emulate %s --kernel masks --grid 1 --block 66 --arg i32[6] --print 0 | FileCheck %s --check-prefix=MASK
; MASK: i32[6] = 2 3 1 -2 -4 32

; Lanes that have exited are not waited for, in any order.
; RUN: descent-emulate %s --kernel exited --grid 1 --block 32 --arg i32[32] --print 0 | FileCheck %s --check-prefix=EXITED
; EXITED: i32[32] = -16 -16
; RUN: descent-emulate %s --kernel exited --grid 1 --block 32 --arg i32[32] --order reverse --print 0 | FileCheck %s --check-prefix=EXITED

define internal void @put(ptr addrspace(1) %out, i32 %row, i32 %value) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %width = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %r = mul i32 %row, %width
  %i = add i32 %r, %t
  %p = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 %value, ptr addrspace(1) %p, align 4
  ret void
}

define ptx_kernel void @shuffles(ptr addrspace(1) %out) {
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %v = add i32 %lane, 100
  %up = call i32 @llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 %v, i32 3, i32 0)
  %down = call i32 @llvm.nvvm.shfl.sync.down.i32(i32 -1, i32 %v, i32 3, i32 31)
  %xor = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %v, i32 5, i32 31)
  %index = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %v, i32 2, i32 6175) ; 0x181f
  %segment = call { i32, i1 } @llvm.nvvm.shfl.sync.down.i32p(i32 -1, i32 %v, i32 3, i32 6175)
  %value = extractvalue { i32, i1 } %segment, 0
  %inside = extractvalue { i32, i1 } %segment, 1
  %flag = zext i1 %inside to i32
  call void @put(ptr addrspace(1) %out, i32 0, i32 %up)
  call void @put(ptr addrspace(1) %out, i32 1, i32 %down)
  call void @put(ptr addrspace(1) %out, i32 2, i32 %xor)
  call void @put(ptr addrspace(1) %out, i32 3, i32 %index)
  call void @put(ptr addrspace(1) %out, i32 4, i32 %value)
  call void @put(ptr addrspace(1) %out, i32 5, i32 %flag)
  ret void
}

define ptx_kernel void @half(ptr addrspace(1) %out, i32 %distance) {
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %lower = icmp ult i32 %lane, 16
  br i1 %lower, label %exchange, label %end
exchange:
  %v = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 65535, i32 %lane, i32 %distance, i32 31)
  call void @put(ptr addrspace(1) %out, i32 0, i32 %v)
  br label %end
end:
  ret void
}

define ptx_kernel void @votes(ptr addrspace(1) %out) {
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %odd = trunc i32 %lane to i1
  %even = xor i1 %odd, true
  %ballot = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %even)
  %all = call i1 @llvm.nvvm.vote.all.sync(i32 -1, i1 %even)
  %any = call i1 @llvm.nvvm.vote.any.sync(i32 -1, i1 %even)
  %group = udiv i32 %lane, 12
  %match = call i32 @llvm.nvvm.match.any.sync.i32(i32 -1, i32 %group)
  %matchAll = call { i32, i1 } @llvm.nvvm.match.all.sync.i32p(i32 -1, i32 %group)
  %every = extractvalue { i32, i1 } %matchAll, 0
  %sum = call i32 @llvm.nvvm.redux.sync.add(i32 %lane, i32 -1)
  %max = call i32 @llvm.nvvm.redux.sync.max(i32 %lane, i32 -1)
  %elected = call { i32, i1 } @llvm.nvvm.elect.sync(i32 -1)
  %leader = extractvalue { i32, i1 } %elected, 1
  %size = call i32 @llvm.nvvm.read.ptx.sreg.warpsize()
  %allInt = zext i1 %all to i32
  %anyInt = zext i1 %any to i32
  %leaderInt = zext i1 %leader to i32
  call void @put(ptr addrspace(1) %out, i32 0, i32 %ballot)
  call void @put(ptr addrspace(1) %out, i32 1, i32 %allInt)
  call void @put(ptr addrspace(1) %out, i32 2, i32 %anyInt)
  call void @put(ptr addrspace(1) %out, i32 3, i32 %match)
  call void @put(ptr addrspace(1) %out, i32 4, i32 %every)
  call void @put(ptr addrspace(1) %out, i32 5, i32 %sum)
  call void @put(ptr addrspace(1) %out, i32 6, i32 %max)
  call void @put(ptr addrspace(1) %out, i32 7, i32 %leaderInt)
  call void @put(ptr addrspace(1) %out, i32 8, i32 %size)
  ret void
}

define ptx_kernel void @reductions(ptr addrspace(1) %out) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %holds = icmp ult i32 %t, 40
  %count = call i32 @llvm.nvvm.barrier.cta.red.popc.aligned.all(i32 0, i1 %holds)
  %all = call i1 @llvm.nvvm.barrier.cta.red.and.aligned.all(i32 0, i1 %holds)
  %any = call i1 @llvm.nvvm.barrier.cta.red.or.aligned.all(i32 0, i1 %holds)
  %allInt = zext i1 %all to i32
  %anyInt = zext i1 %any to i32
  call void @put(ptr addrspace(1) %out, i32 0, i32 %count)
  call void @put(ptr addrspace(1) %out, i32 1, i32 %allInt)
  call void @put(ptr addrspace(1) %out, i32 2, i32 %anyInt)
  ret void
}

define ptx_kernel void @registers(ptr addrspace(1) %out) {
  %tx = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %ty = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  %tz = call i32 @llvm.nvvm.read.ptx.sreg.tid.z()
  %nx = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %ny = call i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
  %bx = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %by = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %gx = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %gy = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.y()
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %warp = call i32 @llvm.nvvm.read.ptx.sreg.warpid()
  %warps = call i32 @llvm.nvvm.read.ptx.sreg.nwarpid()
  %a = icmp eq i32 %tx, 32
  %b = icmp eq i32 %ty, 1
  %c = icmp eq i32 %bx, 2
  %d = icmp eq i32 %by, 1
  %ab = and i1 %a, %b
  %cd = and i1 %c, %d
  %last = and i1 %ab, %cd
  br i1 %last, label %write, label %end
write:
  %v0 = insertelement <4 x i32> poison, i32 %tx, i32 0
  %v1 = insertelement <4 x i32> %v0, i32 %ty, i32 1
  %v2 = insertelement <4 x i32> %v1, i32 %tz, i32 2
  %v3 = insertelement <4 x i32> %v2, i32 %nx, i32 3
  store <4 x i32> %v3, ptr addrspace(1) %out, align 16
  %w0 = insertelement <4 x i32> poison, i32 %ny, i32 0
  %w1 = insertelement <4 x i32> %w0, i32 %bx, i32 1
  %w2 = insertelement <4 x i32> %w1, i32 %by, i32 2
  %w3 = insertelement <4 x i32> %w2, i32 %gx, i32 3
  %p = getelementptr i32, ptr addrspace(1) %out, i32 4
  store <4 x i32> %w3, ptr addrspace(1) %p, align 16
  %u0 = insertelement <4 x i32> poison, i32 %gy, i32 0
  %u1 = insertelement <4 x i32> %u0, i32 %lane, i32 1
  %u2 = insertelement <4 x i32> %u1, i32 %warp, i32 2
  %u3 = insertelement <4 x i32> %u2, i32 %warps, i32 3
  %q = getelementptr i32, ptr addrspace(1) %out, i32 8
  store <4 x i32> %u3, ptr addrspace(1) %q, align 16
  br label %end
end:
  ret void
}

define ptx_kernel void @masks(ptr addrspace(1) %out) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %eq = call i32 @llvm.nvvm.read.ptx.sreg.lanemask.eq()
  %le = call i32 @llvm.nvvm.read.ptx.sreg.lanemask.le()
  %lt = call i32 @llvm.nvvm.read.ptx.sreg.lanemask.lt()
  %ge = call i32 @llvm.nvvm.read.ptx.sreg.lanemask.ge()
  %gt = call i32 @llvm.nvvm.read.ptx.sreg.lanemask.gt()
  %size = call i32 @llvm.nvvm.read.ptx.sreg.warpsize()
  %last = icmp eq i32 %t, 65
  br i1 %last, label %write, label %end
write:
  store i32 %eq, ptr addrspace(1) %out, align 4
  %p1 = getelementptr i32, ptr addrspace(1) %out, i32 1
  store i32 %le, ptr addrspace(1) %p1, align 4
  %p2 = getelementptr i32, ptr addrspace(1) %out, i32 2
  store i32 %lt, ptr addrspace(1) %p2, align 4
  %p3 = getelementptr i32, ptr addrspace(1) %out, i32 3
  store i32 %ge, ptr addrspace(1) %p3, align 4
  %p4 = getelementptr i32, ptr addrspace(1) %out, i32 4
  store i32 %gt, ptr addrspace(1) %p4, align 4
  %p5 = getelementptr i32, ptr addrspace(1) %out, i32 5
  store i32 %size, ptr addrspace(1) %p5, align 4
  br label %end
end:
  ret void
}

; The first four lanes leave, the others vote.
define ptx_kernel void @exited(ptr addrspace(1) %out) {
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %leaves = icmp ult i32 %lane, 4
  br i1 %leaves, label %leave, label %vote
leave:
  call void @put(ptr addrspace(1) %out, i32 0, i32 -16)
  ret void
vote:
  %ballot = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 true)
  call void @put(ptr addrspace(1) %out, i32 0, i32 %ballot)
  ret void
}
