#!/usr/bin/env bash
# wheel.sh [SUITE...]: installs dist/*.whl in bare roots of Debian (bookworm and trixie unless told) with nothing but Python
# and pip: serves a package, asks it over HTTP, runs it from Python, builds nothing, and uninstalls without a trace. Prints
# the seconds from `pip install` to the first answer. ./dev wheel makes the wheel. Exit status 77: no roots can be made here.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/packaging/roots.sh
. tests/packaging/roots.sh

wheel=$(find dist -name 'sconce-*-py3-none-manylinux*.whl' | sort | tail -n 1)
[ -n "$wheel" ] || fail "there is no wheel in dist: ./dev wheel makes it"
[ $# -gt 0 ] || set -- bookworm trixie

passed=0
for suite in "$@"; do
  root=$(make_root "$suite") || { echo "$root" && exit 77; }
  cp "$wheel" "$root/root/"
  cp examples/digits/digits.pt2 examples/digits/request.json "$root/root/"
  inside "$root" python3 -m venv /opt/sconce
  if inside "$root" sh -c 'command -v cc gcc g++ clang'; then fail "$suite: the root has a compiler"; fi

  start=$(date +%s.%N)
  inside "$root" sh -c "/opt/sconce/bin/pip -q install /root/*.whl" || fail "$suite: pip cannot install $wheel"
  cat > "$root/root/first.py" << 'PYTHON'
import json
import numpy
import sconce
model = sconce.load("/root/digits.pt2")
print(model.signature)
print(model(numpy.array(json.load(open("/root/request.json"))["args"][0], numpy.float32)))
PYTHON
  inside "$root" /opt/sconce/bin/python /root/first.py > "$scratch/first" 2>&1 || fail "$suite: Python says $(cat "$scratch/first")"
  grep -q 'class' "$scratch/first" || fail "$suite: Python answers $(cat "$scratch/first")"
  echo "packaging: $suite: $(echo "$(date +%s.%N) $start" | awk '{ printf "%.1f", $1 - $2 }') s from pip install to the first answer"

  [ "$(inside "$root" /opt/sconce/bin/sconce --version)" = "$(inside "$root" /opt/sconce/bin/python -m sconce --version)" ] ||
    fail "$suite: sconce and python -m sconce are of different versions"
  ask_server "$root" /opt/sconce/bin/sconce serve --http 127.0.0.1:0 --grpc 127.0.0.1:0 --metrics off --admin off /root/digits.pt2
  grep -q 'by gRPC on' "$scratch/log" || fail "$suite: no gRPC: $(cat "$scratch/log")"
  # The command finds the Python it was installed for; the program, the one on PATH. Both come as far as this root allows.
  for start in /opt/sconce/bin/sconce "$(cd "$root" && find opt/sconce -path '*-packages/sconce/bin/sconce')"; do
    status=0
    inside "$root" env PATH=/opt/sconce/bin:/usr/bin:/bin "/${start#/}" compare /root/digits.pt2 module:function > "$scratch/log" 2>&1 || status=$?
    if [ "$status" != 2 ] || ! grep -q '^sconce compare: this Python has no torch' "$scratch/log"; then
      fail "$suite: $start compare: status $status, $(cat "$scratch/log")"
    fi
  done

  # The bills of materials name every library that it brings, and no other.
  inside "$root" /opt/sconce/bin/python -c '
import importlib.metadata, json, pathlib, sconce
bills = [f for f in importlib.metadata.files("sconce") if f.match("*.dist-info/sboms/*.cdx.json")]
assert {bill.name for bill in bills} == {"sconce.cdx.json", "sconce-grpc.cdx.json"}
listed = {p["value"] for bill in bills for c in json.loads(bill.read_text())["components"] for p in c.get("properties", [])
          if p["name"] == "sconce:file"}
brought = {f.name for f in (pathlib.Path(sconce.__file__).parent / "lib/sconce").glob("*.so*")}
assert listed and listed == {name for name in brought if not name.startswith("libsconce")}, (listed, brought)
' || fail "$suite: the bill of materials is not that of the libraries"

  # Every library that it brings finds all it needs; a project finds its CMake files.
  inside "$root" /opt/sconce/bin/python -c '
import ctypes, pathlib, sconce
package = pathlib.Path(sconce.__file__).parent
for library in sorted((package / "lib").rglob("*.so*")):
    ctypes.CDLL(str(library))
assert (pathlib.Path(sconce.cmake_prefix()) / "lib/cmake/sconce/sconceConfig.cmake").exists(), sconce.cmake_prefix()
assert (package / "include/sconce/model.h").exists()
' || fail "$suite: a library of the wheel does not load"

  inside "$root" /opt/sconce/bin/pip -q uninstall -y sconce
  left=$(find "$root/opt/sconce" -iname '*sconce*' -mindepth 1)
  [ -z "$left" ] || fail "$suite: after pip uninstall there is still $left"
  passed=$((passed + 1))
done
echo "$passed passed, 0 failed"
