"""Writes tests/data/fft.cases: python tests/cpu/make_fft_cases.py    (torch 2.15 with MKL)"""
import pathlib

import torch
from case_writer import CaseWriter, Samples

aten = torch.ops.aten
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12, torch.complex64: 2e-5, torch.complex128: 1e-12}
LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 20, 25, 29, 31, 37, 41, 53, 64, 74]


def main(path=pathlib.Path(__file__).parents[1] / "data" / "fft.cases"):
    torch.set_num_threads(1)
    s = Samples(5)
    out = CaseWriter(path)

    def shape_and_dims(long=True):
        rank = s.pick([1, 1, 2, 3, 3, 4])
        shape = [1 + s.below(3) for _ in range(rank)]
        if long:
            shape[s.below(rank)] = s.pick(LENGTHS)
        order = torch.randperm(rank, generator=s.g).tolist()
        return shape, order[:1 + s.below(rank)]

    layouts = ("packed", "permuted", "sliced", "offset")
    for i in range(60):
        shape, dims = shape_and_dims()
        real = s.pick([torch.float32, torch.float64])
        dtype = real.to_complex()
        mode = s.below(3)
        x = s.strided(s.values(dtype, shape, -2, 2), layouts)
        out.add("_fft_c2c", aten._fft_c2c, x, dims, mode, bool(s.below(2)), tolerance=TOLERANCE[dtype])
        x = s.strided(s.values(real, shape, -2, 2), layouts)
        out.add("_fft_r2c", aten._fft_r2c, x, dims, mode, bool(s.below(3)), tolerance=TOLERANCE[dtype])
        last = dims[-1]
        n = s.pick([2 * (shape[last] - 1), 2 * shape[last] - 1]) or 1
        x = s.strided(s.values(dtype, shape, -2, 2), layouts)
        if len(dims) == 1:
            out.add("_fft_c2r", aten._fft_c2r, x, dims, mode, n, tolerance=TOLERANCE[real])
        else:  # the spectrum of a real signal, for which all libraries agree whichever half they read
            signal = s.values(real, shape, -2, 2)
            spectrum = s.strided(aten._fft_r2c(signal, dims, 0, True).contiguous(), layouts)
            out.add("_fft_c2r", aten._fft_c2r, spectrum, dims, mode, shape[last], tolerance=TOLERANCE[real])
    for n in (100, 106):  # one line, and more lines than a vector has lanes
        for rows in (1, 19):
            x = s.values(torch.complex64, [rows, n], -1, 1)
            out.add("_fft_c2c", aten._fft_c2c, x, [1], 0, True, tolerance=2e-4)
            out.add("_fft_r2c", aten._fft_r2c, x.real.contiguous(), [1], 0, True, tolerance=2e-4)
    x = torch.empty([0, 3], dtype=torch.complex64)
    out.add("_fft_c2c", aten._fft_c2c, x, [1], 0, True)
    out.add("_fft_r2c", aten._fft_r2c, torch.empty(0, 4), [1], 0, True)
    out.add("_fft_c2c", aten._fft_c2c, s.values(torch.complex64, [3, 2]), [], 0, True)
    out.add("_fft_r2c", aten._fft_r2c, torch.ones(3).half(), [0], 0, True, message="doesn't support tensors of type")
    out.close()


main()
