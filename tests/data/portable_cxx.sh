#!/bin/sh
# Compiles for any x86-64 with AVX2 instead of this machine, without debug information and without this machine's paths.
# shellcheck disable=SC2046  # the compiler's arguments have no spaces
set -- $(printf '%s\n' "$@" | sed -e 's/^-march=native$/-march=x86-64-v3/' -e 's/^-g1$/-g0/')
exec g++ -ffile-prefix-map="$SCONCE_TORCH_DIR=torch" -ffile-prefix-map="$TORCHINDUCTOR_CACHE_DIR=inductor" "$@"
