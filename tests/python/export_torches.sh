#!/usr/bin/env bash
# Runs test_export.py and test_rows.py with each version of torch that is named, or with all that sconce.export takes: a
# virtual environment of 2 to 6 GB at a time, which is removed afterwards. SCONCE_PROGRAM says which build; SCONCE_TORCH_INDEX
# may name an index of smaller wheels (https://download.pytorch.org/whl/cpu).
#
#   tests/python/export_torches.sh 2.8 2.14
set -euo pipefail
[ "${1:-}" != --help ] || exec sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

[ $# -gt 0 ] || set -- 2.6 2.7 2.8 2.9 2.10 2.11 2.12 2.13 2.14 2.15
python=$(realpath -s .venv/bin/python)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
for version in "$@"; do
  rm -rf "$folder/torch"
  "$python" -m venv "$folder/torch"
  "$folder/torch/bin/pip" install -q --no-cache-dir numpy setuptools
  "$folder/torch/bin/pip" install -q --no-cache-dir ${SCONCE_TORCH_INDEX:+--index-url "$SCONCE_TORCH_INDEX"} "torch==$version.*"
  echo "torch $version"
  SCONCE_TORCH_PYTHON=$folder/torch/bin/python "$python" -m pytest -q -rs tests/python/test_export.py tests/python/test_rows.py || failed=1
done
exit "$failed"
