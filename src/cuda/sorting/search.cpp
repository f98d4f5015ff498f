// Searching, counting and selection by position. Match aten::searchsorted, bucketize, repeat_interleave.Tensor,
// masked_scatter, masked_scatter_backward, nonzero_static, histc, median, nanmedian, mode and index_reduce (torch 2.15,
// CUDA). A run with bad values fails when it waits for the stream.
#include "src/cpu/sorting/search.h"

#include <limits>
#include <utility>

#include "src/cpu/indexing/masked.h"
#include "src/cpu/sorting/order_statistics.h"
#include "src/cuda/indexing/masked_kernels.h"
#include "src/cuda/indexing/nonzero_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/scratch.h"
#include "src/cuda/runtime/stream.h"
#include "src/cuda/sorting/search_kernels.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/rows/slices.h"
#include "src/tensor/scalar.h"
#include "src/tensor/strided_loop.h"
#include "src/tensor/type_promotion.h"

namespace sconce::cuda {
namespace {

constexpr int kNote = static_cast<int>(Noted::kIndex);

// A tensor on the device, filled with a number.
Tensor filled(IntSpan sizes, double value, DType dtype, Device device) {
  Tensor number = Tensor::empty({}, DType::kFloat64), element = Tensor::empty({}, dtype);
  *number.data_as<double>() = value;
  sconce::copy(number, element);
  Tensor out = Tensor::empty(sizes, dtype, device);
  fill(out, element.data());
  return out;
}

void done() {
  SCONCE_CUDA(cudaGetLastError());
  check_noted();
}

// The dtype to search in, which holds all values of smaller types.
DType searched_dtype(DType dtype) {
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) return DType::kFloat32;
  if (dtype == DType::kUInt8 || dtype == DType::kInt8 || dtype == DType::kInt16) return DType::kInt32;
  SCONCE_CHECK(dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kInt32 || dtype == DType::kInt64,
               kUnsupported, "searchsorted: not implemented for '", dtype_name(dtype), "' on CUDA");
  return dtype;
}

Tensor search(const Tensor& sequence, const Tensor& values, DType common, bool out_int32, bool right,
              const Tensor* sorter) {
  SCONCE_CHECK(sequence.dim() > 0, kInvalidArgument,
               "searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension");
  bool matched = sequence.dim() == 1 || sequence.dim() == values.dim();
  for (int64_t d = 0; matched && sequence.dim() > 1 && d + 1 < sequence.dim(); ++d)
    matched = sequence.size(d) == values.size(d);
  SCONCE_CHECK(matched, kInvalidArgument,
               "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
               "tensor and input value tensor must match, but we got boundaries tensor ",
               to_string(sequence.sizes()), " and input value tensor ", to_string(values.sizes()));
  const int64_t n = sequence.size(sequence.dim() - 1);
  SCONCE_CHECK(!out_int32 || n < INT32_MAX, kInvalidArgument,
               "searchsorted(): the size of boundaries' last dimension should be less than 2147483647, but we got ", n);
  SCONCE_CHECK(!sorter || (sorter->dtype() == DType::kInt64 && sorter->device() == sequence.device() &&
                           std::equal(sorter->sizes().begin(), sorter->sizes().end(), sequence.sizes().begin(),
                                      sequence.sizes().end())),
               kInvalidArgument, "searchsorted(): boundary ", describe(sequence),
               " and sorter must have the same size, the sorter of int64");
  SCONCE_CHECK(sequence.device() == values.device(), kInvalidArgument,
               "searchsorted(): boundaries and input value tensors should have same device type, but got ",
               describe(sequence), " and ", describe(values));
  const DeviceScope scope(values.device());
  Tensor out = Tensor::empty(values.sizes(), out_int32 ? DType::kInt32 : DType::kInt64, values.device());
  if (out.numel() == 0) return out;
  // Values are rounded to the common dtype first, then widened.
  const DType wide = searched_dtype(common);
  const Tensor elements = cuda::contiguous(converted(converted(sequence, common), wide)),
               sought = cuda::contiguous(converted(converted(values, common), wide)),
               order = sorter ? cuda::contiguous(*sorter) : Tensor();
  SearchCall call{};
  call.dtype = static_cast<int>(wide);
  call.sequence = elements.data();
  call.values = sought.data();
  call.sorter = sorter ? order.data_as<int64_t>() : nullptr;
  call.n = n;
  call.one_row = sequence.dim() == 1;
  call.each = call.one_row ? 1 : values.size(values.dim() - 1);
  call.count = values.numel();
  call.right = right;
  call.narrow = out_int32;
  call.out = out.data();
  call.noted = noted_by_kernels();
  call.note = kNote;
  launch_search(call, current_stream());
  SCONCE_CUDA(cudaGetLastError());
  if (sorter) check_noted();
  return out;
}

Mask mask_of(const Tensor& packed) { return {static_cast<const uint8_t*>(packed.data()), packed.numel()}; }

// Calls `call` once to learn its scratch size, then with the scratch.
template <class F>
void with_scratch(Device device, F&& call) {
  size_t bytes = 0;
  SCONCE_CUDA(call(nullptr, bytes));
  const Tensor memory = scratch(bytes, device);
  SCONCE_CUDA(call(memory.data(), bytes));
}

Tensor middle_of_all(const char* name, const Tensor& self, bool skip_nans) {
  const DeviceScope scope(self.device());
  if (self.numel() == 0) return filled({}, std::numeric_limits<double>::quiet_NaN(), self.dtype(), self.device());
  const int64_t count = self.numel(), one = 1;
  const Tensor row = cuda::contiguous(self).as_strided(IntSpan(&count, 1), IntSpan(&one, 1),
                                                       self.is_contiguous() ? self.storage_offset() : 0);
  const Tensor sorted = sort_stable(row, true, 0, false)[0];
  Tensor out = Tensor::empty({}, self.dtype(), self.device());
  check_launch(
      name,
      launch_middle(static_cast<int>(self.dtype()), sorted.data(), 1, count, skip_nans, out.data(), current_stream()),
      self.dtype());
  return out;
}

}  // namespace

