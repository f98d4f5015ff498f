"""Names in state_dict() that share one tensor (b.weight = a.weight), for the package's metadata.

A package has constants for some of such names only: those that the exported graph uses. src/runner/constants/tied_names.h reads
the text, so that an update may come with any of the names.
"""
import json

KEY = "sconce_tied"


def metadata(torch, model, used):
    """The text, or None if no names are tied. `used`: names that the exported graph uses."""
    names = {}
    for group in groups(torch, model):
        kept = next((name for name in group if name in used), None)
        if kept is not None:
            names.update({name: kept for name in group if name != kept})
    return json.dumps({"version": 1, "names": names}) if names else None


def groups(torch, model):
    """Lists of two or more names of parameters and buffers that are one tensor."""
    found = {}
    for named in (model.named_parameters, model.named_buffers):
        for name, tensor in named(remove_duplicate=False):
            if type(tensor.data) is torch.Tensor and tensor.layout is torch.strided and tensor.numel() > 0:
                place = (tensor.device, tensor.untyped_storage()._cdata, tensor.storage_offset(), tensor.dtype, tensor.shape,
                         tensor.stride(), tensor.is_conj(), tensor.is_neg())
                found.setdefault(place, []).append(name)
    return [names for names in found.values() if len(names) > 1]
