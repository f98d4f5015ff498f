#include "src/cpu/normalisation/normalization.h"

#include <algorithm>
#include <cmath>

#include "sconce/check.h"
#include "src/cpu/elementwise/arithmetic.h"
#include "src/cpu/elementwise/binary_functions.h"
#include "src/cpu/reduction/sum.h"
#include "src/cpu/vector/row_sums.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/dimensions.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/factory.h"
#include "src/tensor/fill.h"
#include "src/tensor/rows/planes.h"
#include "src/tensor/rows/slices.h"
#include "src/tensor/view.h"

namespace sconce::cpu {
namespace {

// Elements as [outer, groups, inner], of which mean and deviation are taken over outer and inner.
struct Layout {
  int64_t outer, groups, inner;
  int64_t count() const noexcept { return outer * inner; }
};

DType parameter_dtype(const Tensor& input, std::initializer_list<const Tensor*> parameters) {
  for (const Tensor* parameter : parameters)
    if (parameter) return parameter->dtype();
  return input.dtype();
}
Tensor computed(const Tensor& tensor, DType dtype) { return contiguous(to_dtype(tensor, dtype)); }
Tensor computed(const Tensor* tensor, DType dtype) { return tensor ? computed(*tensor, dtype) : Tensor(); }
template <class T>
const T* values_of(const Tensor& tensor) {
  return tensor.defined() ? tensor.data_as<T>() : nullptr;
}

// {mean, sum of squared differences from it} of each group.
template <class T>
void moments(const T* x, Layout layout, double* mean, double* spread) {
  for_planes(layout.groups, layout.count(), [=](int64_t g) noexcept {
    const auto sum_of = [=](auto&& of_row) {
      double total = 0;
      for (int64_t o = 0; o < layout.outer; ++o) total += of_row(x + (o * layout.groups + g) * layout.inner);
      return total;
    };
    const double n = static_cast<double>(layout.count());
    mean[g] = sum_of([&](const T* row) { return row_sum(row, layout.inner); });
    if (n > 0) mean[g] /= n;  // ATen's mean of nothing is 0
    // Differences are taken from the mean as rounded to T; the sum is corrected by what the rounding changed.
    const T middle = static_cast<T>(mean[g]);
    const double beside = static_cast<double>(middle) - mean[g];
    spread[g] = sum_of([&](const T* row) { return row_spread(row, layout.inner, middle); }) - n * beside * beside;
    if (spread[g] < 0) spread[g] = 0;
  });
}

// {mean, 1 / sqrt(variance + eps)}: double [groups].
std::array<Tensor, 2> statistics(const Tensor& in, Layout layout) {
  std::array<Tensor, 2> found{Tensor::empty(IntSpan(&layout.groups, 1), DType::kFloat64),
                              Tensor::empty(IntSpan(&layout.groups, 1), DType::kFloat64)};
  dispatch_float_double(in.dtype(), "normalization", [&]<class T>() -> void {
    moments(in.data_as<T>(), layout, found[0].data_as<double>(), found[1].data_as<double>());
  });
  return found;
}
void to_reciprocal_deviation(Tensor& spread, int64_t count, double eps) {
  auto* const values = spread.data_as<double>();
  for (int64_t g = 0; g < spread.numel(); ++g) values[g] = 1 / std::sqrt(values[g] / static_cast<double>(count) + eps);
}

// (x - mean[g]) * rstd[g] * weight[channel] + bias[channel]. Element i of group g belongs to channel_of(g, i), which is
// the same for `run` consecutive elements.
template <class ChannelOf>
Tensor normalised(const Tensor& in, Layout layout, const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                  const Tensor& bias, int64_t run, const ChannelOf& channel_of) {
  Tensor out = Tensor::empty(in.sizes(), in.dtype());
  dispatch_float_double(in.dtype(), "normalization", [&]<class T>() -> void {
    const T *const x = in.data_as<T>(), *const w = values_of<T>(weight), *const b = values_of<T>(bias);
    T* const y = out.data_as<T>();
    const double *const m = mean.data_as<double>(), *const r = rstd.data_as<double>();
    for_planes(layout.outer * layout.groups, layout.inner, [&](int64_t row) noexcept {
      const int64_t g = row % layout.groups;
      const T middle = static_cast<T>(m[g]), scale = static_cast<T>(r[g]);
      const T* const from = x + row * layout.inner;
      T* const to = y + row * layout.inner;
      if (run == 1) {
        const int64_t c = layout.inner ? channel_of(g, 0) : 0;
        const T *const factor = w ? w + c : nullptr, *const shift = b ? b + c : nullptr;
        for (int64_t i = 0; i < layout.inner; ++i) {
          const T value = (from[i] - middle) * scale;
          to[i] = (factor ? value * factor[i] : value) + (shift ? shift[i] : T(0));
        }
        return;
      }
      for (int64_t begin = 0; begin < layout.inner; begin += run) {
        const int64_t c = channel_of(g, begin);
        // In ATen's order, which matters where parameters are infinite.
        const T factor = w ? scale * w[c] : scale, shift = (b ? b[c] : T(0)) - middle * factor;
        for (int64_t i = begin, end = std::min(begin + run, layout.inner); i < end; ++i)
          to[i] = from[i] * factor + shift;
      }
    });
  });
  return out;
}

// The gradients by input, weight and bias, in the dtypes of computation: the last two double, by channel.
struct Gradients {
  const Tensor &grad, &in;
  const Tensor &mean, &rstd;  // double, by group
  const Tensor& weight;       // may be undefined
  std::span<const int32_t> mask;

