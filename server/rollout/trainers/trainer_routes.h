// Routes of the admin port for trainers of SGLang and vLLM, with the bodies and answers of these servers
// (docs/trainers.md).
#pragma once

#include "server/rollout/admin_api.h"

namespace sconce::server::rollout::admin {

// SGLang: {"success": ..., "message": "..."}, also for failures.
AdminStart update_from_disk, update_from_tensor, update_version, pause_generation, continue_generation, begin_update,
    end_update, weight_checksums, check_weights, flush_cache;
AdminStart no_transport;  // SGLang routes that need NCCL or ZeroMQ
AdminText weight_version, model_info, weights_by_name;

// vLLM.
AdminText pause, resume, is_paused, init_transfer, start_update, update_weights, finish_update, shutdown_transfer,
    weight_info, world_size, abort_requests, start_draft_update, compare_checksums;

}  // namespace sconce::server::rollout::admin
