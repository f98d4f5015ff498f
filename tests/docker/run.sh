#!/usr/bin/env bash
# Builds docker/Dockerfile.cpu with whatever builder works here, runs the image and looks at it from outside.
# With the argument "cuda" docker/Dockerfile.cuda: about 1.6 GB from PyPI, 10 GB under build/images, an hour on two cores.
# ARCHITECTURES="90" builds device code for one kind of GPU only. No GPU is needed: what needs one is told that none is there.
# PACKAGES=dist makes it of the packages that ./dev deb has written, and not of the source. Where docker-registry is
# installed, the image is pushed there under the name that examples/kubernetes has.
#
# Without a registry the base image is made with debootstrap from this machine's own Debian mirror. BASE=IMAGE names
# another one; IMAGE=IMAGE looks at one that is built. Exit status 77: nothing here can build or run an image; the last line says why.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

variant=${1:-cpu}
case $variant in
  cpu) most=100 ;;  # megabytes beyond the base; 14 of them libcurl and what it needs
  cuda) most=2100 ;;
  *)
    echo "docker: '$variant' is neither cpu nor cuda" >&2
    exit 2
    ;;
esac
image=${IMAGE:-localhost/sconce-test:$variant}
base=${BASE:-docker.io/library/debian:12-slim}
scratch=$(mktemp -d)
started=()

skip() {
  echo "docker: skipped: $*"
  exit 77
}
fail() {
  echo "docker: FAILED: $*" >&2
  [ ! -s "$scratch/log" ] || tail -n 40 "$scratch/log" >&2
  exit 1
}
note() { echo "docker: $*"; }

# --- builders ---------------------------------------------------------------------------------------------------------
# Each has: build ARGUMENTS..., start NAME (the host's folder "models" at /models if it is there), process (of the server, on this
# machine), inside COMMAND... (in the container), stop (SIGTERM; `stopped` is
# the exit status), reach COMMAND... (runs it where the container's port 8000 is on 127.0.0.1),
# import_base (a root file system as tar on standard input), have_base, size, push REFERENCE, remove.

engine=
docker_build() { "$engine" build -q "$@" -t "$image" .; }
docker_start() {
  local flags=()
  [ ! -d "$scratch/$1" ] || flags=(-v "$scratch/$1:/models:ro")
  "$engine" run -d --read-only --name "sconce-test-$$" "${flags[@]}" "$image" > /dev/null
}
docker_process() { "$engine" inspect -f '{{.State.Pid}}' "sconce-test-$$"; }
docker_inside() { "$engine" exec "sconce-test-$$" "$@"; }
docker_reach() { nsenter --net="/proc/$(docker_process)/ns/net" "$@"; }
docker_stop() {
  "$engine" stop -t 60 "sconce-test-$$" > /dev/null
  "$engine" logs "sconce-test-$$" > "$scratch/log" 2>&1
  stopped=$("$engine" inspect -f '{{.State.ExitCode}}' "sconce-test-$$")
  "$engine" rm "sconce-test-$$" > /dev/null
}
docker_import_base() { "$engine" import - "$1" > /dev/null; }
docker_have_base() { "$engine" image inspect "$1" > /dev/null 2>&1 || timeout 120 "$engine" pull -q "$1" > /dev/null 2>&1; }
docker_size() { "$engine" images --format '{{.Size}}' "$1"; }
docker_push() {
  "$engine" tag "$image" "$1" && "$engine" push -q "$1" > "$scratch/log" 2>&1
  "$engine" rmi "$1" > /dev/null
}
docker_remove() { "$engine" rm -f "sconce-test-$$" > /dev/null 2>&1 || true; }

