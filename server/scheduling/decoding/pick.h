// Picker: samples the next token from logits in the usual order: divide the logits by the temperature, keep the top_k
// largest, keep the most probable that together reach top_p, and draw one of the rest.
//
// The same logits, options and draw number give the same token on every machine: arithmetic is in double precision, in
// a fixed order, with its own exponential function. Used by one thread at a time; its memory is reused.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sconce/tensor.h"

namespace sconce::server::scheduling {

struct PickOptions {
  double temperature = 1;  // 0: always the largest logit; of equal ones, the first
  int64_t top_k = 0;       // 0: all
  double top_p = 1;
};

// kInvalidArgument names the option.
void check_temperature(double temperature);
void check_top_k(int64_t top_k);
void check_top_p(double top_p);

// A number in [0, 1) for the draw. Draws of one seed are independent of each other.
double uniform(uint64_t seed, uint64_t draw) noexcept;
// e to the power of x, for x <= 0; 0 below -700.
double exp_of(double x) noexcept;

// How many of the largest logits are enough to pick a token: LastRows::largest. 0: all logits are needed, in their
// order.
int64_t largest_needed(const PickOptions& options) noexcept;

class Picker {
 public:
  // Picks from the last row of the logits, whose last dimension is the vocabulary. `logits` may also be ranks
  // (sconce/device_memory.h) of at least the largest_needed() logits, which give the same token. kModelFailed for NaN,
  // infinity, no logit above minus infinity, and for tensors that are not logits.
  int64_t pick(const Tensor& logits, const PickOptions& options, uint64_t seed, uint64_t draw);

 private:
  struct Choice {
    double weight = 0;  // first the logit, later its exponential
    int64_t token = 0;
  };
  std::span<const float> last_row(const Tensor& logits);
  int64_t pick_ranked(std::span<const uint64_t> ranks, const PickOptions& options, uint64_t seed, uint64_t draw);
  void keep_top_k(std::span<const float> logits, size_t k);
  int64_t draw_all(std::span<const float> logits, double largest, double temperature, double number);
  int64_t draw_kept(double largest, const PickOptions& options, double number);

  std::vector<float> row_;       // the last row, if the logits are not float32 or not contiguous
  std::vector<double> weights_;  // by token
  std::vector<Choice> choices_;  // most probable first
};

}  // namespace sconce::server::scheduling
