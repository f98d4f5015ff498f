// Random operators that are called by name. Match aten::multinomial, normal.* and bernoulli.* (torch 2.15, CUDA) and
// their random numbers; random.cpp does the drawing.
#include "src/cuda/random/sampling.h"

#include <cmath>

#include "src/cuda/elementwise/elementwise.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/rules/random.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {
namespace {

// A float64 copy on the host.
Tensor fetched(const Tensor& t) {
  Tensor here = Tensor::empty(t.sizes(), DType::kFloat64);
  copy(converted(t, DType::kFloat64), here, true);
  return here;
}

// Waits for the device, as PyTorch does.
void check_weights(const Tensor& self) {
  // Reads NaN as the greatest.
  const Tensor most = fetched(topk(self, 1, -1, true, true)[0]), least = fetched(topk(self, 1, -1, false, true)[0]);
  for (int64_t row = 0; row < most.numel(); ++row) {
    const double high = most.data_as<double>()[row], low = least.data_as<double>()[row];
    SCONCE_CHECK(low >= 0 && high < HUGE_VAL, kInvalidArgument,
                 "multinomial: probability tensor contains either `inf`, `nan` or element < 0");
    SCONCE_CHECK(high > 0, kInvalidArgument,
                 "multinomial: invalid multinomial distribution (sum of probabilities <= 0)");
  }
}

void check_std(const Tensor& std) {
  SCONCE_CHECK(!is_complex(std.dtype()), kInvalidArgument, "normal: expects standard deviation to be non-complex");
  const Tensor here = fetched(std);
  for (int64_t i = 0; i < here.numel(); ++i)
    SCONCE_CHECK(!(here.data_as<double>()[i] < 0), kInvalidArgument, "normal: expects all elements of std >= 0.0");
}

Tensor standard_normal(IntSpan sizes, const Tensor& like, double std, Generator* generator) {
  return normal_functional(Tensor::empty(sizes, like.dtype(), like.device()), 0, std, generator);
}

Tensor integers_twice(int64_t low, int64_t high, IntSpan size, Device device) {
  const DeviceScope scope(device);
  randint_low(low, high, size, DType::kInt64, std::nullopt, device, std::nullopt);
  return randint_low(low, high, size, DType::kInt64, std::nullopt, device, std::nullopt);
}

}  // namespace

Tensor multinomial(const Tensor& self, int64_t num_samples, bool replacement, Generator* generator) {
  const Shape sizes = multinomial_sizes(self, num_samples, replacement);
  SCONCE_CHECK(!replacement || num_samples == 1, kUnsupported,
               "multinomial: more than one sample with replacement on CUDA");
  const DeviceScope scope(self.device());
  if (self.numel() == 0) return Tensor::empty(sizes, DType::kInt64, self.device());
  check_weights(self);
  // Picks the largest weight / exponential sample (an exponential race).
  return topk(divide(self, exponential(self, 1, generator)), num_samples, -1, true, true)[1];
}

Tensor normal_tensor_number(const Tensor& mean, double std, Generator* generator) {
  SCONCE_CHECK(std >= 0, kInvalidArgument, "normal: expects std >= 0.0, but found std ", std);
  const DeviceScope scope(mean.device());
  return add(standard_normal(mean.sizes(), mean, std, generator), mean, int64_t{1});
}
Tensor normal_number_tensor(double mean, const Tensor& std, Generator* generator) {
  check_std(std);
  const DeviceScope scope(std.device());
  return add_number(multiply(standard_normal(std.sizes(), std, 1, generator), std), mean, int64_t{1});
}
Tensor normal_tensors(const Tensor& mean, const Tensor& std, Generator* generator) {
  check_std(std);
  const DeviceScope scope(mean.device());
  const Tensor drawn = standard_normal(broadcast_shapes("normal", mean.sizes(), std.sizes()), mean, 1, generator);
  return converted(add(multiply(drawn, std), mean, int64_t{1}), mean.dtype());
}

Tensor bernoulli_tensor(const Tensor& self, const Tensor& p, Generator* generator) {
  Tensor out = Tensor::empty(self.sizes(), self.dtype(), self.device());
  bernoulli__Tensor(out, p, generator);
  return out;
}
Tensor bernoulli(const Tensor& self, Generator* generator) { return bernoulli_tensor(self, self, generator); }
Tensor bernoulli_number(const Tensor& self, double p, Generator* generator) {
  Tensor out = Tensor::empty(self.sizes(), self.dtype(), self.device());
  bernoulli__float(out, p, generator);
  return out;
}

Tensor randint_like_generator(const Tensor& self, int64_t high, Generator* generator, OptType dtype, OptEnum layout,
                              OptDevice device, OptEnum pin_memory, OptEnum memory_format) {
  return randint_like_low_generator(self, 0, high, generator, dtype, layout, device, pin_memory, memory_format);
}
Tensor randint_like_tensor_generator(const Tensor& self, const Tensor& high, Generator* generator, OptType dtype,
                                     OptEnum layout, OptDevice device, OptEnum pin_memory, OptEnum memory_format) {
  SCONCE_CHECK(high.numel() == 1, kInvalidArgument, "randint_like: high must be of one element, got ", describe(high));
  Tensor end = Tensor::empty(high.sizes(), DType::kInt64);
  sconce::copy(high, end);
  return randint_like_generator(self, *end.data_as<int64_t>(), generator, dtype, layout, device, pin_memory,
                                memory_format);
}
Tensor randint_like_tensor(const Tensor& self, const Tensor& high, OptType dtype, OptEnum layout, OptDevice device,
                           OptEnum pin_memory, OptEnum memory_format) {
  return randint_like_tensor_generator(self, high, nullptr, dtype, layout, device, pin_memory, memory_format);
}

Tensor inductor_seed(Device device) { return integers_twice(0, INT64_MAX, {}, device); }
Tensor inductor_seeds(int64_t count, Device device) { return integers_twice(0, INT64_MAX, IntSpan(&count, 1), device); }
Tensor inductor_randint(int64_t low, int64_t high, IntSpan size, const Tensor& seed) {
  return integers_twice(low, high, size, seed.device());
}
Tensor inductor_random(IntSpan size, const Tensor& seed, std::string_view mode, OptType) {
  SCONCE_CHECK(mode == "rand" || mode == "randn", kUnsupported, "inductor_random: no such mode: ", mode);
  const DeviceScope scope(seed.device());
  const auto draw = mode == "rand" ? rand : randn;
  draw(size, DType::kFloat32, std::nullopt, seed.device(), std::nullopt);
  return draw(size, DType::kFloat32, std::nullopt, seed.device(), std::nullopt);
}

}  // namespace sconce::cuda
