// PyTorch's pytree specs (torch.utils._pytree.treespec_dumps, protocol 1) as a CallSpec. Matches torch 2.6 to 2.15.
//
// A leaf is a tensor, a number, a string or None: the spec does not tell which. Children are in flattening order: of
// dicts and keyword arguments that is the recorded order, whatever order a caller uses.
#pragma once

#include <string_view>

#include "package_format/elf_image.h"
#include "sconce/package.h"

namespace sconce {

// One spec: [1, {"type", "context", "children_spec"}]. kCorruptPackage with the reason.
SpecNode parse_treespec(std::string_view json);

// The two specs of a model. in_spec must be a tuple of arguments and a dict of keywords. input_leaf is left empty.
CallSpec parse_call_spec(std::string_view in_spec, std::string_view out_spec);

// Fills input_leaf where that is certain: every leaf is an input, or `program`, the model's ExportedProgram as JSON,
// says which leaves are tensors ("" without one). kCorruptPackage if there are more inputs than leaves.
void map_inputs(CallSpec& spec, size_t inputs, std::string_view program = {});

// The call spec of a library without source, from the two string literals in its read-only data, whose order the linker
// chooses. Not known where they cannot be told apart; once loaded, the library itself answers.
CallSpec find_call_spec(const ElfImage& so);

}  // namespace sconce
