// Losses over the classes of a row: margins, negative log likelihoods.
#include <cmath>
#include <vector>

#include "sconce/check.h"
#include "src/cpu/normalisation/loss.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/fill.h"
#include "src/tensor/rows/planes.h"

namespace sconce::cpu {
namespace {

struct Rows {
  int64_t count, classes;
};
Rows rows_of(const char* name, const Tensor& self, const Tensor& target, bool target_per_class) {
  if (!is_floating(self.dtype())) fail_dispatch(self.dtype(), name);
  SCONCE_CHECK(
      self.dim() <= 2 && (self.dim() < 2 || self.size(1) > 0) && (self.dim() != 1 || self.size(0) > 0),
      kInvalidArgument, name,
      ": Expected non-empty vector or matrix with optional 0-dim batch size, but got: ", to_string(self.sizes()));
  const Rows rows{self.dim() == 2 ? self.size(0) : 1, self.dim() == 0 ? 1 : self.size(self.dim() - 1)};
  SCONCE_CHECK(target.numel() == (target_per_class ? rows.count * rows.classes : rows.count), kInvalidArgument, name,
               ": inconsistent target size, got ", to_string(target.sizes()), " for input ", to_string(self.sizes()));
  return rows;
}
void check_class(const char* name, int64_t label, int64_t classes) {
  SCONCE_CHECK(label >= 0 && label < classes, kInvalidArgument, name, ": target out of range: ", label, " of ", classes,
               " classes");
}

// In the dtype in which sums are taken; undefined where there is no tensor.
Tensor computed(const Tensor& tensor, DType dtype) { return contiguous(to_dtype(tensor, summed_dtype(dtype))); }
Tensor computed(const Tensor* tensor, DType dtype) { return tensor ? computed(*tensor, dtype) : Tensor(); }
std::vector<int64_t> labels_of(const Tensor& target) {
  const Tensor packed = contiguous(to_dtype(target, DType::kInt64));
  return {packed.data_as<int64_t>(), packed.data_as<int64_t>() + packed.numel()};
}
void check_weight(const char* name, const Tensor* weight, int64_t classes) {
  SCONCE_CHECK(!weight || weight->numel() == classes, kInvalidArgument, name, ": inconsistent weight size, expected ",
               classes, " but got ", weight ? to_string(weight->sizes()) : "");
}
// One gradient of all losses, or one of each where they are not reduced.
void check_gradient(const char* name, const Tensor& grad_output, int64_t reduction, int64_t losses) {
  SCONCE_CHECK(grad_output.numel() == 1 || (reduction == 0 && grad_output.numel() == losses), kInvalidArgument, name,
               ": grad_output ", describe(grad_output), " does not go with ", losses, " losses");
}

// Reduces one loss a row.
Tensor reduced_losses(const Tensor& losses, const Tensor& self, int64_t reduction, bool scalar) {
  if (reduction == 0 && !scalar) return to_dtype(losses, self.dtype());
  Tensor out = Tensor::empty({}, losses.dtype());
  dispatch_float_double(losses.dtype(), "loss", [&]<class T>() -> void {
    double total = 0;
    for (int64_t i = 0; i < losses.numel(); ++i) total += static_cast<double>(losses.data_as<T>()[i]);
    *out.data_as<T>() = static_cast<T>(reduction == 1 ? total / static_cast<double>(losses.numel()) : total);
  });
  return to_dtype(out, self.dtype());
}

struct MarginTerms {
  double power, margin;
  MarginTerms(Scalar p, Scalar m) : power(p.to_double()), margin(m.to_double()) {
    SCONCE_CHECK(power == 1 || power == 2, kInvalidArgument, "multi_margin_loss: only p == 1 and p == 2 supported");
  }
};

// The gradient of row i, where there is one of each loss or one of them all.
template <class T>
T gradient_of(const Tensor& grad, int64_t i, int64_t reduction) {
  return grad.data_as<T>()[reduction == 0 && grad.numel() > 1 ? i : 0];
}

}  // namespace

Tensor multi_margin_loss(const Tensor& self, const Tensor& target, Scalar p, Scalar margin, const Tensor* weight,
                         int64_t reduction) {
  constexpr const char* kName = "multi_margin_loss";
  const MarginTerms terms(p, margin);
  const auto [count, classes] = rows_of(kName, self, target, false);
  check_weight(kName, weight, classes);
  const std::vector<int64_t> labels = labels_of(target);
  const Tensor in = computed(self, self.dtype()), scales = computed(weight, self.dtype());
  Tensor losses = Tensor::empty(target.sizes(), in.dtype());
  dispatch_float_double(in.dtype(), kName, [&]<class T>() -> void {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t label = labels[static_cast<size_t>(i)];
      check_class(kName, label, classes);
      const T* const row = in.data_as<T>() + i * classes;
      double total = 0;
      for (int64_t c = 0; c < classes; ++c) {
        const double z = terms.margin - static_cast<double>(row[label]) + static_cast<double>(row[c]);
        if (c != label && z > 0)
          total += (terms.power == 1 ? z : z * z) * (weight ? static_cast<double>(scales.data_as<T>()[label]) : 1);
      }
      losses.data_as<T>()[i] = static_cast<T>(total / static_cast<double>(classes));
    }
  });
  return reduced_losses(losses, self, reduction, target.dim() == 0);
}

