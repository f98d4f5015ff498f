// OtlpEndpoint: a collector that accepts OTLP over HTTP. Used by one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/client/admin_client.h"
#include "server/support/config.h"

namespace sconce::server::telemetry {

// "http://collector:4318", "https://gateway/otlp"; the default port is the scheme's. kInvalidArgument.
http::AdminServer parse_otlp_url(std::string_view url);
// NAME: VALUE on each line; # starts a comment. As fields of an HttpRequest. kIo, kInvalidArgument; errors do not show
// values.
std::vector<std::string> read_otlp_headers(const std::string& path);

struct OtlpPush {
  enum class Result : int8_t { kTaken, kAgain, kRefused };  // kAgain: a retry may succeed
  Result result = Result::kRefused;
  std::string problem;                              // the reason of a failure, or the message of a partial success
  std::optional<std::chrono::seconds> retry_after;  // requested by the collector
  uint64_t rejected = 0;  // rejected spans or data points of a partial success; 0 with a message: a warning
};
// Interprets an answer by the OTLP specification.
OtlpPush judge_otlp(const http::Answer& answer);

// The delay before retry number `tries`, from 1. random: from 0 to 1.
std::chrono::milliseconds otlp_pause(int tries, std::optional<std::chrono::seconds> retry_after,
                                     double random) noexcept;

class OtlpEndpoint {
 public:
  // kInvalidArgument, kIo.
  explicit OtlpEndpoint(const ServerConfig& config);
  const std::string& url() const noexcept { return url_; }
  // path: "/v1/traces". check: called while waiting for the collector; an exception aborts the push.
  OtlpPush push(const std::string& path, std::string_view body, const std::function<void()>& check);

 private:
  const std::string url_, headers_file_;
  const std::chrono::microseconds timeout_;
  const http::AdminServer server_;
  http::ClientTls tls_;
  std::optional<http::HttpClient> client_;  // since the first push
};

}  // namespace sconce::server::telemetry
