// Indexing with tensors. Match aten::index.Tensor, index_put, scatter.src_out, scatter.value_out and
// scatter_reduce.two_out (torch 2.11, CUDA). Accumulating index_put always adds in the order of the values. Sums of
// scatter_reduce and duplicates of scatter come in any order, as in PyTorch. A run with an index out of bounds fails
// when it waits for the stream.
#include "src/cuda/indexing/index.h"

#include <bit>
#include <vector>

#include "src/cpu/indexing/index_plan.h"
#include "src/cuda/indexing/index_kernels.h"
#include "src/cuda/random/random_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/scratch.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {
namespace {

Tensor as_int64(const Tensor& t, Device device) {
  if (t.dtype() == DType::kInt64 && t.device() == device) return t;
  Tensor out = Tensor::empty_strided(
      t.sizes(), t.is_dense() ? Shape(t.strides()) : dense_strides(t.sizes(), t.strides()), DType::kInt64, device);
  copy(t, out, true);
  return out;
}

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
        tensors_.push_back(as_int64(*index, self.device()));
        ++dim;
        continue;
      }
      for (int64_t d = 0; d < index->dim(); ++d)
        SCONCE_CHECK(dim + d < self.dim() && index->size(d) == self.size(dim + d), kInvalidArgument, name,
                     ": The shape of the mask ", to_string(index->sizes()), " at index ", d,
                     " does not match the shape of the indexed tensor ", to_string(self.sizes()), " at index ",
                     dim + d);
      Tensor mask = *index;
      if (mask.is_cpu()) {
        mask = Tensor::empty(index->sizes(), index->dtype(), self.device());
        copy(*index, mask, true);
      }
      const Tensor positions = nonzero(mask);
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

// Checks shapes as ATen's scatter does; converts the index to int64.
ScatterWalk scatter_walk(const char* name, const Tensor& self, int64_t dim, const Tensor& index, const Tensor* src) {
  const int64_t rank = std::max<int64_t>(self.dim(), 1);
  SCONCE_CHECK(rank <= kMaxIndexRank, kUnsupported, name, ": ", rank, " dimensions on CUDA");
  const auto rank_of = [](const Tensor& t) { return std::max<int64_t>(t.dim(), 1); };
  const auto size_of = [](const Tensor& t, int64_t d) { return t.dim() == 0 ? 1 : t.size(d); };
  const auto stride_of = [](const Tensor& t, int64_t d) {
    return (t.dim() == 0 ? 0 : t.stride(d)) * static_cast<int64_t>(t.itemsize());
  };
  SCONCE_CHECK(index.numel() == 0 || (rank_of(index) == rank && (!src || rank_of(*src) == rank)), kInvalidArgument,
               name, ": Index tensor must have the same number of dimensions as self and src tensor, got ",
               describe(index), " for ", describe(self));
  ScatterWalk walk;
  walk.rank = self.dim() == 0 ? 0 : static_cast<int>(rank);
  walk.dim = static_cast<int>(dim);
  walk.count = index.numel();
  walk.size = size_of(self, dim);
  for (int64_t d = 0; d < walk.rank && walk.count > 0; ++d) {
    const auto at = static_cast<size_t>(d);
    walk.sizes[at] = size_of(index, d);
    walk.index[at] = stride_of(index, d);
    walk.src[at] = src ? stride_of(*src, d) : 0;
    walk.out[at] = stride_of(self, d);
    SCONCE_CHECK((d == dim || size_of(index, d) <= size_of(self, d)) && (!src || size_of(index, d) <= size_of(*src, d)),
                 kInvalidArgument, name, ": Expected index ", to_string(index.sizes()), " to be smaller than self ",
                 to_string(self.sizes()), " apart from dimension ", dim,
                 src ? " and to be smaller than src " + to_string(src->sizes()) : std::string());
  }
  walk.indices = static_cast<const char*>(index.data());
  walk.noted = noted_by_kernels();
  return walk;
}

void check_scatter(const char* name, const Tensor& out, const Tensor& self) {
  SCONCE_CHECK(out.dtype() == self.dtype() && out.device() == self.device() &&
                   std::equal(out.sizes().begin(), out.sizes().end(), self.sizes().begin(), self.sizes().end()),
               kInvalidArgument, name, ": out ", describe(out), " for self ", describe(self));
  check_no_internal_overlap(name, out);
}

// The number as one element of the dtype, in host memory.
Tensor element_of(double value, DType dtype) {
  Tensor number = Tensor::empty({}, DType::kFloat64), element = Tensor::empty({}, dtype);
  *number.data_as<double>() = value;
  sconce::copy(number, element);
  return element;
}

void done() {
  SCONCE_CUDA(cudaGetLastError());
  check_noted();
}

}  // namespace

