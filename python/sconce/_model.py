"""Model: a compiled model, loaded and ready to be called."""
import functools
import os
from collections.abc import Iterable, Mapping
from typing import Any

from sconce import _description, _html, _native


class Model(_native.Model):
    """A model of a package, loaded and ready to run; sconce.load() makes it. Thread-safe.

    model(*args, **kwargs) runs it and returns when it is done, with the GIL released meanwhile. Arguments and result
    have the structure of the exported module: dicts, tuples, lists, namedtuples, dataclasses, None. Leaves are NumPy
    arrays, tensors of any library with DLPack (PyTorch, JAX, CuPy), or numbers for 0-dimensional inputs; none are copied
    if the model can read them where they are. An array that the model writes is changed. Not used in place are arrays in
    another byte order, with strides that the model does not take, or read-only unless the package shows that the model
    does not write them: the call uses a copy, and what the model wrote goes back to the array, or is an InvalidArgument
    if that is read-only.

    Results are NumPy arrays of their own memory for models on the CPU, sconce.Tensor on the GPU for others, unless
    load(outputs=...) says otherwise. Views of weights are read-only.

    Raises InvalidArgument, which names the argument, what was expected and what came; ModelFailed with the model's own
    words; OutOfMemory; FailedPrecondition in a child of the process that loaded the model.
    """

    @functools.cached_property
    def _info(self):
        return self._describe()

    @property
    def name(self) -> str:
        """The model's name in its package."""
        return self._info["name"]

    @functools.cached_property
    def signature(self) -> _description.Signature:
        """What the model takes and returns: names, dtypes, dimensions with their ranges, structure."""
        return _description.signature_of(self._info)

    @property
    def constants(self) -> _description.Constants:
        """The model's weights, buffers and folded values by name."""
        return _description.constants_of(self._constants())

    @property
    def weight_sets(self) -> list[_description.WeightSet]:
        """The sets of weights that the model keeps, the active one first."""
        return [_description.weight_set_of(found) for found in self._weight_sets()]

    @property
    def replicas(self) -> list[_description.Replica]:
        """The model's replicas."""
        return [_description.replica_of(found) for found in self._replicas()]

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the model without blocking the event loop. Arguments and result as in a call."""
        import asyncio
        return await asyncio.wrap_future(self.submit(*args, **kwargs))

    def stage(self, weights: Mapping[str, Any] | str | os.PathLike[str], *, label: str = "", partial: bool = False,
              check_finite: bool = False, ignore: str | Iterable[str] = (), dry_run: bool = False) -> None:
        """Puts new weights beside those that serve; commit() makes them serve, abort() drops them.

        weights: a mapping of names (those of state_dict()) to arrays or tensors of the model's dtypes and shapes, or the
            path of a .safetensors, .npz or .npy file or a package.
        label: text of up to 256 bytes that answers carry.
        partial: constants that are not named keep their values. Otherwise all parameters must be named.
        check_finite: refuses NaN and infinities.
        ignore: names that may be in weights although the model has no such constant.
        dry_run: checks everything and stages nothing.

        If it fails, nothing has changed. Raises NotFound for unknown names, InvalidArgument for wrong dtypes and shapes,
        missing names and values that are not finite, Busy while another update is under way, OutOfMemory.
        """
        self._stage(weights, label=label, partial=partial, check_finite=check_finite, dry_run=dry_run,
                    ignore=[ignore] if isinstance(ignore, str) else list(ignore))

    def update(self, weights: Mapping[str, Any] | str | os.PathLike[str], *, label: str = "", partial: bool = False,
               check_finite: bool = False, ignore: str | Iterable[str] = ()) -> int:
        """Replaces weights while the model serves: stage() and commit() in one step. Returns the new weight version.

        Calls that run keep the weights that they started with; no call sees a mixture. Returns when no call uses the old
        ones any more, which are kept for rollback(). If it fails, nothing has changed.
        """
        self.stage(weights, label=label, partial=partial, check_finite=check_finite, ignore=ignore)
        return self.commit()

    def __repr__(self):
        return f"<sconce.Model {self.name}{self.signature}, weight version {self.weight_version}>"

    def _repr_html_(self):
        return _html.model(self.name, self.signature, self.constants.values(), {
            "device": ", ".join(sorted({replica.device for replica in self.replicas})),
            "replicas": len(self.replicas), "weight version": self.weight_version,
            "constants": f"{self.constant_bytes:,} bytes"})

    def __reduce__(self):
        raise TypeError("a loaded model cannot be pickled: load the package where it is needed")
