// The state of a server in each event of GET /v2/admin/live, and rates between two events.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/support/json_document.h"

namespace sconce::server::cli {

struct LiveModel {
  std::string name, version, state, reason, kind, label;
  uint64_t weight_version = 0, weight_bytes = 0, set_bytes = 0, replicas = 0, queue = 0;
  bool staged = false;
  // Since the server's start.
  uint64_t success = 0, failures = 0, rejected = 0, inferences = 0, executions = 0, tokens = 0;
  std::vector<uint64_t> latency;  // requests by latency bucket; one more than bounds
};

struct LiveGpu {
  std::string uuid;
  std::optional<double> utilization, memory_used, memory_total, power_watts;
};

struct LiveOperation {
  uint64_t id = 0, bytes = 0, total = 0;
  std::string model, version, state, phase, label;
  double seconds = 0;
};

struct LiveAlert {
  bool critical = false;
  std::string model, text;  // model: empty if the alert is about the server
};

// Texts are reduced to printable ASCII, because clients choose names and labels.
struct Overview {
  double time = 0, started = 0;  // seconds since 1970
  std::string version, instance;
  bool ready = false, draining = false;
  uint64_t resident_bytes = 0, connections = 0, requests = 0;
  double cpu_seconds = 0;
  std::vector<double> bounds_s;  // of the latency buckets
  std::vector<LiveModel> models;
  std::vector<LiveGpu> gpus;
  std::vector<LiveOperation> operations;
  std::vector<LiveAlert> alerts;
};
// Missing members and members of another type count as empty. kInvalidArgument if the document is not an overview.
Overview overview_of(const OrderedJson& document);

// nullopt: no events from which to compute it.
struct Rates {
  std::optional<double> requests, failures;        // per second
  std::optional<double> p50_s, p99_s, mean_batch;  // over the last events
  std::vector<double> history;                     // requests per second between events, the latest last
};

class History {
 public:
  void add(Overview overview);
  bool empty() const noexcept { return events_.empty(); }
  const Overview& now() const noexcept { return events_.back(); }
  Rates of(const LiveModel& model) const;
  std::optional<double> requests() const;   // of the server, per second
  std::optional<double> cpu_share() const;  // of one core

 private:
  std::deque<Overview> events_;
  std::map<std::string, std::deque<double>> rates_;  // by name and version
};

}  // namespace sconce::server::cli
