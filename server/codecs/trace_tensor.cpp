#include "server/codecs/trace_tensor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "sconce/device_memory.h"
#include "server/codecs/infer_codec.h"
#include "server/support/json/tensor_json.h"

namespace sconce::server::codecs {
namespace {

// At most `count` elements in row-major order, contiguous.
std::vector<std::byte> first_elements(const Tensor& tensor, size_t count) {
  const size_t itemsize = tensor.itemsize();
  std::vector<std::byte> bytes(count * itemsize);
  const auto rank = static_cast<size_t>(tensor.dim());
  std::array<int64_t, Tensor::kMaxRank> at{};
  const auto* const data = static_cast<const std::byte*>(tensor.data());
  for (size_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    for (size_t d = 0; d < rank; ++d) offset += at[d] * tensor.strides()[d];
    std::memcpy(bytes.data() + i * itemsize, data + offset * static_cast<int64_t>(itemsize), itemsize);
    for (size_t d = rank; d-- > 0;) {
      if (++at[d] < tensor.sizes()[d]) break;
      at[d] = 0;
    }
  }
  return bytes;
}

Tensor on_host(const Tensor& tensor, int64_t count) {
  if (tensor.is_cpu()) return tensor;
  constexpr int64_t kOne = 1;
  // Copies only the wanted elements of a large tensor.
  if (tensor.is_contiguous()) return copy_to(tensor.as_strided({&count, 1}, {&kOne, 1}, tensor.storage_offset()), {});
  return copy_to(tensor, {});
}

}  // namespace

TraceTensor describe_for_trace(const char* activity, std::string name, const Tensor& tensor, size_t most) {
  TraceTensor described{activity, std::move(name), dtype_oip(tensor.dtype()), to_string(tensor.sizes()), {}, false};
  std::erase_if(described.shape, [](char c) { return c == ' ' || c == '[' || c == ']'; });
  if (is_complex(tensor.dtype())) described.shape += described.shape.empty() ? "2" : ",2";
  const size_t count = std::min(most, static_cast<size_t>(tensor.numel()));
  described.truncated = count < static_cast<size_t>(tensor.numel());
  if (count == 0 || tensor.layout() != Layout::kStrided) return described;
  std::vector<std::byte> bytes = first_elements(on_host(tensor, static_cast<int64_t>(count)), count);
  const bool plain = tensor.dtype() == DType::kBool || !has_json_form(tensor.dtype());
  const auto size = static_cast<int64_t>(count);
  constexpr int64_t kOne = 1;
  TextBuffer text;
  write_flat(text, Tensor::from_blob(bytes.data(), {&size, 1}, {&kOne, 1}, plain ? DType::kUInt8 : tensor.dtype()));
  described.data = text.view().substr(1, text.size() - 2);  // without brackets
  return described;
}

}  // namespace sconce::server::codecs
