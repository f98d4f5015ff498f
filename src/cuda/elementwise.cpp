// Sums, products, powers, absolute values and angles, which compiled code leaves to the runtime for complex numbers;
// concatenation and distances of rows. Match aten::add, mul, pow, abs, angle, polar, fill_, cat, _cdist_forward and
// _efficientzerotensor (torch 2.15, CUDA): dtypes and strides of results as at::TensorIterator's.
#include <cmath>

#include "src/cuda/copy.h"
#include "src/cuda/elementwise_kernels.h"
#include "src/cuda/error.h"
#include "src/cuda/ops.h"
#include "src/cuda/stream.h"
#include "src/ops/copy.h"
#include "src/ops/factory.h"
#include "src/ops/scalar.h"
#include "src/ops/strided_loop.h"
#include "src/ops/type_promotion.h"

namespace sconce::cuda {
namespace {

void done(const char* name, cudaError_t error, DType dtype) {
  SCONCE_CHECK(error != cudaErrorNotSupported, kUnsupported, name, ": not implemented for '", dtype_name(dtype),
               "' on CUDA");
  SCONCE_CUDA(error);
}

// Of the dtype, and packed as `like` is: the tensor itself where it is so.
Tensor packed_as(const Tensor& t, const Tensor& like, DType dtype) {
  const auto same = [](IntSpan a, IntSpan b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); };
  if (!t.is_cpu() && t.dtype() == dtype && same(t.sizes(), like.sizes()) && same(t.strides(), like.strides())) return t;
  Tensor packed = Tensor::empty_strided(like.sizes(), like.strides(), dtype, like.device());
  copy(t, packed, t.is_cpu());
  return packed;
}

Device device_of(const Tensor& a, const Tensor& b) { return a.is_cpu() ? b.device() : a.device(); }

Tensor both(const char* name, Binary op, const Tensor& self, const Tensor& other, double scale) {
  const DType dtype = ResultType().add(self).add(other).get();
  const Device device = device_of(self, other);
  const DeviceScope scope(device);
  const Tensor* const operands[] = {&self, &other};
  const Shape sizes = broadcast_shapes(name, self.sizes(), other.sizes());
  Tensor out = Tensor::empty_strided(sizes, elementwise_strides(sizes, operands), dtype, device);
  if (out.numel() == 0) return out;
  const Tensor a = packed_as(self, out, dtype), b = packed_as(other, out, dtype);
  done(name,
       launch_binary({op, static_cast<int>(dtype), a.data(), b.data(), 0, scale, out.data(), out.numel()},
                     current_stream()),
       dtype);
  return out;
}

// number_first: the number is the operator's first operand.
Tensor with_number(const char* name, Binary op, const Tensor& self, double number, double scale, bool number_first) {
  const DType dtype = ResultType().add(self).add_number(Scalar(number)).get();
  const DeviceScope scope(self.device());
  const Tensor* const operands[] = {&self};
  Tensor out = Tensor::empty_strided(self.sizes(), elementwise_strides(self.sizes(), operands), dtype, self.device());
  if (out.numel() == 0) return out;
  const Tensor own = packed_as(self, out, dtype);
  done(name,
       launch_binary({op, static_cast<int>(dtype), number_first ? nullptr : own.data(),
                      number_first ? own.data() : nullptr, number, scale, out.data(), out.numel()},
                     current_stream()),
       dtype);
  return out;
}

DType dtype_of_values(DType dtype) {
  return dtype == DType::kComplex64 ? DType::kFloat32 : dtype == DType::kComplex128 ? DType::kFloat64 : dtype;
}

}  // namespace

