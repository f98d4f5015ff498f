#!/bin/sh
# image_sbom.sh [WHEELS]: prints the bill of materials (CycloneDX 1.5, JSON) of the Debian image it runs in: each installed
# package, and NVIDIA's libraries of the wheels in the file WHEELS (docker/nvidia-wheels.txt), without those that only compile.
# What Sconce's own packages bring inside is in their bills, /usr/share/doc/sconce*/*.cdx.json. The Dockerfiles call this.
set -eu
# shellcheck source=/dev/null
. /etc/os-release
printf '{"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,\n'
printf ' "metadata": {"component": {"type": "container", "name": "sconce", "version": "%s"}},\n' \
  "$(dpkg-query -W -f '${Version}' sconce)"
printf ' "components": [\n'
# A plus sign of a version is %2B in a purl.
dpkg-query -W -f '${db:Status-Status} ${Package} ${Version} ${Architecture}\n' | sort |
  while read -r status package version architecture; do
    [ "$status" = installed ] || continue
    printf '%s  {"type": "library", "name": "%s", "version": "%s", "purl": "pkg:deb/%s/%s@%s?arch=%s&distro=%s-%s"}' \
      "${comma:-}" "$package" "$version" "$ID" "$package" "$(echo "$version" | sed 's/+/%2B/g')" "$architecture" "$ID" \
      "${VERSION_ID:-}"
    comma=',
'
  done
if [ $# -gt 0 ]; then
  sed -n 's/^\(nvidia-[a-z0-9-]*\)==\([0-9.]*\) .*/\1 \2/p' "$1" | grep -vE 'nvcc|crt|nvvm|cccl|curand' |
    while read -r wheel version; do
      printf ',\n  {"type": "library", "name": "%s", "version": "%s", "purl": "pkg:pypi/%s@%s"}' \
        "$wheel" "$version" "$wheel" "$version"
    done
fi
printf '\n ]}\n'
