#include "server/scheduling/decoding/pick.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "sconce/check.h"
#include "sconce/device_memory.h"
#include "server/support/json/small_floats.h"

namespace sconce::server::scheduling {
namespace {

uint64_t mixed(uint64_t x) noexcept {  // splitmix64
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;

void check_finite(bool finite) { SCONCE_CHECK(finite, kModelFailed, "the model's logits have a NaN or an infinity"); }
void check_above_minus_infinity(bool above) {
  SCONCE_CHECK(above, kModelFailed, "all of the model's logits are minus infinity");
}

bool takes_largest(const PickOptions& options) noexcept { return options.temperature == 0 || options.top_k == 1; }

// Compares integers in the order of the floats, which the compiler vectorises for eight at a time.
float largest_of(std::span<const float> logits) {
  constexpr uint32_t kMinusInfinity = 0xff800000u, kExponent = 0x7f800000u;
  const auto ordered = [](uint32_t bits) {
    return static_cast<int32_t>(bits ^ (static_cast<uint32_t>(static_cast<int32_t>(bits) >> 31) & 0x7fffffffu));
  };
  uint32_t bad = 0;
  int32_t best = ordered(kMinusInfinity);
  for (const float logit : logits) {
    const auto bits = std::bit_cast<uint32_t>(logit);
    // NaN and infinity have all exponent bits set; of these only minus infinity is allowed.
    bad |= static_cast<uint32_t>((bits & kExponent) == kExponent) & static_cast<uint32_t>(bits != kMinusInfinity);
    best = std::max(best, ordered(bits));
  }
  check_finite(bad == 0);
  check_above_minus_infinity(best != ordered(kMinusInfinity));
  return std::bit_cast<float>(best < 0 ? static_cast<uint32_t>(best) ^ 0x7fffffffu : static_cast<uint32_t>(best));
}

}  // namespace

void check_temperature(double temperature) {
  SCONCE_CHECK(std::isfinite(temperature) && temperature >= 0 && temperature <= 1e6, kInvalidArgument,
               "'temperature' must be from 0 to 1000000, got ", temperature);
}

void check_top_k(int64_t top_k) {
  SCONCE_CHECK(top_k >= 0, kInvalidArgument, "'top_k' must be 0, which keeps all, or more, got ", top_k);
}

void check_top_p(double top_p) {
  SCONCE_CHECK(top_p > 0 && top_p <= 1, kInvalidArgument, "'top_p' must be above 0 and at most 1, got ", top_p);
}

double uniform(uint64_t seed, uint64_t draw) noexcept {
  const uint64_t bits = mixed(mixed(seed + kGolden) + (draw + 1) * kGolden);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

double exp_of(double x) noexcept {
  constexpr double kPerLn2 = 1.4426950408889634, kLn2High = 6.93147180369123816490e-01,
                   kLn2Low = 1.90821492927058770002e-10;
  if (!(x > -700)) return 0;
  const double n = std::floor(x * kPerLn2 + 0.5);
  const double r = (x - n * kLn2High) - n * kLn2Low;  // |r| <= 0.35
  double sum = 1.0 / 6227020800.0;                    // Taylor series, from 1 / 13!
  for (const double term : {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
                            1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1.0, 1.0})
    sum = sum * r + term;
  return sum * std::bit_cast<double>(static_cast<uint64_t>(static_cast<int64_t>(n) + 1023) << 52);
}

std::span<const float> Picker::last_row(const Tensor& logits) {
  SCONCE_CHECK(logits.defined() && logits.is_cpu() && logits.layout() == Layout::kStrided && logits.dim() > 0 &&
                   logits.numel() > 0,
               kModelFailed, "the model's logits are no tensor with a last dimension of tokens");
  const int64_t last = logits.dim() - 1, step = logits.stride(last);
  const auto count = static_cast<size_t>(logits.size(last));
  int64_t offset = 0;
  for (int64_t d = 0; d < last; ++d) offset += (logits.size(d) - 1) * logits.stride(d);
  const auto each = [&](auto* from, auto&& convert) -> std::span<const float> {
    row_.resize(count);
    for (size_t i = 0; i < count; ++i) row_[i] = convert(from[static_cast<int64_t>(i) * step]);
    return row_;
  };
  switch (logits.dtype()) {
    case DType::kFloat32: {
      const float* const from = logits.data_as<float>() + offset;
      if (step == 1) return {from, count};
      return each(from, [](float value) { return value; });
    }
    case DType::kFloat16:
      return each(logits.data_as<uint16_t>() + offset, decode_float16);
    case DType::kBFloat16:
      return each(logits.data_as<uint16_t>() + offset, decode_bfloat16);
    default:
      SCONCE_FAIL(kModelFailed, "the model's logits are ", dtype_name(logits.dtype()),
                  ", which is not float32, float16 or bfloat16");
  }
}

int64_t largest_needed(const PickOptions& options) noexcept {
  if (takes_largest(options)) return 1;
  return options.top_k <= kMaxLargest ? options.top_k : 0;
}

int64_t Picker::pick(const Tensor& tensor, const PickOptions& options, uint64_t seed, uint64_t draw) {
  if (tensor.defined() && tensor.is_cpu() && tensor.dtype() == DType::kUInt64)
    return pick_ranked({tensor.data_as<const uint64_t>(), static_cast<size_t>(tensor.numel())}, options, seed, draw);
  const std::span<const float> logits = last_row(tensor);
  const float largest = largest_of(logits);
  if (takes_largest(options)) return std::find(logits.begin(), logits.end(), largest) - logits.begin();
  const double number = uniform(seed, draw);
  const bool some = options.top_k > 0 && static_cast<uint64_t>(options.top_k) < logits.size();
  if (!some && options.top_p >= 1) return draw_all(logits, largest, options.temperature, number);
  keep_top_k(logits, some ? static_cast<size_t>(options.top_k) : logits.size());
  return draw_kept(largest, options, number);
}

// A row that is no longer than the requested number of ranks is not returned as ranks, so top_k is smaller than the
// length of the row.
int64_t Picker::pick_ranked(std::span<const uint64_t> ranks, const PickOptions& options, uint64_t seed, uint64_t draw) {
  const auto needed = static_cast<size_t>(largest_needed(options));
  SCONCE_CHECK(needed > 0 && needed <= ranks.size(), kInternal, "a token cannot be picked from the ", ranks.size(),
               " largest logits");
  const Ranked first = ranked(ranks.front());  // NaN and infinity rank above all others
  check_finite(!std::isnan(first.value) && first.value != std::numeric_limits<float>::infinity());
  check_above_minus_infinity(first.value != -std::numeric_limits<float>::infinity());
  if (takes_largest(options)) return first.index;
  choices_.clear();
  for (const uint64_t rank : ranks.first(needed)) {
    const Ranked one = ranked(rank);
    choices_.push_back({one.value, one.index});
  }
  return draw_kept(first.value, options, uniform(seed, draw));
}

int64_t Picker::draw_all(std::span<const float> logits, double largest, double temperature, double number) {
  weights_.resize(logits.size());
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    weights_[i] = exp_of((logits[i] - largest) / temperature);
    sum += weights_[i];
  }
  const double wanted = number * sum;
  double reached = 0;
  size_t last = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i] == 0) continue;
    last = i;
    reached += weights_[i];
    if (reached > wanted) break;
  }
  return static_cast<int64_t>(last);
}

