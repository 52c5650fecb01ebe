#!/usr/bin/env bash
# An inf in a gradient of step 3 of 5 skips that step and nothing else: weights, moments and the count of updates keep their bits, the scale halves, one skip
# is counted. 5 steps with a skip inside are 3, a resume, and 2.
. "$(dirname "$0")/common.sh"
text >corpus.txt
quiet descent new gpt gpt $gpt_size
quiet descent compile gpt -o train --set precision.compute=fp16
run() { quiet ./train --data corpus.txt --seed 3 --threads 2 --out "$1" --export "$1.safetensors" "${@:2}"; }
newest() { ls "$1"/checkpoints/*.safetensors | tail -1; }
run two --steps 2
run three --steps 3 --inject-nonfinite 3
cmp two.safetensors three.safetensors || fail "a skipped step moved the weights"
python3 "$source_root/test/train/tensors.py" same "$(newest two)" "$(newest three)" state/loss_scale state/clean_steps state/skipped_steps || fail "a skipped step moved the state"
python3 - <<'PYTHON'
import json, sys
lines = [json.loads(l) for l in open("three/metrics.jsonl")]
assert lines[2]["loss_scale"] == 65536 and lines[2]["skipped"] == 1 and lines[1]["skipped"] == 0, lines
PYTHON
run whole --steps 5 --inject-nonfinite 3
run parts --steps 3 --inject-nonfinite 3
quiet ./train --data corpus.txt --seed 3 --threads 1 --out parts --steps 5 --resume --export parts.safetensors
cmp whole.safetensors parts.safetensors || fail "a resume after a skip differs"
python3 "$source_root/test/train/tensors.py" same "$(newest whole)" "$(newest parts)" || fail "a resumed checkpoint differs"
python3 - <<'PYTHON'
import json
lines = [json.loads(l) for l in open("parts/metrics.jsonl")]
assert [l["loss_scale"] for l in lines] == [65536, 65536, 65536, 32768, 32768], lines
assert [l["skipped"] for l in lines] == [0, 0, 1, 1, 1], lines
PYTHON
# The learning rate's schedule counts updates, so the step after the skip repeats its rate.
[ "$(sed -n 3p whole/metrics.jsonl | grep -oE '"lr":[^,]*')" = "$(sed -n 4p whole/metrics.jsonl | grep -oE '"lr":[^,]*')" ] || fail "the schedule moved in a skipped step"
# The gradient of one parameter can be chosen; a parameter that does not exist and a step before the first are refused.
run one --steps 2 --inject-nonfinite 2:h.1.ln2.gain
[ "$(field one/metrics.jsonl skipped)" = 1 ] || fail "no skip for h.1.ln2.gain"
! ./train --data corpus.txt --steps 2 --out bad --inject-nonfinite 2:h.9.gain >refuse.log 2>&1 || fail "an unknown parameter was accepted"
grep -q 'h.9.gain' refuse.log || fail "the message does not name the parameter"
! ./train --data corpus.txt --steps 2 --out bad --inject-nonfinite 0 >refuse.log 2>&1 || fail "step 0 was accepted"
# --on-nonfinite=stop stops there and names what is not finite.
! ./train --data corpus.txt --seed 3 --steps 5 --out stopped --inject-nonfinite 3 --on-nonfinite=stop >stop.log 2>&1 || fail "--on-nonfinite=stop went on"
grep -qE 'step 3' stop.log && grep -qiE 'inf' stop.log || { cat stop.log >&2; fail "the message does not say where"; }