  // For layer norms, where each element of a row is a channel.
  std::array<Tensor, 3> of_rows(int64_t rows, int64_t width) const {
    std::array<Tensor, 3> out;
    out[0] = Tensor::empty(in.sizes(), in.dtype());
    // Each thread has its own sums, since all rows add to the same ones.
    const int64_t parts = slice_parts(rows, width * 4), sizes[] = {parts, 2, width};
    Tensor sums = Tensor::empty(sizes, DType::kFloat64);
    zero(sums);
    dispatch_float_double(in.dtype(), "normalization", [&]<class T>() -> void {
      const T *const x = in.data_as<T>(), *const dy = grad.data_as<T>(), *const w = values_of<T>(weight);
      T* const dx = out[0].data_as<T>();
      const double *const m = mean.data_as<double>(), *const r = rstd.data_as<double>();
      parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) noexcept {
        for (int64_t part = begin; part < end; ++part) {
          double *const dw = sums.data_as<double>() + part * 2 * width, *const db = dw + width;
          for (int64_t row = rows * part / parts; row < rows * (part + 1) / parts; ++row)
            row_gradients(dy + row * width, x + row * width, w, width, m[row], r[row], dx + row * width, dw, db);
        }
      });
    });
    const int64_t first = 0;
    const Tensor total = sum(sums, IntSpan(&first, 1), false, std::nullopt);
    if (!mask[0]) out[0] = Tensor();
    for (int64_t i = 0; i < 2; ++i)
      if (mask[static_cast<size_t>(i + 1)]) out[static_cast<size_t>(i + 1)] = contiguous(select(total, 0, i));
    return out;
  }

