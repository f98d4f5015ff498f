// Discrete Fourier transforms by cuFFT. Match aten::_fft_c2c, _fft_r2c and _fft_c2r (torch 2.15, CUDA) and their result
// strides: any input strides; float16 (power-of-two sizes), float32, float64 and their complex dtypes; bfloat16 gives
// complex64. Each device keeps its most recent plans. normalization: see src/cpu/linalg/fft.h.
#include "src/cuda/linalg/fft.h"

#include <cufft.h>
#include <cufftXt.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include "sconce/mutex.h"
#include "src/cuda/linalg/fft_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/handle.h"
#include "src/cuda/runtime/per_device.h"
#include "src/cuda/runtime/plan_cache.h"
#include "src/cuda/runtime/scratch.h"
#include "src/cuda/runtime/stream.h"
#include "src/device/lazy_library.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/factory.h"
#include "src/tensor/rules/fft_dims.h"
#include "src/tensor/strided_loop.h"

SCONCE_LAZY_LIBRARY(cufft);

namespace sconce::cuda {
namespace {

void check_fft(cufftResult status, const char* expression) {
  SCONCE_CHECK(status != CUFFT_ALLOC_FAILED, kOutOfMemory, expression, ": cuFFT has no memory");
  SCONCE_CHECK(status == CUFFT_SUCCESS, kDevice, expression, ": cuFFT error ", static_cast<int>(status));
}
#define SCONCE_FFT(expression) check_fft((expression), #expression)

using Dims = std::vector<int64_t>;

constexpr size_t kMaxDims = 3;     // per plan
constexpr size_t kMaxPlans = 512;  // per device

DType complex_of(DType real) {
  switch (real) {
    case DType::kFloat16:
      return DType::kComplex32;
    case DType::kFloat32:
      return DType::kComplex64;
    case DType::kFloat64:
      return DType::kComplex128;
    default:
      SCONCE_FAIL(kUnsupported, "fft: not implemented for '", dtype_name(real), "' on CUDA");
  }
}
cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return CUDA_R_16F;
    case DType::kFloat32:
      return CUDA_R_32F;
    case DType::kFloat64:
      return CUDA_R_64F;
    case DType::kComplex32:
      return CUDA_C_16F;
    case DType::kComplex64:
      return CUDA_C_32F;
    default:
      return CUDA_C_64F;
  }
}

// Longest strides first.
void sort_by_stride(Dims& dims, const Tensor& tensor) {
  std::sort(dims.begin(), dims.end(), [&](int64_t a, int64_t b) { return tensor.stride(a) > tensor.stride(b); });
}

// cuFFT's view of memory: element (b, x, y, z) is at b * distance + ((x * embed[1] + y) * embed[2] + z) * stride.
struct Layout {
  std::array<long long, kMaxDims> embed{};
  long long stride = 1, distance = 1;
};

// Describes a tensor [batch, ...]; false if cuFFT cannot express its strides.
bool describe_layout(const Tensor& t, Layout& layout) {
  const int64_t rank = t.dim() - 1;
  int64_t last = t.stride(rank);
  if (last <= 0) return false;
  layout.stride = last;
  layout.embed[0] = t.size(1);
  for (int64_t d = rank; d > 1; --d) {
    const int64_t stride = t.stride(d - 1);
    auto& embed = layout.embed[static_cast<size_t>(d - 1)];
    if (t.size(d - 1) == 1) {
      embed = t.size(d);
      last *= embed;
    } else if (stride > 0 && stride % last == 0 && stride / last >= t.size(d)) {
      embed = stride / last;
      last = stride;
    } else {
      return false;
    }
  }
  layout.distance = t.size(0) == 1 ? t.numel() : t.stride(0);
  return layout.distance > 0;
}

struct Plan {
  Mutex mutex;  // one user at a time sets stream and workspace
  Handle<cufftHandle, cufftDestroy> handle SCONCE_GUARDED_BY(mutex);
  size_t workspace = 0;
};

