// Telemetry: the counters of the server, its traces, and the limits of its log. Constructed before the first
// connection; outlives the last. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "server/http/connection_counters.h"
#include "server/http/open_connections.h"
#include "server/support/config.h"
#include "server/support/log_limit.h"
#include "server/telemetry/metrics.h"
#include "server/telemetry/otlp/otlp_exporter.h"
#include "server/telemetry/traces/trace.h"
#include "server/telemetry/update_counters.h"

namespace sconce::server::telemetry {

struct Telemetry {
  // config and connections outlive the object. io_threads: number of I/O threads.
  Telemetry(const ServerConfig& config, const http::OpenConnections& connections, size_t io_threads)
      : connections(connections), counters(io_threads), tracer(config), otlp(OtlpExporter::of(config)) {
    tracer.export_to(otlp.get());
  }

  const double start_time =  // seconds since 1970
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const http::OpenConnections& connections;
  std::vector<http::ConnectionCounters> counters;  // one per I/O thread
  CallCounters calls;                              // of gRPC
  UpdateCounters updates;
  const registry::RemoteCounters* remote = nullptr;  // null: no remote sources. Set it before the first request
  Tracer tracer;
  const std::unique_ptr<OtlpExporter> otlp;  // null: setting otlp is off
  LogLimit refusals, failures;               // limit log lines about requests
};

}  // namespace sconce::server::telemetry
