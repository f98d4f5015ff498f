// The exported aoti_torch_aten_* functions: one per row of aten_table.def.
#include "src/aoti_abi/op_calls.h"
#include "src/operators/cpu_ops.h"

#define SCONCE_OP(name, results, ...)                                                                                  \
  extern "C" AOTITorchError aoti_torch_aten_##name(SCONCE_MAP(ABI_, __VA_ARGS__) RET_ABI_##results) {                  \
    return ::sconce::aoti_abi::guard(                                                                                  \
        "aoti_torch_aten_" #name, [&] { SCONCE_CALL_##results(::sconce::cpu::name(SCONCE_MAP(FWD_, __VA_ARGS__))); }); \
  }
#include "src/operators/aten_table.def"
#undef SCONCE_OP
