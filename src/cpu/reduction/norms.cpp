#include "src/cpu/reduction/norms.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "sconce/check.h"
#include "src/cpu/elementwise/arithmetic.h"
#include "src/cpu/elementwise/binary_functions.h"
#include "src/cpu/elementwise/functions.h"
#include "src/cpu/reduction/moments.h"
#include "src/cpu/reduction/sum.h"
#include "src/cpu/vector/exponential_rows.h"
#include "src/cpu/vector/row_extrema.h"
#include "src/cpu/vector/row_sums.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/dimensions.h"
#include "src/tensor/elements/convert.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/factory.h"
#include "src/tensor/rows/planes.h"
#include "src/tensor/rows/reduced_rows.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kPowers = 512;

// f(row, width) -> double of rows of self's elements, computed in `type`.
template <class F>
Tensor rows_to_reals(const char* name, const Tensor& self, std::optional<IntSpan> dim, bool keepdim, DType type,
                     const F& f) {
  if (type == DType::kComplex32)
    return to_dtype(rows_to_reals(name, self, dim, keepdim, DType::kComplex64, f), DType::kFloat16);
  const ReducedRows reduced = reduced_rows(name, self, dim, keepdim, type);
  Tensor out = Tensor::empty(reduced.sizes, value_dtype(type));
  const auto run = [&]<class T, class Real>() -> void {
    const T* const in = reduced.rows.data_as<T>();
    Real* const to = out.data_as<Real>();
    const int64_t width = reduced.width;
    for_planes(out.numel(), width, [&](int64_t i) noexcept { to[i] = convert_value<Real>(f(in + i * width, width)); });
  };
  if (type == DType::kComplex64)
    run.template operator()<ComplexFloat, float>();
  else if (type == DType::kComplex128)
    run.template operator()<ComplexDouble, double>();
  else
    dispatch_floating(type, name, [&]<class T>() -> void { run.template operator()<T, T>(); });
  return out;
}

template <class T>
double size_of(T x) {
  if constexpr (kIsComplex<T>)
    return std::abs(std::complex<double>(x));
  else
    return std::fabs(static_cast<double>(static_cast<ComputeType<T>>(x)));
}

DType norm_dtype(const char* name, const Tensor& self, std::optional<DType> dtype) {
  SCONCE_CHECK(is_floating(self.dtype()) || is_complex(self.dtype()), kInvalidArgument, name,
               ": Expected a floating point or complex tensor as input. Got ", dtype_name(self.dtype()));
  if (!dtype) return self.dtype();
  SCONCE_CHECK(is_floating(*dtype) || is_complex(*dtype), kInvalidArgument, name,
               ": dtype should be floating point or complex, but got ", dtype_name(*dtype));
  SCONCE_CHECK(is_complex(*dtype) == is_complex(self.dtype()), kInvalidArgument, name, ": dtype should be ",
               is_complex(self.dtype()) ? "complex" : "real", " for ", is_complex(self.dtype()) ? "complex" : "real",
               " inputs, but got ", dtype_name(*dtype));
  return *dtype;
}

// The sum of f of sizes, several at once: one addition waits for the one before.
template <class T, class F>
double sum_of_sizes(const T* row, int64_t width, const F& f) {
  constexpr int64_t kLanes = 16;
  double lanes[kLanes] = {}, total = 0;
  int64_t j = 0;
  for (; j + kLanes <= width; j += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += f(size_of(row[j + lane]));
  for (; j < width; ++j) total += f(size_of(row[j]));
  for (const double lane : lanes) total += lane;
  return total;
}

template <class T>
double sum_of_squares(const T* row, int64_t width) {
  if constexpr (std::is_same_v<T, float>) {
    // Summed in single precision first; taken if nothing overflowed and nothing that counts was lost.
    const double total = detail::mapped_row_sum(row, width, [](auto x) { return x * x; });
    if (total > 1e-24 && total < kInfinity) return total;
  }
  return sum_of_sizes(row, width, [](double size) { return size * size; });
}

template <class T>
double powers_of(const T* row, int64_t width, double order) {
  if (order == 3) return sum_of_sizes(row, width, [](double size) { return size * size * size; });
  if (order == 4) return sum_of_sizes(row, width, [](double size) { return size * size * size * size; });
  if (order == 2) return sum_of_sizes(row, width, [](double size) { return size * size; });
  return sum_of_sizes(row, width, [order](double size) { return std::pow(size, order); });
}

}  // namespace