Tensor multi_margin_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, Scalar p,
                                  Scalar margin, const Tensor* weight, int64_t reduction) {
  constexpr const char* kName = "multi_margin_loss_backward";
  const MarginTerms terms(p, margin);
  const auto [count, classes] = rows_of(kName, self, target, false);
  check_weight(kName, weight, classes);
  check_gradient(kName, grad_output, reduction, count);
  const std::vector<int64_t> labels = labels_of(target);
  const Tensor in = computed(self, self.dtype()), scales = computed(weight, self.dtype()),
               grad = computed(grad_output, self.dtype());
  Tensor out = Tensor::empty(self.sizes(), in.dtype());
  dispatch_float_double(in.dtype(), kName, [&]<class T>() -> void {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t label = labels[static_cast<size_t>(i)];
      check_class(kName, label, classes);
      const T* const row = in.data_as<T>() + i * classes;
      T* const to = out.data_as<T>() + i * classes;
      const double base =
          (reduction == 1 ? 1 / static_cast<double>(classes * count) : 1 / static_cast<double>(classes)) *
          (weight ? static_cast<double>(scales.data_as<T>()[label]) : 1) *
          static_cast<double>(gradient_of<T>(grad, i, reduction));
      double total = 0;
      for (int64_t c = 0; c < classes; ++c) {
        const double z = terms.margin - static_cast<double>(row[label]) + static_cast<double>(row[c]);
        if (c == label) continue;
        const double slope = z > 0 ? base * (terms.power == 1 ? 1 : 2 * z) : 0;
        total += slope;
        to[c] = static_cast<T>(slope);
      }
      to[label] = static_cast<T>(-total);
    }
  });
  return to_dtype(out, self.dtype());
}

std::array<Tensor, 2> multilabel_margin_loss_forward(const Tensor& self, const Tensor& target, int64_t reduction) {
  constexpr const char* kName = "multilabel_margin_loss";
  const auto [count, classes] = rows_of(kName, self, target, true);
  const std::vector<int64_t> labels = labels_of(target);
  const Tensor in = computed(self, self.dtype());
  Tensor losses = Tensor::empty(self.dim() == 2 ? IntSpan(&count, 1) : IntSpan(), in.dtype());
  Tensor is_target = Tensor::empty(target.sizes(), in.dtype());
  zero(is_target);
  dispatch_float_double(in.dtype(), kName, [&]<class T>() -> void {
    for (int64_t i = 0; i < count; ++i) {
      const T* const row = in.data_as<T>() + i * classes;
      const int64_t* const given = labels.data() + i * classes;
      T* const flags = is_target.data_as<T>() + i * classes;
      int64_t known = 0;
      for (; known < classes && given[known] >= 0; ++known) {
        check_class(kName, given[known], classes);
        flags[given[known]] = T(1);
      }
      double total = 0;
      for (int64_t k = 0; k < known; ++k)
        for (int64_t c = 0; c < classes; ++c)
          if (flags[c] == T(0)) {
            const double z = 1 - static_cast<double>(row[given[k]]) + static_cast<double>(row[c]);
            if (z > 0) total += z;
          }
      losses.data_as<T>()[i] = static_cast<T>(total / static_cast<double>(classes));
    }
  });
  return {reduced_losses(losses, self, reduction, false), to_dtype(is_target, self.dtype())};
}

Tensor multilabel_margin_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                                       int64_t reduction, const Tensor& is_target) {
  constexpr const char* kName = "multilabel_margin_loss_backward";
  const auto [count, classes] = rows_of(kName, self, target, true);
  SCONCE_CHECK(is_target.numel() == target.numel(), kInvalidArgument, kName, ": inconsistent is_target size ",
               to_string(is_target.sizes()));
  check_gradient(kName, grad_output, reduction, count);
  const std::vector<int64_t> labels = labels_of(target);
  const Tensor in = computed(self, self.dtype()), flags = computed(is_target, self.dtype()),
               grad = computed(grad_output, self.dtype());
  Tensor out = Tensor::empty(self.sizes(), in.dtype());
  zero(out);
  dispatch_float_double(in.dtype(), kName, [&]<class T>() -> void {
    const double scale = 1 / static_cast<double>(reduction == 1 ? classes * count : classes);
    for (int64_t i = 0; i < count; ++i) {
      const T* const row = in.data_as<T>() + i * classes;
      T* const to = out.data_as<T>() + i * classes;
      const auto slope = static_cast<T>(scale * static_cast<double>(gradient_of<T>(grad, i, reduction)));
      for (int64_t k = 0; k < classes; ++k) {
        const int64_t label = labels[static_cast<size_t>(i * classes + k)];
        if (label < 0) break;
        check_class(kName, label, classes);
        for (int64_t c = 0; c < classes; ++c)
          if (flags.data_as<T>()[i * classes + c] == T(0) && T(1) - row[label] + row[c] > T(0)) {
            to[label] -= slope;
            to[c] += slope;
          }
      }
    }
  });
  return to_dtype(out, self.dtype());
}

