#!/usr/bin/env bash
# Looks at the sources without running them: clang-format at C++, CUDA and the console's JavaScript, clang-tidy at the
# product's C++, clang's thread safety analysis at what uses mutexes, then shellcheck at shell scripts and ruff at Python.
# Where BUILD compiles each source alone, the compiler looks at those that the preset product compiles as one; where BUILD
# compiles them as one (SCONCE_TOGETHER), it looks at each changed source alone. BUILD has compile_commands.json. The last
# line is "N passed, N failed"; a tool is one of the N.
#
# clang-tidy needs seconds a file, so it looks at what differs from main, or on main at what its last commit changed, and
# at no more than 16 files; with --all at everything, an hour on two cores.
usage='Usage: tests/lint/run.sh BUILD [--all]'
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" && echo "$usage" && exit ;; esac
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${1:?$usage}
all=no
case ${2:-} in
  '') ;;
  --all) all=yes ;;
  *)
    echo "lint: no option '$2'; $usage" >&2
    exit 2
    ;;
esac
most=16

passed=0
failed=0
# TOOL COMMAND...: runs it, and counts it.
look() {
  local tool=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "lint: $tool found something"
  fi
}
# What an unknown distribution lacks is left out, and said; ./dev lint installs it on those of dev.packages.
has() { command -v "$1" > /dev/null || { echo "lint: $1 is not installed, and is left out" && false; }; }

formatted() {
  find include package_format src server python examples tests \
    \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' -o -path 'server/console/page/*.js' \) -print0
}
# Every file that begins with #! and names a shell.
shell_scripts() { find dev .ci conf docker examples packaging tests -type f -exec grep -lZE -m 1 '^#!.*[/ ](ba)?sh$' {} +; }

# One a line, as compile_commands.json has them; a header stands for the source beside it. Not the tests: clang 14 does
# not know all of C++20 that they use.
compiled() {
  sed -n "s|^ *\"file\": \"$PWD/\(.*\)\".*|\1|p" "$commands/compile_commands.json" |
    grep -E '^(examples|package_format|server|src)/.*\.cpp$' | sort -u
}
changed() {
  local base='' name
  for name in origin/main main; do
    base=$(git merge-base HEAD "$name" 2> /dev/null) && break
  done
  # On main itself: what its last commit brought, a merge all that it merged.
  if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then base=$(git rev-parse --verify -q HEAD^) || return 1; fi
  { git diff --name-only --diff-filter=d "$base" && git ls-files --others --exclude-standard; } |
    sed -n -e 's/\.h$/.cpp/' -e '/\.cpp$/p' | sort -u
}
tidy() {
  local files=() left=0
  if [ "$all" = yes ]; then
    mapfile -t files < <(compiled)
  else
    local names
    if ! names=$(changed); then
      echo "lint: git knows nothing to compare with; clang-tidy looks at no file (--all: at every one)"
      return 0
    fi
    mapfile -t files < <(comm -12 <(echo "$names") <(compiled))
    if [ ${#files[@]} -gt "$most" ]; then
      left=$((${#files[@]} - most))
      files=("${files[@]:0:most}")
    fi
  fi
  echo "lint: clang-tidy looks at ${#files[@]} files$([ "$left" = 0 ] || echo ", and leaves $left to --all")"
  [ ${#files[@]} -gt 0 ] || return 0
  local log=$build/clang-tidy.log plain=$build/clang-tidy status=0
  # clang cannot read GCC's precompiled headers, and knows no option that comes with them.
  mkdir -p "$plain"
  sed -E 's/-(Winvalid-pch -include [^ ]*cmake_pch\.hxx|fpch-preprocess|Wno-stringop-overread) //g' \
    "$commands/compile_commands.json" > "$plain/compile_commands.json"
  # What else stderr has is how much was found in the system's headers.
  printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -n 1 clang-tidy-14 -p "$plain" --quiet > "$log" 2> "$log.errors" ||
    status=$?
  # Files with C++20 or options that clang 14 does not know are looked at as far as it understands them.
  grep '\[clang-diagnostic-error\]$' "$log" | sed 's/^/lint: not understood: /' | cut -c 1-160 || true
  if grep -A 2 ',-warnings-as-errors\]$' "$log"; then return 1; fi
  if grep 'Error parsing' "$log.errors"; then return 1; fi
  [ "$status" = 0 ] || grep -q '\[clang-diagnostic-error\]$' "$log" || { tail -n 5 "$log.errors" && return 1; }
}
is_together() { grep -q '^SCONCE_TOGETHER:BOOL=ON$' "$build/CMakeCache.txt"; }
# How each source compiles alone, with the headers that BUILD has generated; nothing is built there.
configure_alone() {
  cmake -G Ninja -B "$commands" -DCMAKE_BUILD_TYPE=Release -DSCONCE_TESTS=OFF -DSCONCE_CUDA=OFF > /dev/null
  sed -i "s|$PWD/$commands/|$PWD/$build/|g" "$commands/compile_commands.json"
}
# Has the compiler read what differs from main, as far as it is compiled, and no more files than clang-tidy: a source that
# lacks an include compiles beside one that has it.
alone() {
  local names files
  names=$(changed) || { echo "lint: git knows nothing to compare with; no source is read alone" && return 0; }
  mapfile -t files < <(comm -12 <(echo "$names") <(compiled))
  [ "$all" = yes ] || files=("${files[@]:0:most}")
  python3 tests/lint/read_sources.py alone "$commands" "${files[@]}"
}
format() { formatted | xargs -0 clang-format-14 --dry-run -Werror; }
shell() { shell_scripts | xargs -0 shellcheck -x; }

if has clang-format-14; then look clang-format format; fi
if has shellcheck; then look shellcheck shell; fi
PATH=$PWD/.venv/bin:$PATH
if has ruff; then look ruff ruff check --quiet .; fi
if [ ! -e "$build/compile_commands.json" ]; then
  echo "lint: $build is not configured; clang-tidy and clang++ -Wthread-safety are left out"
else
  commands=$build
  if is_together; then commands=$build/alone && configure_alone; fi
  if has clang++; then look 'clang++ -Wthread-safety' python3 tests/lint/thread_safety.py "$build"; fi
  if has clang-tidy-14; then look clang-tidy tidy; fi
  if is_together; then
    look 'the compiler, of sources alone,' alone
  else
    look 'the compiler, of sources together,' python3 tests/lint/read_sources.py together "$build/together"
  fi
fi

echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
