"""Cases of against_torch.py: sampling, gradients of resizing, padding and distances, segments, fake quantisation."""
import torch

from against_torch import call, call_named, case
from operator_cases import FLOATS, aten, loose, name_of, randint, randn, same


def wide(name, tag, *arguments, tolerance):
    """Compares half types with PyTorch in float32: its half kernels round coordinates and so take other elements."""
    dtype = arguments[0].dtype
    if dtype in (torch.float32, torch.float64):
        return same(name, tag, *arguments, rtol=tolerance, atol=tolerance)
    single = [a.float() if torch.is_tensor(a) else a for a in arguments]
    case(f"{name} {tag}", lambda: call(name, *arguments), lambda: [r.to(dtype) for r in aten(name, *single)], tolerance,
         tolerance)


TRICUBIC = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 15)


def solid(check, name, label, *arguments, **tolerance):
    """Grid samples of volumes. If torch lacks the tricubic mode, expected values come from our CPU kernels, which other tests
    compare with torch."""
    mode = arguments[3 if name.endswith("backward") else 2]
    if mode != 2 or TRICUBIC:
        return check(name, label, *arguments, **tolerance)
    given = [a.cpu() if isinstance(a, torch.Tensor) else a for a in arguments]
    most = max(tolerance.values())
    return case(f"{name} {label}", lambda: call(name, *arguments), lambda: [t.cuda() for t in call_named(name, "", *given)], most, most)


def sampling_cases():
    for dtype in FLOATS:
        tag, r = name_of(dtype), loose(dtype)
        flat, volume = randn(2, 3, 7, 9, dtype=dtype), randn(2, 3, 5, 6, 7, dtype=dtype)
        places = (torch.rand(2, 4, 6, 2, device="cuda") * 2.6 - 1.3).to(dtype)
        deep = (torch.rand(2, 3, 4, 5, 3, device="cuda") * 2.6 - 1.3).to(dtype)
        for padding in (0, 1, 2):
            for corners in (False, True):
                for mode in (0, 1, 2):
                    label = f"{tag} {mode} {padding} {corners}"
                    wide("grid_sampler_2d_backward", label, randn(2, 3, 4, 6, dtype=dtype), flat, places, mode, padding,
                         corners, [True, True], tolerance=r * 8)
                    solid(same, "grid_sampler_3d", label, volume, deep, mode, padding, corners, rtol=r, atol=r * 4)
                    solid(wide, "grid_sampler_3d_backward", label, randn(2, 3, 3, 4, 5, dtype=dtype), volume, deep, mode,
                         padding, corners, [True, True], tolerance=r * 8)
        for mode in (0, 1, 2):
            turned = volume.transpose(2, 4), deep.transpose(1, 3)
            solid(same, "grid_sampler_3d", f"{tag} {mode} strided", *turned, mode, 0, False, rtol=r, atol=r * 4)
            grads = randn(2, 3, 3, 4, 5, dtype=dtype).transpose(2, 4)
            solid(wide, "grid_sampler_3d_backward", f"{tag} {mode} strided", grads, *turned, mode, 1, False, [True, True],
                 tolerance=r * 8)
    same("grid_sampler_2d_backward", "by the grid alone", randn(2, 3, 4, 6), randn(2, 3, 7, 9),
         torch.rand(2, 4, 6, 2, device="cuda") * 2 - 1, 0, 0, False, [False, True], rtol=1e-4, atol=1e-4)
    far = torch.tensor([[[[float("nan"), 0.1], [1e30, 0.2], [-1e30, float("inf")]]]], device="cuda")
    for padding in (0, 1, 2):
        for mode in (1, 2):
            same("grid_sampler_2d_backward", f"far away {mode} {padding}", randn(1, 2, 1, 3), randn(1, 2, 4, 4), far, mode,
                 padding, False, [True, True], rtol=1e-4, atol=1e-4)
        deep = torch.cat([far, far[..., :1].flip(2)], -1)[:, None]
        for mode in (0, 1, 2):
            solid(same, "grid_sampler_3d", f"far away {mode} {padding}", randn(1, 2, 3, 4, 5), deep, mode, padding, False, rtol=1e-4,
                 atol=1e-4)
            solid(same, "grid_sampler_3d_backward", f"far away {mode} {padding}", randn(1, 2, 1, 1, 3), randn(1, 2, 3, 4, 5), deep,
                 mode, padding, False, [True, True], rtol=1e-4, atol=1e-4)