Tensor add_Tensor(const Tensor& self, const Tensor& other, double alpha) {
  return both("add", Binary::kAdd, self, other, alpha);
}
Tensor add_Scalar(const Tensor& self, double other, double alpha) {
  return with_number("add", Binary::kAdd, self, other, alpha, false);
}
Tensor mul_Tensor(const Tensor& self, const Tensor& other) { return both("mul", Binary::kMultiply, self, other, 1); }
Tensor mul_Scalar(const Tensor& self, double other) {
  return with_number("mul", Binary::kMultiply, self, other, 1, false);
}
Tensor pow_Tensor_Tensor(const Tensor& self, const Tensor& exponent) {
  return both("pow", Binary::kPower, self, exponent, 1);
}
Tensor pow_Tensor_Scalar(const Tensor& self, double exponent) {
  return with_number("pow", Binary::kPower, self, exponent, 1, false);
}
Tensor pow_Scalar(double self, const Tensor& exponent) {
  return with_number("pow", Binary::kPower, exponent, self, 1, true);
}

Tensor abs(const Tensor& self) {
  const DeviceScope scope(self.device());
  const Tensor* const operands[] = {&self};
  Tensor out = Tensor::empty_strided(self.sizes(), elementwise_strides(self.sizes(), operands),
                                     dtype_of_values(self.dtype()), self.device());
  if (out.numel() == 0) return out;
  const Tensor own = packed_as(self, out, self.dtype());
  done("abs", launch_abs(static_cast<int>(self.dtype()), own.data(), out.data(), out.numel(), current_stream()),
       self.dtype());
  return out;
}

Tensor angle(const Tensor& self) {
  const DType dtype = is_integral(self.dtype(), true) ? DType::kFloat32 : self.dtype();
  const DeviceScope scope(self.device());
  const Tensor* const operands[] = {&self};
  // Row-major for complex numbers, as ATen's.
  Tensor out = is_complex(dtype) ? Tensor::empty(self.sizes(), dtype_of_values(dtype), self.device())
                                 : Tensor::empty_strided(self.sizes(), elementwise_strides(self.sizes(), operands),
                                                         dtype, self.device());
  if (out.numel() == 0) return out;
  const Tensor own = packed_as(self, out, dtype);
  done("angle", launch_angle(static_cast<int>(dtype), own.data(), out.data(), out.numel(), current_stream()), dtype);
  return out;
}

Tensor polar(const Tensor& abs, const Tensor& angle) {
  const DType dtype = abs.dtype();
  SCONCE_CHECK(dtype == angle.dtype(), kInvalidArgument, "polar: Expected object of scalar type ", dtype_name(dtype),
               " but got scalar type ", dtype_name(angle.dtype()), " for second argument");
  SCONCE_CHECK(dtype == DType::kFloat32 || dtype == DType::kFloat64, kUnsupported, "polar: not implemented for '",
               dtype_name(dtype), "' on CUDA");
  const Device device = device_of(abs, angle);
  const DeviceScope scope(device);
  const Tensor* const operands[] = {&abs, &angle};
  const Shape sizes = broadcast_shapes("polar", abs.sizes(), angle.sizes());
  Tensor out = Tensor::empty_strided(sizes, elementwise_strides(sizes, operands),
                                     dtype == DType::kFloat32 ? DType::kComplex64 : DType::kComplex128, device);
  if (out.numel() == 0) return out;
  const Tensor lengths = packed_as(abs, out, dtype), angles = packed_as(angle, out, dtype);
  done("polar",
       launch_polar(static_cast<int>(dtype), lengths.data(), angles.data(), out.data(), out.numel(), current_stream()),
       dtype);
  return out;
}

void fill__Scalar(const Tensor& self, double value) {
  Tensor number = Tensor::empty({}, DType::kFloat64), element = Tensor::empty({}, self.dtype());
  *number.data_as<double>() = value;
  sconce::copy(number, element);
  Tensor filled = self;
  fill(filled, element.data());
}

