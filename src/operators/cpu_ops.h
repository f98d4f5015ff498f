// Declares every kernel in op_table.def and aten_table.def: sconce::cpu::NAME. It is the only declaration, and the
// file that defines a kernel includes it: a wrong result type does not compile, wrong parameters do not link.
#pragma once

#include "src/operators/kernel_args.h"

namespace sconce::cpu {
#define SCONCE_OP(name, results, ...) RET_TYPE_##results name(SCONCE_MAP(KER_, __VA_ARGS__));
#include "src/operators/aten_table.def"
#include "src/operators/cpu_table.def"
#undef SCONCE_OP
}  // namespace sconce::cpu
