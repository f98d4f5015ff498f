// Service: objects that all connections share. It is constructed before the first connection and outlives the last.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "server/codecs/shared_memory.h"
#include "server/http/access/credentials.h"
#include "server/http/access/web_pages.h"
#include "server/http/open_connections.h"
#include "server/registry/repository.h"
#include "server/rollout/push/push_ledger.h"
#include "server/rollout/push/push_peers.h"
#include "server/rollout/trainer_sessions.h"
#include "server/rollout/weight_checker.h"
#include "server/rollout/work/admin_threads.h"
#include "server/rollout/work/audit_log.h"
#include "server/rollout/work/guards.h"
#include "server/rollout/work/model_claims.h"
#include "server/rollout/work/operation_log.h"
#include "server/signing/signature_rule.h"
#include "server/support/cached_text.h"
#include "server/support/config.h"
#include "server/support/log_limit.h"
#include "server/support/memory/request_budget.h"
#include "server/support/thread_pool.h"
#include "server/telemetry/metrics.h"
#include "server/telemetry/otlp/otlp_exporter.h"
#include "server/telemetry/traces/trace.h"

namespace sconce::server {

class ModelLoader;

struct Service {
  const ServerConfig& config;
  Repository& repository;
  ModelLoader& control;
  std::vector<ConnectionCounters> counters;  // one per I/O thread
  double start_time = 0;                     // seconds since 1970
  std::string public_url;                    // "http://127.0.0.1:8000", for the page; empty: off
  std::string admin_url;                     // likewise for the admin listener
  std::string grpc_address;                  // "127.0.0.1:8001"; empty: off
  std::atomic<bool> draining{false};         // the server is not ready, and each answer closes its connection
  OpenConnections& connections;
  RequestBudget& request_memory;
  Credentials credentials;
  OperationLog operations;
  SharedMemory shared_memory{false};
  Tracer tracer;
  std::unique_ptr<OtlpExporter> otlp{OtlpExporter::of(config)};  // null: setting otlp is off
  LogLimit refusals{}, failures{};                               // limit log lines about requests
  ThreadPool heavy_work{};
  ModelClaims claims{};
  Guards guards{operations.counters()};
  AuditLog audit{config.audit_log};
  PushLedger pushes{};
  PushPeers peers{config};
  TrainerSessions trainer_sessions{};
  WeightChecker weight_checker{};
  AdminThreads admin_threads{};  // its threads use the other members
  CallCounters calls{};          // of gRPC
  // For many models: the index, the index of ready models, and the names. Changes without a revision number become
  // visible up to half a second later.
  CachedText index{std::chrono::milliseconds(500)}, ready_index{std::chrono::milliseconds(500)},
      model_names{std::chrono::milliseconds(500)};
  std::atomic<uint64_t> controls{0};  // manual loads and unloads that have ended
  const CorsRule cors{config.http_cors_origins};
  uint8_t checks_host = 0;                 // Listeners that refuse a foreign Host, unless a token is needed
  const RemoteCounters* remote = nullptr;  // null: no remote sources
  // The required signatures of weights; null: none.
  const SignatureRule* signatures = nullptr;
};

}  // namespace sconce::server
