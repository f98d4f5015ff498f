// BatchPolicy: dynamic batching of one model: which requests wait and share runs. The model's signature decides;
// settings narrow it. Immutable.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/scheduling/batching/row_sharing.h"
#include "server/scheduling/signature/model_signature.h"
#include "server/support/config.h"

namespace sconce::server::scheduling {

struct BatchPolicy {
  int64_t max_rows = 1;            // maximum batch size; 1: each request runs alone
  std::string alone;               // why each request runs alone; empty if requests share runs
  RowSharing rows{};               // the decision about rows
  int64_t most_rows = INT64_MAX;   // maximum rows of one request, if a setting limits it
  std::vector<int64_t> preferred;  // preferred batch sizes, ascending; used while there is time to wait
  // How long a request waits for others to join its batch. nullopt: adaptive (server/scheduling/batching/batch_pace.h).
  std::optional<std::chrono::nanoseconds> delay = std::chrono::nanoseconds(0);
  int64_t queue = 1000;                        // maximum number of waiting requests
  int64_t priority_levels = 0;                 // 0: priorities are ignored
  int64_t default_priority = 1;                // 1 is the most urgent
  std::chrono::nanoseconds timeout{};          // maximum time of waiting; 0: none
  bool timeout_override = true;                // a request may ask for a shorter timeout
  bool reject_late = true;                     // false: late requests wait until all others have run
  std::chrono::nanoseconds request_timeout{};  // maximum time of the whole request; 0: none
};

// Requests share runs if all inputs and outputs have the batch as first dimension, rows are contiguous, the model does
// not change its own state, and row_sharing() allows it. kInvalidArgument for settings that contradict each other.
BatchPolicy batch_policy(const ModelSignature& model, const ModelConfig& config);

// Whether a model's requests are steps of sequences.
inline bool has_sequences(const ModelSignature& model, const ModelConfig& config) noexcept {
  return config.sequences > 0 && model.mutates_constants && !model.pipeline;
}

// The maximum batch size if a trial finds no reason against it; 1 if no trial is needed.
int64_t rows_to_try(const ModelSignature& model, const ModelConfig& config);

}  // namespace sconce::server::scheduling