namespace {

// self as [N, C, places], target as [N, places].
struct Likelihoods {
  int64_t batch = 1, classes = 1, places = 1;
};
Likelihoods likelihoods_of(const char* name, const Tensor& self, const Tensor& target) {
  if (!is_floating(self.dtype())) fail_dispatch(self.dtype(), name);
  SCONCE_CHECK(self.dim() > 0, kInvalidArgument, name, ": input tensor should be 1D or more");
  Likelihoods sizes;
  const bool single = self.dim() == 1;
  sizes.classes = self.size(single ? 0 : 1);
  bool fits = single ? target.numel() == 1 : target.dim() == self.dim() - 1 && target.size(0) == self.size(0);
  if (!single) sizes.batch = self.size(0);
  for (int64_t d = 2; d < self.dim(); ++d) {
    fits = fits && target.size(d - 1) == self.size(d);
    sizes.places *= self.size(d);
  }
  SCONCE_CHECK(fits, kInvalidArgument, name, ": size mismatch (got input: ", to_string(self.sizes()),
               ", target: ", to_string(target.sizes()), ")");
  return sizes;
}

}  // namespace

std::array<Tensor, 2> nll_loss_forward(const Tensor& self, const Tensor& target, const Tensor* weight,
                                       int64_t reduction, int64_t ignore_index) {
  constexpr const char* kName = "nll_loss";
  const auto [batch, classes, places] = likelihoods_of(kName, self, target);
  check_weight(kName, weight, classes);
  const std::vector<int64_t> labels = labels_of(target);
  const Tensor in = computed(self, self.dtype()), scales = computed(weight, self.dtype());
  const bool each = reduction == 0 && self.dim() > 1;
  Tensor losses = Tensor::empty(each ? target.sizes() : IntSpan(), in.dtype()), total = Tensor::empty({}, in.dtype());
  dispatch_float_double(in.dtype(), kName, [&]<class T>() -> void {
    double sum = 0, weights = 0;
    for (int64_t i = 0; i < batch * places; ++i) {
      const int64_t label = labels[static_cast<size_t>(i)];
      T loss = 0;
      if (label != ignore_index) {
        SCONCE_CHECK(label >= 0 && label < classes, kInvalidArgument, kName, ": Target ", label, " is out of bounds.");
        const T scale = weight ? scales.data_as<T>()[label] : T(1);
        loss = -in.data_as<T>()[(i / places * classes + label) * places + i % places] * scale;
        weights += static_cast<double>(scale);
      }
      if (each) losses.data_as<T>()[i] = loss;
      sum += static_cast<double>(loss);
    }
    *total.data_as<T>() = static_cast<T>(each ? 0 : weights);
    if (!each) *losses.data_as<T>() = static_cast<T>(reduction == 1 ? sum / weights : sum);
  });
  return {to_dtype(losses, self.dtype()), to_dtype(total, self.dtype())};
}

Tensor nll_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, const Tensor* weight,
                         int64_t reduction, int64_t ignore_index, const Tensor& total_weight) {
  constexpr const char* kName = "nll_loss_backward";
  const auto [batch, classes, places] = likelihoods_of(kName, self, target);
  check_weight(kName, weight, classes);
  const bool each = reduction == 0 && self.dim() > 1;
  SCONCE_CHECK(grad_output.numel() == (each ? batch * places : 1), kInvalidArgument, kName, ": grad_output ",
               describe(grad_output), " does not go with the loss");
  SCONCE_CHECK(total_weight.numel() == 1, kInvalidArgument, kName,
               ": expected total_weight to be a single element tensor, got ", describe(total_weight));
  const std::vector<int64_t> labels = labels_of(target);
  const Tensor grad = computed(grad_output, self.dtype()), total = computed(total_weight, self.dtype()),
               scales = computed(weight, self.dtype());
  Tensor out = Tensor::empty(self.sizes(), summed_dtype(self.dtype()));
  zero(out);
  dispatch_float_double(out.dtype(), kName, [&]<class T>() -> void {
    for (int64_t i = 0; i < batch * places; ++i) {
      const int64_t label = labels[static_cast<size_t>(i)];
      if (label == ignore_index) continue;
      check_class(kName, label, classes);
      T slope = -(weight ? scales.data_as<T>()[label] : T(1)) * grad.data_as<T>()[each ? i : 0];
      if (reduction == 1) slope /= *total.data_as<T>();
      out.data_as<T>()[(i / places * classes + label) * places + i % places] = slope;
    }
  });
  return to_dtype(out, self.dtype());
}

}  // namespace sconce::cpu
