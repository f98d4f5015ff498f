#!/usr/bin/env bash
# python_headers.sh FOLDER: puts Debian 13's headers of Python 3.13 into FOLDER. Debian 12's Python 3.11 is too old to
# compile against Python's stable ABI as nanobind uses it; one module for this ABI serves Python 3.12 and all later ones.
case ${1:-} in -h | --help | '') sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
set -euo pipefail
folder=$1
[ ! -e "$folder/include/python3.13/Python.h" ] || exit 0

# shellcheck disable=SC2016  # apt-get's own words
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2> /dev/null | grep -E '/debian/?$' | head -n 1) || true
mirror=${mirror:-http://deb.debian.org/debian}
mirror=${mirror%/}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
get() { curl -fsSL --retry 3 -o "$scratch/$2" "$mirror/$1"; }
check() { echo "$1  $scratch/$2" | sha256sum --check --quiet; }

index=main/binary-amd64/Packages.xz
get dists/trixie/InRelease InRelease
gpgv --quiet --keyring /usr/share/keyrings/debian-archive-keyring.gpg --output "$scratch/Release" "$scratch/InRelease" \
  2> "$scratch/log" || { cat "$scratch/log" >&2 && exit 1; }
get "dists/trixie/$index" Packages.xz
check "$(awk -v name="$index" '/^SHA256:/ { on = 1 } on && $3 == name { print $1; exit }' "$scratch/Release")" Packages.xz
xz -dc "$scratch/Packages.xz" > "$scratch/Packages"
read -r file sum < <(awk -v RS= '/(^|\n)Package: libpython3.13-dev\n/' "$scratch/Packages" |
  awk '/^Filename:/ { file = $2 } /^SHA256:/ { sum = $2 } END { print file, sum }')
get "$file" package.deb
check "$sum" package.deb
mkdir -p "$folder"
dpkg-deb --fsys-tarfile "$scratch/package.deb" | tar -x -C "$folder" --strip-components=2 ./usr/include