// sizes: of the signal without the batch dimension.
std::shared_ptr<Plan> make_plan(IntSpan sizes, int64_t batch, const Layout& in, DType in_dtype, const Layout& out,
                                DType out_dtype, DType complex) {
  refuse_capture("the first Fourier transform of a size");
  auto plan = std::make_shared<Plan>();
  const MutexLock lock(plan->mutex);
  const int rank = static_cast<int>(sizes.size());
  std::array<long long, kMaxDims> lengths{};
  std::copy(sizes.begin(), sizes.end(), lengths.begin());
  Layout from = in, to = out;
  SCONCE_FFT(cufftCreate(&plan->handle.value));
  SCONCE_FFT(cufftSetAutoAllocation(plan->handle.value, 0));
  SCONCE_FFT(cufftXtMakePlanMany(plan->handle.value, rank, lengths.data(), from.embed.data(), from.stride,
                                 from.distance, type_of(in_dtype), to.embed.data(), to.stride, to.distance,
                                 type_of(out_dtype), batch, &plan->workspace, type_of(complex)));
  return plan;
}

std::shared_ptr<Plan> plan_for(int device, IntSpan sizes, int64_t batch, const Layout& in, DType in_dtype,
                               const Layout& out, DType out_dtype) {
  const DType complex = is_complex(in_dtype) ? in_dtype : out_dtype;
  PlanKey key;
  for (const int64_t value : {int64_t{static_cast<int8_t>(in_dtype)}, int64_t{static_cast<int8_t>(out_dtype)}, batch,
                              static_cast<int64_t>(sizes.size())})
    key.add(value);
  key.add(sizes);
  for (const Layout* layout : {&in, &out}) {
    for (size_t d = 1; d < sizes.size(); ++d) key.add(layout->embed[d]);
    key.add(layout->stride);
    key.add(layout->distance);
  }
  struct OfDevice : PlanCache<Plan> {
    OfDevice() : PlanCache(kMaxPlans) {}
  };
  // Never destroyed, because cuFFT may be unloaded before us when the process ends.
  static auto& plans = *new PerDevice<OfDevice>;
  return plans[device].get(key, [&] { return make_plan(sizes, batch, in, in_dtype, out, out_dtype, complex); });
}

// Transforms up to three dimensions. The last of `dims` may have different sizes in self and result (half a spectrum).
// In the result, these dimensions are innermost; the others keep self's order in memory.
Tensor transform(const Tensor& self, IntSpan out_sizes, const Dims& dims, DType out_dtype, bool forward) {
  const auto rank = static_cast<size_t>(self.dim()), outer = rank - dims.size();
  Dims order(rank);
  std::iota(order.begin(), order.end(), 0);
  const auto outer_end = std::partition(
      order.begin(), order.end(), [&](int64_t d) { return std::find(dims.begin(), dims.end(), d) == dims.end(); });
  std::sort(order.begin(), outer_end, [&](int64_t a, int64_t b) { return self.stride(a) > self.stride(b); });
  std::copy(dims.begin(), dims.end(), outer_end);

  int64_t batch = 1;
  for (size_t i = 0; i < outer; ++i) batch *= self.size(order[i]);
  Dims in_sizes{batch}, result_sizes{batch}, signal;
  for (const int64_t d : dims) {
    in_sizes.push_back(self.size(d));
    result_sizes.push_back(out_sizes[static_cast<size_t>(d)]);
    signal.push_back(std::max(in_sizes.back(), result_sizes.back()));
  }
  Tensor out = Tensor::empty(result_sizes, out_dtype, self.device());
  if (out.numel() > 0 && self.numel() > 0) {
    if (self.dtype() == DType::kComplex32 || out_dtype == DType::kComplex32)
      for (const int64_t size : signal)
        SCONCE_CHECK(std::has_single_bit(static_cast<uint64_t>(size)), kInvalidArgument,
                     "cuFFT only supports dimensions whose sizes are powers of two when computing in half precision, "
                     "but got a signal size of ",
                     to_string(signal));
    Tensor in = reshape(permute(self, order), in_sizes);
    Layout from, to;
    if (!describe_layout(in, from)) {
      Tensor packed = Tensor::empty(in_sizes, in.dtype(), in.device());
      copy(in, packed, false);
      in = packed;
      describe_layout(in, from);
    }
    describe_layout(out, to);
    const std::shared_ptr<Plan> plan = plan_for(self.device().index, signal, batch, from, in.dtype(), to, out_dtype);
    const Tensor workspace = scratch(plan->workspace, self.device());
    const MutexLock lock(plan->mutex);
    SCONCE_FFT(cufftSetStream(plan->handle.value, current_stream()));
    SCONCE_FFT(cufftSetWorkArea(plan->handle.value, workspace.data()));
    SCONCE_FFT(cufftXtExec(plan->handle.value, in.data(), out.data(), forward ? CUFFT_FORWARD : CUFFT_INVERSE));
    keep_for_graph(plan);
  }
  Dims strides(rank);
  int64_t step = 1;
  for (size_t i = outer; i-- > 0;) {
    strides[static_cast<size_t>(order[i])] = step * out.stride(0);
    step *= self.size(order[i]);
  }
  for (size_t i = outer; i < rank; ++i)
    strides[static_cast<size_t>(order[i])] = out.stride(static_cast<int64_t>(1 + i - outer));
  return out.as_strided(out_sizes, strides, 0);
}