Tensor index_Tensor(const Tensor& self, OptTensorList indices) {
  const DeviceScope scope(self.device());
  const Indices given("index", self, IndexList(indices));
  IndexPlan plan(self, given);
  Tensor out = Tensor::empty_strided(plan.result_sizes(), plan.result_strides(), self.dtype(), self.device());
  if (out.numel() == 0) return out;
  plan.order_by(out.strides(), out.itemsize());
  launch_index(walk_of("index", plan, Noted::kIndex), plan.self_data(), static_cast<char*>(out.data()),
               static_cast<int>(self.itemsize()), false, current_stream());
  done();
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
  IndexPlan plan(out, given);
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
    return done();
  }
  const auto words = [&] { return Tensor::empty(IntSpan(&walk.positions, 1), DType::kInt64, out.device()); };
  const Tensor keys = words(), numbers = words(), sorted_keys = words(), sorted_numbers = words();
  launch_index_keys(walk, keys.data_as<int64_t>(), numbers.data_as<int64_t>(), stream);
  // Sorts only the bits that offsets use. Positions out of bounds have all bits set and sort last.
  uint64_t reach = 1;
  for (int k = 0; k < walk.count; ++k)
    reach += static_cast<uint64_t>((walk.indexed_sizes[k] - 1) * walk.indexed_strides[k]);
  const int bits = std::bit_width(reach);
  size_t bytes = 0;
  const auto sort = [&](void* memory) {
    SCONCE_CUDA(sort_by_key(memory, bytes, keys.data(), sorted_keys.data(), 8, numbers.data_as<int64_t>(),
                            sorted_numbers.data_as<int64_t>(), walk.positions, bits, stream));
  };
  sort(nullptr);
  sort(scratch(bytes, out.device()).data());
  launch_index_add(walk, plan.self_data(), other, static_cast<int>(out.dtype()), sorted_keys.data_as<int64_t>(),
                   sorted_numbers.data_as<int64_t>(), stream);
  done();
}

Tensor index_put(const Tensor& self, OptTensorList indices, const Tensor& values, bool accumulate) {
  const DeviceScope scope(self.device());
  Tensor out = sconce::clone(self);
  index_put_out(out, out, IndexList(indices), values, accumulate);
  return out;
}

void scatter_src_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  check_scatter("scatter", out, self);
  SCONCE_CHECK(src.dtype() == self.dtype(), kInvalidArgument,
               "scatter(): Expected self.dtype to be equal to src.dtype");
  dim = wrap_dim("scatter", dim, self.dim());
  const DeviceScope scope(out.device());
  const Tensor at = as_int64(index, out.device());
  const ScatterWalk walk = scatter_walk("scatter", out, dim, at, &src);
  if (out.data() != self.data()) copy(self, out, false);
  if (walk.count == 0) return;
  launch_scatter(walk, static_cast<char*>(out.data()), static_cast<const char*>(src.data()),
                 static_cast<int>(out.itemsize()), current_stream());
  done();
}

void scatter_value_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, double value) {
  check_scatter("scatter", out, self);
  dim = wrap_dim("scatter", dim, self.dim());
  const DeviceScope scope(out.device());
  const Tensor at = as_int64(index, out.device());
  const ScatterWalk walk = scatter_walk("scatter", out, dim, at, nullptr);
  if (out.data() != self.data()) copy(self, out, false);
  if (walk.count == 0) return;
  launch_scatter_value(walk, static_cast<char*>(out.data()), element_of(value, out.dtype()).data(),
                       static_cast<int>(out.itemsize()), current_stream());
  done();
}

void scatter_reduce_two_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                            std::string_view reduce, bool include_self) {
  check_scatter("scatter_reduce", out, self);
  SCONCE_CHECK(src.dtype() == self.dtype() && !is_complex(self.dtype()), kInvalidArgument,
               "scatter_reduce: expected one real dtype, got ", dtype_name(self.dtype()), " and ",
               dtype_name(src.dtype()));
  const bool mean = reduce == "mean";
  ScatterReduce how;
  double start = 0;
  if (reduce == "sum" || mean) {
    how = ScatterReduce::kSum;
  } else if (reduce == "prod") {
    how = ScatterReduce::kProduct;
    start = 1;
  } else {
    SCONCE_CHECK(reduce == "amax" || reduce == "amin", kInvalidArgument,
                 "reduce argument must be either sum, prod, mean, amax or amin, got ", reduce);
    how = reduce == "amax" ? ScatterReduce::kMost : ScatterReduce::kLeast;
  }
  dim = wrap_dim("scatter_reduce", dim, self.dim());
  const DeviceScope scope(out.device());
  const Tensor at = as_int64(index, out.device());
  ScatterWalk walk = scatter_walk("scatter_reduce", out, dim, at, &src);
  if (out.data() != self.data()) copy(self, out, false);
  if (walk.count == 0) return;
  const cudaStream_t stream = current_stream();
  auto* to = static_cast<char*>(out.data());
  if (!include_self) {
    if (how == ScatterReduce::kMost || how == ScatterReduce::kLeast) {
      // Duplicates overwrite each other in any order.
      launch_scatter(walk, to, static_cast<const char*>(src.data()), static_cast<int>(out.itemsize()), stream);
    } else {
      launch_scatter_value(walk, to, element_of(start, out.dtype()).data(), static_cast<int>(out.itemsize()), stream);
    }
  }
  launch_scatter_reduce(walk, to, static_cast<const char*>(src.data()), static_cast<int>(out.dtype()), how, stream);
  if (mean) {
    Tensor packed = cuda::contiguous(out);
    Tensor counts = Tensor::empty(out.sizes(), DType::kInt64, out.device());
    const int64_t first = include_self;
    fill(counts, &first);
    ScatterWalk counting = walk;
    for (int d = 0; d < walk.rank; ++d) counting.out[d] = counts.stride(d) * 8;
    launch_scatter_count(counting, static_cast<char*>(counts.data()), stream);
    launch_divide_by_counts(static_cast<char*>(packed.data()), static_cast<int>(out.dtype()), counts.data_as<int64_t>(),
                            out.numel(), stream);
    if (packed.data() != out.data()) copy(packed, out, false);
  }
  done();
}

}  // namespace sconce::cuda
