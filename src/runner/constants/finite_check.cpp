#include "src/runner/constants/finite_check.h"

#include <algorithm>
#include <cstring>

namespace sconce::runner {
namespace {

// An element is not finite if its bits under `mask` equal `pattern`.
template <class Bits>
std::optional<int64_t> scan(std::span<const std::byte> elements, Bits mask, Bits pattern) noexcept {
  constexpr size_t kBlock = 4096 / sizeof(Bits);
  const size_t count = elements.size() / sizeof(Bits);
  const auto bits_at = [&](size_t i) {
    Bits bits;
    std::memcpy(&bits, elements.data() + i * sizeof(Bits), sizeof bits);
    return bits;
  };
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t end = std::min(count, begin + kBlock);
    Bits found = 0;
    for (size_t i = begin; i < end; ++i) found |= static_cast<Bits>((bits_at(i) & mask) == pattern);
    if (found == 0) [[likely]]
      continue;
    for (size_t i = begin; i < end; ++i)
      if ((bits_at(i) & mask) == pattern) return static_cast<int64_t>(i);
  }
  return std::nullopt;
}

std::optional<int64_t> halved(std::optional<int64_t> index) { return index ? std::optional(*index / 2) : index; }

}  // namespace

std::optional<int64_t> first_not_finite(DType dtype, std::span<const std::byte> elements) noexcept {
  constexpr uint32_t kFloat = 0x7f800000;
  constexpr uint64_t kDouble = 0x7ff0000000000000;
  switch (dtype) {
    case DType::kFloat32:
      return scan<uint32_t>(elements, kFloat, kFloat);
    case DType::kFloat64:
      return scan<uint64_t>(elements, kDouble, kDouble);
    case DType::kFloat16:
      return scan<uint16_t>(elements, 0x7c00, 0x7c00);
    case DType::kBFloat16:
      return scan<uint16_t>(elements, 0x7f80, 0x7f80);
    case DType::kComplex32:
      return halved(scan<uint16_t>(elements, 0x7c00, 0x7c00));
    case DType::kComplex64:
      return halved(scan<uint32_t>(elements, kFloat, kFloat));
    case DType::kComplex128:
      return halved(scan<uint64_t>(elements, kDouble, kDouble));
    case DType::kFloat8E5M2:
      return scan<uint8_t>(elements, 0x7c, 0x7c);
    case DType::kFloat8E4M3FN:
      return scan<uint8_t>(elements, 0x7f, 0x7f);
    case DType::kFloat8E5M2FNUZ:
    case DType::kFloat8E4M3FNUZ:
      return scan<uint8_t>(elements, 0xff, 0x80);
    case DType::kFloat8E8M0FNU:
      return scan<uint8_t>(elements, 0xff, 0xff);
    default:
      return std::nullopt;
  }
}

}  // namespace sconce::runner