// Keeps the k largest logits in choices_, the largest first; of equal logits those of lower tokens.
void Picker::keep_top_k(std::span<const float> logits, size_t k) {
  const auto before = [](const Choice& a, const Choice& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
  };
  choices_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    const Choice choice{logits[i], static_cast<int64_t>(i)};
    if (choices_.size() < k) {
      choices_.push_back(choice);
      if (choices_.size() == k && k < logits.size()) std::make_heap(choices_.begin(), choices_.end(), before);
    } else if (before(choice, choices_.front())) {  // the smallest one kept
      std::pop_heap(choices_.begin(), choices_.end(), before);
      choices_.back() = choice;
      std::push_heap(choices_.begin(), choices_.end(), before);
    }
  }
  std::sort(choices_.begin(), choices_.end(), before);
}

// Draws from the logits in choices_, which are sorted.
int64_t Picker::draw_kept(double largest, const PickOptions& options, double number) {
  for (Choice& choice : choices_) choice.weight = exp_of((choice.weight - largest) / options.temperature);
  double all = 0;
  for (const Choice& choice : choices_) all += choice.weight;
  size_t count = 0;
  double sum = 0;
  while (count < choices_.size() && (count == 0 || sum < options.top_p * all)) sum += choices_[count++].weight;
  const double wanted = number * sum;
  double reached = 0;
  size_t last = 0;
  for (size_t i = 0; i < count; ++i) {
    if (choices_[i].weight == 0) break;
    last = i;
    reached += choices_[i].weight;
    if (reached > wanted) break;
  }
  return choices_[last].token;
}

}  // namespace sconce::server::scheduling
