#include "server/http/router.h"

#include <algorithm>
#include <array>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

#include "sconce/check.h"

namespace sconce {
namespace {

constexpr uint8_t kEverywhere = kPublic | kAdmin | kMetrics;

// Literal segments come before {model} where both would match.
constexpr std::array kRoutes{
    Route{Method::kGet, "/", Action::kPage, kEverywhere},
    Route{Method::kGet, "/metrics", Action::kMetricsText, kMetrics},
    Route{Method::kGet, "/v2", Action::kServerMetadata, kPublic | kAdmin},
    Route{Method::kGet, "/v2/health/live", Action::kLive, kEverywhere},
    Route{Method::kGet, "/v2/health/ready", Action::kReady, kEverywhere},
    Route{Method::kGet, "/v2/models/stats", Action::kStatistics, kPublic | kAdmin},
    Route{Method::kGet, "/v2/models/{model}", Action::kModelMetadata, kPublic | kAdmin},
    Route{Method::kGet, "/v2/models/{model}/ready", Action::kModelReady, kPublic | kAdmin},
    Route{Method::kGet, "/v2/models/{model}/config", Action::kModelConfig, kPublic | kAdmin},
    Route{Method::kGet, "/v2/models/{model}/stats", Action::kModelStatistics, kPublic | kAdmin},
    Route{Method::kPost, "/v2/models/{model}/infer", Action::kInfer, kPublic},
    Route{Method::kGet, "/v2/models/{model}/versions/{version}", Action::kModelMetadata, kPublic | kAdmin},
    Route{Method::kGet, "/v2/models/{model}/versions/{version}/ready", Action::kModelReady, kPublic | kAdmin},
    Route{Method::kGet, "/v2/models/{model}/versions/{version}/config", Action::kModelConfig, kPublic | kAdmin},
    Route{Method::kGet, "/v2/models/{model}/versions/{version}/stats", Action::kModelStatistics, kPublic | kAdmin},
    Route{Method::kPost, "/v2/models/{model}/versions/{version}/infer", Action::kInfer, kPublic},
    Route{Method::kPost, "/v2/models/{model}/generate", Action::kGenerate, kPublic},
    Route{Method::kPost, "/v2/models/{model}/versions/{version}/generate", Action::kGenerate, kPublic},
    Route{Method::kPost, "/v2/models/{model}/generate_stream", Action::kGenerateStream, kPublic},
    Route{Method::kPost, "/v2/models/{model}/versions/{version}/generate_stream", Action::kGenerateStream, kPublic},
    Route{Method::kPost, "/v2/repository/index", Action::kRepositoryIndex, kPublic | kAdmin},
    Route{Method::kPost, "/v2/repository/models/{model}/load", Action::kModelLoad, kPublic | kAdmin, true},
    Route{Method::kPost, "/v2/repository/models/{model}/unload", Action::kModelUnload, kPublic | kAdmin, true},
    Route{Method::kGet, "/v2/trace/setting", Action::kTraceSettings, kPublic | kAdmin, true},
    Route{Method::kPost, "/v2/trace/setting", Action::kChangeTrace, kPublic | kAdmin, true},
    Route{Method::kGet, "/v2/models/{model}/trace/setting", Action::kTraceSettings, kPublic | kAdmin, true},
    Route{Method::kPost, "/v2/models/{model}/trace/setting", Action::kChangeTrace, kPublic | kAdmin, true},
    Route{Method::kGet, "/v2/logging", Action::kLogSettings, kPublic | kAdmin, true},
    Route{Method::kPost, "/v2/logging", Action::kChangeLog, kPublic | kAdmin, true},
    Route{Method::kGet, "/v2/systemsharedmemory/status", Action::kSharedMemory, kPublic},
    Route{Method::kGet, "/v2/systemsharedmemory/region/{region}/status", Action::kSharedMemory, kPublic},
    Route{Method::kPost, "/v2/systemsharedmemory/region/{region}/register", Action::kRegisterSharedMemory, kPublic},
    Route{Method::kPost, "/v2/systemsharedmemory/unregister", Action::kUnregisterSharedMemory, kPublic},
    Route{Method::kPost, "/v2/systemsharedmemory/region/{region}/unregister", Action::kUnregisterSharedMemory, kPublic},
    Route{Method::kGet, "/v2/cudasharedmemory/status", Action::kCudaSharedMemory, kPublic},
    Route{Method::kGet, "/v2/cudasharedmemory/region/{region}/status", Action::kCudaSharedMemory, kPublic},
    Route{Method::kPost, "/v2/cudasharedmemory/region/{region}/register", Action::kRegisterCudaSharedMemory, kPublic},
    Route{Method::kPost, "/v2/cudasharedmemory/unregister", Action::kUnregisterCudaSharedMemory, kPublic},
    Route{Method::kPost, "/v2/cudasharedmemory/region/{region}/unregister", Action::kUnregisterCudaSharedMemory,
          kPublic},
    Route{Method::kGet, "/openapi.json", Action::kOpenApi, kPublic | kAdmin},
    Route{Method::kPost, "/v1/models/{model}:call", Action::kCall, kPublic},
    Route{Method::kPost, "/v1/models/{model}/versions/{version}:call", Action::kCall, kPublic},
    Route{Method::kPost, "/v1/models/{model}:predict", Action::kPredict, kPublic},
    Route{Method::kPost, "/v1/models/{model}/versions/{version}:predict", Action::kPredict, kPublic},
    Route{Method::kGet, "/v1/models", Action::kModelList, kPublic},
    Route{Method::kGet, "/v1/models/{model}", Action::kModelStatus, kPublic},
    Route{Method::kGet, "/v1/models/{model}/versions/{version}", Action::kModelStatus, kPublic},
    Route{Method::kGet, "/v1/models/{model}/metadata", Action::kModelSignature, kPublic},
    Route{Method::kGet, "/v1/models/{model}/versions/{version}/metadata", Action::kModelSignature, kPublic},
    Route{Method::kGet, "/v2/admin/models/{model}/constants", Action::kConstants, kAdmin},
    Route{Method::kGet, "/v2/admin/models/{model}/versions/{version}/constants", Action::kConstants, kAdmin},
    Route{Method::kGet, "/v2/admin/models/{model}/weights", Action::kWeights, kAdmin},
    Route{Method::kGet, "/v2/admin/models/{model}/versions/{version}/weights", Action::kWeights, kAdmin},
    Route{Method::kPost, "/v2/admin/models/{model}/weights", Action::kStageWeights, kAdmin},
    Route{Method::kPost, "/v2/admin/models/{model}/versions/{version}/weights", Action::kStageWeights, kAdmin},
    Route{Method::kPost, "/v2/admin/models/{model}/weights/commit", Action::kCommitWeights, kAdmin},
    Route{Method::kPost, "/v2/admin/models/{model}/versions/{version}/weights/commit", Action::kCommitWeights, kAdmin},
    Route{Method::kPost, "/v2/admin/models/{model}/weights/abort", Action::kAbortWeights, kAdmin},
    Route{Method::kPost, "/v2/admin/models/{model}/versions/{version}/weights/abort", Action::kAbortWeights, kAdmin},
    Route{Method::kPost, "/v2/admin/models/{model}/weights/rollback", Action::kRollbackWeights, kAdmin},
    Route{Method::kPost, "/v2/admin/models/{model}/versions/{version}/weights/rollback", Action::kRollbackWeights,
          kAdmin},
    Route{Method::kPost, "/v2/admin/models/{model}/weights/release", Action::kReleaseWeights, kAdmin},
    Route{Method::kPost, "/v2/admin/models/{model}/versions/{version}/weights/release", Action::kReleaseWeights,
          kAdmin},
    Route{Method::kGet, "/v2/admin/models/{model}/replicas", Action::kReplicas, kAdmin},
    Route{Method::kGet, "/v2/admin/models/{model}/versions/{version}/replicas", Action::kReplicas, kAdmin},
    Route{Method::kPost, "/v2/admin/models/{model}/replicas", Action::kAddReplicas, kAdmin},
    Route{Method::kPost, "/v2/admin/models/{model}/versions/{version}/replicas", Action::kAddReplicas, kAdmin},
    Route{Method::kDelete, "/v2/admin/models/{model}/replicas", Action::kRemoveReplica, kAdmin},
    Route{Method::kDelete, "/v2/admin/models/{model}/versions/{version}/replicas", Action::kRemoveReplica, kAdmin},
    Route{Method::kDelete, "/v2/admin/models/{model}/replicas/{number}", Action::kRemoveReplica, kAdmin},
    Route{Method::kDelete, "/v2/admin/models/{model}/versions/{version}/replicas/{number}", Action::kRemoveReplica,
          kAdmin},
    Route{Method::kGet, "/v2/admin/operations", Action::kOperations, kAdmin},
    Route{Method::kGet, "/v2/admin/operations/{number}", Action::kOperation, kAdmin},
    Route{Method::kDelete, "/v2/admin/operations/{number}", Action::kCancelOperation, kAdmin},
};

// Takes the next segment off a path that starts with '/'.
std::string_view next_segment(std::string_view& path) noexcept {
  path.remove_prefix(1);
  const size_t end = std::min(path.find('/'), path.size());
  const std::string_view segment = path.substr(0, end);
  path.remove_prefix(end);
  return segment;
}

bool match_variable(std::string_view segment, std::string_view pattern, std::string_view name,
                    std::string_view& value) noexcept {
  if (!pattern.starts_with(name)) return false;
  const std::string_view suffix = pattern.substr(name.size());
  if (!segment.ends_with(suffix) || segment.size() == suffix.size()) return false;
  value = segment.substr(0, segment.size() - suffix.size());
  // A verb after a colon is no part of a name.
  return value.find(':') == std::string_view::npos;
}

bool match(std::string_view path, std::string_view pattern, RouteMatch& found) noexcept {
  found.model = found.version = found.region = found.number = {};
  while (!path.empty() && !pattern.empty()) {
    const std::string_view segment = next_segment(path);
    const std::string_view expected = next_segment(pattern);
    if (segment == expected) continue;
    if (match_variable(segment, expected, "{model}", found.model)) continue;
    if (match_variable(segment, expected, "{region}", found.region)) continue;
    std::string_view digits;
    if (match_variable(segment, expected, "{version}", digits)) {
      found.version = digits;
    } else if (match_variable(segment, expected, "{number}", digits)) {
      found.number = digits;
    } else {
      return false;
    }
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (!std::all_of(digits.begin(), digits.end(), is_digit)) return false;
  }
  return path.empty() && pattern.empty();
}

}  // namespace

std::span<const Route> routes() noexcept { return kRoutes; }

CanonicalTarget canonical_target(std::string_view target) {
  // Triton's C++ client names regions of shared memory after tensors and sends their brackets as they are.
  std::string encoded_brackets;
  const std::string_view path = target.substr(0, target.find('?'));
  if (target.starts_with('/') && path.find_first_of("[]") != std::string_view::npos) [[unlikely]] {
    for (const char c : path) {
      if (c == '[' || c == ']') {
        encoded_brackets += c == '[' ? "%5B" : "%5D";
      } else {
        encoded_brackets += c;
      }
    }
    target = encoded_brackets += target.substr(path.size());
  }
  const boost::core::string_view text(target.data(), target.size());
  const auto parsed =
      target.starts_with('/') ? boost::urls::parse_origin_form(text) : boost::urls::parse_absolute_uri(text);
  SCONCE_CHECK(parsed.has_value(), kInvalidArgument, "request target is not a path or an absolute URI");
  const boost::urls::url_view& url = *parsed;
  if (!target.starts_with('/')) {
    const bool http = url.scheme_id() == boost::urls::scheme::http || url.scheme_id() == boost::urls::scheme::https;
    SCONCE_CHECK(http && url.has_authority() && !url.has_userinfo(), kInvalidArgument,
                 "request target is not a path or an http URI without a user's name");
  }
  CanonicalTarget canonical;
  url.path().swap(canonical.path);
  if (canonical.path.empty()) canonical.path.push_back('/');
  const auto encoded = url.encoded_query();
  canonical.query.assign(encoded.data(), encoded.size());

  // An encoded slash would be one after decoding, so count those that were there before.
  const auto raw = url.encoded_path();
  SCONCE_CHECK(canonical.path[0] == '/' && std::count(canonical.path.begin(), canonical.path.end(), '/') ==
                                               std::max<ptrdiff_t>(std::count(raw.begin(), raw.end(), '/'), 1),
               kInvalidArgument, "request path has an encoded '/'");
  const auto forbidden = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\'; };
  SCONCE_CHECK(std::none_of(canonical.path.begin(), canonical.path.end(), forbidden), kInvalidArgument,
               "request path has a control character or a backslash");
  for (std::string_view rest = canonical.path; !rest.empty();) {
    const std::string_view segment = next_segment(rest);
    SCONCE_CHECK(segment != "." && segment != ".." && (!segment.empty() || rest.empty()), kInvalidArgument,
                 "request path has an empty, '.' or '..' segment");
  }
  return canonical;
}

RouteMatch find_route(std::string_view path, Method method, Listeners listener) noexcept {
  // By set of methods: GET 1, POST 2, DELETE 4.
  constexpr std::string_view kAllow[] = {"",
                                         "Allow: GET, HEAD\r\n",
                                         "Allow: POST\r\n",
                                         "Allow: GET, HEAD, POST\r\n",
                                         "Allow: DELETE\r\n",
                                         "Allow: GET, HEAD, DELETE\r\n",
                                         "Allow: POST, DELETE\r\n",
                                         "Allow: GET, HEAD, POST, DELETE\r\n"};
  RouteMatch found;
  unsigned allowed = 0;
  for (const Route& route : kRoutes) {
    if ((route.listeners & listener) == 0) continue;
    RouteMatch candidate;
    if (!match(path, route.pattern, candidate)) continue;
    if (route.method == method) {
      candidate.result = RouteMatch::Result::kFound;
      candidate.action = route.action;
      candidate.control = route.control;
      candidate.listener = listener;
      return candidate;
    }
    found.result = RouteMatch::Result::kMethodNotAllowed;
    allowed |= 1U << static_cast<unsigned>(route.method);
  }
  found.allow = kAllow[allowed];
  return found;
}

std::string_view query_value(std::string_view query, std::string_view key) noexcept {
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(query.size(), end + 1));
    const size_t equals = std::min(pair.find('='), pair.size());
    if (pair.substr(0, equals) == key) return pair.substr(std::min(pair.size(), equals + 1));
  }
  return {};
}

}  // namespace sconce
