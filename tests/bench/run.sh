#!/usr/bin/env bash
# What `./dev bench` runs: run.sh BUILD_FOLDER [ARGUMENTS of loader/compare.py]. torch comes from PyPI into
# build/bench-venv, unless SCONCE_BENCH_PYTHON names a Python that has it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$1
shift
for argument in "$@"; do
  case $argument in -h | --help) exec python3 "$here/loader/compare.py" --help ;; esac
done
python=${SCONCE_BENCH_PYTHON:-}
if [ -z "$python" ]; then
  venv=$here/../../build/bench-venv
  python=$venv/bin/python
  if ! "$python" -c 'import torch' 2> /dev/null; then
    python3 -m venv "$venv"
    "$python" -m pip install -q torch==2.15.0 numpy
  fi
fi
exec "$python" "$here/loader/compare.py" --sconce "$folder/tests/bench_sconce_loader" "$@"
