"""Writes packages/*.pt2: small compiled models for the tests of the server.

Run with a Python that has torch 2.15 and a C++ compiler; the results are checked in, stripped of symbols.
"""
import collections
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import torch
from torch._inductor.package import package_aoti

HERE = pathlib.Path(__file__).parent
Point = collections.namedtuple("Point", ["x", "y"])
# Any host with AVX2 can run them.
OPTIONS = {"aot_inductor.package": True, "cpp.march": "x86-64-v3", "cpp.simdlen": 256, "cpp.threads": 1}


class Calls(torch.nn.Module):
    """Nested arguments, keywords, a number that the package drops, a dict with a tuple and None as result."""

    def forward(self, x, pair, n, *, scale, mask):
        index, named = pair
        y = x * scale + named["shift"]
        return {"y": y, "picked": (y.index_select(1, index), None), "any": (mask & (y > 0)).any(), "n": x.sum() * n}


class Dtypes(torch.nn.Module):
    """Each argument comes back changed a little."""

    def forward(self, boolean, u8, i8, i16, i32, i64, f16, bf16, f32, f64, c64, f8):
        return (~boolean, u8 + 1, i8 + 1, i16 + 1, i32 + 1, i64 + 1, f16 * 2, bf16 * 2, f32 * 2, f64 * 2, c64,
                f8)


class ChannelsLast(torch.nn.Module):
    """Compiled for an input in channels_last strides; a batch dimension of 1 to 8."""

    def forward(self, image):
        return image.sum(dim=1), image * 2


class Checked(torch.nn.Module):
    """Fails at run time where a value is out of range."""

    def forward(self, x, index):
        return x[index]


def strip(path, deflate=True):
    """The same archive with the symbols of its libraries removed."""
    form = zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", form) as archive:
        for name, data in sorted(members.items()):
            if name.endswith(".so"):
                with tempfile.NamedTemporaryFile(suffix=".so") as library:
                    pathlib.Path(library.name).write_bytes(data)
                    subprocess.run(["strip", "--strip-all", library.name], check=True)
                    data = pathlib.Path(library.name).read_bytes()
            if name.endswith("wrapper.cpp"):
                data = data.replace(str(pathlib.Path.home()).encode(), b"/home/user")
            archive.writestr(zipfile.ZipInfo(name), data, form)


def main():
    batch = torch.export.Dim("batch", min=1, max=8)
    x = torch.zeros(2, 3)
    pair = (torch.tensor([0, 2]), {"shift": torch.zeros(3)})
    calls = torch.export.export(
        Calls(), (x, pair, 2), {"scale": torch.tensor(1.0), "mask": torch.ones(3, dtype=torch.bool)})
    image = torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)
    last = torch.export.export(ChannelsLast(), (image,), dynamic_shapes=({0: batch},))
    v = torch.zeros(3)
    args = tuple(v.to(t) for t in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
                                   torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64,
                                   torch.float8_e4m3fn))
    dtypes = torch.export.export(Dtypes(), args)
    checked = torch.export.export(Checked(), (v, torch.tensor([0, 1])))
    models = {}
    for name, program in {"calls": calls, "channels_last": last, "dtypes": dtypes, "checked": checked}.items():
        models[name] = torch._inductor.aot_compile(program.module(), *program.example_inputs, options=OPTIONS)
    target = HERE / "packages" / "several.pt2"
    target.parent.mkdir(exist_ok=True)
    package_aoti(str(target), models)
    strip(target)
    print(target, target.stat().st_size)


if __name__ == "__main__":
    sys.exit(main())
