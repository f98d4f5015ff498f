#!/usr/bin/env bash
# Runs everything that needs a GPU: run_on_gpu.sh FOLDER [RESULTS]. FOLDER has bin/ (sconce, sconce_conformance,
# bench_cuda_call, test_cuda), lib/ (libsconce.so.0, libsconcecu.so.0 and their dependencies), conf/*.tar.xz (suites),
# pk/*.pt2 (packages to time), the scripts and the folder weights beside this one, and compare.py. Goes on after failures;
# ends with a summary.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
folder=$(cd "$1" && pwd); results=${2:-$folder/results}; mkdir -p "$results"
export LD_LIBRARY_PATH="$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# NVIDIA libraries from Python packages, if the system has none.
for libraries in $(python3 -c 'import glob,os,torch; print(" ".join(glob.glob(os.path.join(os.path.dirname(torch.__file__), "../nvidia/*/lib"))))'); do
  LD_LIBRARY_PATH="$LD_LIBRARY_PATH:$libraries"
done
export PATH="$folder/bin:$PATH"
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
for suite in "$folder"/conf/*.tar.xz; do
  name=$(basename "$suite" .tar.xz)
  timeout 300 sconce_conformance --device cuda "$suite" > "$results/suite-$name.log" 2>&1
  echo "suite $name: exit $?; $(tail -1 "$results/suite-$name.log")"
  grep -aE '^(FAIL|fail|not ok|  *FAIL)' "$results/suite-$name.log" | head -20
done
timeout 300 python3 "$folder/against_torch.py" "$folder/lib" > "$results/against_torch.log" 2>&1
echo "against_torch: exit $?"; grep -a '^FAIL\|passed\|^time' "$results/against_torch.log" | head -90
if [ -x "$folder/bin/test_cuda" ]; then
  timeout 120 test_cuda > "$results/test_cuda.log" 2>&1
  echo "test_cuda: exit $?"; grep -av '^$' "$results/test_cuda.log" | tail -80
else
  echo "test_cuda: not here"
fi
timeout 200 python3 "$folder/against_torch.py" "$folder/lib" --times 2>&1 | tee "$results/operator_times.log"
# For every package of the suites, runs as CUDA graphs against runs without.
mkdir -p "$results/packages"
for suite in "$folder"/conf/*.tar.xz; do tar -xJf "$suite" -C "$results/packages" 2>/dev/null; done
find "$results/packages" -name '*.pt2' | sort | while read -r package; do
  printf '%s: ' "${package#"$results/packages/"}"
  timeout 60 bench_cuda_call --same "$package" 2>&1 | tail -1
done > "$results/graphs.log"
rm -rf "$results/packages"
echo "graphs: $(grep -c ': same' "$results/graphs.log") same, $(grep -vc ': same' "$results/graphs.log") not"
grep -v ': same' "$results/graphs.log" | head -20
timeout 120 python3 "$folder/shared_memory.py" sconce "$folder"/pk/*.pt2 > "$results/shared_memory.log" 2>&1
echo "shared_memory: exit $?"; tail -20 "$results/shared_memory.log"
timeout 240 python3 "$folder/compare.py" bench_cuda_call "$folder"/pk/*.pt2 2>&1 | tee "$results/compare.log"
timeout 120 python3 "$folder/faults.py" "$folder/bin/sconce" "$folder/lib/libfault_launch.so" "$folder/pk/test_dynamic_batch.pt2"
echo "faults: exit $?"
timeout 600 python3 "$folder/served_weights.py" "$folder/bin/sconce" > "$results/served_weights.log" 2>&1
echo "served_weights: exit $?; $(tail -1 "$results/served_weights.log")"; grep -a '^FAIL' "$results/served_weights.log"
for package in "$folder"/pk/*.pt2; do
  echo "cycles $(basename "$package"): $(timeout 300 bench_cuda_call --cycles 1000 "$package" 2>&1 | tail -1)"
done
