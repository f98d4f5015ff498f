// Sums, means and maxima over bags of embedding rows, and their gradients. Match aten::_embedding_bag,
// _embedding_bag_forward_only, _embedding_bag_dense_backward and _embedding_bag_per_sample_weights_backward (torch
// 2.15, CUDA). Gradients of rows are summed in float32 or float64, in any order. A run with an index or offset out of
// range fails when it waits for the stream.
#include "src/cuda/indexing/embedding_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/type_promotion.h"

namespace sconce::cuda {
namespace {

constexpr int kNote = static_cast<int>(Noted::kIndex);

Tensor numbers(const Tensor& t) { return contiguous(converted(t, DType::kInt64)); }

void check_floating(const char* name, DType dtype) {
  SCONCE_CHECK(is_floating(dtype), kInvalidArgument, name, " has to be Half, BFloat16, Float or Double, but got ",
               dtype_name(dtype));
}

std::array<Tensor, 4> run(const Tensor& weight, const Tensor& indices, const Tensor& offsets, int64_t mode,
                          const Tensor* scales, bool include_last_offset, int64_t padding_idx) {
  SCONCE_CHECK(weight.dim() == 2 && indices.dim() == 1 && offsets.dim() == 1, kInvalidArgument,
               "embedding_bag: expected a weight of 2 dimensions and indices and offsets of 1, got ", describe(weight),
               ", ", describe(indices), ", ", describe(offsets));
  check_floating("embedding_bag: weight", weight.dtype());
  const DType index_dtype = promote_types(indices.dtype(), offsets.dtype());
  SCONCE_CHECK(index_dtype == DType::kInt64 || index_dtype == DType::kInt32, kInvalidArgument,
               "embedding_bag: indices and offsets have to be Long or Int together, but got ",
               dtype_name(indices.dtype()), " and ", dtype_name(offsets.dtype()));
  SCONCE_CHECK(mode >= 0 && mode <= 2, kInvalidArgument, "embedding_bag: `mode` must be sum, mean, or max, got ", mode);
  SCONCE_CHECK(!include_last_offset || offsets.numel() > 0, kInvalidArgument,
               "embedding_bag: include_last_offset: number of offset should be at least 1");
  SCONCE_CHECK(!scales || (mode == 0 && scales->dtype() == weight.dtype() && scales->dim() == 1 &&
                           scales->numel() == indices.numel()),
               kInvalidArgument, "embedding_bag: per_sample_weights go with mode='sum', one of the weight's dtype for ",
               "each index");
  const DeviceScope scope(weight.device());
  const Device device = weight.device();
  const int64_t n = indices.numel(), bags = offsets.numel() - (include_last_offset ? 1 : 0), columns = weight.size(1),
                none = 0, given = offsets.numel();
  const int64_t sizes[] = {bags, columns};
  const bool is_max = mode == 2;
  Tensor out = Tensor::empty(sizes, weight.dtype(), device),
         bag_of = Tensor::empty(IntSpan(&n, 1), DType::kInt64, device),
         bag_sizes = zeros(IntSpan(&given, 1), DType::kInt64, device),
         taken = Tensor::empty(is_max ? IntSpan(sizes) : IntSpan(&none, 1), DType::kInt64, device);
  const Tensor index = numbers(indices), starts = numbers(offsets), by = scales ? contiguous(*scales) : Tensor();
  BagCall call{};
  call.dtype = static_cast<int>(weight.dtype());
  call.mode = static_cast<BagMode>(mode);
  call.weight = weight.data();
  call.rows = weight.size(0);
  call.columns = columns;
  call.row_stride = weight.stride(0);
  call.column_stride = weight.stride(1);
  call.indices = index.data_as<int64_t>();
  call.offsets = starts.data_as<int64_t>();
  call.scales = scales ? by.data() : nullptr;
  call.n = n;
  call.bags = bags;
  call.padding = padding_idx;
  call.out = out.data();
  call.bag_sizes = bag_sizes.data_as<int64_t>();
  call.taken = taken.data_as<int64_t>();
  call.bag_of = bag_of.data_as<int64_t>();
  call.noted = noted_by_kernels();
  call.note = kNote;
  SCONCE_CUDA(launch_bags(call, current_stream()));
  check_noted();
  return {std::move(out), converted(bag_of, index_dtype), converted(bag_sizes, index_dtype),
          converted(taken, index_dtype)};
}

// What gradients by row and by scale have in common; tensors are packed.
BagGradient gradient_of(const Tensor& grad, int64_t rows, int64_t padding, const Tensor& index, const Tensor& bag_of) {
  BagGradient call{};
  call.dtype = static_cast<int>(grad.dtype());
  call.grad = grad.data();
  call.bags = grad.size(0);
  call.columns = grad.size(1);
  call.n = index.numel();
  call.rows = rows;
  call.padding = padding;
  call.indices = index.data_as<int64_t>();
  call.bag_of = bag_of.data_as<int64_t>();
  call.noted = noted_by_kernels();
  call.note = kNote;
  return call;
}

}  // namespace

std::array<Tensor, 4> _embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool,
                                     int64_t mode, bool, const Tensor* per_sample_weights, bool include_last_offset,
                                     int64_t padding_idx) {
  return run(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx);
}
std::array<Tensor, 4> _embedding_bag_forward_only(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                                                  bool, int64_t mode, bool, const Tensor* per_sample_weights,
                                                  bool include_last_offset, int64_t padding_idx) {
  return run(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx);
}

