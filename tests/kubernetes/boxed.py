"""Runs the program as a container runtime would run a manifest's container: its command line, environment, volumes and user,
a root file system that cannot be written, no capabilities, and a network of its own, in which its ports are free.

What is missing of a runtime: images (the program is the one that was built, the libraries are this machine's), seccomp, DNS.
"""
import json
import os
import pathlib
import queue
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest
from rendering import PROGRAM, ROOT, image_environment

HERE = pathlib.Path(__file__).parent
GROUP = 10001  # fsGroup: kubelet gives it the files of volumes

# $1: an empty folder. $2: the folder of the build. $3: user. $4: group. $5: PID:ADDRESS in that process' network, or nothing.
# Then volumes as SOURCE:PLACE:MODE until --, then the command.
ENTER = r"""
set -eu
root=$1 build=$2 user=$3 group=$4 network=$5
shift 5
ip link set lo up
if [ -n "$network" ]; then
  other=v${network##*.}
  ip link add eth0 type veth peer name "$other" netns "${network%%:*}"
  ip address add "${network#*:}/24" dev eth0
  ip link set eth0 up
  nsenter --net="/proc/${network%%:*}/ns/net" ip link set "$other" master bridge up
fi
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$root"
for name in bin etc lib lib64 sbin usr; do
  if [ -L "/$name" ]; then cp -P "/$name" "$root/$name"; continue; fi
  mkdir "$root/$name"
  mount --bind "/$name" "$root/$name"
  mount -o remount,bind,ro "$root/$name"
done
mkdir "$root/proc" "$root/dev"
mount --rbind /proc "$root/proc"
for name in null zero random urandom; do
  : > "$root/dev/$name"
  mount --bind "/dev/$name" "$root/dev/$name"
done
mkdir -p "$root$build"
mount --bind "$build" "$root$build"
mount -o remount,bind,ro "$root$build"
while [ "$1" != -- ]; do
  IFS=: read -r source place mode <<< "$1"
  [ -e "$root$place" ] || mkdir -p "$root$place"
  mount --bind "$source" "$root$place"
  [ "$mode" = rw ] || mount -o remount,bind,ro "$root$place"
  shift
done
shift
mount -o remount,ro "$root"
exec chroot "$root" /usr/bin/setpriv --reuid "$user" --regid "$group" --groups GROUP --inh-caps=-all --bounding-set=-all \
  --no-new-privs "$@"
""".replace("GROUP", str(GROUP))


def need_namespaces():
    if not PROGRAM.exists():
        pytest.skip(f"the program is not built: {PROGRAM} (./dev build)")
    for tool in ("unshare", "nsenter", "setpriv", "ip", "chroot"):
        if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            pytest.skip(f"{tool} is not installed")
    told = subprocess.run(["unshare", "--mount", "--net", "true"], capture_output=True, text=True)
    if told.returncode != 0:
        pytest.skip(f"this user may make no namespaces: {told.stderr.strip()}")
    if b"libasan.so" in PROGRAM.read_bytes() or b"libtsan.so" in PROGRAM.read_bytes():
        pytest.skip("sanitizers need more of the file system")


def volume(folder, name, files, mode=0o640):
    """A folder as kubelet makes it: root's, readable by the pod's group. files: name to bytes."""
    place = folder / name
    place.mkdir()
    os.chown(place, 0, GROUP)
    place.chmod(0o2775)
    for path, data in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(data)
        os.chown(place / path, 0, GROUP)
        (place / path).chmod(mode)
    for inner in place.rglob("*"):
        if inner.is_dir():
            os.chown(inner, 0, GROUP)
            inner.chmod(0o2775)
    return place


class Network:
    """Addresses 10.77.0.1, 2, ... for boxes that reach each other, and a name that stands for all of them."""

    def __init__(self, folder, name, count):
        need_namespaces()
        self.addresses = [f"10.77.0.{number}" for number in range(1, count + 1)]
        self.hosts = folder / "hosts"
        self.hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for address in self.addresses))
        self.process = subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link add bridge type bridge && ip link set bridge up && "
                                         "echo there && exec sleep infinity"], stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "there\n":
            self.process.wait()
            pytest.skip("this kernel makes no bridges")

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.process.kill()
        self.process.wait()

    def place(self, number):
        """For a box: where it is, and its names."""
        return f"{self.process.pid}:{self.addresses[number]}", {"/etc/hosts": (self.hosts, "ro")}


class Box:
    """A running container. volumes: mount path to a folder (or a file) and "ro" or "rw". network: Network.place()."""

    def __init__(self, folder, arguments, environment, volumes, user=None, group=GROUP, network="", command=None):
        need_namespaces()
        self.user = user or 1_000_000_000 + secrets.randbelow(1_000_000)
        of_image, entry = image_environment()
        root = folder / "root"
        root.mkdir()
        mounts = [f"{source}:{place}:{mode}" for place, (source, mode) in volumes.items()]
        command = [str(PROGRAM), *(command or entry)[1:], *arguments]
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--net", "bash", "-c", ENTER, "bash", str(root), str(PROGRAM.parents[1]), str(self.user), str(group),
             network, *mounts, "--", *command],
            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", **of_image, **environment},
            stderr=subprocess.PIPE, text=True)
        self.log, self.lines = [], queue.SimpleQueue()
        threading.Thread(target=self.read_log, daemon=True).start()

    def read_log(self):
        for line in self.process.stderr:
            self.log.append(line)
            self.lines.put(line)
        self.lines.put(None)

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def inside(self, *command):
        return ["nsenter", f"--net=/proc/{self.process.pid}/ns/net", *map(str, command)]

    def ask(self, url, *options):
        """Status and body of a request from within the pod's network; 0 where nothing answers."""
        told = subprocess.run(self.inside("curl", "-s", "-m", "20", "-w", "\n%{http_code}", *options, url), capture_output=True, text=True)
        body, _, status = told.stdout.rpartition("\n")
        return int(status), body

    def json(self, url, *options):
        status, body = self.ask(url, *options)
        assert status == 200, (url, status, body, self.log)
        return json.loads(body)

    def until(self, condition, what, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, (what, self.log)
            assert time.monotonic() < end, (what, self.log)
            time.sleep(0.05)

    def wait_ready(self, url="http://127.0.0.1:8002/v2/health/ready", *options):
        self.until(lambda: self.ask(url, *options)[0] == 200, "ready")

    def status(self):
        """The kernel's view of the process: /proc/PID/status."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return dict(re.findall(r"^(\w+):\s*(.*)$", text, re.MULTILINE))

    def end(self, seconds):
        """SIGTERM; the exit status. `seconds` are those after which Kubernetes would kill."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)


class Load:
    """Clients that ask all the time on connections that stay, until told to stop."""

    def __init__(self, box, url, body, connections=8):
        self.process = subprocess.Popen(box.inside(sys.executable, HERE / "clients.py", url, body, connections), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "asking\n"

    def stop(self):
        """How many requests were answered with each status, or by which problem."""
        told, _ = self.process.communicate(timeout=60)
        return json.loads(told)


def digits_body():
    return ROOT / "examples/digits/request.json"
