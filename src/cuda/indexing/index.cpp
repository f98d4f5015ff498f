// Indexing with tensors. Match aten::index.Tensor and index_put (torch 2.11, CUDA). Accumulating index_put adds in the
// order of the values, whatever the device does when. An index out of bounds is found when the stream has passed, and
// fails the run.
#include "src/cuda/indexing/index.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include "src/cuda/indexing/index_kernels.h"
#include "src/cuda/random/random_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/scratch.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/rules/index_plan.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {

namespace {

// Index tensors in the form that IndexPlan takes, on a device: masks become positions of their set elements.
class Indices {
 public:
  Indices(const char* name, const Tensor& self, std::span<const Tensor* const> given) {
    int64_t dim = 0;
    for (const Tensor* index : given) {
      if (!index) {
        tensors_.emplace_back();
        ++dim;
        continue;
      }
      if (index->dtype() != DType::kBool && index->dtype() != DType::kUInt8) {
        SCONCE_CHECK(index->dtype() == DType::kInt64 || index->dtype() == DType::kInt32, kInvalidArgument,
                     "tensors used as indices must be long, int, byte or bool tensors, got ",
                     dtype_name(index->dtype()));
        tensors_.push_back(moved_to(*index, DType::kInt64, self.device()));
        ++dim;
        continue;
      }
      for (int64_t d = 0; d < index->dim(); ++d)
        SCONCE_CHECK(dim + d < self.dim() && index->size(d) == self.size(dim + d), kInvalidArgument, name,
                     ": The shape of the mask ", to_string(index->sizes()), " at index ", d,
                     " does not match the shape of the indexed tensor ", to_string(self.sizes()), " at index ",
                     dim + d);
      const Tensor positions = nonzero(index->is_cpu() ? moved_to(*index, index->dtype(), self.device()) : *index);
      const int64_t count = positions.size(0), one = 1;
      for (int64_t d = 0; d < index->dim(); ++d)
        tensors_.push_back(positions.as_strided({&count, 1}, {&one, 1}, d * std::max<int64_t>(count, 1)));
      dim += index->dim();
    }
    for (const Tensor& tensor : tensors_) pointers_.push_back(tensor.defined() ? &tensor : nullptr);
  }
  operator std::span<const Tensor* const>() const noexcept { return pointers_; }

 private:
  std::vector<Tensor> tensors_;
  std::vector<const Tensor*> pointers_;
};

IndexWalk walk_of(const char* name, const IndexPlan& plan, Noted note) {
  IndexWalk walk;
  const StridedLoop<2>& rest = plan.rest();
  SCONCE_CHECK(plan.index_rank() <= kMaxIndexRank && plan.index_count() <= kMaxIndexRank && rest.rank <= kMaxIndexRank,
               kUnsupported, name, ": more than ", kMaxIndexRank, " dimensions that cannot be merged, on CUDA");
  walk.rank = plan.index_rank();
  walk.count = static_cast<int>(plan.index_count());
  walk.positions = plan.positions();
  for (int d = 0; d < walk.rank; ++d) {
    walk.sizes[d] = plan.index_size(d);
    walk.other[d] = plan.other_stride(d);
  }
  for (size_t k = 0; k < plan.index_count(); ++k) {
    walk.index[k] = static_cast<const char*>(plan.index(k).data());
    for (int d = 0; d < walk.rank; ++d) walk.index_strides[k][d] = plan.index_stride(k, d);
    walk.indexed_sizes[k] = plan.indexed_size(k);
    walk.indexed_strides[k] = plan.indexed_stride(k);
  }
  walk.rest_rank = rest.rank;
  walk.rest = rest.numel;
  for (int d = 0; d < rest.rank; ++d) {
    walk.rest_sizes[d] = rest.sizes[static_cast<size_t>(d)];
    walk.rest_other[d] = rest.strides[static_cast<size_t>(d)][0];
    walk.rest_self[d] = rest.strides[static_cast<size_t>(d)][1];
  }
  walk.noted = noted_by_kernels();
  walk.note = static_cast<int>(note);
  return walk;
}

}  // namespace

