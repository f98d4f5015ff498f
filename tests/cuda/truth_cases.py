"""More cases of against_torch.py: failures that random cases (tests/truth) found."""
import torch

from against_torch import abi, call, call_named, case
from operator_cases import name_of, same

ops = torch.ops.aten


def pooling():
    x = torch.randn(2, 4, 9, 6, 7, device="cuda")
    for size in ([5, 4, 3], [3, 6, 7]):
        out, indices = ops.adaptive_max_pool3d(x, size)
        grad = torch.randn_like(out)
        last = {"memory_format": torch.channels_last_3d}
        case(f"adaptive_max_pool3d_backward of indices channels last {size}",
             lambda: call("adaptive_max_pool3d_backward", grad.contiguous(**last), x, indices.contiguous(**last)),
             lambda: [ops.adaptive_max_pool3d_backward(grad, x, indices)], 1e-5, 1e-5)
    # Some windows lie outside the input because of their dilation. Their indices point to elements that they do not cover.
    for shape, form in (([2, 4, 13, 12, 2], ([3, 2, 2], [4, 4, 3], [1, 1, 1], [1, 3, 3], True)),
                        ([2, 3, 8, 7, 2], ([2, 3, 2], [1, 1, 1], [0, 1, 1], [1, 1, 3], False))):
        for dtype in (torch.float32, torch.float64, torch.float16):
            x = torch.randn(shape, device="cuda").to(dtype)
            out, indices = ops.max_pool3d_with_indices(x, *form)
            assert int(indices.max()) < torch.Size(shape[2:]).numel()
            same("max_pool3d_with_indices_backward", f"{name_of(dtype)} {shape} empty windows", torch.randn_like(out), x, *form, indices,
                 rtol=1e-2 if dtype == torch.float16 else 1e-5, atol=1e-2 if dtype == torch.float16 else 1e-5)
    x = torch.randn(9, 2, 23, 1, device="cuda")
    for form in (([4, 2], [], [1, 1], [1, 2], True), ([4, 2], [1, 1], [1, 1], [1, 2], True)):
        out, indices = ops.max_pool2d_with_indices(x, *form)
        same("max_pool2d_with_indices_backward", f"empty windows {form}", torch.randn_like(out), x, *form, indices, rtol=1e-5, atol=1e-5)
    x = torch.randn(2, 5, 6, 8, device="cuda").to(memory_format=torch.channels_last)
    out, indices = ops.max_pool2d_with_indices(x, [2, 2], [2, 2])
    same("max_unpool2d", "channels last", out, indices, [6, 8])
    same("max_unpool2d", "channels last, packed indices", out, indices.contiguous(), [7, 9])


def indexing():
    x = torch.randn(41, 9, 7, device="cuda")
    turned, rows = torch.randint(9, (23, 5), device="cuda").t(), torch.randint(7, (5, 23), device="cuda")
    for label, at in (("of one order", [turned, turned]), ("of two orders", [turned, rows]), ("one of a row", [turned, rows[:1]]),
                      ("apart", [turned, None, rows[:, :1] % 7]), ("one", [turned]), ("three", [turned, turned, rows])):
        same("index_Tensor", f"indices {label}", x, at, like="index.Tensor")
    # A column is contiguous whatever the stride of its dimension of size one.
    column = torch.arange(4, device="cuda").as_strided([4, 1], [1, 4])
    same("index_Tensor", "indices of a column", torch.randn(1, 569, 1, 31, device="cuda"),
         [torch.zeros(1, 1, dtype=torch.int64, device="cuda"), None, None, column], like="index.Tensor")
    for reduce in ("prod", "amax", "mean"):
        at = torch.tensor([1, 3, 3], device="cuda")
        x, source = torch.randn(6, 5, device="cuda").t(), torch.randn(5, 3, device="cuda")
        case(f"index_reduce turned {reduce}", lambda: call("index_reduce", x, 1, at, source, reduce, True),
             lambda: [torch.index_reduce(x, 1, at, source, reduce)], 1e-5, 1e-5)


