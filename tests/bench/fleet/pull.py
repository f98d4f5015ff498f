#!/usr/bin/env python3
"""pull.py SCONCE: `sconce pull` of one large file against `curl --parallel` with as many ranges, from a server of this machine
(nginx where it is installed, else Python) into the same file system. Both sides and their ratio are printed.

curl writes a file for each range, and computes no digest; what joining these and sha256sum take is printed besides.
"""
import argparse
import contextlib
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "server"))
from remote_servers import Remote

NGINX = """daemon off; worker_processes auto; pid {folder}/pid; error_log stderr;
events {{ }}
http {{ access_log off; sendfile on; client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{ listen 127.0.0.1:{port}; root {folder}/files; }} }}
"""


@contextlib.contextmanager
def served(folder):
    """The URL of the folder files."""
    nginx = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    if not nginx:
        with Remote({"/x.pt2": (folder / "files/x.pt2").read_bytes()}) as remote:
            yield "Python", remote.url
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "nginx.conf").write_text("user root;\n" * (os.getuid() == 0) + NGINX.format(folder=folder, port=port))
    process = subprocess.Popen([nginx, "-p", folder, "-c", folder / "nginx.conf"])
    try:
        while subprocess.run(["curl", "-sfI", f"http://127.0.0.1:{port}/x.pt2"], capture_output=True).returncode:
            assert process.poll() is None, "nginx ended"
            time.sleep(0.05)
        yield "nginx", f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def timed(*command):
    begin = time.perf_counter()
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sconce", type=pathlib.Path)
    parser.add_argument("--bytes", type=int, default=1 << 30)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", type=pathlib.Path, help="where the files go, instead of the folder for temporary files")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        (folder / "files").mkdir()
        block = os.urandom(1 << 20)
        with open(folder / "files/x.pt2", "wb") as file:
            for at in range(0, options.bytes, len(block)):
                file.write(block[:options.bytes - at])
        times = {"curl": [], "joined": [], "digest": [], "sconce": []}
        with served(folder) as (server, url):
            for _ in range(options.rounds):
                out = folder / "out"
                out.mkdir()
                share = -(-options.bytes // options.connections)
                words = []
                for i in range(options.connections):
                    words += ["-r", f"{i * share}-{min((i + 1) * share, options.bytes) - 1}", "-o", out / str(i), f"{url}/x.pt2", "--next"]
                times["curl"].append(timed("curl", "-s", "--parallel", "--parallel-immediate", *words[:-1]))
                times["joined"].append(timed("sh", "-c", f"cd {out} && cat {' '.join(map(str, range(options.connections)))} > x"))
                times["digest"].append(timed("sha256sum", out / "x"))
                shutil.rmtree(out)
                times["sconce"].append(timed(options.sconce, "pull", f"{url}/x.pt2", "--cache", out, "--connections", options.connections))
                shutil.rmtree(out)
    found = {key: statistics.median(values) for key, values in times.items()}
    rate = {key: options.bytes / value / 2**30 for key, value in found.items()}
    print(f"{options.bytes} bytes from {server}, {options.connections} ranges, medians of {options.rounds} rounds in turn")
    print(f"curl --parallel    {found['curl']:6.2f} s  {rate['curl']:5.2f} GiB/s")
    print(f"  and cat          {found['joined']:6.2f} s more")
    print(f"  and sha256sum    {found['digest']:6.2f} s more")
    print(f"sconce pull        {found['sconce']:6.2f} s  {rate['sconce']:5.2f} GiB/s, with the digest")
    print(f"ratio of rates     {found['curl'] / found['sconce']:6.2f}  (with cat and sha256sum: "
          f"{(found['curl'] + found['joined'] + found['digest']) / found['sconce']:.2f})")


if __name__ == "__main__":
    main()