# Without a daemon; containers are chroots, in a network namespace of their own so that port 8000 is free.
buildah_build() { "${buildah[@]}" bud --isolation chroot --layers -q "$@" -t "$image" .; }
buildah_start() {
  flags=()
  [ ! -d "$scratch/$1" ] || flags=(-v "$scratch/$1:/models:ro")
  container=$("${buildah[@]}" from --pull-never "$image")
  unshare --net sleep infinity &
  network=$!
  started+=("$network")
  until [ "$(readlink "/proc/$network/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
  nsenter --net="/proc/$network/ns/net" ip link set lo up
  nsenter --net="/proc/$network/ns/net" "${buildah[@]}" run --isolation chroot "${flags[@]}" "$container" -- \
    /usr/bin/sconce serve > "$scratch/log" 2>&1 &
  runner=$!
}
buildah_process() {
  local pids=$runner next process
  while [ -n "$pids" ]; do
    next=
    for process in $pids; do
      if [[ $(readlink "/proc/$process/exe") == */usr/bin/sconce ]]; then echo "$process" && return; fi
      next+=" $(cat "/proc/$process/task/"*/children 2>/dev/null || true)"
    done
    # shellcheck disable=SC2086,SC2116  # nothing but blanks is to become nothing
    pids=$(echo $next)
  done
  return 1
}
buildah_inside() { buildah_reach "${buildah[@]}" run --isolation chroot "${flags[@]}" "$container" -- "$@"; }
buildah_reach() { nsenter --net="/proc/$network/ns/net" "$@"; }
buildah_stop() {
  stopped=0
  kill -TERM "$(buildah_process)"
  wait "$runner" || stopped=$?
  kill "$network"
  "${buildah[@]}" rm "$container" > /dev/null
  container=
}
buildah_import_base() {
  local empty
  empty=$("${buildah[@]}" from scratch)
  "${buildah[@]}" add -q "$empty" "$scratch/base.tar" / > /dev/null
  "${buildah[@]}" config --cmd /bin/sh "$empty"
  "${buildah[@]}" commit -q --rm "$empty" "$1" > /dev/null
}
buildah_have_base() {
  "${buildah[@]}" inspect --type image "$1" > /dev/null 2>&1 || timeout 120 "${buildah[@]}" pull -q "$1" > /dev/null 2>&1
}
buildah_size() { "${buildah[@]}" images --json "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["size"])'; }
buildah_push() { "${buildah[@]}" push -q --tls-verify=false "$image" "docker://$1" > "$scratch/log" 2>&1; }
buildah_remove() { [ -z "${container:-}" ] || "${buildah[@]}" rm "$container" > /dev/null 2>&1 || true; }

choose_builder() {
  local candidate why=() storage=$PWD/build/images driver
  for candidate in docker podman; do
    command -v "$candidate" > /dev/null || continue
    if timeout 20 "$candidate" info > /dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
      engine=$candidate builder=docker
      note "building with $candidate"
      return
    fi
    why+=("$candidate: not running, or not for this user")
  done
  command -v buildah > /dev/null || skip "no docker, podman or buildah that works (${why[*]:-none is installed})"
  [ "$(id -u)" = 0 ] || skip "buildah needs root here (${why[*]:-})"
  for driver in overlay vfs; do
    buildah=(buildah --storage-driver "$driver" --root "$storage/$driver" --runroot "$scratch/run")
    if "${buildah[@]}" info > /dev/null 2> "$scratch/log"; then
      container=$("${buildah[@]}" from scratch 2> "$scratch/log") || continue
      if "${buildah[@]}" mount "$container" > /dev/null 2> "$scratch/log"; then
        buildah_remove
        container=
        builder=buildah
        note "building with buildah, storage $driver"
        return
      fi
    fi
  done
  skip "buildah has no storage driver that works: $(tail -n 1 "$scratch/log")"
}

finish() {
  local process
  trap - EXIT
  [ -z "${builder:-}" ] || "${builder}_remove"
  for process in "${started[@]}"; do kill "$process" 2> /dev/null || true; done
  rm -rf "$scratch"
}
trap finish EXIT

# --- the base image ---------------------------------------------------------------------------------------------------

find_base() {
  if "${builder}_have_base" "$base"; then
    note "base image $base"
    return
  fi
  [ -z "${BASE:-}" ] || fail "there is no image $BASE"
  base=localhost/sconce-base:debian-12
  if "${builder}_have_base" "$base"; then
    note "base image $base, made before"
    return
  fi
  command -v debootstrap > /dev/null || skip "no registry answers, and debootstrap is not installed"
  local mirror
  # shellcheck disable=SC2016  # apt-get's own words
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2> /dev/null |
    grep -E '/debian/?$' | head -n 1) || true
  mirror=${mirror:-http://deb.debian.org/debian}
  note "no registry answers: making the base image with debootstrap"
  debootstrap --variant=minbase bookworm "$scratch/base" "$mirror" > "$scratch/log" 2>&1 ||
    skip "no registry answers, and debootstrap fails: $(tail -n 1 "$scratch/log")"
  rm -rf "$scratch/base/var/cache/apt/archives/"*.deb "$scratch/base/var/lib/apt/lists/"*
  tar -C "$scratch/base" --exclude './dev/*' -cf "$scratch/base.tar" .
  "${builder}_import_base" "$base" < "$scratch/base.tar"
  rm -rf "$scratch/base" "$scratch/base.tar"
}

# --- what the image must do -------------------------------------------------------------------------------------------

# Asks until the server is ready; 30 seconds at most.
wait_ready() {
  local i
  for ((i = 0; i < 300; i++)); do
    if "${builder}_reach" curl -sf -o /dev/null http://127.0.0.1:8000/v2/health/ready; then return; fi
    sleep 0.1
  done
  fail "not ready after 30 seconds"
}

check_stop() {
  "${builder}_stop"
  [ "$stopped" = 0 ] || fail "SIGTERM: exit status $stopped, not 0"
}

# NVIDIA's libraries, in a container that runs: all that is opened by name is there, and the dynamic linker loads it with
# every function it wants, beside the program. CUDA's runtime is the package's own. The driver is the host's, and no host's here.
check_cuda_libraries() {
  local runtime=/usr/lib/libsconcecu.so.0 folder=/usr/local/lib/nvidia version missing there named said
  version=$("${builder}_inside" /usr/bin/sconce --version)
  missing=$("${builder}_inside" ldd -r "$runtime" 2>&1 | awk '/not found/ && $1 != "libcuda.so.1" || /undefined symbol/ && $3 !~ /^cu[A-Z]/')
  [ -z "$missing" ] || fail "$runtime lacks $missing"
  there=$("${builder}_inside" ls "$folder" | tr '\n' ' ')
  for named in $("${builder}_inside" grep -aohE '\blib(cu|nv)[a-zA-Z_]+\.so\.[0-9]+' "$runtime" | sort -u); do
    [[ $named == libcuda.so.1 || $named == libcudart.so.* || " $there" == *" $named "* ]] || fail "$named is not in $folder: $there"
  done
  said=$("${builder}_inside" env LD_BIND_NOW=1 "LD_PRELOAD=$there" /usr/bin/sconce --version 2>&1) || true
  [ "$said" = "$version" ] || fail "with $there loaded: $said"
  note "$version: $(wc -w <<< "$there") of NVIDIA's libraries are found and load"
}

# The digits example, said to be compiled for CUDA.
make_cuda_package() {
  python3 - "$@" << 'PYTHON'
import sys, zipfile
source, target = map(zipfile.ZipFile, sys.argv[1:], "rw")
for entry in source.infolist():
    target.writestr(entry, source.read(entry).replace(b'"AOTI_DEVICE_KEY": "cpu"', b'"AOTI_DEVICE_KEY": "cuda"'))
target.close()
PYTHON
}

# Pushes the image as docs/kubernetes.md says, to a registry on this machine.
check_push() {
  if ! command -v docker-registry > /dev/null; then
    note "docker-registry is not installed: nothing is pushed"
    return
  fi
  local reference address='' name tag kind
  reference=$(sed -n 's/^ *image: registry.example.com\///p' examples/kubernetes/base/deployment.yaml)
  name=${reference%:*} tag=${reference##*:}
  printf 'version: 0.1\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: "127.0.0.1:0"}\n' "$scratch/registry" > "$scratch/registry.yml"
  : > "$scratch/registry.log"  # it may take a while until the registry opens it
  docker-registry serve "$scratch/registry.yml" >> "$scratch/registry.log" 2>&1 &
  started+=($!)
  for ((i = 0; i < 100; i++)); do
    address=$(sed -n 's/.*listening on \(127.0.0.1:[0-9]*\).*/\1/p' "$scratch/registry.log")
    [ -z "$address" ] || break
    sleep 0.1
  done
  [ -n "$address" ] || fail "docker-registry says $(cat "$scratch/registry.log")"
  "${builder}_push" "$address/$reference" || fail "cannot push $reference"
  kind=application/vnd.oci.image.manifest.v1+json,application/vnd.docker.distribution.manifest.v2+json
  curl -sf -H "Accept: $kind" "http://$address/v2/$name/manifests/$tag" > "$scratch/manifest" || fail "the registry has no $reference"
  grep -q '"layers"' "$scratch/manifest" || fail "the registry has for $reference: $(cat "$scratch/manifest")"
  note "pushed as $reference"
}

choose_builder
[ -n "${IMAGE:-}" ] || find_base
if [ -z "${IMAGE:-}" ]; then
  note "building docker/Dockerfile.$variant from ${PACKAGES:-source}"
  arguments=(-f "docker/Dockerfile.$variant" --build-arg "BASE=$base" --build-arg "PACKAGES=${PACKAGES:-source}")
  if [ "$variant" = cuda ]; then
    [ -z "${ARCHITECTURES:-}" ] || arguments+=(--build-arg "ARCHITECTURES=$ARCHITECTURES")
    # PyPI as this machine reaches it: its index and the authorities it trusts.
    for file in "${PIP_CONFIG_FILE:-}" ~/.config/pip/pip.conf /etc/pip.conf; do
      if [ -s "$file" ]; then arguments+=(--secret "id=pip,src=$file") && break; fi
    done
    file=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}
    [ ! -s "$file" ] || arguments+=(--secret "id=authorities,src=$file")
  fi
  "${builder}_build" "${arguments[@]}" > "$scratch/log" 2>&1 || fail "the image does not build"
fi
# "290 MB", "290MB" and "1.2 GB" in megabytes.
megabytes() { "${builder}_size" "$1" | awk '{ size = $0 + 0; if (/GB/) size *= 1000; if (/[kK]B/) size /= 1000; print int(size + 0.5) }'; }
note "image size: $(megabytes "$image") MB"
if [ -z "${IMAGE:-}" ]; then
  ours=$(($(megabytes "$image") - $(megabytes "$base")))
  note "beyond its base: $ours MB"
  [ "$ours" -le "$most" ] || fail "the image has $ours MB beyond its base, $most are the most"
fi

# The digits example, asked as the README says.
curl_line=$(sed -n 's/^ *\$ \(curl .*digits:call.*\)$/\1/p' README.md)
wanted=$(sed -n 's/^ *{"class":\[\([0-9]\)\].*/\1/p' README.md)
if [ -z "$curl_line" ] || [ -z "$wanted" ]; then fail "README.md has no curl line with its answer"; fi
"${builder}_start" none
wait_ready
for bill in sconce image; do
  "${builder}_inside" cat "/usr/share/doc/sconce/$bill.cdx.json" > "$scratch/$bill.json" || fail "the image has no bill of materials $bill.cdx.json"
done
python3 -c '
import json, sys
inside, image = ([c["name"] for c in json.load(open(bill))["components"]] for bill in sys.argv[1:])
assert any(name.startswith("libdnnl") for name in inside), inside
assert {"sconce", "libsconce0", "libc6"} <= set(image), image
' "$scratch/sconce.json" "$scratch/image.json" || fail "a bill of materials lacks what is in the image"
"${builder}_inside" /usr/bin/sconce health || fail "the health check fails although the server is ready"
answer=$("${builder}_reach" bash -c "$curl_line")
[[ $answer == *"\"class\":[$wanted]"* ]] || fail "the digits example answers $answer"
process=$("${builder}_process")
[ "$(awk '/^Uid:/ { print $2 $3 $4 $5 }' "/proc/$process/status")" = 10001100011000110001 ] || fail "the server runs as $(grep Uid "/proc/$process/status")"
# [::]:8000 and, for metrics, [::]:8002 in the kernel's words, or 0.0.0.0 where it has no IPv6; administration only on 127.0.0.1.
listening=$(cat "/proc/$process/net/tcp" "/proc/$process/net/tcp6" 2> /dev/null |
  awk '$4 == "0A" { sub(/^0+:/, "any:", $2); print $2 }' | sort | tr '\n' ' ')
[ "$listening" = "0100007F:1F43 any:1F40 any:1F42 " ] || fail "listening on $listening"
[ "$variant" != cuda ] || check_cuda_libraries
check_stop
note "digits: right class, healthy, user 10001, SIGTERM drains"

# A package at /models is served in place of it.
mkdir -p "$scratch/mounted"
cp examples/digits/digits.pt2 "$scratch/mounted/other.pt2"
[ "$variant" != cuda ] || make_cuda_package examples/digits/digits.pt2 "$scratch/mounted/not_served.cuda"
chmod -R a+rX "$scratch" "$scratch/mounted"
"${builder}_start" mounted
wait_ready
names=$("${builder}_reach" curl -s -X POST http://127.0.0.1:8000/v2/repository/index)
[[ $names == *'"other"'* && $names != *'"digits"'* ]] || fail "with a package at /models: served are $names"
answer=$("${builder}_reach" bash -c "${curl_line/digits:call/other:call}")
[[ $answer == *"\"class\":[$wanted]"* ]] || fail "the mounted package answers $answer"
if [ "$variant" = cuda ]; then
  status=0
  said=$("${builder}_inside" /usr/bin/sconce check /models/not_served.cuda 2>&1) || status=$?
  [[ $status == 1 && $said == *"CUDA devices need NVIDIA's driver"*libcuda.so.1* ]] || fail "without a driver: status $status, $said"
  note "without a driver: ${said%%;*}"
fi
check_stop
note "a package at /models is served"
[ "$variant" != cpu ] || check_push
echo "1 passed, 0 failed"
