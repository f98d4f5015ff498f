"""`sconce pull` and `sconce serve` with remote sources, for the tests of them."""
import contextlib
import hashlib
import os
import subprocess

from serving import PROGRAM, ROOT, Server

DIGITS = ROOT / "examples/digits/digits.pt2"
CLEAN = {name: "" for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "HF_TOKEN", "http_proxy", "https_proxy", "CURL_CA_BUNDLE")}
CLEAN |= {"AWS_EC2_METADATA_DISABLED": "true", "NO_GCE_CHECK": "true"}


def digest(data):
    return hashlib.sha256(data).hexdigest()


def environment(tmp_path, more=()):
    return {**os.environ, **CLEAN, "HOME": str(tmp_path), "XDG_CACHE_HOME": "", "NO_PROXY": "*", **dict(more)}


def start(tmp_path, *arguments, more=(), **options):
    return subprocess.Popen([PROGRAM, "pull", "--cache", tmp_path / "cache", *map(str, arguments)], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(tmp_path, more), **options)


def pull(tmp_path, *arguments, **more):
    process = start(tmp_path, *arguments, **more)
    process.out, process.err = process.communicate(timeout=120)
    return process


def pulled(tmp_path, *arguments, **more):
    """What it prints: path -> digest."""
    done = pull(tmp_path, *arguments, **more)
    assert done.returncode == 0, done.err
    return {line[66:]: line[:64] for line in done.out.splitlines()}


def refused(tmp_path, *arguments, **more):
    done = pull(tmp_path, *arguments, **more)
    assert done.returncode in (1, 2) and done.out == "", (done.returncode, done.out)
    return done.err


@contextlib.contextmanager
def serving(tmp_path, *sources, more=(), flags=(), **options):
    server = Server(*sources, flags=["--remote-cache", str(tmp_path / "cache"), *flags], environment=environment(tmp_path, more),
                    **options)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()


WATCH = ["--watch", "50ms", "--remote-watch", "100ms"]


def names(server):
    return {name: state for name, (state, _) in server.index().items() if state == "READY"}
