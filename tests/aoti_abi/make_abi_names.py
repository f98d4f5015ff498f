"""Writes tests/aoti_abi/abi_names.tsv: every C function that torch's headers declare for CPU and CUDA packages, its first
and last version, and its signature in the last one.

    python tests/aoti_abi/make_abi_names.py [VERSION...]

Reads the headers from the wheels on PyPI (or PIP_INDEX_URL) without downloading whole wheels. With --check, writes
nothing and fails if the file differs from the wheels.
"""
import collections
import io
import os
import pathlib
import re
import sys
import urllib.parse
import urllib.request
import zipfile

VERSIONS = ["2.6.0", "2.7.1", "2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0"]
FOLDERS = ("torch/include/torch/csrc/inductor/aoti_torch/", "torch/include/torch/csrc/stable/c/")
OTHER_DEVICES = re.compile(r"c_shim_(mps|xpu)\.h$|/shim_(mps|xpu)\.h$")
OUTPUT = pathlib.Path(__file__).parent / "abi_names.tsv"


class RemoteFile(io.RawIOBase):
    """A file behind HTTP, read by ranges."""

    def __init__(self, url):
        self.url, self.at = url, 0
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD")) as answer:
            self.size = int(answer.headers["Content-Length"])

    def seekable(self):
        return True

    def readable(self):
        return True

    def tell(self):
        return self.at

    def seek(self, offset, whence=0):
        self.at = offset + (0, self.at, self.size)[whence]
        return self.at

    def readinto(self, buffer):
        last = min(self.at + len(buffer), self.size) - 1
        if last < self.at:
            return 0
        request = urllib.request.Request(self.url, headers={"Range": f"bytes={self.at}-{last}"})
        with urllib.request.urlopen(request) as answer:
            data = answer.read()
        buffer[:len(data)] = data
        self.at += len(data)
        return len(data)


def wheel_url(version):
    index = (os.environ.get("PIP_INDEX_URL") or "https://pypi.org/simple").rstrip("/") + "/torch/"
    with urllib.request.urlopen(index) as answer:
        links = re.findall(r'href="([^"#]+)', answer.read().decode())
    for link in links:
        if re.search(rf"/torch-{re.escape(version)}-cp311-cp311-manylinux\w*_x86_64\.whl$", link):
            return urllib.parse.urljoin(index, link)
    raise SystemExit(f"no wheel of torch {version}")


def declarations(text):
    """Name -> "RESULT (PARAMETERS)" of every function that the header exports."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)
    text = re.sub(r"^\s*#.*?(?<!\\)$", " ", text, flags=re.MULTILINE | re.DOTALL)
    found = {}
    for match in re.finditer(r"AOTI_TORCH_EXPORT\s+([\w\s\*]+?)\b((?:aoti_)?(?:torch|record)\w*)\s*\(([^;{]*?)\)\s*;", text):
        result, name, parameters = (" ".join(part.split()) for part in match.groups())
        found[name] = f"{result} ({parameters})"
    return found


def main(arguments):
    check = "--check" in arguments
    versions = [a for a in arguments if not a.startswith("-")] or VERSIONS
    seen = collections.OrderedDict()  # name -> {version: (header, signature)}
    for version in versions:
        with zipfile.ZipFile(io.BufferedReader(RemoteFile(wheel_url(version)), 1 << 20)) as wheel:
            for member in wheel.namelist():
                folder = next((f for f in FOLDERS if member.startswith(f)), None)
                if folder and member.endswith(".h") and not OTHER_DEVICES.search(member):
                    header = member.removeprefix("torch/include/torch/csrc/").removeprefix("inductor/aoti_torch/")
                    for name, signature in declarations(wheel.read(member).decode()).items():
                        seen.setdefault(name, {})[version] = (header, signature)
        print(f"torch {version}: {sum(version in v for v in seen.values())} functions", file=sys.stderr)
    lines = ["# name, since, until, header, signature; by make_abi_names.py from torch " + " ".join(versions)]
    for name in sorted(seen):
        present = [v for v in versions if v in seen[name]]
        lines.append("\t".join([name, present[0], present[-1], *seen[name][present[-1]]]))
    text = "\n".join(lines) + "\n"
    if check:
        if OUTPUT.read_text() != text:
            raise SystemExit(f"{OUTPUT} differs from what the wheels say")
    else:
        OUTPUT.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
