#include "server/weights/validation/nan_scan.h"

#include <algorithm>
#include <cstring>

#include "sconce/dtype.h"

namespace sconce::server::weights {
namespace {

// A value is NaN if its bits, as an unsigned number, exceed `most` after adding `add` and applying `mask`. The addition
// moves the only NaN of a float8 without infinities to the top.
struct Format {
  size_t bytes = 0;  // of a value; 0: the dtype has no NaN
  uint64_t mask = 0, most = 0, add = 0;
};

Format format_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kComplex64:
      return {4, 0x7fffffff, 0x7f800000};
    case DType::kFloat64:
    case DType::kComplex128:
      return {8, 0x7fffffffffffffff, 0x7ff0000000000000};
    case DType::kFloat16:
    case DType::kComplex32:
      return {2, 0x7fff, 0x7c00};
    case DType::kBFloat16:
      return {2, 0x7fff, 0x7f80};
    case DType::kFloat8E5M2:
      return {1, 0x7f, 0x7c};
    case DType::kFloat8E4M3FN:
      return {1, 0x7f, 0x7e};
    case DType::kFloat8E5M2FNUZ:
    case DType::kFloat8E4M3FNUZ:
      return {1, 0xff, 0xfe, 0x7f};
    case DType::kFloat8E8M0FNU:
      return {1, 0xff, 0xfe};
    default:
      return {};
  }
}

template <class Bits>
bool any_nan(const std::byte* values, size_t count, const Format& format) noexcept {
  const auto mask = static_cast<Bits>(format.mask), most = static_cast<Bits>(format.most),
             add = static_cast<Bits>(format.add);
  Bits found = 0;
  for (size_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, values + i * sizeof bits, sizeof bits);
    found |= static_cast<Bits>(static_cast<Bits>((bits + add) & mask) > most);
  }
  return found != 0;
}

bool any_nan_of(const std::byte* values, size_t count, const Format& format) noexcept {
  switch (format.bytes) {
    case 1:
      return any_nan<uint8_t>(values, count, format);
    case 2:
      return any_nan<uint16_t>(values, count, format);
    case 4:
      return any_nan<uint32_t>(values, count, format);
    default:
      return any_nan<uint64_t>(values, count, format);
  }
}

}  // namespace

bool has_nan(const Tensor& tensor, size_t most, uint64_t from) noexcept {
  if (!tensor.defined() || !tensor.is_cpu() || tensor.numel() == 0) return false;
  const Format format = format_of(tensor.dtype());
  if (format.bytes == 0) return false;
  const size_t parts = dtype_bytes(tensor.dtype()) / format.bytes;  // 2 for complex numbers
  const auto* const values = static_cast<const std::byte*>(tensor.data());
  const auto elements = static_cast<size_t>(tensor.numel());
  const size_t room = std::max<size_t>(most / dtype_bytes(tensor.dtype()), 1);
  const size_t looked = std::min(elements, room);
  const size_t first = looked == elements ? 0 : static_cast<size_t>(from % elements);
  // In a dense tensor the order of bytes is as good as the order of elements.
  if (tensor.is_dense()) {
    const size_t end = std::min(first + looked, elements), rest = looked - (end - first);
    const size_t bytes = parts * format.bytes;
    return any_nan_of(values + first * bytes, (end - first) * parts, format) ||
           any_nan_of(values, rest * parts, format);
  }
  for (size_t i = 0; i < looked; ++i) {
    size_t index = (first + i) % elements;
    int64_t offset = 0;
    for (int64_t d = tensor.dim() - 1; d >= 0; --d) {
      const auto size = static_cast<size_t>(tensor.size(d));
      offset += static_cast<int64_t>(index % size) * tensor.stride(d);
      index /= size;
    }
    if (any_nan_of(values + offset * static_cast<int64_t>(parts * format.bytes), parts, format)) return true;
  }
  return false;
}

}  // namespace sconce::server::weights
