// Converts a finished weight update to the record from which a collector's spans are made.
#pragma once

#include "server/rollout/work/operation_log.h"
#include "server/telemetry/otlp/otlp_spans.h"

namespace sconce::server::rollout {

// Call this directly after the operation has ended.
telemetry::UpdateRecord update_record(const Operation& over);

}  // namespace sconce::server::rollout
