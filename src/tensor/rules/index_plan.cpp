#include "src/tensor/rules/index_plan.h"

#include <algorithm>
#include <string>

#include "sconce/check.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/view.h"

namespace sconce {
namespace {

// Adds the byte offsets that one index tensor gives to a row of positions. True where an index is out of bounds.
template <class Int, bool First>
bool add_offsets(const char* index, int64_t index_stride, int64_t size, int64_t stride, int64_t n, int64_t* out) {
  uint64_t bad = 0;
  const auto one = [&](int64_t value, int64_t& into) {
    const int64_t wrapped = value < 0 ? value + size : value;
    bad |= static_cast<uint64_t>(static_cast<uint64_t>(wrapped) >= static_cast<uint64_t>(size));
    into = (First ? 0 : into) + wrapped * stride;
  };
  if (index_stride == sizeof(Int)) {
    const auto* values = reinterpret_cast<const Int*>(index);
    for (int64_t i = 0; i < n; ++i) one(values[i], out[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) one(*reinterpret_cast<const Int*>(index + i * index_stride), out[i]);
  }
  return bad != 0;
}

}  // namespace

IndexList::IndexList(const OptTensorList& list) : size_(list.size()) {
  SCONCE_CHECK(size_ <= items_.size(), kInvalidArgument, "index: too many indices: ", size_);
  for (size_t i = 0; i < size_; ++i) items_[i] = list[i];
}

IndexPlan::IndexPlan(const Tensor& self, std::span<const Tensor* const> indices, PositionsOf* positions_of)
    : self_(self) {
  SCONCE_CHECK(indices.size() <= static_cast<size_t>(self.dim()), kInvalidArgument,
               "too many indices for tensor of dimension ", self.dim(), " (got ", indices.size(), ")");
  by_dimension_.reserve(static_cast<size_t>(self.dim()));
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i])
      add(*indices[i], i, positions_of);
    else
      by_dimension_.emplace_back();
  }
  SCONCE_CHECK(by_dimension_.size() <= static_cast<size_t>(self.dim()), kInvalidArgument,
               "too many indices for tensor of dimension ", self.dim(), " (got ", by_dimension_.size(), ")");
  by_dimension_.resize(static_cast<size_t>(self.dim()));
  group_dimensions();
  SCONCE_CHECK(!indices_.empty(), kInvalidArgument, "index: at least one index must be provided");
  broadcast_indices();

  const int count = static_cast<int>(indices_.size());
  bool empty_source = false;
  for (int j = 0; j < count; ++j) empty_source |= self_.size(before_ + j) == 0;
  const IntSpan index_sizes = index_sizes_;
  SCONCE_CHECK(!empty_source || std::find(index_sizes.begin(), index_sizes.end(), 0) != index_sizes.end(),
               kInvalidArgument, "index is out of bounds for dimension with size 0");
  for (int d = 0; d < before_; ++d) result_sizes_.push_back(self_.size(d));
  for (int64_t size : index_sizes) result_sizes_.push_back(size);
  for (int64_t d = before_ + count; d < self_.dim(); ++d) result_sizes_.push_back(self_.size(d));
}

void IndexPlan::add(const Tensor& index, size_t number, PositionsOf* positions_of) {
  const DType dtype = index.dtype();
  SCONCE_CHECK(self_.is_cpu() ? index.is_cpu() : dtype == DType::kInt64, kUnsupported, "index: ", describe(index),
               " on ", to_string(index.device()), " into a tensor on ", to_string(self_.device()),
               " needs the CUDA side of the runtime");
  if (dtype == DType::kInt64 || dtype == DType::kInt32) {
    by_dimension_.push_back(index);
    return;
  }
  SCONCE_CHECK(dtype == DType::kBool || dtype == DType::kUInt8, kInvalidArgument,
               "tensors used as indices must be long, int, byte or bool tensors, got ", dtype_name(dtype));
  const auto at = static_cast<int64_t>(by_dimension_.size());
  for (int64_t d = 0; d < index.dim(); ++d)
    SCONCE_CHECK(at + d < self_.dim() && index.size(d) == self_.size(at + d), kInvalidArgument,
                 "The shape of the mask ", to_string(index.sizes()), " at index ", d,
                 " does not match the shape of the indexed tensor ", to_string(self_.sizes()), " at index ", at + d,
                 " (index tensor ", number, ")");
  const Tensor positions = positions_of(index);
  const int64_t count = positions.size(0), one = 1;
  for (int64_t d = 0; d < index.dim(); ++d)
    by_dimension_.push_back(positions.as_strided({&count, 1}, {&one, 1}, d * count));
}