// Scales a tensor without gaps that was transformed along `dims` of `sizes`.
void normalise(const char* name, Tensor& out, int64_t normalization, IntSpan sizes, const Dims& dims) {
  SCONCE_CHECK(normalization >= 0 && normalization <= 2, kInvalidArgument, name, ": normalization mode ",
               normalization);
  if (normalization == 0 || out.numel() == 0) return;
  double count = 1;
  for (const int64_t d : dims) count *= static_cast<double>(sizes[static_cast<size_t>(d)]);
  const double scale = 1 / (normalization == 1 ? std::sqrt(count) : count);
  if (scale == 1) return;
  const bool pairs = is_complex(out.dtype());
  launch_scale(out.data(), static_cast<int>(pairs ? value_dtype(out.dtype()) : out.dtype()),
               out.numel() * (pairs ? 2 : 1), scale, current_stream());
  SCONCE_CUDA(cudaGetLastError());
}

// Fills in the half of a spectrum that follows by symmetry.
void complete(Tensor& out, const Dims& dims, int64_t known) {
  if (out.numel() == 0) return;
  SCONCE_CHECK(out.dim() <= kMaxFftRank, kUnsupported, "_fft_r2c: ", out.dim(), " dimensions on CUDA");
  Mirror mirror{};
  mirror.known = known;
  const auto add = [&](int64_t d) {
    mirror.sizes[mirror.rank] = out.size(d);
    mirror.strides[mirror.rank] = out.stride(d);
    mirror.transformed[mirror.rank++] = std::find(dims.begin(), dims.end(), d) != dims.end();
  };
  add(dims.back());
  for (int64_t d = out.dim() - 1; d >= 0; --d)
    if (d != dims.back()) add(d);
  launch_mirror(mirror, out.data(), static_cast<int>(value_dtype(out.dtype())), current_stream());
  SCONCE_CUDA(cudaGetLastError());
}

// Whether ATen lets cuFFT transform all dimensions at once.
bool at_once(IntSpan dims) { return dims.size() <= kMaxDims && !(dims.size() >= 2 && dims[0] == 0 && dims[1] == 1); }

// Complex transforms over `dims`, three at a time, shortest strides first.
Tensor over_dims(Tensor at, Dims dims, bool forward) {
  while (!dims.empty()) {
    sort_by_stride(dims, at);
    const size_t count = std::min(kMaxDims, dims.size());
    at = transform(at, at.sizes(), Dims(dims.end() - static_cast<ptrdiff_t>(count), dims.end()), at.dtype(), forward);
    dims.resize(dims.size() - count);
  }
  return at;
}

Tensor row_major_copy(const Tensor& self) {
  Tensor packed = Tensor::empty(self.sizes(), self.dtype(), self.device());
  copy(self, packed, false);
  return packed;
}

// cuFFT reads pairs of real numbers, so the data must be aligned to pairs.
Tensor aligned(const Tensor& self, int64_t last) {
  if (reinterpret_cast<uintptr_t>(self.data()) % (2 * self.itemsize()) == 0) return self;
  Dims forth, back(static_cast<size_t>(self.dim()));
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != last) forth.push_back(d);
  forth.push_back(last);
  for (size_t i = 0; i < forth.size(); ++i) back[static_cast<size_t>(forth[i])] = static_cast<int64_t>(i);
  return permute(row_major_copy(permute(self, forth)), back);
}

}  // namespace

