// Operators that draw random numbers.
#include "src/custom_ops/aten.h"
#include "src/custom_ops/boxed.h"
#include "src/ops/sampling.h"
#include "src/shim/ops.h"

namespace sconce::custom_ops {
namespace {

// clang-format off
constexpr AtenRow kRows[] = {
    {"aten::_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor", boxed<cpu::_sample_dirichlet>},
    {"aten::_standard_gamma(Tensor self, Generator? generator=None) -> Tensor", boxed<cpu::_standard_gamma>},
    {"aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", boxed<cpu::bernoulli>},
    {"aten::bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor", boxed<cpu::bernoulli_tensor>},
    {"aten::bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor", boxed<cpu::bernoulli_number>},
    {"aten::multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor", boxed<cpu::multinomial>},
    {"aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor", boxed<cpu::normal_tensors>},
    {"aten::normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor", boxed<cpu::normal_tensor_number>},
    {"aten::normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor", boxed<cpu::normal_number_tensor>},
    {"aten::poisson(Tensor self, Generator? generator=None) -> Tensor", boxed<cpu::poisson>},
    {"aten::rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<cpu::rand>},
    {"aten::randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<cpu::randn>},
    {"aten::rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> (Tensor, Tensor noise_out)", boxed<cpu::rrelu_with_noise_functional>},
};
// clang-format on

}  // namespace

std::span<const AtenRow> aten_random_rows() { return kRows; }

}  // namespace sconce::custom_ops
