#!/usr/bin/env bash
# A tiny GPT, an MLP and the digits convnet reach the same loss in fp32, bf16 and fp16: over three seeds the means differ by less than the runs of fp32 do.
. "$(dirname "$0")/common.sh"
text >corpus.txt
quiet descent new gpt gpt --layers 2 --heads 2 --width 32 --sequence 32
for type in fp32 bf16 fp16; do
  quiet descent compile gpt -o gpt-$type --set precision.compute=$type --set schedule.steps=80 --set schedule.warmup=10
  for model in mlp digits; do
    quiet descent compile "$source_root/examples/$model" -o $model-$type --set precision.compute=$type --set schedule.steps=60
  done
  for seed in 1 2 3; do
    quiet ./gpt-$type --data corpus.txt --seed $seed --out gpt-$type-$seed --validate-every 0
    for model in mlp digits; do quiet ./$model-$type --seed $seed --out $model-$type-$seed --validate-every 0; done
  done
done
python3 - <<'PYTHON'
import json, statistics
def end(model, type, seed):
    losses = [json.loads(line)["loss"] for line in open(f"{model}-{type}-{seed}/metrics.jsonl")]
    assert all(l == l for l in losses)
    return statistics.mean(losses[-10:])
for model in "gpt", "mlp", "digits":
    ends = {t: [end(model, t, s) for s in (1, 2, 3)] for t in ("fp32", "bf16", "fp16")}
    noise = max(ends["fp32"]) - min(ends["fp32"])
    print(model, {t: [round(x, 4) for x in e] for t, e in ends.items()}, "noise", round(noise, 4))
    for t in "bf16", "fp16":
        assert abs(statistics.mean(ends[t]) - statistics.mean(ends["fp32"])) <= noise, (model, t)
        assert ends[t] != ends["fp32"], f"{t} computes what fp32 does: the comparison shows nothing"
PYTHON
