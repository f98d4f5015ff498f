#include "sconce/difference.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <map>
#include <string_view>

#include "sconce/check.h"
#include "sconce/float_types.h"
#include "src/support/excerpt.h"

namespace sconce {
namespace {

// The finite values of E2M1, by their four bits.
constexpr double kFloat4[16] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};

void count(Difference& d, double a, double b, bool equal) {
  const uint64_t at = d.elements++;
  const bool finite_a = std::isfinite(a), finite_b = std::isfinite(b);
  d.not_finite_a += finite_a ? 0 : 1;
  d.not_finite_b += finite_b ? 0 : 1;
  d.changed += equal || (std::isnan(a) && std::isnan(b)) ? 0 : 1;
  if (!finite_a || !finite_b) return;
  ++d.finite;
  const double apart = std::abs(b - a);
  if (apart > d.largest) {
    d.largest = apart;
    d.largest_at = at;
  }
  d.sum += apart;
  d.squares_a += a * a;
  d.squares_b += b * b;
  d.squares += apart * apart;
  d.products += a * b;
}

template <class T>
T element(std::span<const std::byte> bytes, size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof value);
  return value;
}

template <class T, class Value>
void add(Difference& d, std::span<const std::byte> a, std::span<const std::byte> b, Value&& value) {
  for (size_t i = 0; i < a.size() / sizeof(T); ++i) {
    const T from = element<T>(a, i), to = element<T>(b, i);
    const double x = value(from), y = value(to);
    // Doubles cannot distinguish large integers.
    if constexpr (std::is_integral_v<T> && sizeof(T) == sizeof(int64_t))
      count(d, x, y, from == to);
    else
      count(d, x, y, x == y);
  }
}

template <class T>
void add(Difference& d, std::span<const std::byte> a, std::span<const std::byte> b) {
  add<T>(d, a, b, [](T value) {
    if constexpr (std::is_arithmetic_v<T>)
      return static_cast<double>(value);
    else
      return static_cast<double>(static_cast<float>(value));
  });
}

void add_float4(Difference& d, std::span<const std::byte> a, std::span<const std::byte> b) {
  for (size_t i = 0; i < a.size(); ++i) {
    const auto from = std::to_integer<unsigned>(a[i]), to = std::to_integer<unsigned>(b[i]);
    for (const int half : {0, 4}) {
      const double x = kFloat4[from >> half & 15], y = kFloat4[to >> half & 15];
      count(d, x, y, x == y);
    }
  }
}

bool same_kind(const WeightEntry& a, const WeightEntry& b) { return a.dtype == b.dtype && a.shape == b.shape; }

std::map<std::string_view, size_t> by_name(const WeightFile& file) {
  std::map<std::string_view, size_t> result;
  for (size_t i = 0; i < file.entries().size(); ++i) {
    const std::string& name = file.entries()[i].name;
    SCONCE_CHECK(result.emplace(name, i).second, kInvalidArgument, "a tensor is there twice: ", excerpt(name));
  }
  return result;
}

}  // namespace

double Difference::mean() const noexcept { return finite == 0 ? 0 : sum / static_cast<double>(finite); }

double Difference::relative() const noexcept {
  if (squares == 0) return 0;
  return squares_a == 0 ? std::numeric_limits<double>::infinity() : std::sqrt(squares / squares_a);
}

double Difference::cosine() const noexcept {
  if (squares_a == 0 && squares_b == 0) return 1;
  if (squares_a == 0 || squares_b == 0) return 0;
  return std::clamp(products / (std::sqrt(squares_a) * std::sqrt(squares_b)), -1.0, 1.0);
}