Tensor searchsorted_Tensor(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right,
                           std::optional<std::string_view> side, const Tensor* sorter) {
  return search(sorted_sequence, self, ResultType().add(sorted_sequence).add(self).get(), out_int32,
                cpu::right_side(right, side), sorter);
}
Tensor searchsorted_Scalar(const Tensor& sorted_sequence, double self, bool out_int32, bool right,
                           std::optional<std::string_view> side, const Tensor* sorter) {
  const DeviceScope scope(sorted_sequence.device());
  return search(sorted_sequence, filled({}, self, DType::kFloat64, sorted_sequence.device()),
                ResultType().add(sorted_sequence).add_number(Scalar(self)).get(), out_int32,
                cpu::right_side(right, side), sorter);
}
Tensor bucketize_Tensor(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
  SCONCE_CHECK(boundaries.dim() == 1, kInvalidArgument,
               "bucketize: boundaries tensor must be 1 dimension, but got dim(", boundaries.dim(), ")");
  return searchsorted_Tensor(boundaries, self, out_int32, right, std::nullopt, nullptr);
}

// Waits for the sum if output_size is not given.
Tensor repeat_interleave_Tensor(const Tensor& repeats, std::optional<int64_t> output_size) {
  SCONCE_CHECK(repeats.dim() == 1, kInvalidArgument, "repeat_interleave only accept 1D vector as repeat, got ",
               describe(repeats));
  SCONCE_CHECK(is_integral(repeats.dtype(), false) && repeats.itemsize() <= 8, kInvalidArgument,
               "repeats has to be an integer tensor, got ", dtype_name(repeats.dtype()));
  SCONCE_CHECK(!output_size || *output_size >= 0, kInvalidArgument, "repeat_interleave: output_size ", *output_size);
  const DeviceScope scope(repeats.device());
  const int64_t n = repeats.numel();
  if (n == 0) return Tensor::empty(repeats.sizes(), repeats.dtype(), repeats.device());
  const Tensor sums = cumsum(repeats, 0, DType::kInt64);
  int64_t count = output_size.value_or(0);
  if (!output_size) {
    refuse_capture("results whose size depends on values");
    SCONCE_CUDA(cudaMemcpyAsync(&count, sums.data_as<int64_t>() + n - 1, sizeof count, cudaMemcpyDeviceToHost,
                                current_stream()));
    SCONCE_CUDA(cudaStreamSynchronize(current_stream()));
    SCONCE_CHECK(count >= 0, kInvalidArgument, "repeats can not be negative: they sum to ", count);
  }
  Tensor out = Tensor::empty(IntSpan(&count, 1), repeats.dtype(), repeats.device());
  if (count == 0) return out;
  launch_repeat(sums.data_as<int64_t>(), n, count, static_cast<int>(repeats.itemsize()), out.data(), noted_by_kernels(),
                kNote, current_stream());
  done();
  return out;
}

Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  cpu::check_masked_scatter(self, mask, source);
  const DeviceScope scope(self.device());
  const Shape sizes = broadcast_shapes("masked_scatter", self.sizes(), mask.sizes());
  const Tensor from = cuda::contiguous(expand("masked_scatter", self, sizes)),
               set = cuda::contiguous(expand("masked_scatter", mask, sizes)), values = cuda::contiguous(source);
  Tensor out = Tensor::empty(sizes, self.dtype(), self.device());
  if (out.numel() == 0) return out;
  with_scratch(self.device(), [&](void* memory, size_t& bytes) {
    return masked_scatter(memory, bytes, mask_of(set), static_cast<int>(self.itemsize()), from.data(), values.data(),
                          source.numel(), out.data(), noted_by_kernels(), kNote, current_stream());
  });
  done();
  return out;
}

