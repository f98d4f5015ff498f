#include "server/protocols/classification.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "sconce/check.h"
#include "server/json/small_floats.h"
#include "server/memory/request_memory.h"

namespace sconce::server {
namespace {

template <class T>
std::string text_of(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return fmt::format("{:f}", value);
  } else {
    return std::to_string(value);
  }
}

template <class T>
bool is_nan(T value) noexcept {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

template <class T>
void classify_rows(const std::vector<T>& values, size_t rows, size_t k, std::span<const std::string> labels,
                   std::vector<std::string>& out) {
  const size_t classes = rows == 0 ? 0 : values.size() / rows;
  std::vector<size_t> order(classes);
  for (size_t row = 0; row < rows; ++row) {
    const T* const v = values.data() + row * classes;
    std::iota(order.begin(), order.end(), size_t{0});
    std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(k), order.end(), [&](size_t a, size_t b) {
      if (is_nan(v[a]) || is_nan(v[b])) return is_nan(v[a]) == is_nan(v[b]) ? a < b : is_nan(v[b]);
      return v[a] != v[b] ? v[a] > v[b] : a < b;
    });
    for (size_t i = 0; i < k; ++i) {
      const size_t index = order[i];
      std::string& element = out.emplace_back(text_of(v[index]) + ":" + std::to_string(index));
      if (index < labels.size() && !labels[index].empty()) element += ":" + labels[index];
    }
  }
}

// Visits the elements of a tensor in row-major order, as T converted from its storage type S.
template <class T, class S, class F>
std::vector<T> elements(const Tensor& tensor, F&& convert) {
  std::vector<S> stored(static_cast<size_t>(tensor.numel()));
  if (!stored.empty()) copy_to_contiguous(tensor, reinterpret_cast<std::byte*>(stored.data()));
  std::vector<T> values(stored.size());
  std::transform(stored.begin(), stored.end(), values.begin(), convert);
  return values;
}

template <class T>
std::vector<T> elements(const Tensor& tensor) {
  return elements<T, T>(tensor, [](T v) { return v; });
}

}  // namespace

Classes classify(const Tensor& tensor, uint64_t k, bool batched, std::span<const std::string> labels) {
  Classes classes;
  batched = batched && tensor.dim() > 0;
  const auto rows = static_cast<size_t>(batched ? tensor.size(0) : 1);
  const size_t count = rows == 0 ? 0 : static_cast<size_t>(tensor.numel()) / rows;
  const auto most = static_cast<size_t>(std::min<uint64_t>(k, count));
  if (batched) classes.shape.push_back(tensor.size(0));
  classes.shape.push_back(static_cast<int64_t>(most));
  const auto run = [&](const auto& values) { classify_rows(values, rows, most, labels, classes.elements); };
  const DType dtype = tensor.dtype();
  switch (dtype) {
    case DType::kBool:
    case DType::kUInt8:
      run(elements<uint8_t>(tensor));
      break;
    case DType::kInt8:
      run(elements<int8_t>(tensor));
      break;
    case DType::kInt16:
      run(elements<int16_t>(tensor));
      break;
    case DType::kUInt16:
      run(elements<uint16_t>(tensor));
      break;
    case DType::kInt32:
      run(elements<int32_t>(tensor));
      break;
    case DType::kUInt32:
      run(elements<uint32_t>(tensor));
      break;
    case DType::kInt64:
      run(elements<int64_t>(tensor));
      break;
    case DType::kUInt64:
      run(elements<uint64_t>(tensor));
      break;
    case DType::kFloat32:
      run(elements<float>(tensor));
      break;
    case DType::kFloat64:
      run(elements<double>(tensor));
      break;
    case DType::kFloat16:
      run(elements<float, uint16_t>(tensor, decode_float16));
      break;
    case DType::kBFloat16:
      run(elements<float, uint16_t>(tensor, decode_bfloat16));
      break;
    default:
      SCONCE_CHECK(is_float8(dtype), kInvalidArgument, "classification of ", dtype_name(dtype), " is not supported");
      run(elements<float, uint8_t>(tensor, [&](uint8_t bits) { return decode_float8(bits, dtype); }));
      break;
  }
  return classes;
}

}  // namespace sconce::server
