# A full disk: message, status 1, no half-written file, and the checkpoint before is whole.
. "$(dirname "$0")/common.sh"
mkdir disk; mount -t tmpfs -o size=300k none disk 2>/dev/null || skip "mounting a small file system takes root"
trap 'umount "$work/disk"' EXIT
bigram --steps 10 --out disk/r --export before.safetensors >/dev/null || fail "train"
dd if=/dev/zero of=disk/filler bs=1k count=$(($(df --output=avail -k disk | tail -1) - 20)) status=none
# The start looks for room, and a disk that fills up later is met by the save.
refused 1 "No space left on device" bigram --steps 20 --out disk/r --resume
[ "$(ls disk/r/checkpoints)" = step-00000010.safetensors ] || fail "left $(ls disk/r/checkpoints)"
refused 1 "No space left on device" bigram --steps 0 --export disk/w.safetensors
ls disk/w* >/dev/null 2>&1 && fail "half a file stays"
rm disk/filler
bigram --steps 10 --out disk/r --resume --export after.safetensors >/dev/null || fail "the checkpoint before the full disk is damaged"
cmp before.safetensors after.safetensors || fail "other weights"
# No room for one more line of metrics.
bigram --steps 20 --out disk/r --resume >/dev/null || fail "resume"
dd if=/dev/zero of=disk/filler bs=1k count=10000 status=none 2>/dev/null
refused 1 "No space left on device" bigram --steps 2000 --out disk/r --resume --checkpoint-every 0
rm disk/filler
bigram --steps 30 --out disk/r --resume >/dev/null || fail "resume after full metrics"
[ "$(steps disk/r)" = 30 ] || fail "$(steps disk/r) objects"
echo "a full disk loses nothing"