Tensor _fft_c2c(const Tensor& self, IntSpan dim, int64_t normalization, bool forward) {
  require_library(sconce_lazy_cufft);
  SCONCE_CHECK(is_complex(self.dtype()), kInvalidArgument, "_fft_c2c: expected a complex tensor, got ", describe(self));
  const DeviceScope scope(self.device());
  const Dims dims = fft_dims("_fft_c2c", self, dim);
  if (dims.empty()) {
    Tensor out = empty_dense(self, self.dtype(), self.device());
    copy(self, out, false);
    return out;
  }
  Tensor out = over_dims(self, dims, forward);
  normalise("_fft_c2c", out, normalization, self.sizes(), dims);
  return out;
}

Tensor _fft_r2c(const Tensor& self, IntSpan dim, int64_t normalization, bool onesided) {
  require_library(sconce_lazy_cufft);
  SCONCE_CHECK(is_floating(self.dtype()), kInvalidArgument, "_fft_r2c: expected a real tensor, got ", describe(self));
  SCONCE_CHECK(!dim.empty(), kInvalidArgument, "_fft_r2c: no dimension given");
  const DeviceScope scope(self.device());
  if (self.dtype() == DType::kBFloat16)
    return _fft_r2c(moved_to(self, DType::kFloat32, self.device()), dim, normalization, onesided);
  const Dims dims = fft_dims("_fft_r2c", self, dim);
  const int64_t last = dims.back(), known = self.size(last) / 2 + 1;
  SCONCE_CHECK(self.size(last) > 0, kInvalidArgument, "_fft_r2c: dimension ", last, " of ", describe(self),
               " has no elements");
  Dims sizes(self.sizes().begin(), self.sizes().end());
  if (onesided || dims.size() > 1) sizes[static_cast<size_t>(last)] = known;
  const IntSpan wanted = onesided ? IntSpan(sizes) : self.sizes();
  const DType dtype = complex_of(self.dtype());
  const Tensor in = aligned(self, last);
  Tensor out = at_once(dims)
                   ? transform(in, wanted, dims, dtype, true)
                   : over_dims(transform(in, sizes, {last}, dtype, true), Dims(dims.begin(), dims.end() - 1), true);
  normalise("_fft_r2c", out, normalization, self.sizes(), dims);
  if (onesided) return out;
  if (out.size(last) != self.size(last)) {
    Tensor whole = Tensor::empty(self.sizes(), dtype, self.device());
    Tensor half = narrow(whole, last, 0, known);
    copy(out, half, false);
    out = whole;
  }
  complete(out, dims, known);
  return out;
}

Tensor _fft_c2r(const Tensor& self, IntSpan dim, int64_t normalization, int64_t last_dim_size) {
  require_library(sconce_lazy_cufft);
  SCONCE_CHECK(is_complex(self.dtype()), kInvalidArgument, "_fft_c2r: expected a complex tensor, got ", describe(self));
  SCONCE_CHECK(!dim.empty(), kInvalidArgument, "_fft_c2r: no dimension given");
  SCONCE_CHECK(last_dim_size >= 1, kInvalidArgument, "_fft_c2r: Invalid number of data points (", last_dim_size,
               ") specified");
  const DeviceScope scope(self.device());
  const Dims dims = fft_dims("_fft_c2r", self, dim);
  const int64_t last = dims.back(), needed = last_dim_size / 2 + 1;
  SCONCE_CHECK(self.size(last) >= needed, kInvalidArgument, "_fft_c2r: ", last_dim_size,
               " elements need half a spectrum of ", needed, ", got ", describe(self));
  const Tensor half = narrow(self, last, 0, needed);
  Dims sizes(self.sizes().begin(), self.sizes().end());
  sizes[static_cast<size_t>(last)] = last_dim_size;
  const DType dtype = value_dtype(self.dtype());
  // A copy, because cuFFT may overwrite its input here.
  Tensor out = at_once(dims)
                   ? transform(row_major_copy(half), sizes, dims, dtype, false)
                   : transform(over_dims(half, Dims(dims.begin(), dims.end() - 1), false), sizes, {last}, dtype, false);
  normalise("_fft_c2r", out, normalization, sizes, dims);
  return out;
}

}  // namespace sconce::cuda
