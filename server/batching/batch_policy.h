// BatchPolicy: how the requests of one model wait and share runs. It follows from the model's signature; settings
// narrow it. Immutable.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/base/config.h"
#include "server/signature/interface.h"

namespace sconce::server {

struct BatchPolicy {
  int64_t max_rows = 1;            // of a run that several requests share; 1: each runs by itself
  std::string alone;               // why each runs by itself; empty if they do not
  int64_t most_rows = INT64_MAX;   // of one request, where a setting says so
  std::vector<int64_t> preferred;  // sizes in rows, ascending: no others, as long as there is time to wait
  // How long a request waits for others to join it. nullopt: as long as it pays (server/batching/batch_pace.h).
  std::optional<std::chrono::nanoseconds> delay = std::chrono::nanoseconds(0);
  int64_t queue = 1000;                        // requests that may wait
  int64_t priority_levels = 0;                 // 0: a request's priority does not count
  int64_t default_priority = 1;                // 1 is the most urgent
  std::chrono::nanoseconds timeout{};          // of waiting; 0: none
  bool timeout_override = true;                // a request may ask for a shorter one
  bool reject_late = true;                     // else a request whose timeout passed waits until nobody else does
  std::chrono::nanoseconds request_timeout{};  // of the whole request; 0: none
};

// Requests share runs where all inputs and outputs have the batch as their first dimension, rows lie one behind the
// other, the model changes nothing of its own, and a try showed that rows do not influence each other
// (server/signature/row_trial.h); what is not known counts as no. kInvalidArgument for settings that contradict each
// other.
BatchPolicy batch_policy(const ModelInterface& model, const ModelConfig& config);

// The most rows of a run that requests would share if a try showed that they may; 1 where nothing depends on a try.
int64_t rows_to_try(const ModelInterface& model, const ModelConfig& config);

}  // namespace sconce::server
