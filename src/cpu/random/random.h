// Random numbers: PyTorch's CPU generator (mt19937) and the streams that its CPU kernels draw, to the bit.
//
// A Generator is thread-safe through its mutex: an operator locks it once, for all of its draws. Fills write in the
// order in which at::TensorIterator visits the tensor: dense tensors in memory order, others by descending strides.
// dtypes as in ATen; tensors that overlap themselves are refused (kInvalidArgument). Matches at::CPUGeneratorImpl and
// ATen's CPU distribution kernels, torch 2.15, AVX2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sconce/mutex.h"
#include "sconce/tensor.h"

namespace sconce {

class Generator {
 public:
  explicit Generator(uint64_t seed) noexcept { reseed(seed); }
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  // As manual_seed; also drops the cached normal sample. Takes the lock itself.
  void set_seed(uint64_t seed) noexcept {
    const MutexLock lock(mutex_);
    reseed(seed);
  }
  Mutex& mutex() noexcept SCONCE_RETURN_CAPABILITY(mutex_) { return mutex_; }

  // The caller holds the lock for all following functions: operators draw in lambdas.
  uint32_t random() noexcept {
    mutex_.assert_held();
    if (next_ == kWords) regenerate();
    return words_[next_++];
  }
  uint64_t random64() noexcept {
    const uint64_t high = random();
    return high << 32 | random();
  }
  // The next n results of random().
  void draw(uint32_t* out, size_t n) noexcept;
  // Standard normal by Box-Muller in double; every second sample is cached.
  double normal() noexcept;

 private:
  static constexpr size_t kWords = 624;
  static constexpr size_t kShift = 397;
  void reseed(uint64_t seed) noexcept SCONCE_REQUIRES(mutex_);
  void regenerate() noexcept SCONCE_REQUIRES(mutex_);

  Mutex mutex_;
  size_t next_ SCONCE_GUARDED_BY(mutex_) = kWords;
  std::optional<double> cached_normal_ SCONCE_GUARDED_BY(mutex_);
  alignas(64) uint32_t state_[kWords] SCONCE_GUARDED_BY(mutex_);
  alignas(64) uint32_t words_[kWords] SCONCE_GUARDED_BY(mutex_);  // the state, tempered
};

// Seeded from the system's entropy at first use; sconce::manual_seed sets it.
Generator& default_generator();

// Fill `out` in place. A null generator is the default one. Each takes the generator's lock once.
void fill_uniform(Tensor& out, double from, double to, Generator* generator);  // [from, to)
void fill_normal(Tensor& out, double mean, double std, Generator* generator);
void fill_exponential(Tensor& out, double lambda, Generator* generator);
void fill_cauchy(Tensor& out, double median, double sigma, Generator* generator);
void fill_log_normal(Tensor& out, double mean, double std, Generator* generator);
void fill_geometric(Tensor& out, double p, Generator* generator);  // integers too
void fill_bernoulli(Tensor& out, double p, Generator* generator);
void fill_bernoulli(Tensor& out, const Tensor& p, Generator* generator);
void fill_random_integers(Tensor& out, int64_t from, int64_t to, Generator* generator);  // [from, to)
void fill_random_integers_from(Tensor& out, int64_t from, Generator* generator);         // up to the dtype's last one
void fill_random_integers(Tensor& out, Generator* generator);                            // 0 to the dtype's last one

namespace random_detail {
// Turns 16 uniform samples into 16 normal ones, in place: u[j] and u[j+8] form a pair.
void box_muller_16(float* u, float mean, float std) noexcept;
void box_muller_16(double* u, double mean, double std) noexcept;
}  // namespace random_detail

}  // namespace sconce
