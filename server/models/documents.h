// The JSON documents about models and the server: metadata, configuration, statistics, index. Built with nlohmann;
// none of them is on the path of an inference.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/batching/batch_policy.h"
#include "server/models/statistics.h"
#include "server/signature/interface.h"

namespace sconce::server {

// {"error": message}, of 2048 bytes at most.
std::string error_document(std::string_view message);
// shared_memory: whether it is allowed.
std::string server_document(bool shared_memory);
// GET /v2/models/M. versions: those to list.
std::string metadata_document(const ModelInterface& model, std::span<const int64_t> versions);
// GET /v2/models/M/config. replicas: per device kind, "cpu" or "cuda".
std::string config_document(const ModelInterface& model, const BatchPolicy& batching, int64_t replicas,
                            std::string_view device);

// GET /v1/models/M/metadata, TensorFlow Serving's.
std::string signature_document(const ModelInterface& model);

std::string statistics_document(std::span<const ModelStatistics> models);

struct IndexEntry {
  std::string name;
  int64_t version = 1;
  std::string state;   // READY, LOADING, UNAVAILABLE
  std::string reason;  // why UNAVAILABLE, or why a newer package is not what is READY; else empty
};
// GET /v1/models.
std::string model_list_document(std::span<const std::string> names);
// GET /v1/models/M: KServe's keys and TensorFlow Serving's.
std::string status_document(const std::string& name, bool ready, std::span<const IndexEntry> versions);
std::string index_document(std::span<const IndexEntry> entries);

}  // namespace sconce::server
