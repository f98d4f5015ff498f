// Declarations of every kernel in op_table.def and aten_table.def: sconce::cpu::NAME. A row without a kernel is a link
// error.
#pragma once

#include <array>

#include "src/shim/op_args.h"

namespace sconce::cpu {
#define SCONCE_OP(name, results, ...) RET_TYPE_##results name(SCONCE_MAP(KER_, __VA_ARGS__));
#include "src/shim/aten_table.def"
#include "src/shim/op_table.def"
#undef SCONCE_OP
}  // namespace sconce::cpu
