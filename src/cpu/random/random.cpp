// The operators that draw random numbers: sconce::cpu functions of the rows under "Random" in op_table.def.
// A null dtype is float32, int64 for randperm, and that of `self` for *_like (randint's schema default of int64 is
// passed explicitly by callers). A null generator is the default one.
// Matches aten/src/ATen/native/TensorFactories.cpp and Distributions.cpp, torch 2.15.
#include "src/cpu/random/random.h"

#include <limits>
#include <utility>

#include "sconce/check.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/factory.h"
#include "src/tensor/view.h"

namespace sconce::cpu {
namespace {

Tensor make(const char* name, IntSpan size, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  check_factory(name, layout, device, pin_memory);
  return empty_checked(name, size, dtype.value_or(kDefaultDType));
}

Tensor make_like(const char* name, const Tensor& self, OptType dtype, OptEnum layout, OptDevice device,
                 OptEnum pin_memory, OptEnum memory_format) {
  check_factory(name, layout, device, pin_memory);
  return empty_in_format(name, self, dtype.value_or(self.dtype()),
                         memory_format_in(name, memory_format, MemoryFormat::kPreserve));
}

// Up to this length, remainders of 32-bit words are distributed evenly enough for randperm.
constexpr int64_t kSmallPermutation = std::numeric_limits<uint32_t>::max() / 20;

template <class T>
void permute_range(T* values, int64_t n, Generator& generator) {
  if (n < kSmallPermutation) {
    for (int64_t i = 0; i < n; ++i) values[i] = T(static_cast<ComputeType<T>>(i));
    for (int64_t i = 0; i + 1 < n; ++i)
      std::swap(values[i], values[i + generator.random() % static_cast<uint32_t>(n - i)]);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const auto other = static_cast<int64_t>(generator.random64() % static_cast<uint64_t>(i + 1));
    const T value = T(static_cast<ComputeType<T>>(i));
    values[i] = value;
    values[i] = values[other];
    values[other] = value;
  }
}

// Largest n for which the dtype holds n - 1, and for floats every integer below.
int64_t largest_permutation(DType dtype) {
  switch (dtype) {
    case DType::kUInt8:
      return 256;
    case DType::kInt8:
      return 128;
    case DType::kInt16:
      return int64_t{1} << 15;
    case DType::kInt32:
      return int64_t{1} << 31;
    case DType::kFloat16:
      return (int64_t{1} << 11) + 1;
    case DType::kFloat32:
      return (int64_t{1} << 24) + 1;
    case DType::kFloat64:
      return (int64_t{1} << 53) + 1;
    default:
      return std::numeric_limits<int64_t>::max();
  }
}

}  // namespace

Tensor rand_generator(IntSpan size, Generator* generator, OptType dtype, OptEnum layout, OptDevice device,
                      OptEnum pin_memory) {
  Tensor out = make("rand", size, dtype, layout, device, pin_memory);
  fill_uniform(out, 0.0, 1.0, generator);
  return out;
}
Tensor rand(IntSpan size, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  return rand_generator(size, nullptr, dtype, layout, device, pin_memory);
}
Tensor rand_like_generator(const Tensor& self, Generator* generator, OptType dtype, OptEnum layout, OptDevice device,
                           OptEnum pin_memory, OptEnum memory_format) {
  Tensor out = make_like("rand_like", self, dtype, layout, device, pin_memory, memory_format);
  fill_uniform(out, 0.0, 1.0, generator);
  return out;
}
Tensor rand_like(const Tensor& self, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory,
                 OptEnum memory_format) {
  return rand_like_generator(self, nullptr, dtype, layout, device, pin_memory, memory_format);
}

Tensor randn_generator(IntSpan size, Generator* generator, OptType dtype, OptEnum layout, OptDevice device,
                       OptEnum pin_memory) {
  Tensor out = make("randn", size, dtype, layout, device, pin_memory);
  fill_normal(out, 0.0, 1.0, generator);
  return out;
}
Tensor randn(IntSpan size, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  return randn_generator(size, nullptr, dtype, layout, device, pin_memory);
}
Tensor randn_like_generator(const Tensor& self, Generator* generator, OptType dtype, OptEnum layout, OptDevice device,
                            OptEnum pin_memory, OptEnum memory_format) {
  Tensor out = make_like("randn_like", self, dtype, layout, device, pin_memory, memory_format);
  fill_normal(out, 0.0, 1.0, generator);
  return out;
}
Tensor randn_like(const Tensor& self, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory,
                  OptEnum memory_format) {
  return randn_like_generator(self, nullptr, dtype, layout, device, pin_memory, memory_format);
}

namespace {
Tensor integers(int64_t low, int64_t high, IntSpan size, Generator* generator, OptType dtype, OptEnum layout,
                OptDevice device, OptEnum pin_memory) {
  Tensor out = make("randint", size, dtype, layout, device, pin_memory);
  fill_random_integers(out, low, high, generator);
  return out;
}
}  // namespace

Tensor randint(int64_t high, IntSpan size, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  return integers(0, high, size, nullptr, dtype, layout, device, pin_memory);
}
Tensor randint_generator(int64_t high, IntSpan size, Generator* generator, OptType dtype, OptEnum layout,
                         OptDevice device, OptEnum pin_memory) {
  return integers(0, high, size, generator, dtype, layout, device, pin_memory);
}
Tensor randint_low(int64_t low, int64_t high, IntSpan size, OptType dtype, OptEnum layout, OptDevice device,
                   OptEnum pin_memory) {
  return integers(low, high, size, nullptr, dtype, layout, device, pin_memory);
}
void randint_low_out(Tensor& out, int64_t low, int64_t high, IntSpan size) {
  resize(out, size);
  fill_random_integers(out, low, high, nullptr);
}
Tensor randint_low_generator(int64_t low, int64_t high, IntSpan size, Generator* generator, OptType dtype,
                             OptEnum layout, OptDevice device, OptEnum pin_memory) {
  return integers(low, high, size, generator, dtype, layout, device, pin_memory);
}
Tensor randint_like_low_generator(const Tensor& self, int64_t low, int64_t high, Generator* generator, OptType dtype,
                                  OptEnum layout, OptDevice device, OptEnum pin_memory, OptEnum memory_format) {
  Tensor out = make_like("randint_like", self, dtype, layout, device, pin_memory, memory_format);
  fill_random_integers(out, low, high, generator);
  return out;
}
Tensor randint_like_low_dtype(const Tensor& self, int64_t low, int64_t high, OptType dtype, OptEnum layout,
                              OptDevice device, OptEnum pin_memory, OptEnum memory_format) {
  return randint_like_low_generator(self, low, high, nullptr, dtype, layout, device, pin_memory, memory_format);
}
Tensor randint_like(const Tensor& self, int64_t high, OptType dtype, OptEnum layout, OptDevice device,
                    OptEnum pin_memory, OptEnum memory_format) {
  return randint_like_low_dtype(self, 0, high, dtype, layout, device, pin_memory, memory_format);
}

Tensor randperm_generator(int64_t n, Generator* generator, OptType dtype, OptEnum layout, OptDevice device,
                          OptEnum pin_memory) {
  SCONCE_CHECK(n >= 0, kInvalidArgument, "randperm: n must be non-negative, got ", n);
  const DType type = dtype.value_or(DType::kInt64);
  check_factory("randperm", layout, device, pin_memory);
  SCONCE_CHECK(n <= largest_permutation(type), kInvalidArgument, "randperm: n ", n, " is too large for ",
               dtype_name(type));
  Tensor out = Tensor::empty(IntSpan(&n, 1), type);
  dispatch_real(type, "randperm", [&]<class T>() -> void {
    Generator& source = generator ? *generator : default_generator();
    const MutexLock lock(source.mutex());
    permute_range(out.data_as<T>(), n, source);
  });
  return out;
}
Tensor randperm(int64_t n, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  return randperm_generator(n, nullptr, dtype, layout, device, pin_memory);
}

void bernoulli__float(Tensor& self, double p, Generator* generator) { fill_bernoulli(self, p, generator); }
void bernoulli__Tensor(Tensor& self, const Tensor& p, Generator* generator) { fill_bernoulli(self, p, generator); }

Tensor uniform(const Tensor& self, double from, double to, Generator* generator) {
  Tensor out = empty_like(self);
  fill_uniform(out, from, to, generator);
  return out;
}
Tensor normal_functional(const Tensor& self, double mean, double std, Generator* generator) {
  Tensor out = empty_like(self);
  fill_normal(out, mean, std, generator);
  return out;
}
Tensor exponential(const Tensor& self, double lambda, Generator* generator) {
  Tensor out = empty_like(self);
  fill_exponential(out, lambda, generator);
  return out;
}

}  // namespace sconce::cpu
