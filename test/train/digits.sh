#!/usr/bin/env bash
# A convnet reads 97 % of held-out handwritten digits.
. "$(dirname "$0")/common.sh"
quiet descent compile "$source_root/examples/digits" -o train
quiet ./train --out run
accuracy=$(field run/metrics.jsonl validation_accuracy)
echo "accuracy $accuracy"
check "$accuracy >= 0.97"
