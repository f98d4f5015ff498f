#!/usr/bin/env bash
# archive.sh [SUITE...]: unpacks dist/sconce-*.tar.zst in bare roots of Debian (bookworm and trixie unless told), where a
# folder with a blank in its name is all it gets; serves a package from there, and from where it is moved to. ./dev deb
# makes it. Exit status 77: no roots can be made here.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/packaging/roots.sh
. tests/packaging/roots.sh

archive=$(find dist -name 'sconce-[0-9]*-linux-x86_64.tar.zst' | sort | tail -n 1)
[ -n "$archive" ] || fail "there is no archive in dist: ./dev deb makes it"
[ $# -gt 0 ] || set -- bookworm trixie

# Nothing in it knows where it was made.
mkdir "$scratch/unpacked"
tar -xf "$archive" -C "$scratch/unpacked"
top=$(ls "$scratch/unpacked")
[ "$top" = "$(basename "$archive" .tar.zst)" ] || fail "it unpacks into '$top'"
if grep -rlF -e "$PWD" -e _CPack_Packages "$scratch/unpacked" > "$scratch/log"; then fail "the path of the build is in $(cat "$scratch/log")"; fi
grep -q '^ExecStart=/usr/local/bin/sconce ' "$scratch/unpacked/$top/lib/systemd/system/sconce.service" || fail "the unit starts something else"

passed=0
for suite in "$@"; do
  root=$(make_root "$suite") || { echo "$root" && exit 77; }
  cp examples/digits/digits.pt2 "$root/root/"
  mkdir "$root/any where"
  mv "$scratch/unpacked/$top" "$root/any where/sconce"
  for place in "any where/sconce" srv/elsewhere; do
    [ -d "$root/$place" ] || mv "$root/any where/sconce" "$root/$place"
    inside "$root" "/$place/bin/sconce" check /root/digits.pt2 > "$scratch/log" 2>&1 || fail "$suite: sconce check says $(cat "$scratch/log")"
    ask_server "$root" "/$place/bin/sconce" serve --http 127.0.0.1:0 --metrics off --admin off /root/digits.pt2
  done
  # Libraries that are opened when needed find all they need, and each other.
  inside "$root" python3 -c '
import ctypes, pathlib
for library in sorted(pathlib.Path("/srv/elsewhere/lib").rglob("*.so*")):
    ctypes.CDLL(str(library))
' > "$scratch/log" 2>&1 || fail "$suite: a library does not load: $(cat "$scratch/log")"
  mv "$root/srv/elsewhere" "$scratch/unpacked/$top"
  passed=$((passed + 1))
done
echo "$passed passed, 0 failed"
