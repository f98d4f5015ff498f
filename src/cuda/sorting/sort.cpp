// Sorting and selection. Match aten::sort.stable, sort, topk, kthvalue, nonzero and masked_select (torch 2.11, CUDA).
#include "src/cpu/sorting/order_statistics.h"
#include "src/cuda/indexing/nonzero_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/device_properties.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/scratch.h"
#include "src/cuda/runtime/stream.h"
#include "src/cuda/sorting/select_kernels.h"
#include "src/cuda/sorting/sort_kernels.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/rows/slices.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {
namespace {

// Longer rows are reduced by selection before they are sorted.
constexpr int64_t kLongRow = 2048;

// Writes `kept` elements, from `first` on, of each sorted row [..., length] to packed values and indices.
void sort_rows(const char* name, const Tensor& rows, const Tensor* labels, int64_t first, int64_t kept, bool descending,
               Tensor& values, Tensor& indices) {
  const int64_t length = rows.size(rows.dim() - 1);
  const SortCall call{static_cast<int>(rows.dtype()),
                      rows.data(),
                      labels ? labels->data_as<int64_t>() : nullptr,
                      rows.numel() / length,
                      length,
                      first,
                      kept,
                      descending,
                      values.data(),
                      indices.data_as<int64_t>()};
  size_t bytes = 0;
  const auto sort = [&](void* memory) {
    check_launch(name, launch_sort(memory, bytes, call, current_stream()), rows.dtype());
  };
  sort(nullptr);
  sort(scratch(bytes, rows.device()).data());
}

void select_rows(const char* name, const Tensor& rows, int64_t count, bool descending, bool last_only, Tensor& values,
                 Tensor& indices) {
  const int64_t length = rows.size(rows.dim() - 1);
  const SelectCall call{static_cast<int>(rows.dtype()),
                        rows.data(),
                        rows.numel() / length,
                        length,
                        count,
                        descending,
                        last_only,
                        values.data(),
                        indices.data_as<int64_t>(),
                        device_properties(rows.device().index).multiprocessors};
  size_t bytes = 0;
  const auto select = [&](void* memory) {
    check_launch(name, launch_select(memory, bytes, call, current_stream()), rows.dtype());
  };
  select(nullptr);
  select(scratch(bytes, rows.device()).data());
}

// Calls fill_rows with packed [..., n] tensors for out[0] and out[1], with `dim` moved last: the results themselves if
// they have that layout, else temporaries that are copied back.
template <class F>
void by_rows(std::array<Tensor, 2>& out, int64_t dim, F fill_rows) {
  std::array<Tensor, 2> turned{move_last(out[0], dim), move_last(out[1], dim)}, packed = turned;
  for (Tensor& t : packed)
    if (!t.is_contiguous()) t = Tensor::empty(t.sizes(), t.dtype(), t.device());
  fill_rows(packed[0], packed[1]);
  for (size_t i = 0; i < 2; ++i)
    if (!turned[i].is_contiguous()) copy(packed[i], turned[i], false);
}

void only_element(const Tensor& self, std::array<Tensor, 2>& out) {
  copy(self, out[0], false);
  const int64_t zero = 0;
  fill(out[1], &zero);
}

}  // namespace

std::array<Tensor, 2> sort_stable(const Tensor& self, std::optional<bool>, int64_t dim, bool descending) {
  SCONCE_CHECK(!is_complex(self.dtype()) && self.itemsize() <= 8, kUnsupported, "sort: not implemented for '",
               dtype_name(self.dtype()), "' on CUDA");
  dim = wrap_dim("sort", dim, self.dim());
  const DeviceScope scope(self.device());
  const Shape strides = dense_strides(self.sizes(), self.strides());
  std::array<Tensor, 2> out{Tensor::empty_strided(self.sizes(), strides, self.dtype(), self.device()),
                            Tensor::empty_strided(self.sizes(), strides, DType::kInt64, self.device())};
  if (self.numel() == 0) return out;
  if (self.dim() == 0) {
    only_element(self, out);
    return out;
  }
  const Tensor rows = contiguous(move_last(self, dim));
  by_rows(out, dim, [&](Tensor& values, Tensor& indices) {
    sort_rows("sort", rows, nullptr, 0, self.size(dim), descending, values, indices);
  });
  return out;
}

std::array<Tensor, 2> sort(const Tensor& self, int64_t dim, bool descending) {
  return sort_stable(self, true, dim, descending);
}

// Selects what a stable sort puts first, so the first of equal elements. If not `sorted`, long rows keep their order.
std::array<Tensor, 2> topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted) {
  dim = wrap_dim("topk", dim, self.dim());
  const int64_t length = self.dim() == 0 ? 1 : self.size(dim);
  SCONCE_CHECK(k >= 0 && k <= length, kInvalidArgument, "topk: selected index k out of range: ", k, " of ",
               to_string(self.sizes()));
  SCONCE_CHECK(!is_complex(self.dtype()) && self.itemsize() <= 8, kUnsupported, "topk: not implemented for '",
               dtype_name(self.dtype()), "' on CUDA");
  const DeviceScope scope(self.device());
  Shape sizes(self.sizes());
  if (self.dim() > 0) sizes[static_cast<int>(dim)] = k;
  std::array<Tensor, 2> out{Tensor::empty(sizes, self.dtype(), self.device()),
                            Tensor::empty(sizes, DType::kInt64, self.device())};
  if (self.dim() == 0 && k == 1) only_element(self, out);
  if (self.dim() == 0 || out[0].numel() == 0) return out;
  const Tensor rows = contiguous(move_last(self, dim));
  by_rows(out, dim, [&](Tensor& values, Tensor& indices) {
    if (length <= kLongRow || k == length || length > INT32_MAX) {
      sort_rows("topk", rows, nullptr, 0, k, largest, values, indices);
    } else if (k == 1 || !sorted) {
      select_rows("topk", rows, k, largest, false, values, indices);
    } else {
      Tensor first = Tensor::empty(values.sizes(), values.dtype(), values.device()),
             places = Tensor::empty(values.sizes(), DType::kInt64, values.device());
      select_rows("topk", rows, k, largest, false, first, places);
      sort_rows("topk", first, &places, 0, k, largest, values, indices);
    }
  });
  return out;
}

