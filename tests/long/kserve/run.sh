#!/usr/bin/env bash
# KServe's own Python client against the containers of examples/kubernetes/kserve: run.sh SCONCE
# `python` has what requirements.txt names. The last line is "N passed, N failed".
case ${1:-} in '' | -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
set -euo pipefail
exec python "$(dirname "${BASH_SOURCE[0]}")/containers.py" "$1"
