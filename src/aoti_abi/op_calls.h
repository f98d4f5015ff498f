// Returns the results of an exported operator's kernel: all or none.
#pragma once

#include "src/aoti_abi/guard.h"
#include "src/aoti_abi/op_args.h"
#include "src/aoti_abi/results.h"

#define SCONCE_CALL_0(call) call
#define SCONCE_CALL_1(call) ::sconce::aoti_abi::deliver(call RET_OUT_1)
#define SCONCE_CALL_2(call) ::sconce::aoti_abi::deliver(call RET_OUT_2)
#define SCONCE_CALL_3(call) ::sconce::aoti_abi::deliver(call RET_OUT_3)
#define SCONCE_CALL_4(call) ::sconce::aoti_abi::deliver(call RET_OUT_4)
#define SCONCE_CALL_5(call) ::sconce::aoti_abi::deliver(call RET_OUT_5)
#define SCONCE_CALL_6(call) ::sconce::aoti_abi::deliver(call RET_OUT_6)
