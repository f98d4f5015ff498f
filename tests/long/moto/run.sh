#!/usr/bin/env bash
# run.sh [SCONCE]: moto's server of S3 (PyPI), `sconce pull` and a served repository. `python` has requirements.txt.
# The last line is "N passed, N failed".
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
exec python "$root/tests/long/moto/check.py" "$(realpath "${1:-$root/build/release/server/sconce}")"
