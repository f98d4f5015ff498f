// Overview: the state of the server and its models at one moment, as GET /v2/admin/live sends it. Counters count from
// the server's start. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/rollout/work/operation_log.h"
#include "server/scheduling/statistics.h"
#include "server/telemetry/gpu_metrics.h"

namespace sconce::server::console {

struct Overview {
  struct Server {
    std::string version, instance;
    double started = 0;  // seconds since 1970
    bool ready = false, draining = false;
    int64_t resident_bytes = 0;
    double cpu_seconds = 0;
    int64_t connections = 0, consoles = 0;
    uint64_t requests = 0;  // HTTP answers
    uint64_t lost_lines = 0;
    std::vector<std::string> away;  // repositories that cannot be read, with the reason
  };
  struct Model {
    std::string name;
    int64_t version = 1;
    const char* state = "";  // READY, LOADING, HELD, UNAVAILABLE, UNLOADED
    std::string reason;
    bool pipeline = false;
    uint64_t weight_version = 0;
    std::string label;
    bool staged = false;
    int64_t sets = 0;
    uint64_t weight_bytes = 0, set_bytes = 0;
    int64_t replicas = 0;
    std::vector<std::string> devices;
    std::vector<std::string> lost;  // for replicas whose device was lost, the reason
    int64_t queue = 0;
    scheduling::Totals totals;
    uint64_t sequences = 0;
    int64_t loops = 0;
    uint64_t tokens = 0;
    std::string weights_problem;     // why its weights are not stored
    std::vector<std::string> peers;  // differences between the weights of this server and of others in its last push
  };
  struct Operation {
    uint64_t id = 0;
    std::string model, label;
    int64_t version = 1;
    rollout::Operation::State state = rollout::Operation::State::kRunning;
    rollout::Operation::Phase phase = rollout::Operation::Phase::kStarting;
    uint64_t bytes = 0, total = 0;
    double seconds = 0;
  };

  double time = 0;  // seconds since 1970
  Server server;
  std::vector<telemetry::GpuState> gpus;
  std::vector<Model> models;
  std::vector<Operation> operations;
};

struct Alert {
  bool critical = false;
  std::string model;  // empty: the server
  std::string text;
};
// Problems that need an operator's attention. before: the overview of a second ago, if there was one.
std::vector<Alert> alerts_of(const Overview& now, const Overview* before);

std::string overview_document(const Overview& now, const std::vector<Alert>& alerts);

}  // namespace sconce::server::console
