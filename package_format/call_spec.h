// PyTorch's pytree specs (torch.utils._pytree.treespec_dumps, protocol 1) as a CallSpec. Matches torch 2.6 to 2.15.
//
// A leaf is a tensor, a number, a string or None: the spec does not tell which. Children are in flattening order: of
// dicts and keyword arguments that is the recorded order, whatever order a caller uses.
#pragma once

#include <string_view>

#include "sconce/package.h"

namespace sconce {

// One spec: [1, {"type", "context", "children_spec"}]. kCorruptPackage with the reason.
SpecNode parse_treespec(std::string_view json);

// The two specs of a model with `inputs` inputs. in_spec must be a tuple of arguments and a dict of keywords.
// input_leaf is filled where every leaf is an input.
CallSpec parse_call_spec(std::string_view in_spec, std::string_view out_spec, size_t inputs);

}  // namespace sconce
