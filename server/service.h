// Service: what all connections share. Made before the first connection, outlives the last.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "server/config.h"
#include "server/credentials.h"
#include "server/heavy_work.h"
#include "server/log_limit.h"
#include "server/metrics.h"
#include "server/open_connections.h"
#include "server/operations.h"
#include "server/repository.h"
#include "server/request_budget.h"
#include "server/shared_memory.h"
#include "server/trace.h"

namespace sconce {

class Control;

struct Service {
  const ServerConfig& config;
  Repository& repository;
  Control& control;
  std::vector<ConnectionCounters> counters;  // one per io thread
  double start_time = 0;                     // seconds since 1970
  std::string public_url;                    // "http://127.0.0.1:8000", for the page
  std::atomic<bool> draining{false};         // readiness is false, answers close their connections
  OpenConnections& connections;
  RequestBudget& request_memory;
  Credentials credentials;
  Operations operations;
  SharedMemory shared_memory{false};
  Tracer tracer;
  LogLimit refusals{}, failures{};  // lines about requests
  HeavyWork heavy_work{};
};

}  // namespace sconce