Tensor linalg_vector_norm(const Tensor& self, Scalar ord, std::optional<IntSpan> dim, bool keepdim,
                          std::optional<DType> dtype) {
  constexpr const char* kName = "linalg.vector_norm";
  const double order = ord.to_double();
  const DType type = norm_dtype(kName, self, dtype);
  const bool least = order < 0, greatest = order == kInfinity;
  if ((least || greatest) && self.numel() == 0) {
    bool named = dim && !dim->empty();
    for (size_t i = 0; named && i < dim->size(); ++i) named = self.size(wrap_dim(kName, (*dim)[i], self.dim())) != 0;
    SCONCE_CHECK(named, kInvalidArgument, kName, " cannot compute the ", order,
                 " norm on an empty tensor or dimension because the operation does not have an identity");
  }
  return rows_to_reals(kName, self, dim, keepdim, type, [=](const auto* row, int64_t width) -> double {
    if (greatest || order == -kInfinity) {
      double best = greatest ? 0 : kInfinity;
      for (int64_t j = 0; j < width; ++j) {
        const double size = size_of(row[j]);
        if (std::isnan(size)) return size;
        best = greatest ? std::max(best, size) : std::min(best, size);
      }
      return best;
    }
    if (order == 0) return sum_of_sizes(row, width, [](double size) { return size != 0 ? 1.0 : 0.0; });
    if (order == 1) return sum_of_sizes(row, width, [](double size) { return size; });
    if (order == 2) return std::sqrt(sum_of_squares(row, width));
    return std::pow(powers_of(row, width, order), 1 / order);
  });
}

Tensor linalg__powsum(const Tensor& self, Scalar ord, std::optional<IntSpan> dim, bool keepdim,
                      std::optional<DType> dtype) {
  constexpr const char* kName = "linalg._powsum";
  const double order = ord.to_double();
  return rows_to_reals(kName, self, dim, keepdim, norm_dtype(kName, self, dtype),
                       [=](const auto* row, int64_t width) -> double { return powers_of(row, width, order); });
}

Tensor dist(const Tensor& self, const Tensor& other, Scalar p) {
  return linalg_vector_norm(subtract(self, other, Scalar(int64_t{1})), p, std::nullopt, false, std::nullopt);
}

Tensor logsumexp(const Tensor& self, IntSpan dim, bool keepdim) {
  constexpr const char* kName = "logsumexp";
  if (is_complex(self.dtype())) {
    if (self.dtype() == DType::kComplex32) fail_dispatch(self.dtype(), kName);
    // The real part alone tells how large an exponential gets.
    const auto logarithm = [&](const Tensor& powers) { return log(sum(powers, dim, keepdim, std::nullopt)); };
    if (self.numel() == 0) return logarithm(exp(self));
    const Tensor parts = view_as_real(self), greatest = amax(select(parts, parts.dim() - 1, 0), dim, true);
    const Tensor base = masked_fill_number(greatest, isinf(greatest), Scalar(int64_t{0}));
    const Tensor result = logarithm(exp(subtract(self, base, Scalar(int64_t{1}))));
    return add(result, reshape(base, result.sizes()), Scalar(int64_t{1}));
  }
  const DType type = is_integral(self.dtype(), true) ? DType::kFloat32 : self.dtype();
  require_library(sleef_library());
  const Tensor given = to_dtype(self, summed_dtype(type));
  const Tensor out =
      rows_to_reals(kName, given, dim, keepdim, given.dtype(), []<class T>(const T* row, int64_t width) -> double {
        if constexpr (!std::is_floating_point_v<T>) {
          return 0;  // not chosen above
        } else {
          if (width == 0) return -kInfinity;
          const T most = best_of<true>(row, width);
          if (!std::isfinite(most)) return static_cast<double>(most);
          double total = 0;
          T powers[kPowers];
          for (int64_t begin = 0; begin < width; begin += kPowers)
            total += exponentials(row + begin, most, powers, std::min(kPowers, width - begin));
          return std::log(total) + static_cast<double>(most);
        }
      });
  return to_dtype(out, type);
}

