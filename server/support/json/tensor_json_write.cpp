#include <algorithm>

#include "server/support/json/number_writer.h"
#include "server/support/json/tensor_json.h"

namespace sconce::server {
namespace {

template <class T>
class Writer {
 public:
  Writer(TextBuffer& out, const Tensor& tensor) : out_(out), tensor_(tensor) {}

  void flat() {
    out_.append('[');
    if (tensor_.numel() != 0) {
      if (tensor_.is_contiguous()) {
        row(tensor_.data_as<T>(), tensor_.numel(), 1);
      } else {
        flat_from(0, tensor_.data_as<T>());
      }
    }
    out_.append(']');
  }
  void nested() { nested_from(0, tensor_.data_as<T>()); }

 private:
  void row(const T* data, int64_t count, int64_t stride) {
    constexpr int64_t kBlock = 64;
    for (int64_t i = 0; i < count; i += kBlock) {
      char* const p = out_.reserve(kBlock * (kElementRoom + 1));
      out_.commit(write_elements(p, data + i * stride, std::min(kBlock, count - i), stride));
    }
    out_.truncate(out_.size() - 1);
  }
  void flat_from(int64_t dim, const T* data) {
    if (dim + 1 == tensor_.dim()) return row(data, tensor_.size(dim), tensor_.stride(dim));
    for (int64_t i = 0; i < tensor_.size(dim); ++i) {
      if (i != 0) out_.append(',');
      flat_from(dim + 1, data + i * tensor_.stride(dim));
    }
  }
  void nested_from(int64_t dim, const T* data) {
    if (dim == tensor_.dim()) return row(data, 1, 1);
    out_.append('[');
    if (dim + 1 == tensor_.dim()) {
      if (tensor_.size(dim) != 0) row(data, tensor_.size(dim), tensor_.stride(dim));
    } else {
      for (int64_t i = 0; i < tensor_.size(dim); ++i) {
        if (i != 0) out_.append(',');
        nested_from(dim + 1, tensor_.numel() == 0 ? data : data + i * tensor_.stride(dim));
      }
    }
    out_.append(']');
  }

  TextBuffer& out_;
  const Tensor& tensor_;
};

// Complex elements as pairs of components.
Tensor components(const Tensor& tensor) {
  int64_t sizes[Tensor::kMaxRank + 1], strides[Tensor::kMaxRank + 1];
  const size_t rank = static_cast<size_t>(tensor.dim());
  for (size_t d = 0; d < rank; ++d) {
    sizes[d] = tensor.sizes()[d];
    strides[d] = 2 * tensor.strides()[d];
  }
  sizes[rank] = 2;
  strides[rank] = 1;
  return tensor.view_as(component_dtype(tensor.dtype()), {sizes, rank + 1}, {strides, rank + 1},
                        2 * tensor.storage_offset());
}

}  // namespace

bool has_json_form(DType dtype) noexcept { return dtype != DType::kFloat4E2M1FNx2; }

DType component_dtype(DType dtype) noexcept {
  switch (dtype) {
    case DType::kComplex32:
      return DType::kFloat16;
    case DType::kComplex64:
      return DType::kFloat32;
    case DType::kComplex128:
      return DType::kFloat64;
    default:
      return dtype;
  }
}

void write_flat(TextBuffer& out, const Tensor& tensor) {
  if (is_complex(tensor.dtype())) return write_flat(out, components(tensor));
  with_element_type(tensor.dtype(), [&]<class T>() { Writer<T>(out, tensor).flat(); });
}

void write_nested(TextBuffer& out, const Tensor& tensor) {
  if (is_complex(tensor.dtype())) return write_nested(out, components(tensor));
  with_element_type(tensor.dtype(), [&]<class T>() { Writer<T>(out, tensor).nested(); });
}

}  // namespace sconce::server