Tensor masked_scatter_backward(const Tensor& grad_output, const Tensor& mask, IntSpan sizes) {
  SCONCE_CHECK(mask.dtype() == DType::kBool, kInvalidArgument, "masked_scatter_backward: expected a bool mask, got ",
               dtype_name(mask.dtype()));
  const DeviceScope scope(grad_output.device());
  Tensor out = Tensor::empty(sizes, grad_output.dtype(), grad_output.device());
  fill_zero(out);
  const Shape shape = broadcast_shapes("masked_scatter_backward", grad_output.sizes(), mask.sizes());
  const Tensor from = cuda::contiguous(expand("masked_scatter_backward", grad_output, shape)),
               set = cuda::contiguous(expand("masked_scatter_backward", mask, shape));
  if (from.numel() == 0) return out;
  const Tensor total = Tensor::empty({}, DType::kInt64, out.device());
  with_scratch(out.device(), [&](void* memory, size_t& bytes) {
    return masked_gather(memory, bytes, mask_of(set), static_cast<int>(out.itemsize()), from.data(), out.data(),
                         out.numel(), total.data_as<int64_t>(), noted_by_kernels(), kNote, current_stream());
  });
  done();
  return out;
}

Tensor nonzero_static(const Tensor& self, int64_t size, int64_t fill_value) {
  SCONCE_CHECK(size >= 0, kInvalidArgument, "nonzero_static: 'size' must be an non-negative integer, got ", size);
  SCONCE_CHECK(self.dim() <= 16, kUnsupported, "nonzero_static: ", self.dim(), " dimensions on CUDA");
  const DeviceScope scope(self.device());
  // Each dimension is a column, as in ATen.
  const int64_t sizes[] = {size, self.dim()}, strides[] = {1, std::max<int64_t>(size, 1)}, count = self.numel();
  Tensor out = Tensor::empty_strided(sizes, strides, DType::kInt64, self.device());
  fill(out, &fill_value);
  if (out.numel() == 0 || count == 0) return out;
  Tensor flags = cuda::contiguous(self);
  const Tensor total = Tensor::empty({}, DType::kInt64, self.device());
  if (self.dtype() != DType::kBool) {
    const Tensor packed = std::exchange(flags, Tensor::empty(IntSpan(&count, 1), DType::kUInt8, self.device()));
    launch_flags(packed.data(), static_cast<int>(packed.dtype()), count, flags.data_as<uint8_t>(), current_stream());
  }
  with_scratch(self.device(), [&](void* memory, size_t& bytes) {
    return select_coordinates(memory, bytes, mask_of(flags), static_cast<int>(self.dim()), self.sizes().data(), size,
                              out.data_as<int64_t>(), total.data_as<int64_t>(), current_stream());
  });
  SCONCE_CUDA(cudaGetLastError());
  return out;
}

