// JSON documents about models and the server: metadata, configuration, statistics, index. They use nlohmann::json;
// inference does not need them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/scheduling/batching/batch_policy.h"
#include "server/scheduling/pipelines/pipeline_spec.h"
#include "server/scheduling/signature/model_signature.h"
#include "server/scheduling/statistics.h"
#include "server/support/config.h"

namespace sconce::server::registry {

// {"error": message}, at most 2048 bytes.
std::string error_document(std::string_view message);
// shared_memory: whether the settings allow shared memory.
std::string server_document(bool shared_memory);
// GET /v2/models/M. versions: to be listed.
std::string metadata_document(const scheduling::ModelSignature& model, std::span<const int64_t> versions);
// GET /v2/models/M/config. pipeline: null for a model of a package.
std::string config_document(const scheduling::ModelSignature& model, const scheduling::BatchPolicy& batching,
                            const ModelConfig& config, const scheduling::PipelineSpec* pipeline);

// GET /v1/models/M/metadata, in TensorFlow Serving's format.
std::string signature_document(const scheduling::ModelSignature& model);

std::string statistics_document(std::span<const scheduling::ModelStatistics> models);

struct IndexEntry {
  std::string name;
  int64_t version = 1;
  std::string state;   // READY, LOADING, UNAVAILABLE
  std::string reason;  // why UNAVAILABLE, or why a newer package is not the READY one; else empty
  std::vector<std::string> labels = {};
  std::string on_demand = {};  // for a model that is loaded on demand: known, loading, loaded, failed, unloaded
};
// GET /v1/models.
std::string model_list_document(std::span<const std::string> names);
// GET /v1/models/M: the keys of KServe and of TensorFlow Serving.
std::string status_document(const std::string& name, bool ready, std::span<const IndexEntry> versions);
std::string index_document(std::span<const IndexEntry> entries);

}  // namespace sconce::server::registry
