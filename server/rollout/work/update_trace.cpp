#include "server/rollout/work/update_trace.h"

#include <utility>

namespace sconce::server::rollout {

telemetry::UpdateRecord update_record(const Operation& over) {
  const auto time_of = [](double seconds) {
    return std::chrono::duration_cast<Operation::Clock::duration>(std::chrono::duration<double>(seconds));
  };
  Operation::View view = over.view();
  telemetry::UpdateRecord record;
  record.model = over.model;
  record.version = std::to_string(over.version);
  record.label = over.label;
  record.id = over.id;
  record.state = state_name(view.state);
  record.error = std::move(view.error);
  record.bytes = view.bytes;
  record.weight_version = view.weight_version;
  record.end = Operation::Clock::now();
  record.start = record.end - time_of(view.seconds);
  for (size_t i = 0; i < view.phase_seconds.size(); ++i)
    record.phases.push_back({phase_name(static_cast<Operation::Phase>(i)), time_of(view.phase_seconds[i])});
  record.parent = telemetry::TraceParent::parse(view.traceparent);
  return record;
}

}  // namespace sconce::server::rollout
