#!/usr/bin/env bash
# Checks answers on a GPU. Each part has its own time limit; summaries come last.
#
#   on_gpu.sh --pack BUILD SUITES FOLDER   writes FOLDER.tar.xz for a machine with a GPU and torch but no compiler of ours: programs
#                                          and libraries of a CUDA build, stripped, SUITES/*-cuda.tar.xz, and these scripts
#   FOLDER/tests/truth/on_gpu.sh FOLDER RESULTS
#
# PARTS names what runs (suites test_cuda cases draws models graphs): all at once, except models, which run afterwards. SUITE_SECONDS,
# CASE_SECONDS, DRAW_SECONDS, MODEL_SECONDS, GRAPH_SECONDS limit them; DRAWS, SEED, JOBS and FAMILIES ("--family NAME ...") are run.py's
# options, MODELS those of models.py. Goes on after failures; exits with 1 if something failed.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
set -u
if [ "$1" = --pack ]; then
  build=$2 suites=$3 folder=$4 tree=$(cd "$(dirname "$0")/../.." && pwd)
  mkdir -p "$folder"/{bin,lib,testing,conf,tests}
  for program in server/sconce tests/sconce_conformance tests/test_cuda tests/bench_cuda_call; do
    [ -e "$build/$program" ] || { echo "on_gpu.sh: $build/$program is not built" >&2; exit 1; }
    strip -o "$folder/bin/$(basename $program)" "$build/$program" && chmod +x "$folder/bin/$(basename $program)"
  done
  for library in libsconce.so.0 libsconcecu.so.0; do strip -o "$folder/lib/$library" "$build/src/$library"; done
  # What Python calls: it reads errors by names that the product does not export.
  strip --strip-debug -o "$folder/testing/libsconce.so.0" "$build/testing/libsconce.so.0" && cp "$folder/lib/libsconcecu.so.0" "$folder/testing/"
  # Libraries that our programs need and a machine made for torch may lack, except those of C and C++.
  ldd "$build/server/sconce" "$build/src/libsconcecu.so.0" | awk '$3 ~ /^\// { print $3 }' | sort -u |
    grep -vE 'libsconce|/ld-|lib(c|m|z|dl|rt|pthread|stdc\+\+|gcc_s)\.so|cuda' | xargs -I{} cp -L {} "$folder/lib/"
  cp "$suites"/*-cuda.tar.xz "$folder/conf/"
  cp -r "$tree/tests/truth" "$tree/tests/cuda" "$folder/tests/"
  find "$folder" -name __pycache__ -exec rm -rf {} +
  tar -C "$folder" -cJf "$folder.tar.xz" . && rm -rf "$folder" && ls -l "$folder.tar.xz"
  exit
fi
folder=$(cd "$1" && pwd) results=$2
mkdir -p "$results"
results=$(cd "$results" && pwd)
parts=" ${PARTS:-suites test_cuda cases draws} "
export PATH="$folder/bin:$PATH" PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
export LD_LIBRARY_PATH="$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# NVIDIA libraries from Python packages, if the system has none.
for libraries in $(python3 -c 'import glob,os,torch; print(" ".join(glob.glob(os.path.join(os.path.dirname(torch.__file__), "../nvidia/*/lib"))))'); do
  LD_LIBRARY_PATH="$LD_LIBRARY_PATH:$libraries"
done
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
failed=0 begun=$SECONDS
has() { case $parts in *" $1 "*) return 0 ;; esac; return 1; }
# background NAME LIMIT COMMAND...: output in RESULTS/NAME.log, status in RESULTS/NAME.status
background() {
  local name=$1 limit=$2
  shift 2
  ( started=$SECONDS; timeout -k 10 "$limit" "$@" > "$results/$name.log" 2>&1; echo "$? after $((SECONDS - started)) s" > "$results/$name.status" ) &
}
if has suites; then
  for suite in "$folder"/conf/*.tar.xz; do
    background "suite-$(basename "$suite" .tar.xz)" "${SUITE_SECONDS:-300}" sconce_conformance --device cuda "$suite"
  done
fi
has test_cuda && background test_cuda "${CASE_SECONDS:-300}" test_cuda
has cases && background cases "${CASE_SECONDS:-300}" python3 "$folder/tests/cuda/against_torch.py" "$folder/testing"
# shellcheck disable=SC2086
has draws && background draws "$((${DRAW_SECONDS:-400} + 60))" python3 "$folder/tests/truth/run.py" "$folder/testing" --device cuda \
  --draws "${DRAWS:-60000}" --seed "${SEED:-1}" --jobs "${JOBS:-12}" --seconds "${DRAW_SECONDS:-400}" --show 40 --hang 150 ${FAMILIES:-}
if has graphs; then
  # For every package of the suites, runs as CUDA graphs against runs without.
  # shellcheck disable=SC2016
  background graphs "${GRAPH_SECONDS:-300}" bash -c '
    packages=$(mktemp -d)
    for suite in "$1"/conf/*.tar.xz; do mkdir "$packages/$(basename "$suite")"; tar -xJf "$suite" -C "$packages/$(basename "$suite")"; done
    find "$packages" -name "*.pt2" | sort | xargs -P 4 -I{} sh -c "echo {}: \$(timeout 60 bench_cuda_call --same {} 2>&1 | tail -1)"
    rm -rf "$packages"' graphs "$folder"
fi
wait
# shellcheck disable=SC2086
if has models; then
  background models "$((${MODEL_SECONDS:-400} + 30))" python3 "$folder/tests/truth/models.py" --programs "$folder/bin" --device cuda \
    --seconds "${MODEL_SECONDS:-400}" --out "$results/models" ${MODELS:-}
  wait
  rm -rf "$results/models"
fi

echo "==== $((SECONDS - begun)) s"
for status in "$results"/*.status; do
  name=$(basename "$status" .status)
  echo "$name: exit $(cat "$status"); $(grep -av '^ *$' "$results/$name.log" | tail -1 | cut -c1-200)"
  case $(cat "$status") in "0 "*) ;; *) failed=1 ;; esac
done
# A package that cannot run on made-up inputs is no failure; one that answers differently is.
if grep -qas ': DIFFERENT' "$results/graphs.log"; then failed=1; fi
show() { [ ! -e "$results/$1.log" ] || { echo "== $1"; grep -aE "$2" "$results/$1.log" | cut -c1-330 | head -"$3"; }; }
for suite in "$results"/suite-*.log; do
  [ -e "$suite" ] && show "$(basename "$suite" .log)" '^(FAIL|fail|not ok|  *FAIL)' 12
done
show test_cuda 'ERROR|TEST CASE|values:|CHECK|test cases' 30
show cases '^FAIL' 30
show graphs '(^|: )(not |DIFFERENT|no |.*(error|Aborted))' 25
show models '^(FAIL|NOTE)|FAIL|not made|passed' 60
if [ -e "$results/draws.log" ]; then
  echo "== draws"
  # The first three of each family and operator.
  grep -a '^FAIL' "$results/draws.log" | awk '{ split($2, name, ":"); if (seen[name[1] $3]++ < 3) print }' | cut -c1-420 | head -70
  sed -n '/^family /,$p' "$results/draws.log"
fi
tar -C "$results" -cJf "$results/logs.tar.xz" --exclude=logs.tar.xz . 2>/dev/null
find "$results" -maxdepth 1 -type f \( -name '*.log' -o -name '*.status' \) ! -name draws.log -delete
exit $failed
