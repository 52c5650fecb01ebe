# Torn, flipped and missing checkpoints are noticed and the one before is used; a checkpoint of another model and noise are refused.
. "$(dirname "$0")/common.sh"
bigram --steps 30 --checkpoint-every 10 --out good --export good.safetensors >/dev/null || fail "train"
[ "$(ls good/checkpoints | tr '\n' ' ')" = "step-00000020.safetensors step-00000030.safetensors " ] || fail "kept $(ls good/checkpoints)"
again() { # again WHAT: the run resumes from step 20 and ends with the same weights
  bigram --steps 30 --out r --resume --export r.safetensors >r.log 2>&1 || fail "$1: $(cat r.log)"
  grep -q "resuming r after step 20" r.log || fail "$1: $(cat r.log)"
  cmp good.safetensors r.safetensors || fail "$1: other weights"
  [ "$(steps r)" = 30 ] || fail "$1: $(steps r) objects"
}
fresh() { rm -rf r; cp -r good r; file=r/checkpoints/step-00000030.safetensors; size=$(stat -c %s $file); }
for at in 3 200 $((65536 / 2)) 65900; do
  fresh; truncate -s $at $file; again "torn at $at"; grep -q "warning: .*step-00000030" r.log || fail "torn at $at: no message"
  [ -f $file.damaged ] || fail "the damaged file is gone"
  # One bit of one byte, in the header and in the data.
  fresh; byte=$(od -An -tu1 -j $at -N 1 $file); printf "\\$(printf %o $((byte ^ 1)))" | dd of=$file bs=1 seek=$at conv=notrunc status=none
  again "flipped at $at"; grep -q "warning: .*step-00000030" r.log || fail "flipped at $at: no message"
done
fresh; rm $file; again "missing"
fresh; cp $file $file.partial; truncate -s 100 $file.partial; rm $file; again "half written"; [ -e $file.partial ] && fail "the partial file stays"
fresh; truncate -s 50 r/checkpoints/*; refused 1 "none of the 2 checkpoints" bigram --steps 40 --out r --resume
[ "$(ls r/checkpoints | wc -l)" = 2 ] || fail "damaged checkpoints were removed"

# Half a line of metrics, and lines past the checkpoint, go.
fresh; rm $file; printf '{"step":31,"lo' >>r/metrics.jsonl; again "torn metrics"

# Another model.
mkdir -p o; cp -r good/. o
refused 1 "is a checkpoint of another model (it says 'bigram', this is 'specimen')" "$BIN/specimen-train" --data corpus.txt --steps 40 --out o --resume
grep -q "missing: w f32 \[3, 1\]" err.log && grep -q "extra: table F32 \[128, 128\]" err.log || fail "differences: $(cat err.log)"
refused 1 "does not hold the weights of model 'specimen'" "$BIN/specimen-train" --data corpus.txt --steps 1 --out n --init-from good.safetensors
head -c 3000 /dev/urandom >noise
refused 1 "noise: not a whole safetensors file" bigram --steps 1 --out n --init-from noise
refused 1 "noise: not a whole safetensors file" bigram sample --init-from noise
[ -e n ] && fail "a refused start made a run"
echo "damage is noticed"
