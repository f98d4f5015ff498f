#include "server/codecs/classification.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "server/support/cpp_type.h"
#include "server/support/memory/request_memory.h"

namespace sconce::server::codecs {
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

// The elements of a tensor in row-major order: T converted from its storage type S.
template <class T, class S>
std::vector<T> elements(const Tensor& tensor) {
  std::vector<S> stored(static_cast<size_t>(tensor.numel()));
  if (!stored.empty()) copy_to_contiguous(tensor, reinterpret_cast<std::byte*>(stored.data()));
  std::vector<T> values(stored.size());
  std::transform(stored.begin(), stored.end(), values.begin(),
                 [](S stored_value) { return static_cast<T>(stored_value); });
  return values;
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
  with_cpp_type(tensor.dtype(), [&]<class S>() {
    if constexpr (kIsSmallFloat<S>) {
      run(elements<float, S>(tensor));
    } else if constexpr (std::is_same_v<S, bool>) {
      run(elements<uint8_t, uint8_t>(tensor));
    } else if constexpr (std::is_arithmetic_v<S>) {
      run(elements<S, S>(tensor));
    } else {
      SCONCE_FAIL(kInvalidArgument, "classification of ", dtype_name(tensor.dtype()), " is not supported");
    }
  });
  return classes;
}

}  // namespace sconce::server::codecs