  // For the other norms. A group has `each` channels, and `run` consecutive elements belong to one channel. The first
  // channel of group g is g % (channels / each) * each.
  std::array<Tensor, 3> of_runs(Layout layout, int64_t channels, int64_t each, bool constant_statistics) const {
    std::array<Tensor, 3> out;
    out[0] = Tensor::empty(in.sizes(), in.dtype());
    const int64_t run = each ? layout.inner / each : 0, sizes[] = {layout.groups, each};
    Tensor products = Tensor::empty(sizes, DType::kFloat64), totals = Tensor::empty(sizes, DType::kFloat64);
    dispatch_float_double(in.dtype(), "normalization", [&]<class T>() -> void {
      const T *const x = in.data_as<T>(), *const dy = grad.data_as<T>(), *const w = values_of<T>(weight);
      T* const dx = out[0].data_as<T>();
      for_planes(layout.groups, layout.count() * 2, [&](int64_t g) noexcept {
        const double m = mean.data_as<double>()[g], r = rstd.data_as<double>()[g];
        const T middle = static_cast<T>(m);
        const double beside = static_cast<double>(middle) - m;
        double sum = 0, product = 0;
        for (int64_t k = 0; k < each; ++k) {
          double of_grad = 0, of_product = 0;
          for (int64_t o = 0; o < layout.outer; ++o) {
            const int64_t at = ((o * layout.groups + g) * each + k) * run;
            of_grad += row_sum(dy + at, run);
            of_product += row_dot(dy + at, x + at, run, middle);
          }
          of_product = (of_product + beside * of_grad) * r;
          products.data_as<double>()[g * each + k] = of_product;
          totals.data_as<double>()[g * each + k] = of_grad;
          const double factor = w ? static_cast<double>(w[g * each % channels + k]) : 1;
          sum += factor * of_grad;
          product += factor * of_product;
        }
        if (!mask[0]) return;
        const double n = static_cast<double>(layout.count());
        const T by_value = constant_statistics ? T(0) : static_cast<T>(r * r * product / n),
                shift = constant_statistics ? T(0) : static_cast<T>(r * sum / n);
        for (int64_t o = 0; o < layout.outer; ++o)
          for (int64_t k = 0; k < each; ++k) {
            const int64_t at = ((o * layout.groups + g) * each + k) * run;
            const T by_grad = static_cast<T>(w ? r * static_cast<double>(w[g * each % channels + k]) : r);
            if (constant_statistics)
              for (int64_t i = at; i < at + run; ++i) dx[i] = by_grad * dy[i];
            else
              for (int64_t i = at; i < at + run; ++i) dx[i] = by_grad * dy[i] - shift - (x[i] - middle) * by_value;
          }
      });
    });
    // The groups of every image share the same channels.
    const int64_t images = channels ? layout.groups * each / channels : 0, shape[] = {images, channels}, first = 0;
    if (!mask[0]) out[0] = Tensor();
    if (mask[1]) out[1] = sum(reshape(products, shape), IntSpan(&first, 1), false, std::nullopt);
    if (mask[2]) out[2] = sum(reshape(totals, shape), IntSpan(&first, 1), false, std::nullopt);
    return out;
  }

 private:
  template <class T>
  static void row_gradients(const T* dy, const T* x, const T* w, int64_t width, double m, double r, T* dx, double* dw,
                            double* db) noexcept {
    const T middle = static_cast<T>(m), scale = static_cast<T>(r);
    // dx holds the weighted gradients for a while.
    if (w)
      for (int64_t i = 0; i < width; ++i) dx[i] = dy[i] * w[i];
    else
      std::copy_n(dy, width, dx);
    for (int64_t i = 0; i < width; ++i) {
      dw[i] += static_cast<double>(dy[i] * ((x[i] - middle) * scale));
      db[i] += static_cast<double>(dy[i]);
    }
    const double n = static_cast<double>(width), sum = row_sum(dx, width);
    const double product = (row_dot(dx, x, width, middle) + (static_cast<double>(middle) - m) * sum) * r;
    const T by_value = static_cast<T>(r * r * product / n), shift = static_cast<T>(r * sum / n);
    for (int64_t i = 0; i < width; ++i) dx[i] = scale * dx[i] - shift - (x[i] - middle) * by_value;
  }
};

void check_floating(const char* name, const Tensor& input) {
  if (!is_floating(input.dtype())) fail_dispatch(input.dtype(), name);
}
void check_mask(const char* name, std::span<const int32_t> output_mask) {
  SCONCE_CHECK(output_mask.size() == 3, kInvalidArgument, name, ": output_mask has ", output_mask.size(), " elements");
}
void check_parameter(const char* name, const char* what, const Tensor* parameter, int64_t size) {
  SCONCE_CHECK(!parameter || parameter->numel() == size, kInvalidArgument, name, ": Expected ", what, " to have ", size,
               " elements, got ", parameter ? describe(*parameter) : "");
}

