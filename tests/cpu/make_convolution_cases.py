"""Writes tests/data/convolution.cases: python tests/cpu/make_convolution_cases.py [seed [cases [file]]]"""
import pathlib
import sys

import torch
from case_writer import CaseWriter, Samples

FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}
TOLERANCE = {torch.float32: 2e-4, torch.float64: 1e-10, torch.bfloat16: 4e-2, torch.float16: 1e-2}
convolution = torch.ops.aten.convolution.default


def layout(s, t, channels_last=True):
    if channels_last and s.below(3) == 0:
        if t.dim() == 3:
            return t.transpose(1, 2).contiguous().transpose(1, 2)
        return t.contiguous(memory_format=FORMATS[t.dim()])
    return s.strided(t, ("packed", "packed", "permuted", "sliced", "offset"))


def random_case(s, out):
    dims = s.pick([1, 2, 2, 2, 3])
    transposed = s.below(3) == 0
    dtype = s.pick([torch.float32] * 5 + [torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32,
                                          torch.uint8, torch.int8, torch.int16])
    if dtype in (torch.int32, torch.uint8, torch.int8, torch.int16):
        transposed = False
    groups = s.pick([1, 1, 1, 2, 3, 4])
    into, to = s.pick([1, 1, 2, 3, 5]), s.pick([1, 1, 2, 3, 6])
    kernel = [s.pick([1, 2, 3] if dims == 3 else [1, 1, 2, 3, 4]) for _ in range(dims)]
    stride = [s.pick([1, 1, 1, 2, 3]) for _ in range(dims)]
    padding = [s.pick([0, 0, 1, 2]) for _ in range(dims)]
    dilation = [s.pick([1, 1, 1, 2]) for _ in range(dims)]
    if dtype in (torch.int32, torch.uint8, torch.int8, torch.int16):
        dilation = [1] * dims
    size = [s.pick([1, 3, 4, 5]) if dims == 3 else s.pick([1, 3, 5, 7]) if dims == 2 else s.pick([3, 7, 20])
            for _ in range(dims)]
    more = [s.below(max(stride[i], dilation[i])) if transposed else 0 for i in range(dims)]
    for i in range(dims):  # no empty outputs
        reach = dilation[i] * (kernel[i] - 1) + 1
        if transposed:
            padding[i] = min(padding[i], ((size[i] - 1) * stride[i] + reach - 1) // 2)
        else:
            size[i] = max(size[i], reach - 2 * padding[i])
    # Which 16-bit three-dimensional convolutions keep the format depends on the CPU.
    free = dims < 3 or dtype not in (torch.bfloat16, torch.float16)
    x = layout(s, s.values(dtype, [s.pick([1, 1, 2]), into * groups] + size, -3, 3), free)
    w = layout(s, s.values(dtype, ([into * groups, to] if transposed else [to * groups, into]) + kernel, -3, 3), free)
    b = s.sample(dtype, [to * groups]) if s.below(2) else None
    out.add("convolution", convolution, x, w, b, stride, padding, dilation, transposed, more, groups,
            tolerance=TOLERANCE.get(dtype, 0.0))


def main(seed=1, count=100, path=pathlib.Path(__file__).parents[1] / "data" / "convolution.cases"):
    torch.set_num_threads(1)
    s = Samples(seed)
    out = CaseWriter(path)
    for _ in range(count):
        random_case(s, out)

    def plain(x, w, b=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), transposed=False, more=(0, 0), groups=1,
              message=None):
        out.add("convolution", convolution, x, w, b, list(stride), list(padding), list(dilation), transposed,
                list(more), groups, message=message, tolerance=2e-4)

    def f(*shape):
        return s.values(torch.float32, list(shape))

    # Empty inputs give empty outputs; NaN and infinity propagate.
    plain(f(0, 3, 5, 5), f(4, 3, 3, 3))
    plain(f(2, 0, 5, 5), f(4, 0, 3, 3))
    plain(f(0, 3, 5, 5), f(3, 4, 3, 3), transposed=True)
    plain(s.values(torch.float32, [1, 2, 5, 5], special=0.1), f(3, 2, 3, 3), padding=(1, 1))
    plain(f(1, 2, 5, 5), f(3, 2, 3, 3), stride=[2], padding=[1], dilation=[1], more=[0])
    # With dimensions of size 1, the memory format follows from strides alone, and some strides fit several formats.
    one = f(2, 3, 1, 1)
    for strides in ([3, 1, 1, 1], [3, 1, 3, 3], [3, 1, 3, 1]):
        plain(one.as_strided([2, 3, 1, 1], strides), f(4, 3, 1, 1))
        plain(one.as_strided([2, 3, 1, 1], strides), f(4, 3, 3, 3), padding=(1, 1))
    plain(f(1, 3, 5, 5), f(4, 3, 1, 1).as_strided([4, 3, 1, 1], [3, 1, 3, 3]))

    x, w = f(2, 4, 5, 5), f(6, 4, 3, 3)
    plain(x[0], w, message="-dimensional input for")
    plain(x, w[0, 0], message="eight should have at least three dimensions")
    plain(x, w, f(5), message="bias to be 1-dimensional with 6 elements")
    plain(x, w, groups=0, message="non-positive groups is not supported")
    plain(x, w, groups=4, message="to be divisible by 4 at dimension 0")
    plain(x, w, groups=2, message="channels, but got 4 channels instead")
    plain(x, w, padding=(-1, 0), message="negative padding")
    plain(x, w, stride=(0, 1), message="non-positive stride")
    plain(x, w, dilation=(1, 0), message="non-positive dilation")
    plain(x, w, stride=(1, 1, 1), message="xpected stride to be a single integer value or a list of 2 values")
    plain(x, f(6, 4, 7, 7), message="Kernel size can't be greater than actual input size")
    plain(x, f(4, 6, 3, 3), transposed=True, more=(1, 0), message="utput padding must be smaller than either")
    plain(x, f(5, 6, 3, 3), transposed=True, message="channels, but got 4 channels instead")
    plain(f(2, 4, 0, 5), f(4, 6, 3, 3), transposed=True, message="nly zero batch or zero channel inputs")
    plain(x, w.double(), message=" type")
    plain(x.bool(), w.bool(), message="not implemented for '")
    plain(x.int(), w.int(), dilation=(2, 2), message="not implemented for '")
    out.close()


if __name__ == "__main__":
    main(*(int(a) if i < 2 else a for i, a in enumerate(sys.argv[1:])))
