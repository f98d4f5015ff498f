// Handlers of Triton's extensions that show and change the running server: trace and log settings, shared memory. They
// refuse to change paths of files.
#pragma once

#include "server/answers/handlers.h"

namespace sconce::server::answers {

AnswerHere trace_settings, change_trace;
AnswerHere log_settings, change_log;
AnswerHere regions, register_region, unregister_region;                 // "system": POSIX shared memory
AnswerHere cuda_regions, register_cuda_region, unregister_cuda_region;  // device memory

}  // namespace sconce::server::answers
