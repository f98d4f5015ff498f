"""More cases of against_torch.py: sorting and selection of few and many, short and long rows, with ties and NaN."""
import torch

from against_torch import call, case
from operator_cases import FLOATS, name_of, same

DTYPES = FLOATS + [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
SHAPES = [((5, 1), -1), ((1000, 2), -1), ((300, 7), -1), ((3000, 32), -1), ((500, 33), -1), ((64, 128), -1), ((9, 500), -1),
          ((40, 1000), -1), ((1000, 40), 0), ((3, 5, 1500), 1), ((7, 2048), -1), ((5, 4096), -1), ((300, 4097), -1),
          ((20000, 3), 0), ((1, 200000), -1), ((8, 60000), -1), ((2, 300000), -1), ((0, 5), -1), ((4, 0, 3), 0)]


def elements(shape, dtype, ties):
    if dtype == torch.bool:
        return torch.rand(shape, device="cuda") > 0.5
    if not dtype.is_floating_point:
        return torch.randint(0 if dtype == torch.uint8 else -100, 100, shape, device="cuda").to(dtype)
    x = torch.randn(shape, device="cuda").mul(3)
    x = (x.round() * torch.where(torch.rand(shape, device="cuda") > 0.5, 1.0, -1.0) if ties else x).to(dtype)  # with -0
    if x.numel() > 100:
        x.view(-1)[torch.randint(0, x.numel(), (20,), device="cuda")] = torch.nan
        x.view(-1)[torch.randint(0, x.numel(), (9,), device="cuda")] = torch.inf
        x.view(-1)[torch.randint(0, x.numel(), (9,), device="cuda")] = -torch.inf
    return x


def signs(result):
    """Shows the signs of zeros, which compare equal."""
    values, indices = result
    return [values, torch.signbit(values), indices]


def cases_of(x, dim, tag):
    for descending in (False, True):
        order = torch.sort(x.cpu(), stable=True, dim=dim, descending=descending)
        wanted = [order[0].cuda(), order[1].cuda()]
        case(f"sort_stable {tag} {descending}", lambda: signs(call("sort_stable", x, True, dim, descending)),
             lambda: signs(wanted), strides=False)
        length = x.size(dim)
        for k in sorted({0, length // 3, *(min(length, k) for k in (1, 8, 100, 1500)), length}):
            first = [w.narrow(dim, 0, k) for w in wanted]
            case(f"topk {tag} {k} {descending}", lambda: signs(call("topk", x, k, dim, descending, True)),
                 lambda: signs(first), strides=False)
            if descending:
                case(f"topk {tag} {k} in any order", lambda: [call("topk", x, k, dim, True, False)[0].sort(dim)[0]],
                     lambda: [first[0].sort(dim)[0]], strides=False)
            if descending and x.dtype != torch.bool and k in (1, 100):
                same("topk", f"{tag} {k} {descending} values", x, k, dim, descending, True, first=1)
            if not descending and 0 < k and x.numel() > 0:
                case(f"kthvalue {tag} {k}", lambda: call("kthvalue", x, k, dim, False),
                     lambda: [w.select(dim, k - 1) for w in wanted], strides=False)


def run():
    torch.manual_seed(0)
    for dtype in DTYPES:
        every = dtype in (torch.float32, torch.bfloat16, torch.int64)
        for shape, dim in SHAPES if every else SHAPES[2::4]:
            for ties in (False, True) if dtype.is_floating_point else (True,):
                cases_of(elements(shape, dtype, ties), dim, f"{name_of(dtype)} {list(shape)} {dim} {ties}")
        cases_of(elements((50, 30), dtype, True).t(), 1, f"{name_of(dtype)} turned")
        cases_of(elements((6, 3000), dtype, True)[:, ::2], 1, f"{name_of(dtype)} every second")
    x = torch.randint(0, 50, (4, 300000), device="cuda").float()
    same("median", "long", x)
    same("sort_stable", "expanded", x[:1, :1000].expand(5, 1000), True, 1, False, like="sort.stable")
