#include "src/cpu/vector/channel_values.h"

#include <algorithm>

#include "sconce/check.h"
#include "src/tensor/copy.h"
#include "src/tensor/inspection.h"

namespace sconce {
namespace {

double number(const Tensor& tensor) {
  const ScalarValue v = load_scalar(tensor.data(), tensor.dtype());
  return v.kind == ScalarValue::Kind::kReal ? v.real : static_cast<double>(v.i) + static_cast<double>(v.u);
}

}  // namespace

double single_value(std::string_view name, const Tensor& tensor, const char* what, double otherwise) {
  if (!tensor.defined() || tensor.numel() == 0) return otherwise;
  SCONCE_CHECK(tensor.numel() == 1, kInvalidArgument, name, ": ", what, " must have 1 value, got ", describe(tensor));
  return number(tensor);
}

Tensor channel_values(std::string_view name, const Tensor& tensor, int64_t n, const char* what) {
  SCONCE_CHECK(tensor.defined() && (tensor.numel() == n || tensor.numel() == 1), kInvalidArgument, name, ": ", what,
               " must have 1 or ", n, " values, got ", tensor.defined() ? describe(tensor) : "none");
  const Tensor values = contiguous(to_dtype(tensor, DType::kFloat32));
  if (tensor.numel() == n) return values;
  Tensor all = Tensor::empty({&n, 1}, DType::kFloat32);
  std::fill_n(all.data_as<float>(), n, *values.data_as<float>());
  return all;
}

}  // namespace sconce
