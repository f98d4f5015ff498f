#!/usr/bin/env bash
# apis.sh [address|thread [PYTEST ARGUMENT...]]: builds libsconce and what calls it with a sanitizer, and runs
#   address  tests/c_api, examples/embed.c, examples/embed_ctypes.py, and tests/python but for the client, whose server
#            ./dev test runs with a sanitizer, and sconce.export, which is Python alone (build/asan);
#   thread   tests/c_api (build/tsan). Python's own locks are not instrumented, so its tests would report what they guard.
#
# The Python of .venv knows nothing of the sanitizer, so its run time is loaded ahead of everything. Leaks are looked for in
# the C API alone: an interpreter leaves memory behind. Python's own allocator is off, so that the sanitizer sees the ends of its
# objects. The last line is "N passed, N failed".
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
kind=${1:-address}
[ $# -eq 0 ] || shift
case $kind in
  address) preset=asan targets=(test_c_api embed_c sconce_python_package fake_batched) ;;
  thread) preset=tsan targets=(test_c_api) ;;
  *)
    echo "apis: address or thread, not '$kind'" >&2
    exit 2
    ;;
esac
python=$PWD/.venv/bin/python
if [ "$kind" = address ]; then
  "$python" -c 'import nanobind, numpy, pytest' || {
    echo "apis: .venv needs python/requirements-build.txt and tests/server/requirements.txt" >&2
    exit 2
  }
  cmake --preset "$preset" -DSCONCE_PYTHON=ON -DPython_EXECUTABLE="$python" > /dev/null
else
  cmake --preset "$preset" > /dev/null
fi
cmake --build "build/$preset" --parallel "${JOBS:-$(nproc)}" --target "${targets[@]}" >&2

export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=suppressions=$PWD/tests/sanitizers/tsan.supp
passed=0
failed=0
try() {  # NAME COMMAND...
  echo "== $1"
  if "${@:2}"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

digits=examples/digits/digits.pt2
try "C API" "build/$preset/tests/c_api/test_c_api"
if [ "$kind" = address ]; then
  try "embed.c" "build/$preset/examples/embed_c" "$digits"
  # The C++ run time, too: without it the sanitizer would not find what throws exceptions.
  ahead=$(g++ -print-file-name=libasan.so):$(g++ -print-file-name=libstdc++.so)
  under_python=(env LD_PRELOAD="$ahead" PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0)
  library=build/$preset/src/libsconce.so.0
  try "embed_ctypes.py" "${under_python[@]}" "$python" examples/embed_ctypes.py "$library" "$digits"
  left_out=()
  for name in client client_weights export first_answer; do left_out+=("--ignore=tests/python/test_$name.py"); done
  export SCONCE_PROGRAM=$PWD/build/$preset/server/sconce  # says which build, and need not be there
  try "Python" "${under_python[@]}" "$python" -m pytest -q -p no:cacheprovider tests/python "${left_out[@]}" "$@"
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
