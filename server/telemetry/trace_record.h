// TraceRecord: the record of one request, and its spans.
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/codecs/trace_tensor.h"

namespace sconce::server::telemetry {

// W3C Trace Context, level 1.
struct TraceParent {
  std::array<char, 32> trace_id;
  std::array<char, 16> span_id;
  bool sampled = false;
  // nullopt for a malformed field, which counts as absent.
  static std::optional<TraceParent> parse(std::string_view field) noexcept;
};

// The recorded parts of a request.
struct TraceLevels {
  bool timestamps = false, tensors = false;
  explicit operator bool() const noexcept { return timestamps || tensors; }
};

struct TraceRecord {
  using Clock = std::chrono::steady_clock;
  std::string model, version, request_id, method_and_path;
  std::string_view route;  // "/v2/models/{model}/infer", or the gRPC method; lives as long as the program
  std::string_view scheme = "http";
  int status = 200;
  std::optional<int> grpc_code;  // of a gRPC call
  std::optional<TraceParent> parent;
  Clock::time_point start, decoded, run_done, encoded, sent;  // decoded, run_done: zero if not reached
  std::chrono::nanoseconds queue{}, gather{}, compute{};      // gather: of a batch's inputs
  struct Step {
    std::string model;
    Clock::time_point start, end;
  };
  std::vector<Step> steps;  // of a pipeline: the steps that started
  TraceLevels levels;
  std::vector<codecs::TraceTensor> tensors;
  std::string trace_id, span_id;  // set by the tracer; the trace is the parent's, if it has one
};

struct TraceSpan {
  const char* name;  // request, decode, queue, batch, step, compute, encode, send
  TraceRecord::Clock::time_point start, end;
  std::string_view model{};  // of a step; views the record
};
// The phases of a request in order; the first span is the whole request. Steps of a pipeline replace its queue and
// compute phases, and may overlap.
std::vector<TraceSpan> spans_of(const TraceRecord& record);

// When the tensor was ready.
TraceRecord::Clock::time_point time_of(const TraceRecord& record, const codecs::TraceTensor& tensor) noexcept;

// The steady clock's zero, since 1970.
std::chrono::nanoseconds steady_epoch() noexcept;

}  // namespace sconce::server::telemetry
