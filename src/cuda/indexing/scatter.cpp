// Match aten::scatter.src_out, scatter.value_out and scatter_reduce.two_out (torch 2.11, CUDA). Sums of scatter_reduce
// and duplicates of scatter come in any order, as PyTorch's do. An index out of bounds is found when the stream has
// passed, and fails the run.
#include "src/cuda/indexing/index.h"
#include "src/cuda/indexing/index_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/stream.h"
#include "src/cuda/tensor/filled.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {
namespace {

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
  walk.note = static_cast<int>(Noted::kScatter);
  return walk;
}

void check_scatter(const char* name, const Tensor& out, const Tensor& self) {
  SCONCE_CHECK(out.dtype() == self.dtype() && out.device() == self.device() &&
                   std::equal(out.sizes().begin(), out.sizes().end(), self.sizes().begin(), self.sizes().end()),
               kInvalidArgument, name, ": out ", describe(out), " for self ", describe(self));
  check_no_internal_overlap(name, out);
}

}  // namespace

void scatter_src_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  check_scatter("scatter", out, self);
  SCONCE_CHECK(src.dtype() == self.dtype(), kInvalidArgument,
               "scatter(): Expected self.dtype to be equal to src.dtype");
  dim = wrap_dim("scatter", dim, self.dim());
  const DeviceScope scope(out.device());
  const Tensor at = moved_to(index, DType::kInt64, out.device());
  const ScatterWalk walk = scatter_walk("scatter", out, dim, at, &src);
  if (out.data() != self.data()) copy(self, out, false);
  if (walk.count == 0) return;
  launch_scatter(walk, static_cast<char*>(out.data()), static_cast<const char*>(src.data()),
                 static_cast<int>(out.itemsize()), current_stream());
  check_indices();
}

void scatter_value_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, double value) {
  check_scatter("scatter", out, self);
  dim = wrap_dim("scatter", dim, self.dim());
  const DeviceScope scope(out.device());
  const Tensor at = moved_to(index, DType::kInt64, out.device());
  const ScatterWalk walk = scatter_walk("scatter", out, dim, at, nullptr);
  if (out.data() != self.data()) copy(self, out, false);
  if (walk.count == 0) return;
  launch_scatter_value(walk, static_cast<char*>(out.data()), element_of(value, out.dtype()).data(),
                       static_cast<int>(out.itemsize()), current_stream());
  check_indices();
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
  const Tensor at = moved_to(index, DType::kInt64, out.device());
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
  check_indices();
}

}  // namespace sconce::cuda
