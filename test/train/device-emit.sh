#!/usr/bin/env bash
# The levels of device code: each prints what it should, needs no tool that it does not use, and says what is missing. --print-after shows the passes of a device too.
. "$(dirname "$0")/common.sh"
quiet descent new mlp mlp --inputs 64 --hidden 128 --classes 16 --batch 32
target=cuda:sm_90
descent compile mlp --target $target --emit=gpu >gpu.mlir
grep -q 'gpu.module' gpu.mlir && grep -q 'exec.device_kernel' gpu.mlir || fail "--emit=gpu shows no device kernels"
quiet descent-opt gpu.mlir -o again.mlir
quiet descent-opt again.mlir -o twice.mlir
cmp again.mlir twice.mlir || fail "--emit=gpu does not print what it reads"
descent compile mlp --target $target --emit=nvvm >nvvm.mlir
grep -q 'llvm.func' nvvm.mlir && ! grep -q 'gpu.func' nvvm.mlir || fail "--emit=nvvm is not in the LLVM dialect"
quiet descent-opt nvvm.mlir
for chip in sm_80 sm_90 sm_100; do
  descent compile mlp --target cuda:$chip --emit=ptx >$chip.ptx
  grep -q "^\.target $chip" $chip.ptx || fail "--emit=ptx for $chip has another target: $(grep target $chip.ptx)"
  ! grep -qE '__nv_|\.extern \.func' $chip.ptx || fail "$chip.ptx calls functions that nobody defines"
done
descent compile mlp --target $target --emit=ptx >twice.ptx
cmp sm_90.ptx twice.ptx || fail "the same input gives other PTX"
descent compile mlp --target cuda-emulated --emit=ptx >emulated.ptx
cmp sm_80.ptx emulated.ptx || fail "emulated code is not that of sm_80"
descent compile mlp --target $target --emit=llvm >program.ll
grep -q descent_program_v3 program.ll && grep -q nvptx64 program.ll || fail "--emit=llvm lacks the tables or the device's code"

# Printing and timing of the passes behind the schedule.
descent compile mlp --target $target --emit=nvvm --print-after=convert-gpu-to-nvvm >/dev/null 2>after.log
grep -q 'IR Dump After.*convert-gpu-to-nvvm' after.log || fail "--print-after showed nothing of convert-gpu-to-nvvm"
descent compile mlp --target $target --emit=exec --print-after=plan-memory >/dev/null 2>after.log
grep -q exec.program after.log || fail "--print-after showed nothing of plan-memory"