std::array<Tensor, 2> kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  dim = wrap_dim("kthvalue", dim, self.dim());
  cpu::check_dim_not_empty("kthvalue", self, dim);
  SCONCE_CHECK(k >= 1 && k <= (self.dim() == 0 ? 1 : self.size(dim)), kInvalidArgument,
               "kthvalue(): selected number k out of range for dimension ", dim);
  SCONCE_CHECK(!is_complex(self.dtype()) && self.itemsize() <= 8, kUnsupported, "kthvalue: not implemented for '",
               dtype_name(self.dtype()), "' on CUDA");
  const DeviceScope scope(self.device());
  const Shape shape = cpu::without_dim(self, dim, keepdim);
  std::array<Tensor, 2> out{Tensor::empty(shape, self.dtype(), self.device()),
                            Tensor::empty(shape, DType::kInt64, self.device())};
  if (self.dim() == 0) only_element(self, out);
  if (self.dim() == 0 || out[0].numel() == 0) return out;
  const Tensor rows = contiguous(move_last(self, dim));
  const int64_t length = rows.size(rows.dim() - 1);
  if (length <= kLongRow || length > INT32_MAX)
    sort_rows("kthvalue", rows, nullptr, k - 1, 1, false, out[0], out[1]);
  else
    select_rows("kthvalue", rows, k, false, true, out[0], out[1]);
  return out;
}

namespace {

// Row-major numbers of the nonzero elements of a packed tensor. Waits for their count.
Tensor numbers_of_nonzero(const Tensor& packed) {
  refuse_capture("results whose size depends on values");
  const int64_t count = packed.numel();
  int64_t found = 0;
  Tensor selected = Tensor::empty(IntSpan(&count, 1), DType::kInt64, packed.device());
  if (count > 0) {
    const Tensor flags = Tensor::empty(IntSpan(&count, 1), DType::kUInt8, packed.device());
    const Tensor total = Tensor::empty({}, DType::kInt64, packed.device());
    launch_flags(packed.data(), static_cast<int>(packed.dtype()), count, flags.data_as<uint8_t>(), current_stream());
    size_t bytes = 0;
    const auto select = [&](void* memory) {
      SCONCE_CUDA(select_nonzero(memory, bytes, flags.data_as<uint8_t>(), count, selected.data_as<int64_t>(),
                                 total.data_as<int64_t>(), current_stream()));
    };
    select(nullptr);
    select(scratch(bytes, packed.device()).data());
    SCONCE_CUDA(cudaMemcpyAsync(&found, total.data(), sizeof found, cudaMemcpyDeviceToHost, current_stream()));
    SCONCE_CUDA(cudaStreamSynchronize(current_stream()));
  }
  const int64_t one = 1;
  return selected.as_strided(IntSpan(&found, 1), IntSpan(&one, 1), 0);
}

}  // namespace

Tensor masked_select(const Tensor& self, const Tensor& mask) {
  SCONCE_CHECK(mask.dtype() == DType::kBool, kInvalidArgument, "masked_select: expected BoolTensor for mask, got ",
               dtype_name(mask.dtype()));
  const DeviceScope scope(self.device());
  const Shape sizes = broadcast_shapes("masked_select", self.sizes(), mask.sizes());
  const Tensor values = contiguous(expand("masked_select", self, sizes));
  const Tensor numbers = numbers_of_nonzero(contiguous(expand("masked_select", mask, sizes)));
  Tensor out = Tensor::empty(numbers.sizes(), self.dtype(), self.device());
  if (out.numel() == 0) return out;
  launch_gather(values.data(), static_cast<int>(self.itemsize()), numbers.data_as<int64_t>(), out.numel(),
                values.numel(), out.data(), current_stream());
  SCONCE_CUDA(cudaGetLastError());
  return out;
}

// [count, rank], column by column as in PyTorch. Waits for the count.
Tensor nonzero(const Tensor& self) {
  const DeviceScope scope(self.device());
  const int64_t rank = self.dim();
  SCONCE_CHECK(rank <= 16, kUnsupported, "nonzero: ", rank, " dimensions on CUDA");
  const Tensor selected = numbers_of_nonzero(contiguous(self));
  const int64_t found = selected.numel();
  const int64_t sizes[] = {found, rank}, strides[] = {1, std::max<int64_t>(found, 1)};
  Tensor out = Tensor::empty_strided(sizes, strides, DType::kInt64, self.device());
  if (found > 0 && rank > 0)
    launch_coordinates(selected.data_as<int64_t>(), found, static_cast<int>(rank), self.sizes().data(),
                       out.data_as<int64_t>(), current_stream());
  SCONCE_CUDA(cudaGetLastError());
  return out;
}

}  // namespace sconce::cuda
