// What a server says of itself in each event of GET /v2/admin/live, and what happened between two of them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/support/json_document.h"

namespace sconce::server::commands {

struct LiveModel {
  std::string name, version, state, reason, kind, label;
  uint64_t generation = 0, weight_bytes = 0, set_bytes = 0, replicas = 0, queue = 0;
  bool staged = false;
  // Since the start of the server.
  uint64_t success = 0, failures = 0, rejected = 0, inferences = 0, executions = 0, tokens = 0;
  std::vector<uint64_t> latency;  // requests by their time, one more than there are bounds
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
  std::string model, text;  // model: empty if it is about the server
};

// Texts are printable ASCII: names and labels are whatever a client chose.
struct Overview {
  double time = 0, started = 0;  // seconds since 1970
  std::string version, instance;
  bool ready = false, draining = false;
  uint64_t resident_bytes = 0, connections = 0, requests = 0;
  double cpu_seconds = 0;
  std::vector<double> bounds_s;  // of the latencies
  std::vector<LiveModel> models;
  std::vector<LiveGpu> gpus;
  std::vector<LiveOperation> operations;
  std::vector<LiveAlert> alerts;
};
// Members that are missing or of another type are as if they were empty. kInvalidArgument if it is no overview at all.
Overview overview_of(const OrderedJson& document);

// nullopt: nothing happened from which it could be told.
struct Rates {
  std::optional<double> requests, failures;        // a second
  std::optional<double> p50_s, p99_s, mean_batch;  // of the last events
  std::vector<double> history;                     // requests a second between events, the latest last
};

class History {
 public:
  void add(Overview overview);
  bool empty() const noexcept { return events_.empty(); }
  const Overview& now() const noexcept { return events_.back(); }
  Rates of(const LiveModel& model) const;
  std::optional<double> requests() const;   // a second, of the server
  std::optional<double> cpu_share() const;  // of one core

 private:
  std::deque<Overview> events_;
  std::map<std::string, std::deque<double>> rates_;  // by name and version
};

}  // namespace sconce::server::commands