Tensor nansum(const Tensor& self, std::optional<IntSpan> dim, bool keepdim, std::optional<DType> dtype) {
  SCONCE_CHECK(!is_complex(self.dtype()), kInvalidArgument, "nansum: nansum on CPU does not support complex inputs");
  if (is_integral(self.dtype(), true)) return sum(self, dim, keepdim, dtype);
  const DType type = dtype.value_or(self.dtype());
  if (type == self.dtype() && (type == DType::kFloat32 || type == DType::kFloat64))
    return rows_to_reals("nansum", self, dim, keepdim, type, []<class T>(const T* row, int64_t width) -> double {
      if constexpr (std::is_floating_point_v<T>)
        return row_sum_but_nan(row, width);
      else
        return 0;  // not chosen above
    });
  return sum(masked_fill_number(self, isnan(self), Scalar(0.0)), dim, keepdim, dtype);
}
Tensor count_nonzero(const Tensor& self, std::optional<IntSpan> dim) {
  if (self.dtype() == DType::kInt64 || self.dtype() == DType::kInt32 || self.dtype() == DType::kFloat32) {
    const ReducedRows reduced = reduced_rows("count_nonzero", self, dim, false, self.dtype());
    Tensor out = Tensor::empty(reduced.sizes, DType::kInt64);
    auto* const to = out.data_as<int64_t>();
    detail::dispatch_list<DType::kInt64, DType::kInt32, DType::kFloat32>(
        self.dtype(), "count_nonzero", [&]<class T>() -> void {
          const T* const in = reduced.rows.template data_as<T>();
          for_planes(out.numel(), reduced.width, [&](int64_t i) noexcept {
            const T* const row = in + i * reduced.width;
            int64_t count = 0;
            for (int64_t j = 0; j < reduced.width; ++j) count += row[j] != T(0);
            to[i] = count;
          });
        });
    return out;
  }
  return sum(to_dtype(self, DType::kBool), dim, false, std::nullopt);
}
std::array<Tensor, 2> std_mean(const Tensor& self, std::optional<IntSpan> dim, std::optional<Scalar> correction,
                               bool keepdim) {
  std::array<Tensor, 2> found = var_mean(self, dim, correction, keepdim);
  found[0] = sqrt(found[0]);
  return found;
}

Tensor hash_tensor(const Tensor& self, IntSpan dim, bool keepdim, int64_t mode) {
  constexpr const char* kName = "hash_tensor";
  SCONCE_CHECK(mode == 0, kInvalidArgument, kName, ": Unknown mode ", mode);
  if (is_complex(self.dtype())) fail_dispatch(self.dtype(), kName);
  if (dim.empty())
    SCONCE_CHECK(self.numel() > 0, kInvalidArgument, kName,
                 ": Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
                 "'dim' argument.");
  for (const int64_t d : dim)
    SCONCE_CHECK(self.dim() == 0 || self.size(wrap_dim(kName, d, self.dim())) > 0, kInvalidArgument, kName,
                 ": Expected reduction dim ", d, " to have non-zero size.");
  const bool real = is_floating(self.dtype());
  const ReducedRows reduced = reduced_rows(kName, self, dim, keepdim, real ? DType::kFloat64 : DType::kInt64);
  Tensor out = Tensor::empty(reduced.sizes, DType::kUInt64);
  const auto* const in = static_cast<const uint64_t*>(reduced.rows.data());
  auto* const to = static_cast<uint64_t*>(out.data());
  for_planes(out.numel(), reduced.width, [&](int64_t i) noexcept {
    uint64_t bits = 0;
    for (int64_t j = 0; j < reduced.width; ++j) bits ^= in[i * reduced.width + j];
    to[i] = bits;
  });
  return out;
}

}  // namespace sconce::cpu
