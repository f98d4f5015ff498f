#!/usr/bin/env bash
# run.sh SCONCE [NAME...]: torchvision's detectors as packages, checked and compared with eager. `python` has requirements.txt.
# The last line is "N passed, N failed".
case ${1:-} in '' | -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
set -euo pipefail
exec python "$(dirname "${BASH_SOURCE[0]}")/detectors.py" "$(realpath "$1")" "${@:2}"