Tensor histc(const Tensor& self, int64_t bins, double min, double max) {
  SCONCE_CHECK(bins > 0, kInvalidArgument, "histc: bins must be > 0, got ", bins);
  SCONCE_CHECK(min <= max && max - min < std::numeric_limits<double>::infinity(), kInvalidArgument, "histc: range of [",
               min, ", ", max, "] is not finite, or its ends are swapped");
  const DeviceScope scope(self.device());
  const DType dtype = self.dtype();
  Tensor counts = Tensor::empty(IntSpan(&bins, 1), DType::kInt64, self.device());
  const int64_t zero = 0, two = 2;
  fill(counts, &zero);
  if (self.numel() > 0) {
    const Tensor packed = cuda::contiguous(self);
    Tensor range = Tensor::empty(IntSpan(&two, 1), DType::kFloat64, self.device());
    if (min == max) {
      check_launch("histc",
                   launch_range(static_cast<int>(dtype), packed.data(), packed.numel(), range.data_as<double>(),
                                current_stream()),
                   dtype);
    } else {
      const int64_t none = 1;
      Tensor low = range.as_strided({}, {}, 0), high = range.as_strided({}, {}, none);
      fill(low, &min);
      fill(high, &max);
    }
    check_launch("histc",
                 launch_count_bins(static_cast<int>(dtype), packed.data(), packed.numel(), bins,
                                   range.data_as<double>(), counts.data_as<unsigned long long>(), current_stream()),
                 dtype);
  }
  return converted(counts, dtype);
}

Tensor median(const Tensor& self) { return middle_of_all("median", self, false); }
Tensor nanmedian(const Tensor& self) { return middle_of_all("nanmedian", self, true); }

std::array<Tensor, 2> mode(const Tensor& self, int64_t dim, bool keepdim) {
  dim = wrap_dim("mode", dim, self.dim());
  cpu::check_dim_not_empty("mode", self, dim);
  const DeviceScope scope(self.device());
  if (self.dim() == 0) return sort_stable(self, true, 0, false);
  const Shape shape = cpu::without_dim(self, dim, keepdim);
  std::array<Tensor, 2> out{Tensor::empty(shape, self.dtype(), self.device()),
                            Tensor::empty(shape, DType::kInt64, self.device())};
  if (out[0].numel() == 0) return out;
  const Tensor rows = cuda::contiguous(move_last(self, dim));
  const std::array<Tensor, 2> sorted = sort_stable(rows, true, -1, false);
  check_launch(
      "mode",
      launch_most_frequent(static_cast<int>(self.dtype()), sorted[0].data(), sorted[1].data_as<int64_t>(),
                           out[0].numel(), self.size(dim), out[0].data(), out[1].data_as<int64_t>(), current_stream()),
      self.dtype());
  return out;
}

Tensor index_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
                    bool include_self) {
  dim = wrap_dim("index_reduce", dim, self.dim());
  SCONCE_CHECK(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin", kInvalidArgument,
               "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got ", reduce, ".");
  SCONCE_CHECK(
      index.dim() <= 1 && source.dim() == self.dim() && (source.dim() == 0 ? 1 : source.size(dim)) == index.numel(),
      kInvalidArgument, "index_reduce(): index ", describe(index), " and source ", describe(source),
      " do not fit self ", describe(self));
  const DeviceScope scope(self.device());
  Tensor out = Tensor::empty(self.sizes(), self.dtype(), self.device());
  // One index for all elements of a slice.
  Shape strides;
  for (int64_t d = 0; d < source.dim(); ++d) strides.push_back(d == dim && index.dim() == 1 ? index.stride(0) : 0);
  scatter_reduce_two_out(out, self, dim, index.as_strided(source.sizes(), strides, index.storage_offset()), source,
                         reduce, include_self);
  return out;
}

}  // namespace sconce::cuda