Tensor index_Tensor(const Tensor& self, OptTensorList indices) {
  const DeviceScope scope(self.device());
  const Indices given("index", self, IndexList(indices));
  IndexPlan plan(self, given, nullptr);
  Tensor out = Tensor::empty_strided(plan.result_sizes(), plan.result_strides(), self.dtype(), self.device());
  if (out.numel() == 0) return out;
  plan.order_by(out.strides(), out.itemsize());
  launch_index(walk_of("index", plan, Noted::kIndex), plan.self_data(), static_cast<char*>(out.data()),
               static_cast<int>(self.itemsize()), false, current_stream());
  check_indices();
  return out;
}

void index_put_out(Tensor& out, const Tensor& self, std::span<const Tensor* const> indices, const Tensor& values,
                   bool accumulate) {
  SCONCE_CHECK(values.dtype() == self.dtype(), kInvalidArgument,
               "Index put requires the source and destination dtypes match, got ", dtype_name(self.dtype()),
               " for the destination and ", dtype_name(values.dtype()), " for the source.");
  SCONCE_CHECK(!accumulate || self.dtype() != DType::kComplex32, kUnsupported, "index_put: not implemented for '",
               dtype_name(self.dtype()), "' on CUDA");
  SCONCE_CHECK(out.dtype() == self.dtype() && std::ranges::equal(out.sizes(), self.sizes()), kInvalidArgument,
               "index_put: the result is ", dtype_name(out.dtype()), " ", to_string(out.sizes()), ", not ",
               dtype_name(self.dtype()), " ", to_string(self.sizes()));
  const DeviceScope scope(out.device());
  Tensor from = values;
  // If values alias the result, use the values from before the call.
  if (values.device() != out.device() || values.storage() == out.storage()) {
    from = Tensor::empty(values.sizes(), values.dtype(), out.device());
    copy(values, from, true);
  }
  const Indices given("index_put", self, indices);
  if (out.data() != self.data()) copy(self, out, false);
  IndexPlan plan(out, given, nullptr);
  const IntSpan sizes = plan.result_sizes();
  const Shape strides = broadcast_strides("index_put", from, sizes);
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  if (count == 0) return;
  plan.order_by(strides, from.itemsize());
  const IndexWalk walk = walk_of("index_put", plan, Noted::kIndexPut);
  const cudaStream_t stream = current_stream();
  auto* other = static_cast<char*>(from.data());
  if (!accumulate) {
    launch_index(walk, plan.self_data(), other, static_cast<int>(out.itemsize()), true, stream);
    return check_indices();
  }
  // Offsets in the largest unit that all are multiples of, so that few bits need sorting. Positions out of bounds have
  // all bits set and sort last.
  int64_t unit = 0;
  for (int k = 0; k < walk.count; ++k) unit = std::gcd(unit, walk.indexed_strides[k]);
  unit = std::max<int64_t>(unit, 1);
  uint64_t reach = 1;
  for (int k = 0; k < walk.count; ++k)
    reach += static_cast<uint64_t>((walk.indexed_sizes[k] - 1) * (walk.indexed_strides[k] / unit));
  const int bits = std::bit_width(reach), key_bytes = bits < 32 ? 4 : 8;
  const auto words = [&](DType dtype) { return Tensor::empty(IntSpan(&walk.positions, 1), dtype, out.device()); };
  const DType key_dtype = key_bytes == 4 ? DType::kInt32 : DType::kInt64;
  const Tensor keys = words(key_dtype), numbers = words(DType::kInt64), sorted_keys = words(key_dtype),
               sorted_numbers = words(DType::kInt64);
  launch_index_keys(walk, unit, key_bytes, keys.data(), numbers.data_as<int64_t>(), stream);
  with_scratch("index_put", out.dtype(), out.device(), [&](void* memory, size_t& bytes) {
    return sort_by_key(memory, bytes, keys.data(), sorted_keys.data(), key_bytes, numbers.data_as<int64_t>(),
                       sorted_numbers.data_as<int64_t>(), walk.positions, bits, stream);
  });
  launch_index_add(walk, plan.self_data(), other, static_cast<int>(out.dtype()), unit, key_bytes, sorted_keys.data(),
                   sorted_numbers.data_as<int64_t>(), stream);
  check_indices();
}

Tensor index_put(const Tensor& self, OptTensorList indices, const Tensor& values, bool accumulate) {
  const DeviceScope scope(self.device());
  Tensor out = sconce::clone(self);
  index_put_out(out, out, IndexList(indices), values, accumulate);
  return out;
}

}  // namespace sconce::cuda
