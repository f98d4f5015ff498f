// Operators that draw random numbers.
#include "sconce/check.h"
#include "src/cpu/random/sampling.h"
#include "src/custom_ops/aten/aten.h"
#include "src/custom_ops/operator/boxed.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/dimensions.h"

namespace sconce::custom_ops {
namespace {

Tensor random(const Tensor& self, Generator* generator) {
  Tensor out = empty_like(self);
  fill_random_integers(out, generator);
  return out;
}
Tensor random_from(const Tensor& self, int64_t from, std::optional<int64_t> to, Generator* generator) {
  Tensor out = empty_like(self);
  if (to)
    fill_random_integers(out, from, *to, generator);
  else
    fill_random_integers_from(out, from, generator);
  return out;
}
Tensor random_to(const Tensor& self, int64_t to, Generator* generator) { return random_from(self, 0, to, generator); }

Tensor randint_like_generator(const Tensor& self, int64_t high, Generator* generator, OptType dtype, OptEnum layout,
                              OptDevice device, OptEnum pin_memory, OptEnum memory_format) {
  return cpu::randint_like_low_generator(self, 0, high, generator, dtype, layout, device, pin_memory, memory_format);
}
Tensor randint_like_tensor_generator(const Tensor& self, const Tensor& high, Generator* generator, OptType dtype,
                                     OptEnum layout, OptDevice device, OptEnum pin_memory, OptEnum memory_format) {
  SCONCE_CHECK(high.numel() == 1, kInvalidArgument, "randint_like: high must be of one element, got ", describe(high));
  const int64_t end = *to_dtype(high, DType::kInt64).data_as<int64_t>();
  return randint_like_generator(self, end, generator, dtype, layout, device, pin_memory, memory_format);
}
Tensor randint_like_tensor(const Tensor& self, const Tensor& high, OptType dtype, OptEnum layout, OptDevice device,
                           OptEnum pin_memory, OptEnum memory_format) {
  return randint_like_tensor_generator(self, high, nullptr, dtype, layout, device, pin_memory, memory_format);
}

template <void (*kFill)(Tensor&, double, double, Generator*)>
Tensor drawn(const Tensor& self, double first, double second, Generator* generator) {
  Tensor out = empty_like(self);
  kFill(out, first, second, generator);
  return out;
}
Tensor geometric(const Tensor& self, double p, Generator* generator) {
  Tensor out = empty_like(self);
  fill_geometric(out, p, generator);
  return out;
}
Tensor normal(double mean, double std, IntSpan size, Generator* generator, OptType dtype, OptEnum layout,
              OptDevice device, OptEnum pin_memory) {
  Tensor out = cpu::empty(size, dtype, layout, device, pin_memory, std::nullopt);
  fill_normal(out, mean, std, generator);
  return out;
}

// clang-format off
constexpr AtenRow kRows[] = {
    {"aten::_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor", boxed<cpu::_sample_dirichlet>},
    {"aten::_standard_gamma(Tensor self, Generator? generator=None) -> Tensor", boxed<cpu::_standard_gamma>},
    {"aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", boxed<cpu::bernoulli>},
    {"aten::bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor", boxed<cpu::bernoulli_tensor>},
    {"aten::bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor", boxed<cpu::bernoulli_number>},
    {"aten::binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor", boxed<cpu::binomial>},
    {"aten::cauchy(Tensor self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor", boxed<drawn<fill_cauchy>>},
    {"aten::geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor", boxed<geometric>},
    {"aten::log_normal(Tensor self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor", boxed<drawn<fill_log_normal>>},
    {"aten::multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor", boxed<cpu::multinomial>},
    {"aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor", boxed<cpu::normal_tensors>},
    {"aten::normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor", boxed<cpu::normal_tensor_number>},
    {"aten::normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor", boxed<cpu::normal_number_tensor>},
    {"aten::normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<normal>},
    {"aten::poisson(Tensor self, Generator? generator=None) -> Tensor", boxed<cpu::poisson>},
    {"aten::rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<cpu::rand>},
    {"aten::randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<cpu::randint_low_generator>},
    {"aten::randint_like.Tensor(Tensor self, Tensor high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor", boxed<randint_like_tensor>},
    {"aten::randint_like.Tensor_generator(Tensor self, Tensor high, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor", boxed<randint_like_tensor_generator>},
    {"aten::randint_like.generator(Tensor self, SymInt high, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor", boxed<randint_like_generator>},
    {"aten::randint_like.low_generator_dtype(Tensor self, SymInt low, SymInt high, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor", boxed<cpu::randint_like_low_generator>},
    {"aten::randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<cpu::randn>},
    {"aten::random(Tensor self, *, Generator? generator=None) -> Tensor", boxed<random>},
    {"aten::random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor", boxed<random_from>},
    {"aten::random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor", boxed<random_to>},
    {"aten::randperm.generator(SymInt n, *, Generator? generator, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<cpu::randperm_generator>},
    {"aten::rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> (Tensor, Tensor noise_out)", boxed<cpu::rrelu_with_noise_functional>},
};
// clang-format on

}  // namespace

std::span<const AtenRow> aten_random_rows() { return kRows; }

}  // namespace sconce::custom_ops
