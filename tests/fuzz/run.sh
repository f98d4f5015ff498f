#!/usr/bin/env bash
# run.sh [SECONDS [ENTRY...]]: builds the libFuzzer program with clang (packages: clang, libclang-rt-dev or another
# with libFuzzer) and runs each of entries.txt for SECONDS (60), from the seeds and from what earlier runs found.
# Inputs that end a program are kept in build/fuzz/found/ENTRY-*; FUZZ_ENTRY=ENTRY build/fuzz/tests/fuzz/fuzz FILE reproduces it.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seconds=${1:-60}
[ $# -eq 0 ] || shift
if [ $# -eq 0 ]; then
  mapfile -t entries < tests/fuzz/entries.txt
  set -- "${entries[@]}"
fi
cmake --preset fuzz > /dev/null
cmake --build build/fuzz --target fuzz >&2
mkdir -p build/fuzz/found
failed=0
for entry; do
  corpus=build/fuzz/corpus/$entry
  mkdir -p "$corpus"
  export FUZZ_ENTRY=$entry
  FUZZ_SEEDS=$corpus build/fuzz/tests/fuzz/fuzz
  echo "== $entry"
  # One input that takes 20 seconds or 2 GiB is a bug too.
  build/fuzz/tests/fuzz/fuzz -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=65536 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/found/$entry-" "$corpus" > "build/fuzz/found/$entry.log" 2>&1 ||
    failed=$((failed + 1))
  grep -E 'ERROR|SUMMARY|fuzz: |Done |number_of_executed|new_units_added' "build/fuzz/found/$entry.log" | sed 's/^/   /'
done
echo "$(($# - failed)) passed, $failed failed"
[ "$failed" = 0 ]
