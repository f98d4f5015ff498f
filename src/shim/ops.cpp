// The exported aoti_torch_cpu_* functions: one per row of op_table.def.
#include "src/shim/ops.h"

#include "src/shim/guard.h"
#include "src/shim/results.h"

#define SCONCE_CALL_0(call) call
#define SCONCE_CALL_1(call) ::sconce::shim::deliver(call RET_OUT_1)
#define SCONCE_CALL_2(call) ::sconce::shim::deliver(call RET_OUT_2)
#define SCONCE_CALL_3(call) ::sconce::shim::deliver(call RET_OUT_3)
#define SCONCE_CALL_4(call) ::sconce::shim::deliver(call RET_OUT_4)
#define SCONCE_CALL_5(call) ::sconce::shim::deliver(call RET_OUT_5)
#define SCONCE_CALL_6(call) ::sconce::shim::deliver(call RET_OUT_6)

#define SCONCE_OP(name, results, ...)                                                                                 \
  extern "C" AOTITorchError aoti_torch_cpu_##name(SCONCE_MAP(ABI_, __VA_ARGS__) RET_ABI_##results) {                  \
    return ::sconce::shim::guard("aoti_torch_cpu_" #name,                                                             \
                                 [&] { SCONCE_CALL_##results(::sconce::cpu::name(SCONCE_MAP(FWD_, __VA_ARGS__))); }); \
  }
#include "src/shim/op_table.def"
#undef SCONCE_OP
