#!/usr/bin/env bash
# run.sh [SCONCE]: signatures of Sconce and of OpenSSF's model_signing, each verified by the other. Needs the openssl program and
# a `python` with requirements.txt.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
sconce=$(realpath "${1:-$root/build/release/server/sconce}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

openssl genpkey -quiet -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem 2> /dev/null
openssl pkey -in key.pem -pubout -out public.pem
openssl genpkey -quiet -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out other.pem 2> /dev/null
openssl pkey -in other.pem -pubout -out other.pub
cp "$root/examples/digits/digits.pt2" digits.pt2
head -c 100000 /dev/urandom > weights.bin
python -c 'import sys, zipfile; zipfile.ZipFile("digits.pt2").extractall("unpacked")'
theirs() { python -m model_signing "$@" > log 2>&1; }

passed=0 failed=0
# check NAME COMMAND...: it must succeed. refuse: it must fail.
check() {
  local name=$1
  shift
  if "$@" > log 2>&1; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAILED: $name: $(tail -n 3 log)"; fi
}
not() { ! "$@"; }
refuse() { check "$1" not "${@:2}"; }

"$sconce" sign --key key.pem weights.bin digits.pt2 > /dev/null
check "ours of a file, by theirs" theirs verify key weights.bin --signature weights.bin.sig --public_key public.pem
check "ours of a package, by theirs, for what it unpacks to" \
  theirs verify key unpacked --signature digits.pt2.sig --public_key public.pem
refuse "another key" theirs verify key weights.bin --signature weights.bin.sig --public_key other.pub
check "ours, by ours" "$sconce" verify --key public.pem weights.bin digits.pt2

theirs sign key weights.bin --private_key key.pem --signature weights.theirs || cat log
theirs sign key digits.pt2 --private_key key.pem --signature digits.theirs || cat log
theirs sign key unpacked --private_key key.pem --signature unpacked.theirs || cat log
check "theirs of a file, by ours" "$sconce" verify --key public.pem --signature weights.theirs weights.bin
check "theirs of a package, by ours" "$sconce" verify --key public.pem --signature digits.theirs digits.pt2
refuse "theirs by another key" "$sconce" verify --key other.pub --signature weights.theirs weights.bin
refuse "theirs of a folder says nothing of the archive" \
  "$sconce" verify --key public.pem --signature unpacked.theirs digits.pt2

echo changed >> weights.bin
refuse "a changed file, by theirs" theirs verify key weights.bin --signature weights.bin.sig --public_key public.pem
refuse "a changed file, by ours" "$sconce" verify --key public.pem --signature weights.theirs weights.bin
echo changed > unpacked/digits/more
refuse "a member too many, by theirs" theirs verify key unpacked --signature digits.pt2.sig --public_key public.pem

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
