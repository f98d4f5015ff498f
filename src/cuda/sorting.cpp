// Sorting and selection. Match aten::sort.stable, sort, topk, nonzero and masked_select (torch 2.11, CUDA).
#include "src/cuda/copy.h"
#include "src/cuda/device_kernels.h"
#include "src/cuda/error.h"
#include "src/cuda/ops.h"
#include "src/cuda/scratch.h"
#include "src/cuda/stream.h"
#include "src/ops/slices.h"
#include "src/ops/strided_loop.h"

namespace sconce::cuda {
namespace {}  // namespace

std::array<Tensor, 2> sort_stable(const Tensor& self, std::optional<bool>, int64_t dim, bool descending) {
  SCONCE_CHECK(!is_complex(self.dtype()) && self.itemsize() <= 8, kUnsupported, "sort: not implemented for '",
               dtype_name(self.dtype()), "' on CUDA");
  dim = wrap_dim("sort", dim, self.dim());
  const DeviceScope scope(self.device());
  const Shape strides = dense_strides(self.sizes(), self.strides());
  Tensor values = Tensor::empty_strided(self.sizes(), strides, self.dtype(), self.device());
  Tensor indices = Tensor::empty_strided(self.sizes(), strides, DType::kInt64, self.device());
  if (self.numel() == 0) return {std::move(values), std::move(indices)};
  if (self.dim() == 0) {
    copy(self, values, false);
    const int64_t zero = 0;
    fill(indices, &zero);
    return {std::move(values), std::move(indices)};
  }
  const int64_t count = self.numel(), length = self.size(dim);
  const Tensor rows = contiguous(move_last(self, dim));
  const auto words = [&] { return Tensor::empty(IntSpan(&count, 1), DType::kInt64, self.device()); };
  const Tensor keys = words(), sorted_keys = words(), positions = words();
  Tensor sorted = Tensor::empty(rows.sizes(), DType::kInt64, self.device());
  Tensor gathered = Tensor::empty(rows.sizes(), self.dtype(), self.device());
  const cudaStream_t stream = current_stream();
  launch_sort_keys(rows.data(), static_cast<int>(self.dtype()), count, length, descending, keys.data_as<uint64_t>(),
                   positions.data_as<int64_t>(), stream);
  size_t bytes = 0;
  const auto sort = [&](void* memory) {
    SCONCE_CUDA(sort_segments(memory, bytes, keys.data_as<uint64_t>(), sorted_keys.data_as<uint64_t>(),
                              positions.data_as<int64_t>(), sorted.data_as<int64_t>(), count / length, length, stream));
  };
  sort(nullptr);
  sort(scratch(bytes, self.device()).data());
  launch_gather(rows.data(), static_cast<int>(self.itemsize()), sorted.data_as<int64_t>(), count, length,
                gathered.data(), stream);
  SCONCE_CUDA(cudaGetLastError());
  Tensor values_by_row = move_last(values, dim), indices_by_row = move_last(indices, dim);
  copy(gathered, values_by_row, false);
  copy(sorted, indices_by_row, false);
  return {std::move(values), std::move(indices)};
}

std::array<Tensor, 2> sort(const Tensor& self, int64_t dim, bool descending) {
  return sort_stable(self, true, dim, descending);
}

// The first k of a sort: of equal elements the first.
std::array<Tensor, 2> topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool) {
  dim = wrap_dim("topk", dim, self.dim());
  SCONCE_CHECK(k >= 0 && k <= (self.dim() == 0 ? 1 : self.size(dim)), kInvalidArgument,
               "topk: selected index k out of range: ", k, " of ", to_string(self.sizes()));
  const DeviceScope scope(self.device());
  const std::array<Tensor, 2> sorted = sort_stable(self, true, dim, largest);
  if (self.dim() == 0) return sorted;
  Shape sizes(self.sizes());
  sizes[static_cast<int>(dim)] = k;
  std::array<Tensor, 2> first;
  for (size_t i = 0; i < 2; ++i) {
    first[i] = Tensor::empty(sizes, sorted[i].dtype(), self.device());
    copy(sorted[i].as_strided(sizes, sorted[i].strides(), sorted[i].storage_offset()), first[i], false);
  }
  return first;
}

namespace {

// Row-major numbers of the elements of a packed tensor that are not zero. Waits for their count.
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
  SCONCE_CHECK(self.itemsize() <= 8, kUnsupported, "masked_select: not implemented for '", dtype_name(self.dtype()),
               "' on CUDA");
  launch_gather(values.data(), static_cast<int>(self.itemsize()), numbers.data_as<int64_t>(), out.numel(),
                values.numel(), out.data(), current_stream());
  SCONCE_CUDA(cudaGetLastError());
  return out;
}

// [count, rank], laid out by dimension as PyTorch's is. Waits for the count.
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