struct LayerSizes {
  int64_t rows = 1, width = 1;
  Shape kept;  // sizes of the statistics
};
LayerSizes layer_sizes(const char* name, const Tensor& input, IntSpan normalized_shape) {
  const auto n = static_cast<int64_t>(normalized_shape.size());
  SCONCE_CHECK(n >= 1, kInvalidArgument, name, ": Expected normalized_shape to be at least 1-dimensional");
  SCONCE_CHECK(input.dim() >= n && std::equal(normalized_shape.begin(), normalized_shape.end(), input.sizes().end() - n,
                                              input.sizes().end()),
               kInvalidArgument, name, ": Given normalized_shape=", to_string(normalized_shape),
               ", expected input with shape [*, ...], but got input of size ", to_string(input.sizes()));
  LayerSizes sizes;
  for (int64_t d = 0; d < input.dim(); ++d) {
    (d < input.dim() - n ? sizes.rows : sizes.width) *= input.size(d);
    sizes.kept.push_back(d < input.dim() - n ? input.size(d) : 1);
  }
  return sizes;
}

}  // namespace

std::array<Tensor, 3> native_layer_norm(const Tensor& input, IntSpan normalized_shape, const Tensor* weight,
                                        const Tensor* bias, double eps) {
  constexpr const char* kName = "native_layer_norm";
  check_floating(kName, input);
  const LayerSizes sizes = layer_sizes(kName, input, normalized_shape);
  check_parameter(kName, "weight", weight, sizes.width);
  check_parameter(kName, "bias", bias, sizes.width);
  const DType dtype = summed_dtype(input.dtype()), kept = parameter_dtype(input, {weight, bias});
  const Tensor in = computed(input, dtype);
  const Layout layout{1, sizes.rows, sizes.width};
  auto [mean, rstd] = statistics(in, layout);
  to_reciprocal_deviation(rstd, sizes.width, eps);
  const Tensor out = normalised(in, layout, mean, rstd, computed(weight, dtype), computed(bias, dtype), 1,
                                [](int64_t, int64_t i) noexcept { return i; });
  return {to_dtype(out, input.dtype()), reshape(to_dtype(mean, kept), sizes.kept),
          reshape(to_dtype(rstd, kept), sizes.kept)};
}

std::array<Tensor, 3> native_layer_norm_backward(const Tensor& grad_out, const Tensor& input, IntSpan normalized_shape,
                                                 const Tensor& mean, const Tensor& rstd, const Tensor* weight,
                                                 const Tensor* bias, std::span<const int32_t> output_mask) {
  constexpr const char* kName = "native_layer_norm_backward";
  check_floating(kName, input);
  const LayerSizes sizes = layer_sizes(kName, input, normalized_shape);
  check_parameter(kName, "weight", weight, sizes.width);
  check_parameter(kName, "mean", &mean, sizes.rows);
  check_parameter(kName, "rstd", &rstd, sizes.rows);
  check_parameter(kName, "grad_out", &grad_out, input.numel());
  check_mask(kName, output_mask);
  const DType dtype = summed_dtype(input.dtype()), kept = parameter_dtype(input, {weight, bias});
  const Tensor grad = computed(grad_out, dtype), in = computed(input, dtype), middle = computed(mean, DType::kFloat64),
               scale = computed(rstd, DType::kFloat64), factors = computed(weight, dtype);
  auto [dx, dw, db] = Gradients{grad, in, middle, scale, factors, output_mask}.of_rows(sizes.rows, sizes.width);
  if (dx.defined()) dx = to_dtype(dx, input.dtype());
  for (Tensor* parameter : {&dw, &db})
    if (parameter->defined()) *parameter = reshape(to_dtype(*parameter, kept), normalized_shape);
  return {dx, dw, db};
}

