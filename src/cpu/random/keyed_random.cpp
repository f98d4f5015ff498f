#include "src/cpu/random/keyed_random.h"

#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "sconce/check.h"
#include "src/device/threads.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {
namespace {

using Words = std::array<uint32_t, 4>;

Words block_of(uint64_t seed, uint64_t counter) noexcept {
  constexpr uint64_t kFirst = 0xD2511F53, kSecond = 0xCD9E8D57;
  Words words{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  auto low = static_cast<uint32_t>(seed), high = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round, low += 0x9E3779B9u, high += 0xBB67AE85u) {
    const uint64_t a = kFirst * words[0], b = kSecond * words[2];
    words = {static_cast<uint32_t>(b >> 32) ^ words[1] ^ low, static_cast<uint32_t>(b),
             static_cast<uint32_t>(a >> 32) ^ words[3] ^ high, static_cast<uint32_t>(a)};
  }
  return words;
}
uint64_t wide(const Words& words, int half) noexcept {
  return uint64_t{words[static_cast<size_t>(2 * half)]} << 32 | words[static_cast<size_t>(2 * half + 1)];
}

void check_key(const char* name, const Tensor& key) {
  SCONCE_CHECK(key.dim() >= 1 && key.size(key.dim() - 1) == 2, kInvalidArgument, name,
               ": key must have shape (*batch, 2), got shape ", to_string(key.sizes()));
  SCONCE_CHECK(key.dtype() == DType::kUInt64, kInvalidArgument, name, ": key must have dtype uint64, got ",
               dtype_name(key.dtype()));
}

// The keys that come `first` to first + count - 1 blocks behind each of the given ones, over a leading dimension.
void derive(const Tensor& key, uint64_t first, int64_t count, Tensor& out) {
  const Tensor keys = contiguous(key);
  const auto* from = static_cast<const uint64_t*>(keys.data());
  auto* to = static_cast<uint64_t*>(out.data());
  for (int64_t i = 0; i < count; ++i)
    for (int64_t k = 0; k + 1 < keys.numel(); k += 2, to += 2) {
      const Words words = block_of(from[k], from[k + 1] + first + static_cast<uint64_t>(i));
      to[0] = uint64_t{words[1]} << 32 | words[0];
      to[1] = uint64_t{words[3]} << 32 | words[2];
    }
}

// make(words, values): the values of one block, kPerBlock of them.
template <class T, int kPerBlock, class Make>
Tensor drawn(const char* name, const Tensor& self, const Tensor& key, const Make& make) {
  Tensor out = Tensor::empty(self.sizes(), self.dtype());
  check_key(name, key);
  Shape batch(self.sizes());  // of keys: self's sizes, 1 for those that one key covers
  int64_t events = self.numel(), keys = 1;
  if (key.dim() > 1) {
    SCONCE_CHECK(key.dim() == self.dim() + 1, kInvalidArgument, name,
                 ": batched key must have ndim == output ndim + 1, got key shape ", to_string(key.sizes()),
                 " with output shape ", to_string(self.sizes()));
    int64_t last = -1;
    for (int64_t d = 0; d < self.dim(); ++d) {
      SCONCE_CHECK(key.size(d) == 1 || key.size(d) == self.size(d), kInvalidArgument, name, ": key batch shape ",
                   to_string(key.sizes().first(static_cast<size_t>(self.dim()))),
                   " is not broadcastable with output shape ", to_string(self.sizes()));
      if (key.size(d) != 1) last = d;
    }
    events = 1;
    for (int64_t d = 0; d < self.dim(); ++d) {
      if (d <= last) {
        keys *= self.size(d);
      } else {
        events *= self.size(d);
        batch[static_cast<int>(d)] = 1;
      }
    }
    batch.push_back(2);
  }
  const Tensor each = contiguous(key.dim() > 1 ? sconce::expand(name, key, batch) : key);
  const auto* const source = static_cast<const uint64_t*>(each.data());
  T* const target = out.data_as<T>();
  const int64_t blocks = (events + kPerBlock - 1) / kPerBlock;
  parallel_for(0, events == 0 ? 0 : keys * blocks, 1024, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t k = at / blocks, block = at % blocks, first = block * kPerBlock;
      T values[kPerBlock];
      make(block_of(source[2 * k], source[2 * k + 1] + static_cast<uint64_t>(block)), values);
      for (int64_t i = first; i < std::min(first + kPerBlock, events); ++i) target[k * events + i] = values[i - first];
    }
  });
  if (self.is_contiguous()) return out;
  Tensor laid_out = empty_like(self);
  copy(out, laid_out);
  return laid_out;
}

}  // namespace

Tensor _philox_key_split(const Tensor& key, int64_t num_splits) {
  check_key("_philox_key_split", key);
  SCONCE_CHECK(num_splits > 0, kInvalidArgument, "_philox_key_split: num_splits must be positive, got ", num_splits);
  Shape sizes;
  sizes.push_back(num_splits);
  for (const int64_t size : key.sizes()) sizes.push_back(size);
  Tensor out = Tensor::empty(sizes, key.dtype());
  derive(key, 0, num_splits, out);
  return out;
}
Tensor _philox_key_fold_in(const Tensor& key, int64_t data) {
  check_key("_philox_key_fold_in", key);
  Tensor out = Tensor::empty(key.sizes(), key.dtype());
  derive(key, static_cast<uint64_t>(data), 1, out);
  return out;
}
Tensor _philox_key_fold_in_tensor(const Tensor& key, const Tensor& data) {
  SCONCE_CHECK(data.dtype() == DType::kUInt64, kInvalidArgument,
               "_philox_key_fold_in: data must have dtype uint64, got ", dtype_name(data.dtype()));
  SCONCE_CHECK(data.numel() == 1, kInvalidArgument, "_philox_key_fold_in: data must be a single value, got ",
               data.numel(), " elements");
  return _philox_key_fold_in(key, static_cast<int64_t>(*static_cast<const uint64_t*>(data.data())));
}

