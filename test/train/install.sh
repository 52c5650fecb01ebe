#!/usr/bin/env bash
# An installed descent works from any folder.
. "$(dirname "$0")/common.sh"
quiet cmake --install "$DESCENT_BIN/.." --prefix "$PWD/prefix"
mkdir elsewhere && cd elsewhere
quiet ../prefix/bin/descent new mlp mlp --inputs 8 --hidden 16 --classes 4
quiet ../prefix/bin/descent compile mlp -o train
./train --describe >describe.txt
grep -q mlp describe.txt || fail "--describe does not name the model"
[ -x ../prefix/bin/descent-opt ] || fail "descent-opt is not installed"