namespace {

void check_groups(const char* name, const Tensor& input, int64_t N, int64_t C, int64_t HxW, int64_t group) {
  check_floating(name, input);
  SCONCE_CHECK(group > 0 && C >= 0 && C % group == 0, kInvalidArgument, name,
               ": Expected number of channels in input to be divisible by num_groups, but got ", C, " channels and ",
               group, " groups");
  SCONCE_CHECK(N >= 0 && HxW >= 0 && input.numel() == N * C * HxW, kInvalidArgument, name, ": ", N, " x ", C, " x ",
               HxW, " elements expected, got ", describe(input));
}

}  // namespace

std::array<Tensor, 3> native_group_norm(const Tensor& input, const Tensor* weight, const Tensor* bias, int64_t N,
                                        int64_t C, int64_t HxW, int64_t group, double eps) {
  constexpr const char* kName = "native_group_norm";
  check_groups(kName, input, N, C, HxW, group);
  check_parameter(kName, "weight", weight, C);
  check_parameter(kName, "bias", bias, C);
  const DType dtype = summed_dtype(input.dtype()), kept = parameter_dtype(input, {weight, bias});
  const Tensor in = computed(input, dtype);
  const int64_t each = C / group;
  const Layout layout{1, N * group, each * HxW};
  auto [mean, rstd] = statistics(in, layout);
  to_reciprocal_deviation(rstd, layout.inner, eps);
  const Tensor out =
      normalised(in, layout, mean, rstd, computed(weight, dtype), computed(bias, dtype), std::max<int64_t>(HxW, 1),
                 [=](int64_t g, int64_t i) noexcept { return g % group * each + i / std::max<int64_t>(HxW, 1); });
  const int64_t sizes[] = {N, group};
  return {in_format(kName, out, input.dtype(), suggested_format(input)), reshape(to_dtype(mean, kept), sizes),
          reshape(to_dtype(rstd, kept), sizes)};
}

std::array<Tensor, 3> native_group_norm_backward(const Tensor& grad_out, const Tensor& input, const Tensor& mean,
                                                 const Tensor& rstd, const Tensor* weight, int64_t N, int64_t C,
                                                 int64_t HxW, int64_t group, std::span<const int32_t> output_mask) {
  constexpr const char* kName = "native_group_norm_backward";
  check_groups(kName, input, N, C, HxW, group);
  check_parameter(kName, "weight", weight, C);
  check_parameter(kName, "mean", &mean, N * group);
  check_parameter(kName, "rstd", &rstd, N * group);
  check_parameter(kName, "grad_out", &grad_out, input.numel());
  check_mask(kName, output_mask);
  const DType dtype = summed_dtype(input.dtype()), kept = parameter_dtype(input, {weight});
  const int64_t each = C / group;
  const Tensor grad = computed(grad_out, dtype), in = computed(input, dtype), middle = computed(mean, DType::kFloat64),
               scale = computed(rstd, DType::kFloat64), factors = computed(weight, dtype);
  auto [dx, dw, db] = Gradients{grad, in, middle, scale, factors, output_mask}.of_runs(Layout{1, N * group, each * HxW},
                                                                                       C, each, false);
  if (dx.defined()) dx = in_format(kName, dx, input.dtype(), suggested_format(input));
  for (Tensor* parameter : {&dw, &db})
    if (parameter->defined()) *parameter = to_dtype(*parameter, kept);
  return {dx, dw, db};
}

