"""What a package and its models say about themselves."""
import dataclasses
import datetime

from sconce import _html


@dataclasses.dataclass(frozen=True)
class Dim:
    """A dimension of a tensor: of a fixed size (min == max), or a range. Equal symbols are equal sizes."""

    min: int
    max: int | None  # None: unbounded
    symbol: str | None

    @property
    def is_static(self):
        return self.min == self.max

    def __str__(self):
        if self.is_static:
            return str(self.min)
        bounds = f"{self.min}..{'' if self.max is None else self.max}"
        return f"{self.symbol}={bounds}" if self.symbol else bounds


@dataclasses.dataclass(frozen=True)
class TensorInfo:
    """An input or output. dtype and dims are None where the package does not record them."""

    path: str  # where it is in the call: "args[0]['image']"
    name: str  # in the compiled code: "arg0_1"
    dtype: str | None
    dims: tuple[Dim, ...] | None
    strides: tuple[int | None, ...]  # in elements
    device: str | None
    none: bool  # an output that is always None
    may_be_written: bool = False  # an input that the model may write in place

    def __str__(self):
        if self.none:
            return "None"
        dims = "[...]" if self.dims is None else f"[{', '.join(map(str, self.dims))}]"
        return f"{self.dtype or 'unknown'}{dims}"


@dataclasses.dataclass(frozen=True)
class Structure:
    """A node of the call's structure. A leaf has the index of its tensor, None if the compiler dropped it."""

    kind: str  # "leaf", "none", "tuple", "list", "dict", "OrderedDict", "defaultdict", "namedtuple", "deque", "dataclass"
    type: str
    keys: tuple
    children: tuple["Structure", ...]


@dataclasses.dataclass(frozen=True)
class Signature:
    """What a model takes and returns.

    inputs and outputs are in the compiled code's flat order. args, kwargs and result have the structure of the Python
    call; they are None if the package does not record it, and the model then takes its inputs as they are listed.
    """

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    args: Structure | None
    kwargs: Structure | None
    result: Structure | None

    def __str__(self):
        taken = {tensor.path: str(tensor) for tensor in self.inputs}
        given = {tensor.path: str(tensor) for tensor in self.outputs}
        if self.args is None:
            return f"({', '.join(taken.values())}) -> ({', '.join(given.values())})"
        words = [_render(child, f"args[{i}]", taken) for i, child in enumerate(self.args.children)]
        words += [f"{key}={_render(child, f'kwargs[{key!r}]', taken)}"
                  for key, child in zip(self.kwargs.keys, self.kwargs.children, strict=False)]
        return f"({', '.join(words)}) -> {_render(self.result, 'result', given)}"

    __repr__ = __str__

    def _repr_html_(self):
        return _html.signature(self)


def _render(node, path, tensors):
    if node.kind == "leaf":
        return tensors.get(path, "unused")
    if node.kind == "none":
        return "None"
    dotted = node.kind == "dataclass"
    keys = node.keys if len(node.keys) == len(node.children) else range(len(node.children))
    words = [_render(child, f"{path}.{key}" if dotted else f"{path}[{key!r}]", tensors)
             for key, child in zip(keys, node.children, strict=True)]
    if node.kind in ("dict", "OrderedDict", "defaultdict"):
        return "{" + ", ".join(f"{key!r}: {word}" for key, word in zip(keys, words, strict=True)) + "}"
    if node.kind == "list":
        return f"[{', '.join(words)}]"
    if node.kind == "tuple":
        return f"({', '.join(words)}{',' if len(words) == 1 else ''})"
    name = node.type.rpartition(".")[2] or node.kind
    if dotted:
        words = [f"{key}={word}" for key, word in zip(keys, words, strict=True)]
    return f"{name}({', '.join(words)})"


@dataclasses.dataclass(frozen=True)
class Constant:
    """A weight, buffer or folded value. nbytes: as stored, padding included."""

    name: str  # as in state_dict()
    code_name: str
    dtype: str | None
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    nbytes: int
    type: str  # "parameter", "buffer", "tensor_constant", "folded", "unknown"
    folded: bool  # computed when the model is loaded
    mutated: bool  # the model writes it: each replica has its own
    assumed: bool  # mutated because nothing says whether the model writes it
    opaque: bool  # packed for oneDNN: cannot be replaced

    def __str__(self):
        return f"{self.name}: {self.dtype or 'unknown'}{list(self.shape)} {self.type}"