def resize_cases():
    for dtype in FLOATS:
        tag, r = name_of(dtype), loose(dtype, 4)
        for corners in (False, True):
            for scale in (None, 1.7):
                for out, size in ((9, 5), (5, 9), (6, 6), (1, 4)):
                    label = f"{tag} {corners} {scale} {out} {size}"
                    same("upsample_linear1d_backward", label, randn(2, 3, out, dtype=dtype), [out], [2, 3, size], corners,
                         scale, rtol=r, atol=r)
                    same("upsample_bicubic2d_backward", label, randn(2, 3, out, 7, dtype=dtype), [out, 7], [2, 3, size, 4],
                         corners, scale, scale, rtol=r, atol=r)
                    same("upsample_trilinear3d_backward", label, randn(2, 3, out, 4, 5, dtype=dtype), [out, 4, 5],
                         [2, 3, size, 3, 7], corners, scale, None, scale, rtol=r, atol=r)
        same("upsample_trilinear3d_backward", f"{tag} channels last",
             randn(2, 3, 4, 4, 6, dtype=dtype).to(memory_format=torch.channels_last_3d), [4, 4, 6], [2, 3, 2, 2, 3], False,
             None, None, None, rtol=r, atol=r)
        for pads in ([2, 3], [0, 1], [-1, 2]):
            same("replication_pad1d_backward", f"{tag} {pads}", randn(2, 3, 6 + sum(pads), dtype=dtype),
                 randn(2, 3, 6, dtype=dtype), pads, rtol=r, atol=r)
        for pads in ([2, 3, 1, 0], [1, 1, 2, 2], [-1, 0, 0, 2]):
            grad = randn(2, 3, 5 + sum(pads[2:]), 6 + sum(pads[:2]), dtype=dtype)
            same("replication_pad2d_backward", f"{tag} {pads}", grad, randn(2, 3, 5, 6, dtype=dtype), pads, rtol=r, atol=r)
            same("replication_pad2d_backward", f"{tag} {pads} one", grad[0], randn(3, 5, 6, dtype=dtype), pads, rtol=r,
                 atol=r)


def distance_cases():
    for dtype in (torch.float32, torch.float64):
        tag, r = name_of(dtype), loose(dtype)
        a, b, grad = randn(2, 9, 5, dtype=dtype), randn(2, 7, 5, dtype=dtype), randn(2, 9, 7, dtype=dtype)
        rows = randn(11, 6, dtype=dtype)
        rows[3] = rows[8]
        pairs = randn(55, dtype=dtype)
        for p in (0.0, 0.7, 1.0, 1.5, 2.0, 3.0, float("inf")):
            found = aten("_cdist_forward", a, b, p, None)[0]
            same("_cdist_backward", f"{tag} {p}", grad, a, b, p, found, rtol=r * 10, atol=r)
            same("_pdist_forward", f"{tag} {p}", rows, p, rtol=r, atol=r)
            same("_pdist_backward", f"{tag} {p}", pairs, rows, p, aten("_pdist_forward", rows, p)[0], rtol=r * 10, atol=r)


def segment_cases():
    for dtype in FLOATS:
        tag, r = name_of(dtype), loose(dtype, 4)
        data = randn(10, 3, dtype=dtype)
        data[4, 1] = float("nan")
        two = randn(2, 10, dtype=dtype)
        lengths, offsets = torch.tensor([3, 0, 5, 2], device="cuda"), torch.tensor([0, 3, 3, 8, 10], device="cuda")
        rows = torch.tensor([[4, 6], [1, 9]], device="cuda")
        for reduce in ("max", "mean", "min", "sum", "prod"):
            for initial in (None, 1.5):
                label = f"{tag} {reduce} {initial}"
                same("segment_reduce", label, data, reduce, lengths, None, None, 0, False, initial, rtol=r, atol=r)
                same("segment_reduce", f"{label} offsets", data, reduce, None, None, offsets, 0, False, initial, rtol=r,
                     atol=r)
                same("segment_reduce", f"{label} rows", two, reduce, rows, None, None, 1, False, initial, rtol=r, atol=r)
                clean = torch.nan_to_num(data, 0.5)
                found = aten("segment_reduce", clean, reduce, lengths, None, None, 0, False, initial)[0]
                grad = torch.ones_like(found)
                same("_segment_reduce_backward", label, grad, found, clean, reduce, lengths, None, 0, initial, rtol=r,
                     atol=r)


