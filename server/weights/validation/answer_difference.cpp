#include "server/weights/validation/answer_difference.h"

#include <algorithm>

#include "sconce/check.h"
#include "server/support/cpp_type.h"
#include "server/support/memory/request_memory.h"
#include "server/weights/validation/element_order.h"

namespace sconce::server::weights {
namespace {

// a, b: row-major.
void count_argmax(const Tensor& shape, bool batched, const std::byte* a, const std::byte* b, OutputDifference& to) {
  if (shape.dim() == 0 || (batched && shape.dim() == 1)) return;
  const int64_t columns = shape.size(shape.dim() - 1);
  if (columns < 2) return;
  with_cpp_type(shape.dtype(), [&]<class T>() {
    if constexpr (kHasOrder<T>) {
      const auto* x = reinterpret_cast<const Stored<T>*>(a);
      const auto* y = reinterpret_cast<const Stored<T>*>(b);
      const int64_t rows = shape.numel() / columns;
      uint64_t others = 0;
      for (int64_t row = 0; row < rows; ++row, x += columns, y += columns)
        others += argmax<T>(x, columns) != argmax<T>(y, columns) ? 1 : 0;
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
  TensorScratch copies;
  const std::byte *const x = copies.row_major(a), *const y = copies.row_major(b);
  const uint64_t before = to.new_nonfinite();
  add_difference(to.values, a.dtype(), {x, a.bytes()}, {y, b.bytes()});
  ++to.answers;
  to.answers_with_new_nonfinite += to.new_nonfinite() != before ? 1 : 0;
  count_argmax(a, batched, x, y, to);
}

}  // namespace

void add_answers(std::span<const Tensor> active, std::span<const Tensor> other, bool batched,
                 std::vector<OutputDifference>& to) {
  SCONCE_CHECK(active.size() == other.size() && active.size() == to.size(), kInternal,
               "answers of different models are compared");
  for (size_t i = 0; i < active.size(); ++i) add_answer(active[i], other[i], batched, to[i]);
}

}  // namespace sconce::server::weights
