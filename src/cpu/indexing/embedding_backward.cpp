#include "src/cpu/indexing/embedding_backward.h"

#include <vector>

#include "sconce/check.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/fill.h"

namespace sconce::cpu {
namespace {

Tensor numbers(const Tensor& t) {
  SCONCE_CHECK(t.dtype() == DType::kInt64 || t.dtype() == DType::kInt32, kInvalidArgument,
               "embedding: expected indices of int64 or int32, got ", dtype_name(t.dtype()));
  return contiguous(to_dtype(t, DType::kInt64));
}

DType summed(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16 ? DType::kFloat32 : dtype; }
Tensor packed(const Tensor& t, DType dtype) { return contiguous(to_dtype(t, dtype)); }

void check_below(const char* what, int64_t value, int64_t size) {
  SCONCE_CHECK(value >= 0 && value < size, kInvalidArgument, "embedding_bag: ", what, " ", value,
               " is out of range of ", size);
}

// The bag of each of n indices, from where the bags start.
Tensor bags_of(const Tensor& offsets, int64_t n) {
  const Tensor starts = numbers(offsets);
  Tensor bags = Tensor::empty(IntSpan(&n, 1), DType::kInt64);
  for (int64_t i = 0, bag = 0; i < n; ++i) {
    while (bag + 1 < starts.numel() && starts.data_as<int64_t>()[bag + 1] <= i) ++bag;
    bags.data_as<int64_t>()[i] = bag;
  }
  return bags;
}

}  // namespace

Tensor _embedding_bag_backward(const Tensor& grad, const Tensor& indices, const Tensor& offsets,
                               const Tensor& offset2bag, const Tensor& bag_size, const Tensor& maximum_indices,
                               int64_t num_weights, bool scale_grad_by_freq, int64_t mode, bool sparse,
                               const Tensor* per_sample_weights, int64_t padding_idx) {
  SCONCE_CHECK(!sparse, kUnsupported, "_embedding_bag_backward: sparse gradients");
  const Tensor bags = offset2bag.numel() > 0 ? offset2bag : bags_of(offsets, indices.numel());
  return _embedding_bag_dense_backward(grad, indices, bags, bag_size, maximum_indices, num_weights, scale_grad_by_freq,
                                       mode, per_sample_weights, padding_idx);
}

Tensor embedding_dense_backward(const Tensor& grad_output, const Tensor& indices, int64_t num_weights,
                                int64_t padding_idx, bool scale_grad_by_freq) {
  constexpr const char* kName = "embedding_dense_backward";
  if (!is_floating(grad_output.dtype())) fail_dispatch(grad_output.dtype(), kName);
  const int64_t n = indices.numel(), columns = grad_output.dim() ? grad_output.size(grad_output.dim() - 1) : 1;
  SCONCE_CHECK(grad_output.numel() == n * columns && num_weights >= 0, kInvalidArgument, kName, ": grad_output ",
               describe(grad_output), " does not go with ", n, " indices");
  const int64_t sizes[] = {num_weights, columns};
  const DType dtype = summed(grad_output.dtype());
  Tensor sums = Tensor::empty(sizes, dtype);
  zero(sums);
  const Tensor grads = packed(grad_output, dtype), index = numbers(indices);
  dispatch_float_double(dtype, kName, [&]<class T>() {
    std::vector<int64_t> occurs(scale_grad_by_freq ? static_cast<size_t>(num_weights) : 0);
    const auto* const rows = index.data_as<int64_t>();
    for (int64_t i = 0; i < n; ++i) {
      if (rows[i] == padding_idx) continue;
      check_below("index", rows[i], num_weights);
      if (scale_grad_by_freq) ++occurs[static_cast<size_t>(rows[i])];
    }
    for (int64_t i = 0; i < n; ++i) {
      if (rows[i] == padding_idx) continue;
      const T scale = scale_grad_by_freq ? T(1) / static_cast<T>(occurs[static_cast<size_t>(rows[i])]) : T(1);
      for (int64_t c = 0; c < columns; ++c)
        sums.data_as<T>()[rows[i] * columns + c] += grads.data_as<T>()[i * columns + c] * scale;
    }
  });
  return to_dtype(sums, grad_output.dtype());
}

// By the weight, [num_weights, columns]. grad [bags, columns]; indices and offset2bag [n]; bag_size [bags];
// maximum_indices [bags, columns] for mode 2. scale_grad_by_freq divides by how often a row occurs.
Tensor _embedding_bag_dense_backward(const Tensor& grad, const Tensor& indices, const Tensor& offset2bag,
                                     const Tensor& bag_size, const Tensor& maximum_indices, int64_t num_weights,
                                     bool scale_grad_by_freq, int64_t mode, const Tensor* per_sample_weights,
                                     int64_t padding_idx) {
  SCONCE_CHECK(grad.dim() == 2 && num_weights >= 0 && mode >= 0 && mode <= 2, kInvalidArgument,
               "_embedding_bag_dense_backward: grad ", describe(grad), ", num_weights ", num_weights, ", mode ", mode);
  const int64_t bags = grad.size(0), columns = grad.size(1), n = indices.numel();
  const int64_t sizes[] = {num_weights, columns};
  const DType dtype = summed(grad.dtype());
  Tensor sums = Tensor::empty(sizes, dtype);
  zero(sums);
  const Tensor grads = packed(grad, dtype), index = numbers(indices), bag_of = numbers(offset2bag),
               counts = numbers(bag_size);
  if (!is_floating(grad.dtype())) fail_dispatch(grad.dtype(), "embedding_bag_backward");
  dispatch_float_double(dtype, "embedding_bag_backward", [&]<class T>() {
    const T* from = grads.data_as<T>();
    T* to = sums.data_as<T>();
    if (mode == 2) {
      const Tensor chosen = numbers(maximum_indices);
      SCONCE_CHECK(chosen.numel() == bags * columns && counts.numel() >= bags, kInvalidArgument,
                   "_embedding_bag_dense_backward: maximum_indices ", describe(maximum_indices), ", bag_size ",
                   describe(bag_size), " beside a gradient of ", to_string(grad.sizes()));
      for (int64_t bag = 0; bag < bags; ++bag) {
        if (counts.data_as<int64_t>()[bag] == 0) continue;
        for (int64_t c = 0; c < columns; ++c) {
          const int64_t row = chosen.data_as<int64_t>()[bag * columns + c];
          check_below("maximum index", row, num_weights);
          to[row * columns + c] += from[bag * columns + c];
        }
      }
      return;
    }
    SCONCE_CHECK(bag_of.numel() == n, kInvalidArgument, "_embedding_bag_dense_backward: offset2bag has ",
                 bag_of.numel(), " elements, indices ", n);
    SCONCE_CHECK(!per_sample_weights || per_sample_weights->numel() == n, kInvalidArgument,
                 "_embedding_bag_dense_backward: per_sample_weights must have ", n, " elements");
    const Tensor scales = per_sample_weights ? packed(*per_sample_weights, dtype) : Tensor();
    std::vector<int64_t> occurs(scale_grad_by_freq ? static_cast<size_t>(num_weights) : 0);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = index.data_as<int64_t>()[i];
      check_below("index", row, num_weights);
      check_below("bag", bag_of.data_as<int64_t>()[i], bags);
      if (scale_grad_by_freq) ++occurs[static_cast<size_t>(row)];
    }
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = index.data_as<int64_t>()[i], bag = bag_of.data_as<int64_t>()[i];
      if (row == padding_idx) continue;
      double scale = per_sample_weights ? static_cast<double>(scales.data_as<T>()[i]) : 1.0;
      if (scale_grad_by_freq) scale /= static_cast<double>(occurs[static_cast<size_t>(row)]);
      if (mode == 1) {
        check_below("bag", bag, counts.numel());
        scale /= static_cast<double>(counts.data_as<int64_t>()[bag]);
      }
      for (int64_t c = 0; c < columns; ++c) to[row * columns + c] += from[bag * columns + c] * static_cast<T>(scale);
    }
  });
  return to_dtype(sums, grad.dtype());
}