void IndexPlan::group_dimensions() {
  const auto rank = static_cast<int>(by_dimension_.size());
  int first = rank, last = -1, count = 0;
  for (int d = 0; d < rank; ++d)
    if (by_dimension_[static_cast<size_t>(d)].defined()) {
      first = std::min(first, d);
      last = d;
      ++count;
      indices_.push_back(by_dimension_[static_cast<size_t>(d)]);
    }
  if (last - first + 1 == count) {
    before_ = first;
    return;
  }
  Shape sizes, strides;
  for (bool indexed : {true, false})
    for (int d = 0; d < rank; ++d)
      if (by_dimension_[static_cast<size_t>(d)].defined() == indexed) {
        sizes.push_back(self_.size(d));
        strides.push_back(self_.stride(d));
      }
  self_ = self_.as_strided(sizes, strides, self_.storage_offset());
}

void IndexPlan::broadcast_indices() {
  index_sizes_ = Shape(indices_[0].sizes());
  for (const Tensor& index : indices_) {
    const IntSpan a = index_sizes_, b = index.sizes();
    const size_t shared = std::min(a.size(), b.size());
    for (size_t i = 1; i <= shared; ++i) {
      const int64_t x = a[a.size() - i], y = b[b.size() - i];
      if (x == y || x == 1 || y == 1) continue;
      std::string shapes;
      for (const Tensor& t : indices_) shapes += (shapes.empty() ? "" : ", ") + to_string(t.sizes());
      SCONCE_FAIL(kInvalidArgument, "shape mismatch: indexing tensors could not be broadcast together with shapes ",
                  shapes);
    }
    index_sizes_ = broadcast_shapes("index", a, b);
  }
  for (Tensor& index : indices_)
    if (to_string(index.sizes()) != to_string(IntSpan(index_sizes_))) index = expand("index", index, index_sizes_);
  // ATen converts every index. The result may have other strides, which affect the order of the walk.
  const auto is_long = [](const Tensor& t) { return t.dtype() == DType::kInt64; };
  if (std::any_of(indices_.begin(), indices_.end(), [&](const Tensor& t) { return is_long(t) || !t.is_dense(); }))
    for (Tensor& index : indices_) index = to_dtype(index, DType::kInt64);
}

Shape IndexPlan::result_strides() const {
  const int rank = result_sizes_.rank(), index_rank = index_sizes_.rank();
  const auto count = static_cast<int>(indices_.size());
  Shape strides;
  strides.resize(rank);
  for (int d = 0; d < rank; ++d)
    strides[d] = d < before_ ? self_.stride(d) : d < before_ + index_rank ? 0 : self_.stride(d - index_rank + count);
  std::vector<Tensor> tensors;
  tensors.reserve(indices_.size() + 1);
  tensors.push_back(self_.as_strided(result_sizes_, strides, self_.storage_offset()));
  Shape sizes;
  sizes.resize(rank);
  const bool copied = !self_.is_cpu() && std::ranges::any_of(indices_, [&](const Tensor& index) {
    return !std::ranges::equal(index.strides(), indices_[0].strides());
  });
  for (const Tensor& index : indices_) {
    for (int d = 0; d < rank; ++d) sizes[d] = d >= before_ && d < before_ + index_rank ? index.size(d - before_) : 1;
    // ATen reshapes: the strides of dimensions of size 1 count even if the result has size 1 there. A tensor that is
    // contiguous except for those dimensions is not copied.
    const auto viewed = view_strides(index.sizes(), index.strides(), sizes);
    if (viewed && (!copied || index.is_contiguous()))
      strides = *viewed;
    else
      contiguous_strides(sizes, strides.data());
    // Only sizes and strides are read: they need not describe the index's own storage.
    tensors.push_back(Tensor::from_blob(index.data(), sizes, strides, index.dtype(), index.device()));
  }
  std::vector<const Tensor*> operands;
  operands.reserve(tensors.size());
  for (const Tensor& t : tensors) operands.push_back(&t);
  return elementwise_strides(result_sizes_, operands);
}