void add_difference(Difference& d, DType dtype, std::span<const std::byte> a, std::span<const std::byte> b) {
  SCONCE_CHECK(a.size() == b.size() && a.size() % dtype_bytes(dtype) == 0, kInvalidArgument,
               "tensors of different sizes are compared: ", a.size(), " and ", b.size(), " bytes");
  switch (dtype) {
    case DType::kUInt8:
      return add<uint8_t>(d, a, b);
    case DType::kInt8:
      return add<int8_t>(d, a, b);
    case DType::kInt16:
      return add<int16_t>(d, a, b);
    case DType::kInt32:
      return add<int32_t>(d, a, b);
    case DType::kInt64:
      return add<int64_t>(d, a, b);
    case DType::kUInt16:
      return add<uint16_t>(d, a, b);
    case DType::kUInt32:
      return add<uint32_t>(d, a, b);
    case DType::kUInt64:
      return add<uint64_t>(d, a, b);
    case DType::kBool:
      return add<uint8_t>(d, a, b, [](uint8_t value) { return value == 0 ? 0.0 : 1.0; });
    case DType::kFloat32:
    case DType::kComplex64:
      return add<float>(d, a, b);
    case DType::kFloat64:
    case DType::kComplex128:
      return add<double>(d, a, b);
    case DType::kFloat16:
    case DType::kComplex32:
      return add<Half>(d, a, b);
    case DType::kBFloat16:
      return add<BFloat16>(d, a, b);
    case DType::kFloat8E5M2:
      return add<Float8E5M2>(d, a, b);
    case DType::kFloat8E4M3FN:
      return add<Float8E4M3FN>(d, a, b);
    case DType::kFloat8E5M2FNUZ:
      return add<Float8E5M2FNUZ>(d, a, b);
    case DType::kFloat8E4M3FNUZ:
      return add<Float8E4M3FNUZ>(d, a, b);
    case DType::kFloat8E8M0FNU:
      return add<Float8E8M0FNU>(d, a, b);
    case DType::kFloat4E2M1FNx2:
      return add_float4(d, a, b);
  }
  SCONCE_FAIL(kUnsupported, "a dtype that cannot be compared: ", static_cast<int>(dtype));
}

std::vector<TensorDifference> compare_weights(WeightFile& a, WeightFile& b) {
  using Kind = TensorDifference::Kind;
  constexpr size_t kBlock = 256 * 1024;  // of either; a multiple of every element's size
  const std::map<std::string_view, size_t> in_a = by_name(a), in_b = by_name(b);
  std::vector<TensorDifference> result;
  for (const auto& [name, at] : in_a) {
    TensorDifference tensor;
    tensor.name = name;
    tensor.a = a.entries()[at];
    const auto other = in_b.find(name);
    tensor.kind = other == in_b.end() ? Kind::kOnlyA : Kind::kSame;
    if (other != in_b.end()) tensor.b = b.entries()[other->second];
    result.push_back(std::move(tensor));
  }
  for (const auto& [name, at] : in_b) {
    if (in_a.contains(name)) continue;
    TensorDifference tensor;
    tensor.name = name;
    tensor.kind = Kind::kOnlyB;
    tensor.b = b.entries()[at];
    result.push_back(std::move(tensor));
  }
  std::sort(result.begin(), result.end(), [](const auto& x, const auto& y) { return x.name < y.name; });
  std::vector<std::byte> from(kBlock), to(kBlock);
  for (TensorDifference& tensor : result) {
    if (tensor.kind != Kind::kSame) continue;
    if (!same_kind(tensor.a, tensor.b)) {
      tensor.kind = Kind::kReshaped;
      continue;
    }
    const size_t i = in_a.at(tensor.name), j = in_b.at(tensor.name);
    for (uint64_t left = a.bytes(i); left > 0;) {
      const size_t part = static_cast<size_t>(std::min<uint64_t>(left, kBlock));
      a.read(i, std::span(from).first(part));
      b.read(j, std::span(to).first(part));
      add_difference(tensor.difference, tensor.a.dtype, std::span(from).first(part), std::span(to).first(part));
      left -= part;
    }
    if (tensor.difference.changed > 0) tensor.kind = Kind::kChanged;
  }
  return result;
}

}  // namespace sconce
