#!/usr/bin/env bash
# cuda.sh [SUITE...]: looks at what ./dev wheel cuda and ./dev deb cuda wrote. Each part of the device code is there for every
# kind of GPU that was promised. libsconce_cuda loads where there is a driver: CUDA's runtime, which packages call through
# it, is beside it. So it installs in bare roots of Debian (bookworm and trixie unless told), where sconce says that the
# driver is missing. What it opens later is recommended. No GPU is needed. Exit status 77: no roots can be made here.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/packaging/roots.sh
. tests/packaging/roots.sh

wheel=$(find dist -name 'sconce_cuda-*-py3-none-manylinux*.whl' | sort | tail -n 1)
package=$(find dist -name 'sconce-cuda_*.deb' | sort | tail -n 1)
archive=$(find dist -name 'sconce-cuda-*.tar.zst' | sort | tail -n 1)
[ -n "$wheel" ] || fail "there is no wheel for CUDA in dist: ./dev wheel cuda makes it"
if [ -z "$package" ] || [ -z "$archive" ]; then fail "there is no sconce-cuda in dist: ./dev deb cuda makes it"; fi
[ $# -gt 0 ] || set -- bookworm trixie

architectures=${ARCHITECTURES:-$(python3 -c '
import json
print(next(p for p in json.load(open("CMakePresets.json"))["configurePresets"] if p["name"] == "product-cuda")["cacheVariables"]["SCONCE_CUDA_ARCHITECTURES"])')}
mkdir "$scratch/wheel" "$scratch/package" "$scratch/archive"
python3 -m zipfile -e "$wheel" "$scratch/wheel"
dpkg-deb -x "$package" "$scratch/package"
tar -xf "$archive" -C "$scratch/archive"
names=$(sed -n 's/^sconce_lazy_library(sconce_cuda .*SONAME lib\([a-zA-Z]*\)\.so.*/\1/p' src/cuda/CMakeLists.txt | sort -u)
[ -n "$names" ] || fail "src/cuda/CMakeLists.txt opens no library"
mapfile -t libraries < <(find "$scratch" -name 'libsconcecu.so.0')
[ ${#libraries[@]} = 3 ] || fail "found ${libraries[*]}"
for library in "${libraries[@]}"; do
  python3 tests/packaging/device_code.py "$library" "$architectures" || fail "${library#"$scratch/"} lacks device code"
  needed=$(readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE '^(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so|ld-linux)' | sort | tr '\n' ' ')
  [ "$needed" = "libcuda.so.1 libcudart.so.13 libsconce.so.0 " ] || fail "${library#"$scratch/"} needs $needed"
done
for folder in package/usr archive/sconce-*; do
  # shellcheck disable=SC2086  # the version
  ls "$scratch"/$folder/lib/sconce/libcudart.so.13 > /dev/null || fail "${folder%%/*} lacks the runtime"
done
# Every library that is opened later comes with what the packages ask for.
recommended=$(dpkg-deb -f "$package" Recommends)
required=$(sed -n 's/^Requires-Dist: //p' "$scratch/wheel"/sconce_cuda-*.dist-info/METADATA)
for name in $names; do
  name=${name%Lt}
  [[ $recommended == *lib"$name"* ]] || fail "the package does not recommend what has lib$name: $recommended"
  [[ $required == *nvidia-"$name"* ]] || fail "the wheel does not require what has lib$name: $required"
done
[[ $required == *nvidia-cuda-runtime* ]] || fail "the wheel does not require what has libcudart: $required"
if command -v lintian > /dev/null; then
  lintian --allow-root --fail-on error "$package" || fail "lintian finds errors"
fi

# The digits example, said to be compiled for CUDA.
python3 - examples/digits/digits.pt2 "$scratch/digits.pt2" << 'PYTHON'
import sys, zipfile
source, target = map(zipfile.ZipFile, sys.argv[1:], "rw")
for entry in source.infolist():
    target.writestr(entry, source.read(entry).replace(b'"AOTI_DEVICE_KEY": "cpu"', b'"AOTI_DEVICE_KEY": "cuda"'))
target.close()
PYTHON

passed=0
for suite in "$@"; do
  root=$(make_root "$suite") || { echo "$root" && exit 77; }
  mkdir "$root/packages"
  cp dist/sconce_*.deb "$root/packages/sconce.deb"
  cp dist/libsconce0_*.deb "$root/packages/libsconce0.deb"
  cp "$scratch/digits.pt2" "$root/root/"
  install() { inside "$root" apt-get -q install -y --no-install-recommends "$@" > "$scratch/log" 2>&1 || fail "$suite: apt-get says $(tail -n 20 "$scratch/log")"; }
  inside "$root" apt-get -q update > "$scratch/log" 2>&1 || fail "$suite: apt-get says $(tail -n 20 "$scratch/log")"
  says() {
    local status=0
    inside "$root" sconce check /root/digits.pt2 > "$scratch/log" 2>&1 || status=$?
    if [ "$status" != 1 ] || ! grep -qF "$1" "$scratch/log"; then fail "$suite: not '$1', status $status: $(cat "$scratch/log")"; fi
  }
  install /packages/sconce.deb /packages/libsconce0.deb
  says "CUDA devices need libsconcecu.so.0"
  cp "$package" "$root/packages/cuda.deb"
  install /packages/cuda.deb
  says "CUDA devices need NVIDIA's driver"
  inside "$root" apt-get -q purge -y sconce-cuda > "$scratch/log" 2>&1 || fail "$suite: purge says $(tail -n 20 "$scratch/log")"
  says "CUDA devices need libsconcecu.so.0"
  left=$(find "$root/usr" -name '*sconcecu*' -o -path '*/doc/sconce-cuda*')
  [ -z "$left" ] || fail "$suite: after purge there is still $left"
  passed=$((passed + 1))
done
echo "$passed passed, 0 failed"