Tensor _embedding_bag_dense_backward(const Tensor& grad, const Tensor& indices, const Tensor& offset2bag,
                                     const Tensor& bag_size, const Tensor& maximum_indices, int64_t num_weights,
                                     bool scale_grad_by_freq, int64_t mode, const Tensor* per_sample_weights,
                                     int64_t padding_idx) {
  SCONCE_CHECK(grad.dim() == 2 && num_weights >= 0 && mode >= 0 && mode <= 2, kInvalidArgument,
               "_embedding_bag_dense_backward: grad ", describe(grad), ", num_weights ", num_weights, ", mode ", mode);
  check_floating("embedding_bag_backward: grad", grad.dtype());
  const int64_t bags = grad.size(0), columns = grad.size(1), n = indices.numel();
  SCONCE_CHECK(mode == 2 ? maximum_indices.numel() == bags * columns : offset2bag.numel() == n, kInvalidArgument,
               "_embedding_bag_dense_backward: offset2bag ", describe(offset2bag), ", maximum_indices ",
               describe(maximum_indices), " and indices ", describe(indices), " do not fit grad ", describe(grad));
  SCONCE_CHECK(mode != 1 || bag_size.numel() >= bags, kInvalidArgument, "_embedding_bag_dense_backward: bag_size ",
               describe(bag_size), " beside a gradient of ", to_string(grad.sizes()));
  SCONCE_CHECK(!per_sample_weights || per_sample_weights->numel() == n, kInvalidArgument,
               "_embedding_bag_dense_backward: per_sample_weights must have ", n, " elements");
  const DeviceScope scope(grad.device());
  const int64_t sizes[] = {num_weights, columns};
  const DType summed = grad.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  Tensor sums = zeros(sizes, summed, grad.device());
  const Tensor from = contiguous(grad), index = numbers(indices), bag_of = numbers(offset2bag),
               counts = numbers(bag_size), taken = numbers(maximum_indices),
               scales = per_sample_weights ? contiguous(converted(*per_sample_weights, grad.dtype())) : Tensor(),
               occurs = scale_grad_by_freq ? zeros(IntSpan(&num_weights, 1), DType::kInt64, grad.device()) : Tensor();
  BagGradient call = gradient_of(from, num_weights, padding_idx, index, bag_of);
  call.mode = static_cast<BagMode>(mode);
  call.bag_sizes = counts.data_as<int64_t>();
  call.taken = taken.data_as<int64_t>();
  call.scales = per_sample_weights ? scales.data() : nullptr;
  call.occurrences = scale_grad_by_freq ? occurs.data_as<int64_t>() : nullptr;
  call.sums = sums.data();
  SCONCE_CUDA(launch_bag_gradient(call, current_stream()));
  check_noted();
  return converted(sums, grad.dtype());
}

Tensor _embedding_bag_per_sample_weights_backward(const Tensor& grad, const Tensor& weight, const Tensor& indices,
                                                  const Tensor& offsets, const Tensor& offset2bag, int64_t mode,
                                                  int64_t padding_idx) {
  SCONCE_CHECK(mode == 0, kInvalidArgument, "embedding_bag_backward: per_sample_weights only supported for mode='sum'");
  SCONCE_CHECK(grad.dim() == 2 && weight.dim() == 2 && grad.size(1) == weight.size(1) && indices.dim() == 1 &&
                   grad.dtype() == weight.dtype(),
               kInvalidArgument, "embedding_bag_backward: grad ", describe(grad), ", weight ", describe(weight),
               ", indices ", describe(indices));
  check_floating("embedding_bag_backward: grad", grad.dtype());
  const DeviceScope scope(grad.device());
  const int64_t n = indices.numel();
  Tensor out = Tensor::empty(IntSpan(&n, 1), grad.dtype(), grad.device());
  if (n == 0) return out;
  const Tensor from = contiguous(grad), rows = contiguous(weight), index = numbers(indices);
  Tensor bag_of = numbers(offset2bag);
  if (bag_of.numel() == 0) {
    const Tensor starts = numbers(offsets);
    SCONCE_CHECK(starts.numel() > 0, kInvalidArgument, "embedding_bag_backward: no offsets for ", n, " indices");
    bag_of = Tensor::empty(IntSpan(&n, 1), DType::kInt64, grad.device());
    launch_bag_of(starts.data_as<int64_t>(), starts.numel(), n, bag_of.data_as<int64_t>(), current_stream());
  }
  SCONCE_CHECK(bag_of.numel() == n, kInvalidArgument, "embedding_bag_backward: offset2bag has ", bag_of.numel(),
               " elements, indices ", n);
  const BagGradient call = gradient_of(from, weight.size(0), padding_idx, index, bag_of);
  SCONCE_CUDA(launch_scale_gradient(call, rows.data(), out.data(), current_stream()));
  check_noted();
  return out;
}

}  // namespace sconce::cuda
