// GuardBounds: how long published weights are guarded, and the limits beyond which they are rolled back
// (docs/validation.md).
#pragma once

#include <chrono>

namespace sconce::server::weights {

struct GuardBounds {
  std::chrono::microseconds window{};  // duration of the guard; zero: no guard
  double errors = 0;                   // maximum share of requests that fail in the model
  double nan = 0;                      // maximum share of answers with a NaN
  std::chrono::microseconds p99{};     // maximum 99th percentile of the answer time; zero: no limit
};

}  // namespace sconce::server::weights