class Constants(dict):
    """The constants of a model by name."""

    def __repr__(self):
        return "\n".join(map(str, self.values())) or "no constants"

    def _repr_html_(self):
        return _html.constants(self.values())


@dataclasses.dataclass(frozen=True)
class ModelInfo:
    """A model of a package, as the package describes it."""

    name: str
    device: str  # "cpu" or "cuda"
    signature: Signature
    constants: Constants
    weights_form: str  # "none", "embedded", "appended", "blob", "files", "user_provided"
    weights_bytes: int
    code_bytes: int
    threads: int  # of its kernels; 0: none are parallel, or unknown
    platform: str | None
    machine: str | None
    cpu_isa: str | None
    march: str | None
    compute_capability: str | None
    metadata: dict[str, str]
    operators_by_name: tuple[str, ...]  # operators that it calls by name, such as "aten::sort.stable"

    def __str__(self):
        made_for = ", ".join(filter(None, (self.device, self.platform, self.machine, self.cpu_isa)))
        return (f"{self.name}{self.signature}\n  for {made_for}; code {self.code_bytes:,} bytes, weights "
                f"{self.weights_bytes:,} bytes ({self.weights_form}), {len(self.constants)} constants")

    __repr__ = __str__

    def _repr_html_(self):
        return _html.model(self.name, self.signature, self.constants.values(), {
            "device": self.device, "code": f"{self.code_bytes:,} bytes",
            "weights": f"{self.weights_bytes:,} bytes, {self.weights_form}"})


@dataclasses.dataclass(frozen=True)
class PackageInfo:
    """A package: its models by name, and what wrote it (a guess)."""

    models: dict[str, ModelInfo]
    producer: str

    def __str__(self):
        return f"package of {self.producer}\n" + "\n".join(map(str, self.models.values()))

    __repr__ = __str__

    def _repr_html_(self):
        return "".join(model._repr_html_() for model in self.models.values())


@dataclasses.dataclass(frozen=True)
class WeightSet:
    """One of a model's two sets of weights: "active", and "staged" or "previous".

    weight_version: 0 while it is staged. own_nbytes: bytes that it does not share with the active set.
    """

    state: str
    weight_version: int
    label: str
    nbytes: int
    own_nbytes: int
    since: datetime.datetime

    @property
    def generation(self):  # deprecated
        """The former name of weight_version, deprecated."""
        return self.weight_version


@dataclasses.dataclass(frozen=True)
class Replica:
    """A copy of the model's state with its own thread. load: calls that it has queued or runs now."""

    index: int
    device: str
    cpus: tuple[int, ...]
    load: int
    failure: str


def _tensor(found):
    dims = found["dims"]
    return TensorInfo(found["path"], found["name"], found["dtype"],
                      None if dims is None else tuple(Dim(*dim) for dim in dims), tuple(found["strides"]),
                      found["device"], found["none"], found["may_be_written"])


def _structure(found):
    return Structure(found["kind"], found["type"], tuple(found["keys"]), tuple(map(_structure, found["children"])))


def signature_of(found):
    call = found["call"]
    parts = [None if call is None else _structure(call[part]) for part in ("args", "kwargs", "result")]
    return Signature(tuple(map(_tensor, found["inputs"])), tuple(map(_tensor, found["outputs"])), *parts)


def constants_of(found):
    return Constants((constant["name"], Constant(**constant)) for constant in found)


def model_of(found):
    same = ("name", "device", "weights_form", "weights_bytes", "code_bytes", "threads", "platform", "machine", "cpu_isa",
            "march", "compute_capability", "metadata")
    return ModelInfo(signature=signature_of(found), constants=constants_of(found["constants"]),
                     operators_by_name=tuple(found["operators"]), **{key: found[key] for key in same})


def package_of(found):
    return PackageInfo({model["name"]: model_of(model) for model in found["models"]}, found["producer"])


def weight_set_of(found):
    since = datetime.datetime.fromtimestamp(found.pop("since"), datetime.timezone.utc)
    return WeightSet(since=since, **found)


def replica_of(found):
    return Replica(**{**found, "cpus": tuple(found["cpus"])})