Tensor cat(TensorList tensors, int64_t dim) {
  SCONCE_CHECK(tensors.size() > 0, kInvalidArgument, "cat: expected a non-empty list of Tensors");
  const auto skipped = [](const Tensor& t) { return t.dim() == 1 && t.size(0) == 0; };
  const Tensor* first = nullptr;
  ResultType type;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor* const t = &tensors[i];
    type.add(*t);
    SCONCE_CHECK(t->dim() > 0, kInvalidArgument, "cat: zero-dimensional tensor cannot be concatenated");
    if (!first && !skipped(*t)) first = t;
  }
  if (!first) first = &tensors[0];
  dim = wrap_dim("cat", dim, first->dim());
  Shape sizes(first->sizes());
  int64_t total = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor* const t = &tensors[i];
    if (skipped(*t)) continue;
    bool fits = t->dim() == first->dim();
    for (int64_t d = 0; fits && d < first->dim(); ++d) fits = d == dim || t->size(d) == first->size(d);
    SCONCE_CHECK(fits, kInvalidArgument, "cat: Sizes of tensors must match except in dimension ", dim, ": ",
                 to_string(t->sizes()), " and ", to_string(first->sizes()));
    total += t->size(dim);
  }
  sizes[static_cast<int>(dim)] = total;
  const DeviceScope scope(first->device());
  // Channels-last where all are.
  MemoryFormat format = suggested_format(*first);
  for (size_t i = 0; i < tensors.size(); ++i)
    if (!skipped(tensors[i]) && suggested_format(tensors[i]) != format) format = MemoryFormat::kContiguous;
  Shape strides(sizes);
  format_strides("cat", sizes, format, strides.data());
  Tensor out = Tensor::empty_strided(sizes, strides, type.get(), first->device());
  int64_t at = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor* const t = &tensors[i];
    if (skipped(*t) || t->numel() == 0) continue;
    Tensor part = out.as_strided(t->sizes(), out.strides(), at * out.stride(dim));
    copy(*t, part, t->is_cpu());
    at += t->size(dim);
  }
  return out;
}

Tensor _efficientzerotensor(IntSpan size, std::optional<DType> dtype, std::optional<int32_t>,
                            std::optional<Device> device, std::optional<int32_t>) {
  const Device there = device.value_or(Device{DeviceType::kCuda, static_cast<int8_t>(current().device)});
  Tensor out = Tensor::empty(size, dtype.value_or(DType::kFloat32), there);
  const unsigned char zero[16] = {};
  fill(out, zero);
  return out;
}

Tensor _cdist_forward(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t>) {
  SCONCE_CHECK(x1.dim() >= 2 && x2.dim() >= 2 && x1.size(x1.dim() - 1) == x2.size(x2.dim() - 1), kInvalidArgument,
               "cdist: expected two sets of rows of one length, got ", describe(x1), " and ", describe(x2));
  SCONCE_CHECK(p >= 0, kInvalidArgument, "cdist: only supports non-negative p values");
  SCONCE_CHECK(x1.dtype() == x2.dtype() && x1.device() == x2.device(), kInvalidArgument,
               "cdist: expected one dtype and device, got ", describe(x1), " and ", describe(x2));
  const DeviceScope scope(x1.device());
  const auto batch_of = [](const Tensor& t) { return t.sizes().first(static_cast<size_t>(t.dim() - 2)); };
  const Shape batch = broadcast_shapes("cdist", batch_of(x1), batch_of(x2));
  const int64_t rows = x1.size(x1.dim() - 2), others = x2.size(x2.dim() - 2), m = x1.size(x1.dim() - 1);
  int64_t count = 1;
  for (const int64_t size : IntSpan(batch)) count *= size;
  const auto shaped = [&](int64_t first, int64_t second) {
    Shape sizes = batch;
    sizes.push_back(first);
    sizes.push_back(second);
    return sizes;
  };
  Tensor out = Tensor::empty(shaped(rows, others), x1.dtype(), x1.device());
  if (out.numel() == 0) return out;
  const Tensor a = cuda::contiguous(expand("cdist", x1, shaped(rows, m))),
               b = cuda::contiguous(expand("cdist", x2, shaped(others, m)));
  done("cdist",
       launch_distances(static_cast<int>(x1.dtype()), a.data(), b.data(), out.data(), count, rows, others, m, p,
                        current_stream()),
       x1.dtype());
  return out;
}

}  // namespace sconce::cuda
