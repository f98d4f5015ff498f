// Router: which action a request asks for. One table of routes; a path is made canonical once and every decision is
// taken on that.
//
// Pure functions, no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sconce {

enum class Method : int8_t { kGet, kPost, kDelete, kOther };  // HEAD is kGet

// On which listeners a route exists, as a set.
enum Listeners : uint8_t { kPublic = 1, kMetrics = 2, kAdmin = 4 };

enum class Action : int8_t {
  kPage,
  kLive,
  kReady,
  kServerMetadata,
  kModelReady,
  kModelMetadata,
  kModelConfig,
  kModelStatistics,
  kStatistics,
  kRepositoryIndex,
  kModelLoad,
  kModelUnload,
  kInfer,
  kCall,
  kGenerate,
  kGenerateStream,
  kPredict,
  kModelList,       // KServe v1
  kModelStatus,     // KServe v1 and TensorFlow Serving
  kModelSignature,  // TensorFlow Serving
  kTraceSettings,
  kChangeTrace,
  kLogSettings,
  kChangeLog,
  kSharedMemory,  // Triton's: "system" regions
  kRegisterSharedMemory,
  kUnregisterSharedMemory,
  kCudaSharedMemory,
  kRegisterCudaSharedMemory,
  kUnregisterCudaSharedMemory,
  kOpenApi,
  kMetricsText,
  // Administration; see admin_api.h.
  kConstants,
  kWeights,
  kStageWeights,
  kCommitWeights,
  kAbortWeights,
  kRollbackWeights,
  kReleaseWeights,
  kReplicas,
  kAddReplicas,
  kRemoveReplica,
  kOperations,
  kOperation,
  kCancelOperation,
};

// Runs a model.
constexpr bool is_inference(Action action) noexcept { return action >= Action::kInfer && action <= Action::kPredict; }

constexpr size_t kActions = static_cast<size_t>(Action::kCancelOperation) + 1;

struct RouteMatch {
  enum class Result : int8_t { kFound, kNotFound, kMethodNotAllowed };
  Result result = Result::kNotFound;
  Action action{};
  Listeners listener = kPublic;
  bool control = false;      // changes the server: on the public listener only where http_admin allows it
  std::string_view model;    // of the canonical path; empty where the route has none
  std::string_view version;  // digits; empty: the default
  std::string_view region;   // of shared memory
  std::string_view number;   // digits: of an operation or a replica
  std::string_view allow;    // for kMethodNotAllowed: the Allow field with its CRLF
};

// A request-target as the router sees it.
struct CanonicalTarget {
  std::string path;   // percent-decoded once; starts with '/', no empty, '.' or '..' segment, no control bytes
  std::string query;  // as sent, without the '?'
};

// Accepts the origin form and the absolute form. kInvalidArgument for everything that could be read in two ways.
CanonicalTarget canonical_target(std::string_view target);

struct Route {
  Method method;
  std::string_view pattern;  // {model}, {region}: any segment; {version}, {number}: one of digits
  Action action;
  uint8_t listeners;
  bool control = false;  // see RouteMatch
};
std::span<const Route> routes() noexcept;

RouteMatch find_route(std::string_view path, Method method, Listeners listener) noexcept;

// First value of a query parameter; empty if it is absent. No decoding: values that need it match nothing.
std::string_view query_value(std::string_view query, std::string_view key) noexcept;

}  // namespace sconce
