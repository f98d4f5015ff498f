#!/usr/bin/env bash
# run.sh BUILD_DIRECTORY: installs the build into a new prefix and uses it as a stranger would: the program, the library
# through find_package(sconce), the headers one by one, the systemd unit.
set -euo pipefail
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
version=$(cache CMAKE_PROJECT_VERSION)
library=$(cache CMAKE_INSTALL_LIBDIR)
compiler=$(cache CMAKE_CXX_COMPILER)
case $(cache SCONCE_SANITIZE) in
  address) sanitize=-fsanitize=address,undefined ;;
  thread) sanitize=-fsanitize=thread ;;
  *) sanitize= ;;
esac

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() {
  echo "install: FAILED: $*" >&2
  exit 1
}
run() { "$@" > "$scratch/log" 2>&1 || fail "$* says: $(tail -n 20 "$scratch/log")"; }

run cmake --install "$build" --prefix "$scratch/first"
# The unit names what is there. Where systemd's checker is installed, it agrees.
unit=$scratch/first/lib/systemd/system/sconce.service
program=$(sed -n 's/^ExecStart=\([^ ]*\) .*/\1/p' "$unit")
config=$(sed -n 's/^ExecStart=.* --config \([^ ]*\).*/\1/p' "$unit")
if [ ! -x "$program" ] || [ ! -r "$config" ]; then fail "the unit starts '$program' with '$config'"; fi
if grep /usr/local "$unit"; then fail "the unit names /usr/local"; fi
if command -v systemd-analyze > /dev/null; then
  run systemd-analyze verify --man=no "$unit"
  if grep -F "$unit" "$scratch/log"; then fail "systemd-analyze has something to say about the unit"; fi
fi

# What was installed works from where it is moved to.
prefix=$scratch/prefix
mv "$scratch/first" "$prefix"

# Exactly these files.
{
  echo bin/sconce
  echo include/sconce.h
  (cd "$source" && find include/sconce -name '*.h')
  echo etc/sconce/sconce.conf
  echo lib/systemd/system/sconce.service
  echo "$library/libsconce.so"
  echo "$library/libsconce.so.${version%%.*}"
  for file in sconceConfig sconceConfigVersion sconceTargets "sconceTargets-$(cache CMAKE_BUILD_TYPE | tr '[:upper:]' '[:lower:]')"; do
    echo "$library/cmake/sconce/$file.cmake"
  done
  # Where gRPC's packages were found.
  if [ -e "$build/src/libsconcegrpc.so.0" ]; then echo "$library/libsconcegrpc.so.${version%%.*}"; fi
  # Where nvcc was found.
  if [ -e "$build/src/libsconcecu.so.0" ]; then
    echo "$library/libsconcecu.so.${version%%.*}"
  fi
} | LC_ALL=C sort > "$scratch/wanted"
# A build for packages also installs the libraries that Sconce opens, manuals and licences: tests/packaging has their lists.
beside='^$'
[ "$(cache SCONCE_PACKAGES)" != ON ] || beside="^(lib/sconce|share/(bash-completion|doc|lintian|man))/"
(cd "$prefix" && find . ! -type d | cut -c 3- | grep -Ev "$beside" | LC_ALL=C sort) > "$scratch/found"
diff "$scratch/wanted" "$scratch/found" >&2 || fail "other files than these are installed (< wanted, > found)"
cmp "$source/conf/sconce.conf" "$prefix/etc/sconce/sconce.conf" || fail "etc/sconce/sconce.conf is not conf/sconce.conf"

# The program, with its own library.
says=$(cd / && env -u LD_LIBRARY_PATH "$prefix/bin/sconce" --version)
[[ $says == *"$version"* ]] || fail "sconce --version says $says, not $version"
used=$(ldd "$prefix/bin/sconce" | awk '$1 ~ /^libsconce/ { print $3 }')
[ "$(realpath "$used")" = "$(realpath "$prefix/$library/libsconce.so")" ] || fail "sconce runs with $used"
for file in "$prefix/bin/sconce" "$prefix/$library/libsconce.so"; do
  path=$(readelf -d "$file" | grep -E 'R(UN)?PATH' || true)
  [[ $path != *"$build"* && $path != *"$source"* ]] || fail "$file looks for libraries in the build folder: $path"
done
run "$prefix/bin/sconce" check "$source/examples/digits/digits.pt2"

# The library, in a project of its own.
mkdir "$scratch/project"
cp -r "$source/examples/CMakeLists.txt" "$source"/examples/embed.{c,cpp} "$source/examples/custom_op" "$scratch/project"
run cmake -S "$scratch/project" -B "$scratch/project/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$sanitize"
run cmake --build "$scratch/project/build"
run "$scratch/project/build/embed" "$source/examples/digits/digits.pt2"
[ "$(head -n 2 "$scratch/log")" = $'int64 [2]\nfloat32 [2, 10]' ] || fail "embed prints: $(cat "$scratch/log")"

# In C: the same project's program, and one by hand as docs/c_api.md has it.
run "$scratch/project/build/embed_c" "$source/examples/digits/digits.pt2"
[ "$(head -n 2 "$scratch/log")" = $'int64 [2]\nfloat32 [2, 10]' ] || fail "embed_c prints: $(cat "$scratch/log")"
c_compiler=$(cache CMAKE_C_COMPILER)
# shellcheck disable=SC2086  # none or one word
run "$c_compiler" -std=c11 -pedantic -Wall -Wextra -Werror $sanitize -I "$prefix/include" -L "$prefix/$library" \
  "-Wl,-rpath,$prefix/$library" "$source/examples/embed.c" -lsconce -o "$scratch/by_hand"
run "$scratch/by_hand" "$source/examples/digits/digits.pt2"
run "$c_compiler" -std=c11 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c "$prefix/include/sconce.h"
run "$compiler" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -x c++ "$prefix/include/sconce.h"

# A later minor version may differ, so it is not taken for this one.
cat > "$scratch/project/CMakeLists.txt" <<TEXT
cmake_minimum_required(VERSION 3.25)
project(asks_for_later LANGUAGES CXX)
find_package(sconce 99.0 REQUIRED)
TEXT
if cmake -S "$scratch/project" -B "$scratch/later" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" > "$scratch/log" 2>&1; then
  fail "find_package(sconce 99.0) is satisfied by $version"
fi

# Each header by itself, with the installed ones only.
while read -r header; do
  printf '#include "%s"\n' "$header" > "$scratch/header.cpp"
  run "$compiler" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I "$prefix/include" "$scratch/header.cpp"
done < <(cd "$prefix/include" && find sconce -name '*.h')

echo "1 passed, 0 failed"
