#!/usr/bin/env bash
# The example GPT learns more than which byte follows which: its validation loss is clearly below that of a bigram model counted on the same split.
. "$(dirname "$0")/common.sh"
cat /usr/share/common-licenses/{GPL-2,GPL-3,LGPL-2.1,Apache-2.0,MPL-2.0} >corpus.txt
quiet descent compile "$source_root/examples/gpt" -o train
quiet ./train --data corpus.txt --steps "${STEPS:-400}" --out run
loss=$(field run/metrics.jsonl validation_loss)
fraction=$(./train --describe=json | grep -oE '"data.validation": *"[0-9.]+"' | grep -oE '[0-9.]+"$' | tr -d '"')
bigram=$(python3 - "$fraction" <<'PYTHON'
import math, sys
data = open("corpus.txt", "rb").read()
cut = int(len(data) * (1 - float(sys.argv[1])))
train, validation = data[:cut], data[cut:]
count, total = {}, {}
for a, b in zip(train, train[1:]):
    count[a, b] = count.get((a, b), 0) + 1
    total[a] = total.get(a, 0) + 1
print(sum(-math.log((count.get((a, b), 0) + 0.1) / (total.get(a, 0) + 25.6)) for a, b in zip(validation, validation[1:])) / (len(validation) - 1))
PYTHON
)
echo "validation loss $loss, bigram $bigram"
check "$loss < $bigram - 0.1"