namespace {

Layout batch_layout(const char* name, const Tensor& input) {
  check_floating(name, input);
  SCONCE_CHECK(input.dim() >= 2, kInvalidArgument, name, ": expected an input of 2 dimensions or more, got ",
               describe(input));
  Layout layout{input.size(0), input.size(1), 1};
  for (int64_t d = 2; d < input.dim(); ++d) layout.inner *= input.size(d);
  return layout;
}

// The format of the result, chosen as ATen does: if everything is packed, dimensions of size 1 do not count; otherwise
// the strides decide alone.
MemoryFormat batch_format(const Tensor& input, bool packed) {
  if (packed && input.is_contiguous()) return MemoryFormat::kContiguous;
  if (packed && is_channels_last_3d(input)) return MemoryFormat::kChannelsLast3d;
  if (packed && is_channels_last(input)) return MemoryFormat::kChannelsLast;
  return suggested_format(input);
}

// running = (1 - momentum) * running + momentum * batch
void update_running(const Tensor* running, const Tensor& batch, double momentum, double scale) {
  if (!running) return;
  Tensor target = *running;
  copy(add(multiply_number(to_dtype(target, DType::kFloat64), Scalar(1 - momentum)), batch, Scalar(momentum * scale)),
       target);
}
// The statistics of the batch, which also update the running ones.
std::array<Tensor, 2> batch_statistics(const Tensor& in, Layout layout, const Tensor* running_mean,
                                       const Tensor* running_var, double momentum) {
  auto found = statistics(in, layout);
  update_running(running_mean, found[0], momentum, 1);
  update_running(running_var, found[1], momentum, 1 / (static_cast<double>(layout.count()) - 1));
  return found;
}
std::array<Tensor, 2> running_statistics(const char* name, const Tensor* mean, const Tensor* var, double eps) {
  SCONCE_CHECK(mean && var, kInvalidArgument, name, ": running_mean and running_var are needed where not training");
  std::array<Tensor, 2> found{computed(*mean, DType::kFloat64), clone_contiguous(to_dtype(*var, DType::kFloat64))};
  to_reciprocal_deviation(found[1], 1, eps);
  return found;
}

}  // namespace

std::array<Tensor, 3> native_batch_norm(const Tensor& input, const Tensor* weight, const Tensor* bias,
                                        const Tensor* running_mean, const Tensor* running_var, bool training,
                                        double momentum, double eps) {
  constexpr const char* kName = "native_batch_norm";
  const Layout layout = batch_layout(kName, input);
  check_parameter(kName, "weight", weight, layout.groups);
  check_parameter(kName, "bias", bias, layout.groups);
  check_parameter(kName, "running_mean", running_mean, layout.groups);
  check_parameter(kName, "running_var", running_var, layout.groups);
  const DType dtype = summed_dtype(input.dtype()),
              kept = parameter_dtype(input, {weight, bias, running_mean, running_var});
  const Tensor in = computed(input, dtype);
  std::array<Tensor, 2> found;
  if (training) {
    found = batch_statistics(in, layout, running_mean, running_var, momentum);
    to_reciprocal_deviation(found[1], layout.count(), eps);
  } else {
    found = running_statistics(kName, running_mean, running_var, eps);
  }
  const Tensor out = normalised(in, layout, found[0], found[1], computed(weight, dtype), computed(bias, dtype),
                                std::max<int64_t>(layout.inner, 2), [](int64_t g, int64_t) noexcept { return g; });
  const int64_t none[] = {0};
  const auto statistic = [&](const Tensor& values) {
    return training ? to_dtype(values, kept) : Tensor::empty(none, kept);
  };
  const std::initializer_list<const Tensor*> parameters{weight, bias, running_mean, running_var};
  const MemoryFormat format = batch_format(input, std::ranges::all_of(parameters, [](const Tensor* parameter) {
                                             return !parameter || parameter->is_contiguous();
                                           }));
  return {in_format(kName, out, input.dtype(), format), statistic(found[0]), statistic(found[1])};
}

std::array<Tensor, 2> batch_norm_update_stats(const Tensor& input, const Tensor* running_mean,
                                              const Tensor* running_var, double momentum) {
  constexpr const char* kName = "batch_norm_update_stats";
  const Layout layout = batch_layout(kName, input);
  check_parameter(kName, "running_mean", running_mean, layout.groups);
  check_parameter(kName, "running_var", running_var, layout.groups);
  const DType kept = parameter_dtype(input, {running_mean, running_var});
  auto found =
      batch_statistics(computed(input, summed_dtype(input.dtype())), layout, running_mean, running_var, momentum);
  const Scalar reciprocal(1 / static_cast<double>(layout.count()));
  return {to_dtype(found[0], kept), to_dtype(multiply_number(found[1], reciprocal), kept)};
}

