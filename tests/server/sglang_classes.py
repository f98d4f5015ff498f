"""SGLang's classes that its pickles name, importable under SGLang's names while this module is loaded: SGLang is not needed."""
import dataclasses
import sys
import types


def of_sglang(module, kind):
    """The class as one of SGLang's module."""
    kind.__module__ = module
    while module:
        sys.modules.setdefault(module, types.ModuleType(module))
        module = module.rpartition(".")[0]
    setattr(sys.modules[kind.__module__], kind.__qualname__, kind)
    return kind


@dataclasses.dataclass
class FlattenedTensorMetadata:
    name: str
    shape: tuple
    dtype: object
    start_idx: int
    end_idx: int
    numel: int


@dataclasses.dataclass
class LocalSerializedTensor:
    values: list


of_sglang("sglang.srt.weight_sync.tensor_bucket", FlattenedTensorMetadata)
of_sglang("sglang.srt.model_executor.model_runner", LocalSerializedTensor)