def random_numbers():
    def both(label, ours, theirs):
        def seeded(run):
            abi.seed(7)
            return run()
        case(label, lambda: seeded(ours), lambda: seeded(theirs))

    for shape in ((200, 7), (3, 41, 4)):
        turned = torch.rand(shape[::-1], device="cuda").permute(*reversed(range(len(shape))))
        wide = torch.rand(*shape[:-1], shape[-1] + 3, device="cuda")[..., :shape[-1]]
        for label, p in (("turned", turned), ("turned double", turned.double()), ("padded double", wide.double()), ("one row", wide[:1])):
            for kind in (torch.float32, torch.float64, torch.bool):
                y = torch.zeros(shape, dtype=kind, device="cuda")
                z = torch.zeros(shape[::-1], dtype=kind, device="cuda").permute(*reversed(range(len(shape))))
                for order, target in (("rows", y), ("turned", z)):
                    def ours(target=target):
                        mine = target.clone()
                        call("bernoulli__Tensor", mine, p, None)
                        return [mine]
                    both(f"bernoulli__Tensor {list(shape)} {order} {name_of(kind)} by {label}", ours, lambda target=target: [target.clone().bernoulli_(p)])
    # More than one pass of the grid with vectors of two.
    for dtype, first in ((torch.float64, 0), (torch.float32, 2), (torch.float16, 2)):
        x = torch.randn(3000002, device="cuda", dtype=dtype)[first:]
        both(f"native_dropout of {x.numel()} {name_of(dtype)}", lambda: call("native_dropout", x, 0.3, True), lambda: list(ops.native_dropout(x, 0.3, True)))


def scans():
    # Zero times a rest that overflows the dtype; and rows whose partial products overflow, but not their result.
    for length, columns in ((2000, 1), (1025, 40), (40000, 1), (40, 3)):
        x = torch.full((length, columns), 9.0, device="cuda")
        x[5] = 0
        small = torch.full((90, columns), 10.0, device="cuda")
        small[:30] = 0.1
        for label, rows in (("zero before infinity", x), ("small before large", small), ("negative", -x), ("overflow", x[6:])):
            for dtype in (torch.float32, torch.float64):
                rows = rows.to(dtype)
                case(f"cumprod {label} {length} {columns} {name_of(dtype)}", lambda: call("cumprod", rows.t(), 1, None),
                     lambda: [torch.cumprod(rows.t().cpu().double(), 1).to(dtype).cuda().contiguous()], 1e-4)
                case(f"cumprod {label} {length} {columns} {name_of(dtype)} down", lambda: call("cumprod", rows, 0, None),
                     lambda: [torch.cumprod(rows.cpu().double(), 0).to(dtype).cuda()], 1e-4)


def elements():
    z = torch.tensor([0j, 1 + 2j, -3 + 0j, 2j, 0j], device="cuda", dtype=torch.complex128)
    for dtype in (torch.complex64, torch.complex128):
        a, b = (t.to(dtype).contiguous() for t in torch.broadcast_tensors(z[:, None], z))
        for name in ("pow", "div"):
            case(f"{name} of zeros {name_of(dtype)}", lambda: call_named(name, "Tensor_Tensor" if name == "pow" else "Tensor", a, b),
                 lambda: [getattr(torch, name)(a, b)], 1e-5, 1e-5)
        case(f"pow 0 {name_of(dtype)}", lambda: call_named("pow", "Tensor_Scalar", a, 0.0), lambda: [torch.pow(a, 0.0)])


def products():
    # For few rows the library names algorithms that it then refuses.
    for m, n, k, row in ((1, 8, 16, 17), (1, 512, 24, 24), (9, 8, 8, 8), (23, 1, 64, 136), (2, 312, 64, 72), (15, 16, 2047, 2056)):
        a = torch.randint(-128, 128, (m, row), device="cuda").to(torch.int8)[:, :k]
        for b in (torch.randint(-128, 128, (k, n), device="cuda").to(torch.int8), torch.randint(-128, 128, (n, k), device="cuda").to(torch.int8).t()):
            def ours(a=a, b=b):
                out = torch.empty(a.shape[0], b.shape[1], dtype=torch.int32, device="cuda")
                call("_int_mm_out", out, a, b)
                call("_int_mm_out", out, a, b)
                return [out]
            case(f"_int_mm_out {m} {n} {k} {b.stride()}", ours, lambda a=a, b=b: [(a.double() @ b.double()).int()])


def sets():
    for dtype in (torch.bfloat16, torch.float32, torch.float16):
        x = torch.tensor([1.0, float("nan"), -float("inf"), 2.0, float("nan"), 1.0], device="cuda").to(dtype)
        word, sign = (torch.int32, -2**31) if dtype == torch.float32 else (torch.int16, -2**15)
        negative = torch.where(x.isnan(), x.view(word) | sign, x.view(word)).view(dtype)
        case(f"_unique2 NaN of any sign {name_of(dtype)}", lambda: call_named("_unique2", "", negative, True, True, True),
             lambda: list(ops._unique2(x, True, True, True)))
        long = negative.repeat(1000)
        for name in ("median", "nanmedian"):
            case(f"{name} NaN of any sign {name_of(dtype)}", lambda: call(name, long), lambda: [getattr(torch, name)(x.repeat(1000).cpu()).cuda()])


def run():
    torch.manual_seed(0)
    pooling()
    indexing()
    random_numbers()
    scans()
    elements()
    products()
    sets()