Tensor _philox_uniform(const Tensor& self, const Tensor& key, double low, double high) {
  constexpr const char* kName = "_philox_uniform";
  if (!is_floating(self.dtype())) fail_dispatch(self.dtype(), kName);
  return dispatch_floating(self.dtype(), kName, [&]<class T>() -> Tensor {
    using C = ComputeType<T>;
    const C from = T(static_cast<C>(low)), width = C(T(static_cast<C>(high))) - from;
    if constexpr (std::is_same_v<T, double>)
      return drawn<T, 2>(kName, self, key, [=](const Words& words, T* values) noexcept {
        for (int i = 0; i < 2; ++i)
          values[i] = static_cast<double>(wide(words, i) & ((1ull << 53) - 1)) * 0x1p-53 * width + from;
      });
    else {
      constexpr int kBits = std::is_same_v<T, float> ? 24 : std::is_same_v<T, Half> ? 11 : 8;
      return drawn<T, 4>(kName, self, key, [=](const Words& words, T* values) noexcept {
        for (size_t i = 0; i < 4; ++i) {
          const auto bits = static_cast<float>(words[i] & ((1u << kBits) - 1));
          values[i] = T(bits * (1.0f / (1u << kBits)) * width + from);
        }
      });
    }
  });
}

Tensor _philox_normal(const Tensor& self, const Tensor& key, double mean, double std) {
  constexpr const char* kName = "_philox_normal";
  if (!is_floating(self.dtype())) fail_dispatch(self.dtype(), kName);
  return dispatch_floating(self.dtype(), kName, [&]<class T>() -> Tensor {
    using C = ComputeType<T>;
    const auto m = static_cast<C>(mean), s = static_cast<C>(std);
    const auto pair = [=](C u, C v, T* values) noexcept {
      const C radius = std::sqrt(C(-2) * std::log(u)), angle = C(2 * M_PI) * v;
      values[0] = T(radius * std::cos(angle) * s + m);
      values[1] = T(radius * std::sin(angle) * s + m);
    };
    if constexpr (std::is_same_v<T, double>)
      return drawn<T, 2>(kName, self, key, [=](const Words& words, T* values) noexcept {
        pair((static_cast<double>(wide(words, 0)) + 0.5) * 0x1p-64, static_cast<double>(wide(words, 1)) * 0x1p-64,
             values);
      });
    else
      return drawn<T, 4>(kName, self, key, [=](const Words& words, T* values) noexcept {
        for (size_t i = 0; i < 4; i += 2)
          pair((static_cast<float>(words[i]) + 0.5f) * 0x1p-32f, static_cast<float>(words[i + 1]) * 0x1p-32f,
               values + i);
      });
  });
}

Tensor _philox_randint(const Tensor& self, const Tensor& key, std::optional<int64_t> low, std::optional<int64_t> high) {
  constexpr const char* kName = "_philox_randint";
  SCONCE_CHECK(is_integral(self.dtype(), false), kInvalidArgument, kName, ": self must have an integer dtype, got ",
               dtype_name(self.dtype()));
  return dispatch_integral_wide(self.dtype(), kName, [&]<class T>() -> Tensor {
    constexpr bool kWide = sizeof(T) == 8;
    using Bits = std::conditional_t<kWide, uint64_t, uint32_t>;
    const auto least = static_cast<int64_t>(std::numeric_limits<T>::lowest());
    const int64_t from = low.value_or(least);
    SCONCE_CHECK(!high || *high != from, kInvalidArgument, kName,
                 ": [low, high) must be non-empty; pass high=None for the dtype's full range");
    const bool whole = !high && from == least;
    const uint64_t end = high ? static_cast<uint64_t>(*high) : uint64_t{std::numeric_limits<T>::max()} + 1;
    const auto range = static_cast<Bits>(end - static_cast<uint64_t>(from));
    if constexpr (!kWide)
      SCONCE_CHECK(whole || range == 0 || (uint64_t{1} << 32) % range == 0 || range < 1u << 28, kInvalidArgument, kName,
                   ": range (high - low = ", range,
                   ") does not divide 2^32 evenly and is too large for the output dtype ", dtype_name(self.dtype()));
    const auto place = [=](Bits bits) noexcept {
      if (whole) return static_cast<T>(bits);
      return static_cast<T>(static_cast<uint64_t>(range ? bits % range : bits) + static_cast<uint64_t>(from));
    };
    return drawn < T, kWide ? 2 : 4 > (kName, self, key, [=](const Words& words, T* values) noexcept {
                                    if constexpr (kWide)
                                      for (int i = 0; i < 2; ++i) values[i] = place(wide(words, i));
                                    else
                                      for (size_t i = 0; i < 4; ++i) values[i] = place(words[i]);
                                  });
  });
}

}  // namespace sconce::cpu
