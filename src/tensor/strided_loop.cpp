#include "src/tensor/strided_loop.h"

#include "sconce/check.h"
#include "src/tensor/factory.h"

namespace sconce {
namespace {

bool equal(IntSpan a, IntSpan b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

enum class Overlap { kNone, kPartial, kFull, kTooHard };

Overlap overlap_of(const Tensor& a, const Tensor& b) {
  if (&a == &b) return Overlap::kFull;
  if (a.numel() == 0 || b.numel() == 0) return Overlap::kNone;
  if (!a.is_dense() || !b.is_dense()) return Overlap::kTooHard;
  if (a.storage() != b.storage()) return Overlap::kNone;
  const auto* a_begin = static_cast<const char*>(a.data());
  const auto* b_begin = static_cast<const char*>(b.data());
  const auto* a_end = a_begin + a.bytes();
  const auto* b_end = b_begin + b.bytes();
  if (a_begin == b_begin && a_end == b_end) return equal(a.strides(), b.strides()) ? Overlap::kFull : Overlap::kPartial;
  return a_begin < b_end && b_begin < a_end ? Overlap::kPartial : Overlap::kNone;
}

// Dimensions from the innermost outwards, as TensorIterator sorts them: by the strides of the first operand in which
// two dimensions differ.
std::array<int, Tensor::kMaxRank> memory_order(IntSpan shape, std::span<const Shape> strides) {
  const int n = static_cast<int>(shape.size());
  const auto compare = [&](int a, int b) {
    for (const Shape& s : strides) {
      if (s[a] == 0 || s[b] == 0) continue;
      if (s[a] != s[b]) return s[a] < s[b] ? -1 : 1;
      if (shape[a] > shape[b]) return 1;
    }
    return 0;
  };
  std::array<int, Tensor::kMaxRank> order;
  for (int i = 0; i < n; ++i) order[i] = n - 1 - i;
  for (int i = 1; i < n; ++i)
    for (int at = i, k = i - 1; k >= 0; --k) {
      const int c = compare(order[k], order[at]);
      if (c < 0) break;
      if (c == 0) continue;
      std::swap(order[k], order[at]);
      at = k;
    }
  return order;
}

[[noreturn, gnu::cold]] void fail_shared(std::string_view name) {
  SCONCE_FAIL(kInvalidArgument, name,
              ": unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
              "memory location. Please clone() the tensor before performing the operation.");
}

}  // namespace

Shape broadcast_shapes(std::string_view name, IntSpan a, IntSpan b) {
  Shape out(a.size() >= b.size() ? a : b);
  const int n = out.rank();
  const int skip_a = n - static_cast<int>(a.size()), skip_b = n - static_cast<int>(b.size());
  for (int d = 0; d < n; ++d) {
    const int64_t x = d < skip_a ? 1 : a[d - skip_a];
    const int64_t y = d < skip_b ? 1 : b[d - skip_b];
    SCONCE_CHECK(x == y || x == 1 || y == 1, kInvalidArgument, name, ": The size of tensor a (", x,
                 ") must match the size of tensor b (", y, ") at non-singleton dimension ", d);
    out[d] = x == 1 ? y : x;
  }
  return out;
}

Shape broadcast_strides(std::string_view name, const Tensor& tensor, IntSpan shape) {
  const int n = static_cast<int>(shape.size());
  const int skip = n - static_cast<int>(tensor.dim());
  SCONCE_CHECK(skip >= 0, kInvalidArgument, name, ": sizes ", to_string(tensor.sizes()),
               " do not broadcast to the fewer dimensions of ", to_string(shape));
  Shape strides;
  strides.resize(n);
  for (int d = 0; d < n; ++d) {
    if (d < skip) {
      strides[d] = 0;
      continue;
    }
    const int64_t size = tensor.size(d - skip);
    SCONCE_CHECK(size == shape[d] || size == 1, kInvalidArgument, name, ": The expanded size of the tensor (", shape[d],
                 ") must match the existing size (", size, ") at non-singleton dimension ", d,
                 ".  Target sizes: ", to_string(shape), ".  Tensor sizes: ", to_string(tensor.sizes()));
    strides[d] = size == shape[d] ? tensor.stride(d - skip) : 0;
  }
  return strides;
}

Tensor expand(std::string_view name, const Tensor& tensor, IntSpan shape) {
  return tensor.as_strided(shape, broadcast_strides(name, tensor, shape), tensor.storage_offset());
}

int64_t wrap_dim(std::string_view name, int64_t dim, int64_t rank) {
  const int64_t n = std::max<int64_t>(rank, 1);
  SCONCE_CHECK(dim >= -n && dim < n, kInvalidArgument, name, ": Dimension out of range (expected to be in range of [",
               -n, ", ", n - 1, "], but got ", dim, ")");
  return dim < 0 ? dim + n : dim;
}

Shape elementwise_strides(IntSpan shape, std::span<const Tensor* const> operands) {
  const int n = static_cast<int>(shape.size());
  Shape out;
  out.resize(n);
  bool same_shape = true, contiguous = true, channels_last = true, dense = true;
  for (const Tensor* t : operands) {
    same_shape &= equal(t->sizes(), shape);
    contiguous &= t->is_contiguous();
    channels_last &= is_channels_last(*t);
    dense &= t->is_dense() && equal(t->strides(), operands[0]->strides());
  }
  if (same_shape && (contiguous || operands.empty())) {
    contiguous_strides(shape, out.data());
    return out;
  }
  if (same_shape && channels_last) {
    format_strides("elementwise", shape, MemoryFormat::kChannelsLast, out.data());
    return out;
  }
  if (same_shape && dense) return Shape(operands[0]->strides());

  std::vector<Shape> strides;
  strides.reserve(operands.size());
  for (const Tensor* t : operands) {
    strides.push_back(broadcast_strides("elementwise", *t, shape));
    for (int d = 0; d < n; ++d) strides.back()[d] *= static_cast<int64_t>(t->itemsize());
  }
  const auto order = memory_order(shape, strides);
  bool reversed = true;
  for (int i = 0; i < n; ++i) reversed &= order[i] == n - 1 - i;
  if (reversed) {
    contiguous_strides(shape, out.data());
    return out;
  }
  int64_t stride = 1;
  for (int i = 0; i < n; ++i) {
    out[order[i]] = stride;
    stride *= shape[order[i]];
  }
  return out;
}

Shape dense_strides(IntSpan sizes, IntSpan strides) {
  const Shape given(strides);
  const auto order = memory_order(sizes, {&given, 1});
  Shape out;
  out.resize(given.rank());
  int64_t stride = 1;
  for (int i = 0; i < given.rank(); ++i) {
    out[order[i]] = stride;
    stride *= std::max<int64_t>(sizes[order[i]], 1);
  }
  return out;
}

void check_no_internal_overlap(std::string_view name, const Tensor& written) {
  if (written.is_dense()) return;
  for (int64_t d = 0; d < written.dim(); ++d)
    SCONCE_CHECK(written.stride(d) != 0 || written.size(d) <= 1, kInvalidArgument, name,
                 ": unsupported operation: more than one element of the written-to tensor refers to a single memory "
                 "location. Please clone() the tensor before performing the operation.");
}

void check_no_partial_overlap(std::string_view name, const Tensor& written, const Tensor& read) {
  if (overlap_of(written, read) == Overlap::kPartial) fail_shared(name);
}

void check_no_overlap(std::string_view name, const Tensor& written, const Tensor& read) {
  const Overlap overlap = overlap_of(written, read);
  if (overlap == Overlap::kPartial || overlap == Overlap::kFull) fail_shared(name);
}

}  // namespace sconce