// By per_sample_weights, [n]; mode 0 only. An empty offset2bag is made from offsets.
Tensor _embedding_bag_per_sample_weights_backward(const Tensor& grad, const Tensor& weight, const Tensor& indices,
                                                  const Tensor& offsets, const Tensor& offset2bag, int64_t mode,
                                                  int64_t padding_idx) {
  SCONCE_CHECK(mode == 0, kInvalidArgument, "embedding_bag_backward: per_sample_weights only supported for mode='sum'");
  SCONCE_CHECK(grad.dim() == 2 && weight.dim() == 2 && grad.size(1) == weight.size(1) && indices.dim() == 1 &&
                   grad.dtype() == weight.dtype(),
               kInvalidArgument, "embedding_bag_backward: grad ", describe(grad), ", weight ", describe(weight),
               ", indices ", describe(indices));
  if (!is_floating(grad.dtype())) fail_dispatch(grad.dtype(), "embedding_bag_backward");
  const int64_t n = indices.numel(), columns = grad.size(1);
  const DType dtype = summed(grad.dtype());
  Tensor out = Tensor::empty(IntSpan(&n, 1), dtype);
  const Tensor grads = packed(grad, dtype), index = numbers(indices);
  const Tensor bags = offset2bag.numel() > 0 || n == 0 ? numbers(offset2bag) : bags_of(offsets, n);
  SCONCE_CHECK(bags.numel() == n, kInvalidArgument, "embedding_bag_backward: offset2bag has ", bags.numel(),
               " elements, indices ", n);
  dispatch_float_double(dtype, "embedding_bag_backward", [&]<class T>() {
    const Tensor rows = packed(weight, dtype);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = index.data_as<int64_t>()[i], bag = bags.data_as<int64_t>()[i];
      check_below("index", row, weight.size(0));
      check_below("bag", bag, grad.size(0));
      T sum = 0;
      if (row != padding_idx)
        for (int64_t c = 0; c < columns; ++c)
          sum += grads.data_as<T>()[bag * columns + c] * rows.data_as<T>()[row * columns + c];
      out.data_as<T>()[i] = sum;
    }
  });
  return to_dtype(out, grad.dtype());
}

}  // namespace sconce::cpu
