// Handlers of Triton's extensions that read and change settings of the running server: trace and log settings, shared
// memory. They refuse to change file paths.
#pragma once

#include "server/api/handlers.h"

namespace sconce::server::api::answers {

AnswerOnIoThread trace_settings, change_trace;
AnswerOnIoThread log_settings, change_log;
AnswerOnIoThread regions, register_region, unregister_region;                 // "system": POSIX shared memory
AnswerOnIoThread cuda_regions, register_cuda_region, unregister_cuda_region;  // device memory

}  // namespace sconce::server::api::answers