void IndexPlan::order_by(IntSpan other_strides, size_t other_itemsize) {
  const int index_rank = index_sizes_.rank();
  const size_t count = indices_.size();
  index_rank_ = 0;
  positions_ = 1;
  strides_.resize(count);
  for (int d = index_rank - 1; d >= 0; --d) {
    positions_ *= index_sizes_[d];
    if (index_sizes_[d] == 1) continue;
    sizes_[index_rank_] = index_sizes_[d];
    other_strides_[index_rank_] = other_strides[before_ + d] * static_cast<int64_t>(other_itemsize);
    for (size_t k = 0; k < count; ++k)
      strides_[k][index_rank_] = indices_[k].stride(d) * static_cast<int64_t>(indices_[k].itemsize());
    ++index_rank_;
  }
  const auto each_stride = [&](auto&& f) {
    if (f(other_strides_)) return;
    for (auto& s : strides_)
      if (f(s)) return;
  };
  const auto compare = [&](int a, int b) {
    int result = 0;
    each_stride([&](const auto& s) {
      if (s[a] == 0 || s[b] == 0) return false;
      result = s[a] != s[b] ? (s[a] < s[b] ? -1 : 1) : (sizes_[a] > sizes_[b] ? 1 : 0);
      return result != 0;
    });
    return result;
  };
  for (int d = 1; d < index_rank_; ++d)
    for (int at = d, k = d - 1; k >= 0; --k) {
      const int c = compare(k, at);
      if (c < 0) break;
      if (c == 0) continue;
      std::swap(sizes_[k], sizes_[at]);
      each_stride([&](auto& s) { return std::swap(s[k], s[at]), false; });
      at = k;
    }
  int last = 0;
  for (int d = 1; d < index_rank_; ++d) {
    bool even = true;
    each_stride([&](const auto& s) { return even &= s[d] == s[last] * sizes_[last], false; });
    if (even) {
      sizes_[last] *= sizes_[d];
    } else if (++last != d) {
      sizes_[last] = sizes_[d];
      each_stride([&](auto& s) { return s[last] = s[d], false; });
    }
  }
  if (index_rank_ > 0) index_rank_ = last + 1;

  Shape sizes, other, own;
  for (int d = 0; d < result_sizes_.rank(); ++d) {
    if (d >= before_ && d < before_ + index_rank) continue;
    sizes.push_back(result_sizes_[d]);
    other.push_back(other_strides[d]);
    own.push_back(self_.stride(d < before_ ? d : d - index_rank + static_cast<int>(count)));
  }
  rest_.emplace(sizes, std::array<IntSpan, 2>{other, own}, std::array<size_t, 2>{other_itemsize, self_.itemsize()});
}

int IndexPlan::offsets(int64_t begin, int64_t end, int64_t* self_offsets, int64_t* other_offsets) const noexcept {
  std::array<int64_t, Tensor::kMaxRank> at;
  int64_t rest = begin;
  for (int d = 0; d < index_rank_; ++d) {
    at[d] = rest % sizes_[d];
    rest /= sizes_[d];
  }
  const auto count = static_cast<int>(indices_.size());
  int bad = -1;
  for (int64_t done = begin; done < end;) {
    const int64_t n = index_rank_ == 0 ? 1 : std::min(sizes_[0] - at[0], end - done);
    int64_t* self_out = self_offsets + (done - begin);
    int64_t* other_out = other_offsets + (done - begin);
    int64_t other = 0;
    for (int d = 0; d < index_rank_; ++d) other += at[d] * other_strides_[d];
    const int64_t other_step = index_rank_ == 0 ? 0 : other_strides_[0];
    for (int64_t i = 0; i < n; ++i) other_out[i] = other + i * other_step;
    for (int k = 0; k < count; ++k) {
      const Tensor& index = indices_[static_cast<size_t>(k)];
      const auto& strides = strides_[static_cast<size_t>(k)];
      const auto* values = static_cast<const char*>(index.data());
      for (int d = 0; d < index_rank_; ++d) values += at[d] * strides[d];
      const int64_t size = self_.size(before_ + k);
      const int64_t stride = self_.stride(before_ + k) * static_cast<int64_t>(self_.itemsize());
      const auto add = index.dtype() == DType::kInt64
                           ? (k == 0 ? add_offsets<int64_t, true> : add_offsets<int64_t, false>)
                           : (k == 0 ? add_offsets<int32_t, true> : add_offsets<int32_t, false>);
      if (add(values, index_rank_ == 0 ? 0 : strides[0], size, stride, n, self_out) && bad < 0) bad = k;
    }
    if (bad >= 0) return bad;
    done += n;
    if (index_rank_ == 0) break;
    at[0] = 0;
    for (int d = 1; d < index_rank_; ++d) {
      if (++at[d] < sizes_[d]) break;
      at[d] = 0;
    }
  }
  return -1;
}

int64_t IndexPlan::offset_limit() const noexcept {
  int64_t last = 0;
  for (int k = 0; k < static_cast<int>(indices_.size()); ++k)
    last += (self_.size(before_ + k) - 1) * self_.stride(before_ + k);
  return (last + 1) * static_cast<int64_t>(self_.itemsize());
}

void IndexPlan::fail_out_of_bounds(int number) const {
  const Tensor& index = indices_[static_cast<size_t>(number)];
  const int64_t size = self_.size(before_ + number);
  const StridedLoop<1> loop(index.sizes(), {index.strides()}, {index.itemsize()});
  loop.run({static_cast<char*>(index.data())}, [&](char* const* p, const int64_t* stride, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const char* at = p[0] + i * stride[0];
      const int64_t value = index.dtype() == DType::kInt64 ? *reinterpret_cast<const int64_t*>(at)
                                                           : *reinterpret_cast<const int32_t*>(at);
      SCONCE_CHECK(value >= -size && value < size, kInvalidArgument, "index ", value,
                   " is out of bounds for dimension ", number, " with size ", size);
    }
  });
  SCONCE_FAIL(kInvalidArgument, "index tensor ", number, " changed while it was read");
}

}  // namespace sconce
