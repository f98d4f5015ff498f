#!/usr/bin/env bash
# run.sh SCONCE: runs examples/ray on two nodes of Ray on this machine. `python` has requirements.txt. Sconce's Python
# package is that of the build which SCONCE, the program, belongs to; without one, that of dist/*.whl. Takes seven minutes.
# The last line is "N passed, N failed".
case ${1:-} in -h | --help | '') sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
set -euo pipefail
program=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

package=$(dirname "$program")/../python
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if ! compgen -G "$package/sconce/_native*.so" > /dev/null; then
  wheel=$(find dist -name 'sconce-*-py3-none-manylinux*.whl' 2> /dev/null | sort | tail -n 1)
  if [ -z "$wheel" ]; then
    echo "ray: no Python package beside $program (cmake -DSCONCE_PYTHON=ON) and no wheel in dist (./dev wheel)" >&2
    echo "0 passed, 1 failed"
    exit 1
  fi
  python -m pip -q install --no-deps --target "$scratch/package" "$wheel"
  package=$scratch/package
fi

package=$(realpath "$package")
export PYTHONPATH=$package:$PWD/examples/ray:$PWD/tests/long/ray
export RAY_USAGE_STATS_ENABLED=0 RAY_AUTH_MODE=disabled RAY_ENABLE_AUTO_CONNECT=0
# Workers would run at niceness 15, and start in minutes beside anything else.
export RAY_worker_niceness=0 RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S=60
status=0
python -m pytest -v -p no:cacheprovider --junitxml="$scratch/pytest.xml" tests/long/ray || status=$?
counted=$(python tests/counts.py pytest "$scratch/pytest.xml") || counted="0 1"
echo "$counted" | awk 'NR == 1 { print $1 " passed, " $2 " failed" }'
exit "$status"