def fractional_cases():
    for dtype in FLOATS:
        tag, r = name_of(dtype), loose(dtype)
        flat, solid = randn(2, 3, 9, 11, dtype=dtype), randn(2, 3, 7, 8, 9, dtype=dtype)
        flat[0, 1, 2, 3] = float("nan")
        for trial in range(3):
            samples = torch.rand(2, 3, 2, device="cuda").to(dtype)
            deep = torch.rand(2, 3, 3, device="cuda").to(dtype)
            same("fractional_max_pool2d", f"{tag} {trial}", flat, [2, 3], [4, 5], samples)
            same("fractional_max_pool3d", f"{tag} {trial}", solid, [2, 2, 3], [3, 4, 4], deep)
            at = aten("fractional_max_pool2d", flat, [2, 3], [4, 5], samples)[1]
            same("fractional_max_pool2d_backward", f"{tag} {trial}", randn(2, 3, 4, 5, dtype=dtype), flat, [2, 3], [4, 5],
                 at, rtol=r, atol=r)
            same("fractional_max_pool2d_backward", f"{tag} {trial} turned",
                 randn(5, 3, 4, 2, dtype=dtype).transpose(0, 3), flat.to(memory_format=torch.channels_last), [2, 3], [4, 5],
                 at.to(memory_format=torch.channels_last), rtol=r, atol=r)
            at = aten("fractional_max_pool3d", solid, [2, 2, 3], [3, 4, 4], deep)[1]
            same("fractional_max_pool3d_backward", f"{tag} {trial}", randn(2, 3, 3, 4, 4, dtype=dtype), solid, [2, 2, 3],
                 [3, 4, 4], at, rtol=r, atol=r)
            same("fractional_max_pool3d_backward", f"{tag} {trial} turned",
                 randn(4, 3, 3, 4, 2, dtype=dtype).transpose(0, 4), solid.transpose(2, 4).contiguous().transpose(2, 4),
                 [2, 2, 3], [3, 4, 4], at.to(memory_format=torch.channels_last_3d), rtol=r, atol=r)


def grid_cases():
    helper, functional = "_fused_moving_avg_obs_fq_helper", "_fused_moving_avg_obs_fq_helper_functional"
    x = randn(5, 4, 6) * 3
    for observe in (0, 1):
        for quantise in (0, 1):
            for rows in (False, True):
                for symmetric in (False, True):
                    count = 5 if rows else 1
                    start = lambda: [torch.tensor([observe], device="cuda"), torch.tensor([quantise], device="cuda"),
                                     torch.full((count,), -1.0, device="cuda"), torch.full((count,), 2.5, device="cuda"),
                                     torch.full((count,), 0.02, device="cuda"),
                                     torch.full((count,), 3, device="cuda", dtype=torch.int32)]
                    rest = [0.01, -128, 127, 0, rows, symmetric]  # ATen on CUDA uses dimension 0 for channels
                    label = f"{observe} {quantise} {rows} {symmetric}"

                    def ours():
                        state = start()
                        return call(helper, x, *state, *rest) + state[2:]

                    def theirs():
                        state = start()
                        return list(torch.ops.aten._fused_moving_avg_obs_fq_helper(x, *state, *rest)) + state[2:]
                    case(f"{helper} {label}", ours, theirs, 1e-5, 1e-5)
                    case(f"{functional} {label}", lambda: call(functional, x, *start(), *rest),
                         lambda: list(torch.ops.aten._fused_moving_avg_obs_fq_helper_functional(x, *start(), *rest)), 1e-5,
                         1e-5)


def other_cases():
    for dtype in FLOATS:
        tag, r = name_of(dtype), loose(dtype)
        x, target = randn(6, 7, dtype=dtype), (randint(2, 6, 7) * 2 - 1).to(dtype)
        for reduction in (0, 1, 2):
            grad = randn(6, 7, dtype=dtype) if reduction == 0 else randn(1, dtype=dtype)[0]
            same("soft_margin_loss_backward", f"{tag} {reduction}", grad, x, target, reduction, rtol=r, atol=r)
        same("soft_margin_loss_backward", f"{tag} turned", randn(7, 6, dtype=dtype).t(), x, target, 0, rtol=r, atol=r)
        for length in (0, 1, 2, 7, 400):
            case(f"hann_window {tag} {length}", lambda: call("hann_window", length, dtype, None, None, None),
                 lambda: [torch.hann_window(length, dtype=dtype, device="cuda")], r, r)
        a, b, c = randn(4, 5, dtype=dtype), randn(3, 5, 6, dtype=dtype), randn(4, 6, dtype=dtype)
        same("_trilinear", f"{tag} bilinear", a, b, c, [1, 3], [0], [1, 2], [2, 3], 1, rtol=r * 4, atol=r * 8)
        same("_trilinear", f"{tag} all", a, b, c, [1, 3], [0], [1, 2], [0, 1, 2, 3], 1, rtol=r * 4, atol=r * 20)


def run():
    for cases in (sampling_cases, resize_cases, distance_cases, segment_cases, fractional_cases, grid_cases, other_cases):
        torch.manual_seed(0)
        cases()