std::array<Tensor, 3> native_batch_norm_backward(const Tensor& grad_out, const Tensor& input, const Tensor* weight,
                                                 const Tensor* running_mean, const Tensor* running_var,
                                                 const Tensor* save_mean, const Tensor* save_invstd, bool train,
                                                 double eps, std::span<const int32_t> output_mask) {
  constexpr const char* kName = "native_batch_norm_backward";
  const Layout layout = batch_layout(kName, input);
  check_parameter(kName, "weight", weight, layout.groups);
  check_parameter(kName, "grad_out", &grad_out, input.numel());
  check_mask(kName, output_mask);
  const DType dtype = summed_dtype(input.dtype()),
              kept =
                  parameter_dtype(input, {weight, running_mean, save_mean && save_mean->numel() ? save_mean : nullptr});
  std::array<Tensor, 2> found;
  if (train) {
    SCONCE_CHECK(save_mean && save_invstd, kInvalidArgument, kName, ": the batch's statistics are needed in training");
    check_parameter(kName, "save_mean", save_mean, layout.groups);
    check_parameter(kName, "save_invstd", save_invstd, layout.groups);
    found = {computed(*save_mean, DType::kFloat64), computed(*save_invstd, DType::kFloat64)};
  } else {
    check_parameter(kName, "running_mean", running_mean, layout.groups);
    check_parameter(kName, "running_var", running_var, layout.groups);
    found = running_statistics(kName, running_mean, running_var, eps);
  }
  const Tensor grad = computed(grad_out, dtype), in = computed(input, dtype), factors = computed(weight, dtype);
  auto [dx, dw, db] =
      Gradients{grad, in, found[0], found[1], factors, output_mask}.of_runs(layout, layout.groups, 1, !train);
  const auto packed = [](const Tensor& t) {
    return t.is_contiguous() || is_channels_last(t) || is_channels_last_3d(t);
  };
  const bool alike = packed(input) && packed(grad_out) && suggested_format(input) == suggested_format(grad_out);
  if (dx.defined()) dx = in_format(kName, dx, input.dtype(), batch_format(input, alike));
  for (Tensor* parameter : {&dw, &db})
    if (parameter->defined()) *parameter = to_dtype(*parameter, kept);
  return {dx, dw, db};
}

std::array<Tensor, 2> _weight_norm_interface_backward(const Tensor& grad_w, const Tensor& saved_v,
                                                      const Tensor& saved_g, const Tensor& saved_norms, int64_t dim) {
  constexpr const char* kName = "_weight_norm_interface_backward";
  check_floating(kName, saved_v);
  SCONCE_CHECK(dim == 0 || dim == saved_v.dim() - 1, kInvalidArgument, kName,
               ": dim == 0 || dim == saved_v.dim() - 1: fused kernels can only be applied for first or last dim");
  const DType dtype = summed_dtype(saved_v.dtype());
  const Tensor grad = to_dtype(grad_w, dtype), v = to_dtype(saved_v, dtype), g = to_dtype(saved_g, dtype),
               norms = to_dtype(saved_norms, dtype);
  std::vector<int64_t> others;
  for (int64_t d = 0; d < v.dim(); ++d)
    if (d != dim) others.push_back(d);
  // An empty list of dimensions would mean all of them to sum.
  const Tensor products = multiply(grad, v);
  const Tensor along = others.empty() ? products : sum(products, IntSpan(others), true, std::nullopt);
  const Tensor cubes = multiply(multiply(norms, norms), norms);
  const Tensor by_v = multiply(g, subtract(divide(grad, norms), divide(multiply(v, along), cubes), Scalar(int64_t{1})));
  return {to_dtype(contiguous(by_v), saved_v.dtype()), to_dtype(contiguous(divide(along, norms)), saved_v.dtype())};
}

}  // namespace sconce::cpu
