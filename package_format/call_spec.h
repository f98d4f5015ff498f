// Parses PyTorch's pytree specs (torch.utils._pytree.treespec_dumps, protocol 1) to a CallSpec. Matches torch 2.6 to
// 2.15.
//
// A leaf is a tensor, a number, a string or None; the spec does not record which. Children are in flattening order.
// For dicts and keyword arguments that is the recorded order, not the caller's.
#pragma once

#include <span>
#include <string_view>

#include "package_format/elf_image.h"
#include "sconce/package.h"

namespace sconce {

// Parses one spec: [1, {"type", "context", "children_spec"}]. kCorruptPackage with the reason.
SpecNode parse_treespec(std::string_view json);

// The two specs of a model: a tuple of the arguments and a dict of the keywords; the output. Leaves input_leaf empty.
CallSpec parse_call_spec(std::string_view in_spec, std::string_view out_spec);

// Fills input_leaf if it is certain: if every leaf is an input; if `program`, the model's ExportedProgram as JSON ("":
// none), shows which leaves are tensors; or if the inputs' names do. The graph numbers its arguments, lifted
// parameters first and then the leaves of the call: between arg0_1 and arg2_1 one was dropped. kCorruptPackage if
// there are more inputs than leaves.
void map_inputs(CallSpec& spec, std::span<const TensorSpec> inputs, std::string_view program = {});

// Finds the call spec of a library without source: two string literals in its read-only data, in an order that the
// linker chose. If they cannot be told apart, the spec stays unknown until the loaded library returns it.
CallSpec find_call_spec(const ElfImage& so);

}  // namespace sconce