# Without the tools: where they were looked for, and what does without.
none() { env PTXAS= NVDISASM= CUDA_HOME=/nowhere PATH="$DESCENT_BIN:/usr/bin:/bin" "$@"; }
has_ptxas() { command -v ptxas >/dev/null || [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/ptxas" ] || [ -x /usr/local/cuda/bin/ptxas ]; }
if ! [ -x /usr/local/cuda/bin/ptxas ]; then
  ! none descent compile mlp --target $target --emit=cubin -o device.cubin 2>error.log || fail "--emit=cubin without ptxas worked"
  grep -q 'no ptxas to assemble PTX with.*--emit=ptx needs none' error.log || fail "$(cat error.log)"
  quiet none descent compile mlp --target $target -o train
  grep -q 'note: no ptxas was found, so the program holds PTX alone' quiet.log || fail "$(cat quiet.log)"
fi
# A tool that is named and is not there is an error that names the variable, not a program without it, and leaves no file.
for level in cubin exe; do
  ! PTXAS=$PWD/nowhere descent compile mlp --target $target --emit=$level -o unwritten 2>error.log || fail "a ptxas that is not there went unnoticed"
  grep -q "cannot run $PWD/nowhere: .*correct .PTXAS, or unset it" error.log || fail "$(cat error.log)"
  [ ! -e unwritten ] || fail "a file without a cubin was left"
done
if has_ptxas; then
  descent compile mlp --target $target --emit=cubin -o device.cubin
  [ "$(head -c 4 device.cubin | tail -c 3)" = ELF ] || fail "--emit=cubin is no ELF file"
  quiet descent compile mlp --target $target -o train
  grep -qE '^train: [0-9]+ parameters, [0-9]+ kernels in [0-9]+ launches a step \([0-9]+ commands of one graph: [0-9]+ functions, [0-9]+ products of the library\), .* of the device.s memory; compiled in' quiet.log ||
    fail "$(cat quiet.log)"
  ! grep -q spill quiet.log || fail "$(cat quiet.log)"
  # A refusal of ptxas is an error that shows its words.
  printf '#!/bin/sh\necho "ptxas fatal   : made up" >&2; exit 255\n' >fake && chmod +x fake
  ! PTXAS=$PWD/fake descent compile mlp --target $target --emit=cubin -o device.cubin 2>error.log || fail "a failing ptxas went unnoticed"
  grep -q 'made up' error.log || fail "$(cat error.log)"
else
  echo "skipped: --emit=cubin: there is no ptxas"
fi
# Spills are warned about, by function; a made-up ptxas has some.
name=$(grep -oE '\.entry [A-Za-z0-9_]+' sm_90.ptx | head -1 | cut -d' ' -f2)
cat >spiller <<SH
#!/bin/sh
while [ \$# -gt 0 ]; do [ "\$1" = -o ] && out=\$2; shift; done
printf '\177ELF' >"\$out"
echo "ptxas info    : Compiling entry function '$name' for 'sm_90'"
echo "    16 bytes stack frame, 20 bytes spill stores, 24 bytes spill loads"
echo "ptxas info    : Used 255 registers, used 1 barriers, 2048 bytes smem"
SH
chmod +x spiller
PTXAS=$PWD/spiller descent compile mlp --target $target -o train >quiet.log 2>&1 || fail "$(cat quiet.log)"
grep -q 'warning: 1 function spills registers on sm_90' quiet.log && grep -q "$name: 255 registers, 20 B stored and 24 B loaded by a thread" quiet.log || fail "$(cat quiet.log)"
descent compile mlp --target cuda-emulated -o emulated >quiet.log 2>&1 || fail "$(cat quiet.log)"
grep -q "of the emulated device's memory" quiet.log || fail "$(cat quiet.log)"

# Machine code as text where there is nvdisasm, else a made-up one.
if ! command -v nvdisasm >/dev/null && ! [ -x /usr/local/cuda/bin/nvdisasm ]; then
  if has_ptxas; then
    ! descent compile mlp --target $target --emit=sass 2>error.log || fail "--emit=sass without nvdisasm worked"
    grep -q 'no nvdisasm to show machine code with; it comes with the CUDA toolkit' error.log || fail "$(cat error.log)"
  fi
  printf '#!/bin/sh\nhead -c 4 "$1" | tail -c 3; echo " MADE.UP R0"\n' >nvdisasm && chmod +x nvdisasm
  export NVDISASM=$PWD/nvdisasm
  PTXAS=$PWD/spiller descent compile mlp --target $target --emit=sass >sass.txt
  grep -q 'ELF MADE.UP' sass.txt || fail "--emit=sass does not show what nvdisasm says"
else
  descent compile mlp --target $target --emit=sass >sass.txt
  grep -q EXIT sass.txt || fail "--emit=sass shows no machine code"
fi

# A level of device code of a CPU program.
for level in gpu nvvm ptx sass; do
  ! descent compile mlp --emit=$level >/dev/null 2>error.log || fail "--emit=$level of a CPU program worked"
  grep -q "emit=$level shows device code, and the target is cpu; add --target cuda:sm_90" error.log || fail "$(cat error.log)"
done
! descent compile mlp --emit=cubin -o x.cubin 2>error.log || fail "--emit=cubin of a CPU program worked"
! descent compile mlp --target $target --emit=cubin 2>error.log || fail "--emit=cubin without -o worked"
grep -q 'say where' error.log || fail "$(cat error.log)"
! descent plan mlp --target cuda:sm_70 2>error.log || fail "an unknown chip was taken"
grep -q 'cuda:sm_90' error.log || fail "$(cat error.log)"
! descent plan mlp --product H200 2>error.log || fail "--product of a CPU program was taken"
grep -q 'names a GPU, and the target is cpu' error.log || fail "$(cat error.log)"
