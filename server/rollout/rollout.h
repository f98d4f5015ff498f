// Rollout: objects that all administration of weights shares: updates, publication, pushes to other servers, guards. It
// is constructed before the first connection and outlives the last. Thread-safe.
#pragma once

#include <atomic>

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
#include "server/support/config.h"
#include "server/telemetry/telemetry.h"

namespace sconce::server::rollout {

struct Rollout {
  // All arguments outlive the object. signatures: those that weights must have. draining: the server is ending.
  // Counts in telemetry.updates, and passes each update to its collector.
  Rollout(const ServerConfig& config, registry::Repository& repository, const signing::SignatureRule& signatures,
          const std::atomic<bool>& draining, telemetry::Telemetry& telemetry);

  const ServerConfig& config;
  registry::Repository& repository;
  const signing::SignatureRule& signatures;
  const std::atomic<bool>& draining;
  OperationLog operations;
  ModelClaims claims;
  Guards guards;
  AuditLog audit;
  PushLedger pushes;
  PushPeers peers;
  TrainerSessions trainer_sessions;
  WeightChecker weight_checker;
  AdminThreads admin_threads;  // its threads use the other members
};

}  // namespace sconce::server::rollout
