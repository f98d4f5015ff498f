// Picker: chooses the next token from logits, as the field defines it: logits are divided by the temperature, the top_k
// largest stay, of these the most probable ones that together reach top_p, and one is drawn from what is left.
//
// The same logits, options and number of the draw give the same token on every machine: arithmetic is in double, in one
// order, with an exponential of its own. Used by one thread at a time; keeps its memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sconce/tensor.h"

namespace sconce::server {

struct PickOptions {
  double temperature = 1;  // 0: always the largest logit, the first of several
  int64_t top_k = 0;       // 0: all
  double top_p = 1;
};

// kInvalidArgument names the option.
void check_temperature(double temperature);
void check_top_k(int64_t top_k);
void check_top_p(double top_p);

// The draw's number in [0, 1): of the same seed, draws are independent of each other.
double uniform(uint64_t seed, uint64_t draw) noexcept;
// e to the power of x, for x <= 0; 0 below -700.
double exp_of(double x) noexcept;

// How many of the largest logits suffice to pick a token: LastRows::largest. 0: all of them are needed, in their order.
int64_t largest_needed(const PickOptions& options) noexcept;

class Picker {
 public:
  // Of the last row of the logits, whose last dimension is the vocabulary, or of ranks (sconce/device_memory.h) of at
  // least largest_needed() of them, which give the same token. kModelFailed for NaN, infinity, no logit above minus
  // infinity, and for tensors that are no logits.
  int64_t pick(const Tensor& logits, const PickOptions& options, uint64_t seed, uint64_t draw);

 private:
  struct Choice {
    double weight = 0;  // first the logit, then its exponential
    int64_t token = 0;
  };
  std::span<const float> last_row(const Tensor& logits);
  int64_t pick_ranked(std::span<const uint64_t> ranks, const PickOptions& options, uint64_t seed, uint64_t draw);
  void keep_top_k(std::span<const float> logits, size_t k);
  int64_t draw_all(std::span<const float> logits, double largest, double temperature, double number);
  int64_t draw_kept(double largest, const PickOptions& options, double number);

  std::vector<float> row_;       // of logits that are no float32, or do not lie in one piece
  std::vector<double> weights_;  // by token
  std::vector<Choice> choices_;  // the most probable first
};

}  // namespace sconce::server
