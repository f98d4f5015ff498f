#include "server/rollout/rollout.h"

#include "server/rollout/work/update_trace.h"

namespace sconce::server::rollout {

Rollout::Rollout(const ServerConfig& config, registry::Repository& repository, const signing::SignatureRule& signatures,
                 const std::atomic<bool>& draining, telemetry::Telemetry& telemetry)
    : config(config),
      repository(repository),
      signatures(signatures),
      draining(draining),
      operations(telemetry.updates),
      guards(telemetry.updates),
      audit(telemetry.updates, config.audit_log),
      peers(config) {
  if (telemetry::OtlpExporter* const otlp = telemetry.otlp.get())
    operations.on_end([otlp](const Operation& over) { otlp->add(update_record(over)); });
}

}  // namespace sconce::server::rollout
