#include "server/judging/answer_difference.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>
#include <type_traits>

#include "sconce/check.h"
#include "server/base/cpp_type.h"
#include "server/memory/request_memory.h"

namespace sconce::server {
namespace {

// The elements in row-major order: the tensor's own memory, or a copy.
class RowMajor {
 public:
  explicit RowMajor(const Tensor& tensor) : bytes_(tensor.bytes()) {
    if (tensor.is_contiguous()) {
      data_ = static_cast<const std::byte*>(tensor.data());
      return;
    }
    copy_ = std::make_unique_for_overwrite<std::byte[]>(bytes_);
    copy_to_contiguous(tensor, copy_.get());
    data_ = copy_.get();
  }
  std::span<const std::byte> bytes() const noexcept { return {data_, bytes_}; }

 private:
  const size_t bytes_;
  std::unique_ptr<std::byte[]> copy_;
  const std::byte* data_ = nullptr;
};

template <class T>
concept Ordered = std::is_arithmetic_v<T> || std::is_convertible_v<T, float>;

template <class T>
auto comparable(T value) noexcept {
  if constexpr (std::is_arithmetic_v<T>)
    return value;
  else
    return static_cast<float>(value);
}

template <class T>
int64_t argmax(const T* row, int64_t size) noexcept {
  int64_t at = 0;
  auto largest = comparable(row[0]);
  for (int64_t i = 0; i < size; ++i) {
    const auto value = comparable(row[i]);
    if constexpr (std::is_floating_point_v<decltype(value)>)
      if (std::isnan(value)) return i;
    if (value > largest) {
      largest = value;
      at = i;
    }
  }
  return at;
}

void count_argmax(const Tensor& shape, bool batched, std::span<const std::byte> a, std::span<const std::byte> b,
                  OutputDifference& to) {
  if (shape.dim() == 0 || (batched && shape.dim() == 1)) return;
  const int64_t columns = shape.size(shape.dim() - 1);
  if (columns < 2) return;
  with_cpp_type(shape.dtype(), [&]<class T>() {
    if constexpr (Ordered<T>) {
      const auto* x = reinterpret_cast<const T*>(a.data());
      const auto* y = reinterpret_cast<const T*>(b.data());
      const int64_t rows = shape.numel() / columns;
      uint64_t others = 0;
      for (int64_t row = 0; row < rows; ++row, x += columns, y += columns)
        others += argmax(x, columns) != argmax(y, columns) ? 1 : 0;
      to.rows += static_cast<uint64_t>(rows);
      to.rows_of_other_argmax += others;
      to.answers_of_other_argmax += others != 0 ? 1 : 0;
    }
  });
}

bool same_shape(const Tensor& a, const Tensor& b) noexcept {
  return a.dtype() == b.dtype() && a.layout() == Layout::kStrided && b.layout() == Layout::kStrided &&
         std::ranges::equal(a.sizes(), b.sizes());
}

void add_answer(const Tensor& a, const Tensor& b, bool batched, OutputDifference& to) {
  if (!a.defined() && !b.defined()) return;
  if (!a.defined() || !b.defined() || !same_shape(a, b)) {
    ++to.reshaped;
    return;
  }
  const RowMajor x(a), y(b);
  const uint64_t before = to.new_nonfinite();
  add_difference(to.values, a.dtype(), x.bytes(), y.bytes());
  ++to.answers;
  to.answers_with_new_nonfinite += to.new_nonfinite() != before ? 1 : 0;
  count_argmax(a, batched, x.bytes(), y.bytes(), to);
}

}  // namespace

void add_answers(std::span<const Tensor> active, std::span<const Tensor> other, bool batched,
                 std::vector<OutputDifference>& to) {
  SCONCE_CHECK(active.size() == other.size() && active.size() == to.size(), kInternal,
               "answers of different models are compared");
  for (size_t i = 0; i < active.size(); ++i) add_answer(active[i], other[i], batched, to[i]);
}

}  // namespace sconce::server
