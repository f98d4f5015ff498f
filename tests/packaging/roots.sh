# shellcheck shell=bash
# Sourced: bare roots of Debian to install into. make_root SUITE prints the path of a fresh one with Python and pip, which
# it copies from one that debootstrap made before in build/roots; inside ROOT COMMAND... runs a command in it; ask_server
# starts one that serves and asks it. drop_roots removes the copies. skip says why nothing can be tried here, with exit
# status 77.

cache=$PWD/build/roots
scratch=$(mktemp -d)
skip() {
  echo "packaging: skipped: $*"
  exit 77
}
fail() {
  echo "packaging: FAILED: $*" >&2
  exit 1
}

make_root() {
  local suite=$1 mirror root
  [ "$(id -u)" = 0 ] || skip "roots need root"
  # shellcheck disable=SC2016  # apt-get's own words
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2> /dev/null |
    grep -E '/debian/?$' | head -n 1) || true
  mirror=${mirror:-http://deb.debian.org/debian}
  curl -fs --retry 2 --max-time 60 -o /dev/null "${mirror%/}/dists/$suite/Release" || skip "$mirror does not answer"
  if [ ! -e "$cache/$suite/made" ]; then
    command -v debootstrap > /dev/null || skip "debootstrap is not installed"
    rm -rf "${cache:?}/$suite"
    mkdir -p "$cache/$suite"
    debootstrap --variant=minbase --include=python3,python3-pip,python3-venv,ca-certificates "$suite" "$cache/$suite/root" \
      "$mirror" > "$cache/$suite/log" 2>&1 ||
      skip "debootstrap fails: $(tail -n 1 "$cache/$suite/log")"
    rm -rf "$cache/$suite/root/var/cache/apt/archives/"*.deb
    touch "$cache/$suite/made"
  fi
  root=$scratch/$suite
  cp -a --reflink=auto "$cache/$suite/root" "$root"
  mkdir -p "$root/proc" "$root/dev"
  mount -t proc proc "$root/proc" 2> /dev/null || skip "chroots cannot be set up here (no mount of /proc)"
  mount --rbind /dev "$root/dev" && mount --make-rslave "$root/dev"
  cp -L /etc/resolv.conf "$root/etc/resolv.conf"
  # PyPI as this machine reaches it, and the authorities it trusts.
  local file
  for file in "${PIP_CONFIG_FILE:-}" ~/.config/pip/pip.conf /etc/pip.conf; do
    if [ -s "$file" ]; then cp "$file" "$root/etc/pip.conf" && break; fi
  done
  cp -L "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$root/etc/ssl/certs/ca-certificates.crt"
  echo "$root"
}

# `become ROOT COMMAND... &` starts one that $! stops.
become() {
  local root=$1
  shift
  exec chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin PIP_DISABLE_PIP_VERSION_CHECK=1 \
    DEBIAN_FRONTEND=noninteractive "$@"
}
inside() { (become "$@"); }

# ask_server ROOT COMMAND...: starts the command, which serves the digits example on a port of its choice, checks the answer
# to the example's request, and ends the server. If it listens for gRPC as well, ServerLive is asked there.
ask_server() {
  local server port='' answer i
  (become "$@") > "$scratch/log" 2>&1 &
  server=$!
  for ((i = 0; i < 300; i++)); do
    port=$(sed -n 's/.*inference on http:\/\/127.0.0.1:\([0-9]*\).*/\1/p' "$scratch/log" | head -n 1)
    if [ -n "$port" ] && curl -sf -o /dev/null "http://127.0.0.1:$port/v2/health/ready"; then break; fi
    kill -0 "$server" 2> /dev/null || break
    sleep 0.1
  done
  answer=$(curl -s "http://127.0.0.1:$port/v1/models/digits:call" -d @examples/digits/request.json) || true
  local grpc live=yes
  grpc=$(sed -n 's/.*inference by gRPC on 127.0.0.1:\([0-9]*\).*/\1/p' "$scratch/log" | head -n 1)
  # A message is its length in five bytes and its fields: an empty one asks, `live: true` answers.
  [ -z "$grpc" ] || live=$(printf '\0\0\0\0\0' | curl -s --http2-prior-knowledge -H 'content-type: application/grpc' -H 'te: trailers' \
    --data-binary @- "http://127.0.0.1:$grpc/inference.GRPCInferenceService/ServerLive" | od -An -tx1)
  kill "$server" 2> /dev/null || true
  wait "$server" || true
  [[ $live == yes || $live == ' 00 00 00 00 02 08 01' ]] || fail "by gRPC the server answers '$live' and says $(cat "$scratch/log")"
  [[ $answer == *'"class":[9]'* ]] || fail "the server answers '$answer' and says $(cat "$scratch/log")"
}

drop_roots() {
  local root
  for root in "$scratch"/*/; do
    umount -lR "$root/dev" "$root/proc" 2> /dev/null || true
  done
  rm -rf --one-file-system "$scratch"
}
trap drop_roots EXIT
