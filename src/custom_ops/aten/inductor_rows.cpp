// Inductor's own operators, which its lite mode (fallback_by_default) calls by name. They match the uncompiled
// versions in torch/_inductor/inductor_prims.py (torch 2.15): numbers come from the default generator, regardless of
// the seed, and are drawn twice, because PyTorch computes a result once to learn its shape.
#include "sconce/check.h"
#include "src/custom_ops/aten/aten.h"
#include "src/custom_ops/operator/boxed.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/dimensions.h"

namespace sconce::custom_ops {
namespace {

constexpr int64_t kMaxSeed = INT64_MAX;

template <class Draw>
Tensor second(Draw&& draw) {
  draw();
  return draw();
}

Tensor integers(int64_t low, int64_t high, IntSpan size, Device device) {
  return second([&] { return cpu::randint_low(low, high, size, DType::kInt64, std::nullopt, device, std::nullopt); });
}

Tensor seed(Device device) { return integers(0, kMaxSeed, {}, device); }
Tensor seeds(int64_t count, Device device) { return integers(0, kMaxSeed, IntSpan(&count, 1), device); }
Tensor lookup_seed(const Tensor& seeds, int64_t index) { return clone(cpu::select(seeds, 0, index)); }

Tensor random(IntSpan size, const Tensor& seed, std::string_view mode, std::optional<DType>) {
  SCONCE_CHECK(mode == "rand" || mode == "randn", kUnsupported, "inductor_random: no such mode: ", mode);
  const auto draw = mode == "rand" ? cpu::rand : cpu::randn;
  return second([&] { return draw(size, DType::kFloat32, std::nullopt, seed.device(), std::nullopt); });
}
Tensor random_integers(int64_t low, int64_t high, IntSpan size, const Tensor& seed) {
  return integers(low, high, size, seed.device());
}

Tensor force_stride_order(const Tensor& input, IntSpan stride) {
  if (std::equal(stride.begin(), stride.end(), input.strides().begin(), input.strides().end())) return input;
  Tensor out = Tensor::empty_strided(input.sizes(), stride, input.dtype(), input.device());
  copy(input, out);
  return out;
}

// clang-format off
constexpr AtenRow kRows[] = {
    {"prims::inductor_force_stride_order(Tensor input, SymInt[] stride) -> Tensor", boxed_anywhere<force_stride_order>, kAnyDevice},
    {"prims::inductor_lookup_seed(Tensor seeds, int index) -> Tensor", boxed_anywhere<lookup_seed>, kAnyDevice},
    {"prims::inductor_randint(SymInt low, SymInt high, SymInt[] size, Tensor seed) -> Tensor", boxed<random_integers>, kRandom},
    {"prims::inductor_random(SymInt[] size, Tensor seed, str mode, *, ScalarType? align_dtype=None) -> Tensor", boxed<random>, kRandom},
    {"prims::inductor_seed(Device device) -> Tensor", boxed<seed>, kRandom},
    {"prims::inductor_seeds(int count, Device device) -> Tensor", boxed<seeds>, kRandom},
};
// clang-format on

}  // namespace

std::span<const AtenRow> inductor_rows() { return kRows; }

}  // namespace sconce::custom_ops
