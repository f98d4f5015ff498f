// Random numbers equal to PyTorch's for the same seed: Philox, over the grid that ATen would launch on the device.
// Match ATen's CUDA distributions (torch 2.11). Packages never use a generator of their own.

#include "src/tensor/rules/random.h"

#include <cmath>
#include <limits>

#include "src/cuda/random/draws.h"
#include "src/cuda/random/random_kernels.h"
#include "src/cuda/random/sampling.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/device_properties.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/scratch.h"
#include "src/cuda/runtime/stream.h"
#include "src/cuda/tensor/factory.h"
#include "src/device/philox.h"
#include "src/operators/cpu_ops.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/strided_loop.h"
#include "src/tensor/view.h"

namespace sconce::cuda {
void check_drawn_dtype(const char* name, const Tensor& out) {
  SCONCE_CHECK(out.dtype() == DType::kFloat32 || out.dtype() == DType::kFloat64 || out.dtype() == DType::kFloat16 ||
                   out.dtype() == DType::kBFloat16,
               kUnsupported, name, ": not implemented for '", dtype_name(out.dtype()), "' on CUDA");
}

PhiloxGenerator::State reserve(uint64_t count) {
  refuse_capture("random numbers");
  return philox_generator(current().device).reserve(count);
}

Draw draw_for(int64_t count, int64_t numbers) {
  const DeviceProperties& device = device_properties(current().device);
  const int64_t most = int64_t{device.multiprocessors} * (device.threads_per_multiprocessor / int{kRandomThreads});
  const int64_t blocks = std::min<int64_t>((count + kRandomThreads - 1) / kRandomThreads, most);
  const int64_t turns = (count - 1) / (blocks * kRandomThreads * numbers) + 1;
  const PhiloxGenerator::State state = reserve(static_cast<uint64_t>(turns) * 4);
  return {state.seed, state.offset, static_cast<unsigned>(blocks)};
}

namespace {

constexpr int64_t kIndexLimit = std::numeric_limits<int32_t>::max();

CopyShape order_of(const Tensor& out, IntSpan from_strides, size_t from_item) {
  return copy_shape("random numbers", out.sizes(), out.strides(), out.itemsize(), from_strides, from_item);
}

// The order in which ATen's pointwise kernels visit two tensors: dimensions with larger strides are outer, where the
// tensors agree.
CopyShape pointwise_order(const Tensor& out, IntSpan from_strides, size_t from_item) {
  Shape sizes(out.sizes()), to(out.strides()), from(from_strides);
  const int rank = sizes.rank();
  for (int i = 0; i < rank; ++i)
    for (int j = i + 1; j < rank; ++j) {
      if (sizes[i] == 1 || sizes[j] == 1 || to[i] > to[j] || from[i] > from[j]) continue;
      if (to[i] == to[j] && from[i] == from[j]) continue;
      std::swap(sizes[i], sizes[j]);
      std::swap(to[i], to[j]);
      std::swap(from[i], from[j]);
    }
  CopyShape shape;
  for (int d = rank - 1; d >= 0; --d) {
    if (sizes[d] == 1) continue;
    const int64_t to_step = to[d] * static_cast<int64_t>(out.itemsize()),
                  from_step = from[d] * static_cast<int64_t>(from_item);
    shape.numel *= sizes[d];
    if (const int last = shape.rank - 1; last >= 0 && to_step == shape.to[last] * shape.sizes[last] &&
                                         from_step == shape.from[last] * shape.sizes[last]) {
      shape.sizes[last] *= sizes[d];
      continue;
    }
    SCONCE_CHECK(shape.rank < kMaxCopyRank, kUnsupported, "random numbers: ", rank,
                 " dimensions that cannot be merged are too many on CUDA");
    shape.sizes[shape.rank] = sizes[d];
    shape.to[shape.rank] = to_step;
    shape.from[shape.rank++] = from_step;
  }
  return shape;
}

void check_generator(const char* name, const Generator* generator) {
  SCONCE_CHECK(!generator, kUnsupported, name, ": only the default generator is supported on CUDA");
}

bool has_small_offsets(const CopyShape& shape) {
  if (shape.numel > kIndexLimit) return false;
  int64_t most = 1;
  for (int d = 0; d < shape.rank; ++d) most += (shape.sizes[d] - 1) * shape.to[d];
  return most <= kIndexLimit;
}

// Calls launch(part, draw). Kernels index with 32 bits, so a larger target first consumes its share of the stream, then
// is halved along the dimension that reaches farthest.
template <class Launch>
void draw_into(const RandomTarget& target, int64_t numbers, const Launch& launch) {
  const CopyShape& shape = target.shape;
  if (shape.numel == 0) return;
  const Draw draw = draw_for(shape.numel, numbers);
  if (has_small_offsets(shape)) {
    launch(target, draw);
    SCONCE_CUDA(cudaGetLastError());
    return;
  }
  int widest = shape.rank - 1;
  for (int d = shape.rank - 1; d >= 0; --d)
    if ((shape.sizes[d] - 1) * shape.to[d] > (shape.sizes[widest] - 1) * shape.to[widest]) widest = d;
  const int64_t size = shape.sizes[widest], half = size / 2;
  const auto part = [&](int64_t begin, int64_t length) {
    RandomTarget piece = target;
    piece.shape.sizes[widest] = length;
    piece.shape.numel = shape.numel / size * length;
    piece.data = static_cast<char*>(target.data) + begin * shape.to[widest];
    draw_into(piece, numbers, launch);
  };
  part(0, half);
  part(half, size - half);
}

RandomTarget target_of(const Tensor& out) {
  return {order_of(out, out.strides(), out.itemsize()), out.data(), static_cast<int>(out.dtype())};
}

void fill_random(const char* name, Distribution distribution, Tensor& out, double a, double b) {
  check_drawn_dtype(name, out);
  check_no_internal_overlap(name, out);
  const DeviceScope scope(out.device());
  draw_into(target_of(out), numbers_per_draw(distribution, static_cast<int>(out.dtype())),
            [&](const RandomTarget& target, const Draw& draw) {
              launch_random(distribution, target, a, b, draw, current_stream());
            });
}

// A complex tensor as pairs of reals.
Tensor parts_of(const Tensor& out) { return is_complex(out.dtype()) ? cpu::view_as_real(out) : out; }

void fill_uniform(Tensor& out, double from, double to) {
  SCONCE_CHECK(from <= to, kInvalidArgument, "uniform: from ", from, " is greater than to ", to);
  Tensor parts = parts_of(out);
  fill_random("uniform", Distribution::kUniform, parts, from, to);
}
void fill_normal(Tensor& out, double mean, double std) {
  SCONCE_CHECK(std >= 0.0, kInvalidArgument, "normal: std ", std, " is negative");
  Tensor parts = parts_of(out);
  // Each part gets half the variance.
  fill_random("normal", Distribution::kNormal, parts, mean, is_complex(out.dtype()) ? std / std::sqrt(2.0) : std);
}

void fill_integers(Tensor& out, int64_t low, int64_t high) {
  const IntegerRange integers = integer_range(out.dtype(), low, high);
  check_no_internal_overlap("random", out);
  const DeviceScope scope(out.device());
  draw_into(target_of(out), wide_words(integers.range) ? 2 : 4, [&](const RandomTarget& target, const Draw& draw) {
    launch_random_integers(target, integers.range, integers.base, draw, current_stream());
  });
}

void fill_unit(Tensor& out) { fill_uniform(out, 0.0, 1.0); }
void fill_standard(Tensor& out) { fill_normal(out, 0.0, 1.0); }
// Returns a function that fills a tensor with integers of this range.
auto integers(int64_t low, int64_t high) {
  return [=](Tensor& out) { fill_integers(out, low, high); };
}

// A new, filled tensor of these sizes.
template <class Fill>
Tensor drawn(const char* name, const Fill& fill, const Generator* generator, IntSpan size, OptType dtype,
             OptEnum layout, OptDevice device, OptEnum pin_memory) {
  check_generator(name, generator);
  check_maker(name, layout, pin_memory);
  Tensor out = Tensor::empty(size, dtype.value_or(kDefaultDType), device_or_current(device));
  fill(out);
  return out;
}
// The same for a tensor like `self`.
template <class Fill>
Tensor drawn_like(const char* name, const Fill& fill, const Generator* generator, const Tensor& self,
                  OptType dtype = {}, OptEnum layout = {}, OptDevice device = {}, OptEnum pin_memory = {},
                  OptEnum memory_format = {}) {
  check_generator(name, generator);
  Tensor out = make_like(name, self, dtype, layout, device, pin_memory, memory_format);
  fill(out);
  return out;
}

}  // namespace

Tensor rand_generator(IntSpan size, Generator* generator, OptType dtype, OptEnum layout, OptDevice device,
                      OptEnum pin_memory) {
  return drawn("rand", fill_unit, generator, size, dtype, layout, device, pin_memory);
}
Tensor rand(IntSpan size, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  return drawn("rand", fill_unit, nullptr, size, dtype, layout, device, pin_memory);
}
Tensor rand_like_generator(const Tensor& self, Generator* generator, OptType dtype, OptEnum layout, OptDevice device,
                           OptEnum pin_memory, OptEnum memory_format) {
  return drawn_like("rand_like", fill_unit, generator, self, dtype, layout, device, pin_memory, memory_format);
}
Tensor rand_like(const Tensor& self, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory,
                 OptEnum memory_format) {
  return drawn_like("rand_like", fill_unit, nullptr, self, dtype, layout, device, pin_memory, memory_format);
}
Tensor randn_generator(IntSpan size, Generator* generator, OptType dtype, OptEnum layout, OptDevice device,
                       OptEnum pin_memory) {
  return drawn("randn", fill_standard, generator, size, dtype, layout, device, pin_memory);
}
Tensor randn(IntSpan size, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  return drawn("randn", fill_standard, nullptr, size, dtype, layout, device, pin_memory);
}
Tensor randn_like_generator(const Tensor& self, Generator* generator, OptType dtype, OptEnum layout, OptDevice device,
                            OptEnum pin_memory, OptEnum memory_format) {
  return drawn_like("randn_like", fill_standard, generator, self, dtype, layout, device, pin_memory, memory_format);
}
Tensor randn_like(const Tensor& self, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory,
                  OptEnum memory_format) {
  return drawn_like("randn_like", fill_standard, nullptr, self, dtype, layout, device, pin_memory, memory_format);
}
Tensor randint_low(int64_t low, int64_t high, IntSpan size, OptType dtype, OptEnum layout, OptDevice device,
                   OptEnum pin_memory) {
  return drawn("randint", integers(low, high), nullptr, size, dtype, layout, device, pin_memory);
}
Tensor randint(int64_t high, IntSpan size, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  return drawn("randint", integers(0, high), nullptr, size, dtype, layout, device, pin_memory);
}
Tensor randint_generator(int64_t high, IntSpan size, Generator* generator, OptType dtype, OptEnum layout,
                         OptDevice device, OptEnum pin_memory) {
  return drawn("randint", integers(0, high), generator, size, dtype, layout, device, pin_memory);
}
void randint_low_out(Tensor& out, int64_t low, int64_t high, IntSpan size) {
  SCONCE_CHECK(std::equal(size.begin(), size.end(), out.sizes().begin(), out.sizes().end()), kUnsupported,
               "randint: sizes ", to_string(size), " into ", describe(out), " on CUDA");
  fill_integers(out, low, high);
}
Tensor randint_like_low_dtype(const Tensor& self, int64_t low, int64_t high, OptType dtype, OptEnum layout,
                              OptDevice device, OptEnum pin_memory, OptEnum memory_format) {
  return drawn_like("randint_like", integers(low, high), nullptr, self, dtype, layout, device, pin_memory,
                    memory_format);
}
Tensor randint_like(const Tensor& self, int64_t high, OptType dtype, OptEnum layout, OptDevice device,
                    OptEnum pin_memory, OptEnum memory_format) {
  return drawn_like("randint_like", integers(0, high), nullptr, self, dtype, layout, device, pin_memory, memory_format);
}

Tensor randint_low_generator(int64_t low, int64_t high, IntSpan size, Generator* generator, OptType dtype,
                             OptEnum layout, OptDevice device, OptEnum pin_memory) {
  return drawn("randint", integers(low, high), generator, size, dtype, layout, device, pin_memory);
}
Tensor randint_like_low_generator(const Tensor& self, int64_t low, int64_t high, Generator* generator, OptType dtype,
                                  OptEnum layout, OptDevice device, OptEnum pin_memory, OptEnum memory_format) {
  return drawn_like("randint_like", integers(low, high), generator, self, dtype, layout, device, pin_memory,
                    memory_format);
}
Tensor normal_numbers(double mean, double std, IntSpan size, Generator* generator, OptType dtype, OptEnum layout,
                      OptDevice device, OptEnum pin_memory) {
  const auto fill = [=](Tensor& out) { fill_normal(out, mean, std); };
  return drawn("normal", fill, generator, size, dtype, layout, device, pin_memory);
}

// Sorts random keys, with enough bits to make equal ones rare; shuffles the positions under equal keys.
Tensor randperm(int64_t n, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  SCONCE_CHECK(n >= 0, kInvalidArgument, "randperm: n must be non-negative, got ", n);
  check_maker("randperm", layout, pin_memory);
  const Device there = device_or_current(device);
  const DeviceScope scope(there);
  Tensor positions = Tensor::empty(IntSpan(&n, 1), DType::kInt64, there);
  if (n > 0) {
    const double count = static_cast<double>(n);
    const int bits =
        std::min(64, static_cast<int>(std::ceil(std::log2(count - (6 * count * count + 1) / (std::log(0.9) * 12)))));
    const bool narrow = bits <= 32;
    const DType type = narrow ? DType::kInt32 : DType::kInt64;
    Tensor keys = Tensor::empty(IntSpan(&n, 1), type, there), sorted = Tensor::empty(IntSpan(&n, 1), type, there),
           in_order = Tensor::empty(IntSpan(&n, 1), DType::kInt64, there);
    if (narrow)
      fill_integers(keys, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
    else
      fill_integers(keys, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
    const cudaStream_t stream = current_stream();
    const int key_bytes = narrow ? 4 : 8;
    launch_iota(in_order.data_as<int64_t>(), n, stream);
    with_scratch("randperm", type, there, [&](void* memory, size_t& bytes) {
      return sort_by_key(memory, bytes, keys.data(), sorted.data(), key_bytes, in_order.data_as<int64_t>(),
                         positions.data_as<int64_t>(), n, bits, stream);
    });
    const PhiloxGenerator::State state = reserve(static_cast<uint64_t>(n));
    launch_shuffle_equal(sorted.data(), key_bytes, positions.data_as<int64_t>(), n, bits, {state.seed, state.offset, 0},
                         stream);
    SCONCE_CUDA(cudaGetLastError());
  }
  return converted(positions, dtype.value_or(DType::kInt64));
}

void bernoulli__float(Tensor& self, double p, Generator* generator) {
  check_generator("bernoulli", generator);
  SCONCE_CHECK(0.0 <= p && p <= 1.0, kInvalidArgument, "bernoulli: p ", p, " is not in [0, 1]");
  SCONCE_CHECK(!is_complex(self.dtype()), kUnsupported, "bernoulli: not implemented for '", dtype_name(self.dtype()),
               "' on CUDA");
  check_no_internal_overlap("bernoulli", self);
  const DeviceScope scope(self.device());
  draw_into(target_of(self), numbers_per_draw(Distribution::kBernoulli, static_cast<int>(self.dtype())),
            [&](const RandomTarget& target, const Draw& draw) {
              launch_random(Distribution::kBernoulli, target, p, 0, draw, current_stream());
            });
}
// Probabilities outside [0, 1] are not checked, because that would wait for the device.
void bernoulli__Tensor(Tensor& self, const Tensor& p, Generator* generator) {
  check_generator("bernoulli", generator);
  SCONCE_CHECK(is_floating(p.dtype()), kInvalidArgument, "bernoulli: expected probabilities of a floating dtype, got ",
               dtype_name(p.dtype()));
  SCONCE_CHECK(!is_complex(self.dtype()), kUnsupported, "bernoulli: not implemented for '", dtype_name(self.dtype()),
               "' on CUDA");
  check_no_internal_overlap("bernoulli", self);
  const DeviceScope scope(self.device());
  const PhiloxGenerator::State state = reserve(10);
  if (self.numel() == 0) return;
  const DType type = self.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const Tensor probabilities = moved_to(p, type, self.device());
  const Shape strides = broadcast_strides("bernoulli", probabilities, self.sizes());
  launch_bernoulli(
      {pointwise_order(self, strides, probabilities.itemsize()), self.data(), static_cast<int>(self.dtype())},
      probabilities.data(), {state.seed, state.offset, 0}, current_stream());
  SCONCE_CUDA(cudaGetLastError());
}

Tensor uniform(const Tensor& self, double from, double to, Generator* generator) {
  return drawn_like(
      "uniform", [&](Tensor& out) { fill_uniform(out, from, to); }, generator, self);
}
Tensor normal_functional(const Tensor& self, double mean, double std, Generator* generator) {
  return drawn_like(
      "normal", [&](Tensor& out) { fill_normal(out, mean, std); }, generator, self);
}
Tensor exponential(const Tensor& self, double lambda, Generator* generator) {
  SCONCE_CHECK(lambda > 0.0, kInvalidArgument, "exponential: lambda ", lambda, " is not positive");
  const auto fill = [&](Tensor& out) { fill_random("exponential", Distribution::kExponential, out, lambda, 0); };
  return drawn_like("exponential", fill, generator, self);
}

}  // namespace sconce::cuda
