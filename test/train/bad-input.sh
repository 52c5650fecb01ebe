#!/usr/bin/env bash
# Bad input is refused with a message that names what is wrong, exit status 1 (2 for the command line), and nothing half-written.
. "$(dirname "$0")/common.sh"
text >corpus.txt
quiet descent new gpt gpt --layers 1 --heads 2 --width 16 --sequence 16 --vocabulary 256
quiet descent compile gpt -o train
refuse() { # refuse STATUS PATTERN COMMAND...
  local status=0; "${@:3}" >refuse.log 2>&1 </dev/null || status=$?
  [ $status -eq "$1" ] || { cat refuse.log >&2; fail "${*:3}: exit $status, expected $1"; }
  grep -qiE -- "$2" refuse.log || { cat refuse.log >&2; fail "${*:3}: message lacks '$2'"; }
}
# The compiler's input.
refuse 1 'nowhere' descent compile nowhere -o x
refuse 2 'unknown|not expected|bogus' descent compile gpt -o x --bogus
refuse 1 'no folder' descent compile gpt -o nowhere/x
refuse 1 'no pass' descent compile gpt -o x --print-after=form-kernel
mkdir bad && cp gpt/recipe.toml bad/
sed 's/nn.layer_norm/nn.layer_nrom/' gpt/model.mlir >bad/model.mlir
refuse 1 'model.mlir:[0-9]+:[0-9]+.*nn.layer_nrom' descent compile bad -o x
head -c 700 gpt/model.mlir >bad/model.mlir
refuse 1 'model.mlir:[0-9]+' descent compile bad -o x
: >bad/model.mlir
refuse 1 'model.mlir' descent compile bad -o x
head -c 3000 /dev/urandom >bad/model.mlir
refuse 1 'model.mlir' descent compile bad -o x
cp gpt/model.mlir bad/
sed 's/adamw/adamv/' gpt/recipe.toml >bad/recipe.toml
refuse 1 'recipe.toml:[0-9]+.*adamv.*adamw' descent compile bad -o x
{ cat gpt/recipe.toml; printf '\n[optimiser]\nlr = 1\n'; } >bad/recipe.toml
refuse 1 'optimiser.*optimizer' descent compile bad -o x
for key in batch.micro=4 precision.compute=int8 precision.loss_scale=1024 memory.recompute=pointwise parallel.zero=1 run.target=cuda:sm_91; do
  refuse 1 "${key%%=*}" descent compile gpt -o x --set $key --set batch.size=8
done
cp gpt/model.mlir bad/
{ cat gpt/recipe.toml; printf '\n[precision]\ncompute = "bf16"\n[[precision.override]]\nmatch = "h.7.*"\ntype = "fp32"\n'; } >bad/recipe.toml
line=$(wc -l <gpt/recipe.toml)
refuse 1 "recipe.toml:$((line + 4)):1: error: precision override in 'h\.7\.\*' matches no op.*h\.0\.attn.*wte" descent compile bad -o x
refuse 1 "h\.7\.\*.*matches no" descent plan bad
sed -i 's/^match = "h.7.*/op = "matmull"/' bad/recipe.toml
refuse 1 "recipe.toml:$((line + 4)):1: error: precision override of op 'matmull' matches no op; the model has .*matmul" descent compile bad -o x
sed -i 's/^op = "matmull"/op = "softmax"\nmatch = "wte"/' bad/recipe.toml
refuse 1 "of op 'softmax' matches no op" descent compile bad -o x
refuse 1 'cpu|haswell' descent compile gpt -o x --cpu pentium
[ ! -e x ] || fail "a refused compilation left a file"
# The program's input.
refuse 2 'stepz.*steps|steps' ./train --data corpus.txt --stepz 1
refuse 2 'steps' ./train --data corpus.txt --steps -3 --out o
refuse 1 'nowhere.txt' ./train --data nowhere.txt --steps 1 --out o
: >empty; refuse 1 'empty' ./train --data empty --steps 1 --out o
head -c 5 corpus.txt >short; refuse 1 'short' ./train --data short --steps 1 --out o
refuse 1 '/proc/descent' ./train --data corpus.txt --steps 1 --out /proc/descent
head -c 3000 /dev/urandom >noise
refuse 1 'noise' ./train --data corpus.txt --steps 1 --out o --init-from noise
refuse 1 'o' ./train --data corpus.txt --steps 1 --out o --resume
# A token outside the vocabulary, with its place and the bound.
quiet descent compile gpt -o tokens --set data.format=tokens --set data.validation=0.0
python3 -c 'open("tokens.bin","wb").write(b"".join(t.to_bytes(2,"little") for t in [1,2,300]*300))'
refuse 1 '300.*256|256.*300' ./tokens --data tokens.bin --steps 1 --out o
# A checkpoint of another model.
quiet ./train --data corpus.txt --steps 2 --out mine
quiet descent new gpt other --layers 2 --heads 2 --width 16 --sequence 16 --vocabulary 256
quiet descent compile other -o other-train
refuse 1 'h.1|another|missing' ./other-train --data corpus.txt --steps 4 --out mine --resume
refuse 1 'h.1|missing' ./other-train --data corpus.txt --steps 1 --out o --init-from "$(ls mine/checkpoints/*.safetensors | tail -1)"
