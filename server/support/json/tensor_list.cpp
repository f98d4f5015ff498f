#include "server/support/json/tensor_list.h"

#include <algorithm>
#include <array>

#include "sconce/check.h"

namespace sconce::server {
namespace {

// Initial room, in elements.
constexpr size_t kFirst = 64;

}  // namespace

TensorList::TensorList(DType dtype, TensorScratch& scratch)
    : dtype_(dtype),
      itemsize_(dtype_bytes(component_dtype(dtype))),
      scratch_(scratch),
      piece_(scratch.allocate(std::max<size_t>(kFirst * itemsize_, 16))) {
  sink_ = {piece_.data, 0, piece_.bytes / itemsize_,
           [](ElementSink& sink) {
             TensorList& list = *static_cast<TensorList*>(sink.context);
             list.piece_ = list.scratch_.grow(list.piece_, list.piece_.bytes * 2);
             sink.data = list.piece_.data;
             sink.capacity = list.piece_.bytes / list.itemsize_;
           },
           this};
}

void TensorList::add(JsonCursor& json, std::string_view what) {
  NestedShape shape;
  read_elements(json, component_dtype(dtype_), sink_, &shape);
  if (values_++ == 0) {
    shape_ = shape;
    return;
  }
  SCONCE_CHECK(shape.rank == shape_.rank &&
                   std::equal(shape.sizes.begin(), shape.sizes.begin() + shape.rank, shape_.sizes.begin()),
               kInvalidArgument, what, " has values of different shapes");
}

Tensor TensorList::single(std::string_view what) const {
  return tensor({shape_.sizes.data(), static_cast<size_t>(shape_.rank)}, what);
}

Tensor TensorList::stacked(std::string_view what) const {
  std::array<int64_t, JsonCursor::kMaxDepth + 1> sizes;
  sizes[0] = values_;
  std::copy_n(shape_.sizes.begin(), shape_.rank, sizes.begin() + 1);
  return tensor({sizes.data(), static_cast<size_t>(shape_.rank) + 1}, what);
}

Tensor TensorList::tensor(IntSpan sizes, std::string_view what) const {
  size_t rank = sizes.size();
  if (is_complex(dtype_)) {
    const bool pairs = rank > 0 && sizes[rank - 1] == 2;
    SCONCE_CHECK(pairs || sink_.count == 0, kInvalidArgument, what, ": complex numbers are pairs [re, im]");
    if (pairs) --rank;
  }
  SCONCE_CHECK(rank <= static_cast<size_t>(Tensor::kMaxRank), kInvalidArgument, what,
               " has too many dimensions: ", rank);
  return scratch_.over(piece_.storage, piece_.data, dtype_, {sizes.data(), rank});
}

}  // namespace sconce::server
