// GuardBounds: how long published weights are watched, and what makes the watch fail (docs/weights.md).
#pragma once

#include <chrono>

namespace sconce::server {

struct GuardBounds {
  std::chrono::microseconds window{};  // how long the weights are watched; zero: they are not
  double errors = 0;                   // share of requests that may fail in the model
  double nan = 0;                      // share of answers that may have a NaN
  std::chrono::microseconds p99{};     // 99 of 100 requests are answered within this time; zero: any
};

}  // namespace sconce::server
