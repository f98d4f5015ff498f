// A weight update that is over, as a collector's spans are made of it.
#pragma once

#include "server/rollout/work/operation_log.h"
#include "server/telemetry/otlp/otlp_spans.h"

namespace sconce::server {

// Call this when the operation has just ended.
UpdateRecord update_record(const Operation& over);

}  // namespace sconce::server
