#include "src/cpu/movement/movement.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sconce/check.h"
#include "src/cpu/elementwise/arithmetic.h"
#include "src/cpu/elementwise/binary_functions.h"
#include "src/cpu/elementwise/functions.h"
#include "src/cpu/indexing/index.h"
#include "src/cpu/indexing/index_select.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/dimensions.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/strided_loop.h"
#include "src/tensor/view.h"

namespace sconce::cpu {
namespace {

// A copy of the whole storage, viewed with the sizes, strides and offset of self.
Tensor clone_storage(const Tensor& self) {
  if (self.numel() == 0) return clone_preserve_strides(self);
  for (int64_t d = 0; d < self.dim(); ++d)  // at::clone_preserve_strides: an expanded tensor comes out gapless
    if (self.stride(d) == 0 && self.size(d) > 1) return clone(self);
  const int64_t count = static_cast<int64_t>(self.storage()->bytes() / self.itemsize()), one = 1;
  const Tensor all = self.as_strided(IntSpan(&count, 1), IntSpan(&one, 1), 0);
  return clone(all).as_strided(self.sizes(), self.strides(), self.storage_offset());
}

Tensor with_part(const Tensor& self, const Tensor& src, const char* name, Tensor part, Tensor out) {
  SCONCE_CHECK(std::equal(part.sizes().begin(), part.sizes().end(), src.sizes().begin(), src.sizes().end()),
               kInvalidArgument, name,
               ": expected src to have a size equal to the slice of self. src size = ", to_string(src.sizes()),
               ", slice size = ", to_string(part.sizes()));
  (void)self;
  copy(src, part);
  return out;
}

// Indices that are safe to follow: clamped to their dimension.
struct ClampedIndices {
  ClampedIndices(const Tensor& self, const OptTensorList& indices) {
    tensors.resize(indices.size());
    for (size_t d = 0; d < indices.size(); ++d) {
      if (!indices[d]) continue;
      Tensor whole = clone(to_dtype(*indices[d], DType::kInt64));
      const int64_t size = self.size(static_cast<int64_t>(d));
      auto* values = whole.data_as<int64_t>();
      for (int64_t i = 0; i < whole.numel(); ++i) values[i] = std::clamp(values[i], -size, size - 1);
      tensors[d] = std::move(whole);
    }
    for (const Tensor& tensor : tensors) pointers.push_back(tensor.defined() ? &tensor : nullptr);
    for (const Tensor* const& pointer : pointers) handles.push_back(&pointer);
  }
  OptTensorList list() const { return {handles.data(), handles.size()}; }
  std::vector<Tensor> tensors;
  std::vector<const Tensor*> pointers;
  std::vector<const Tensor* const*> handles;
};

}  // namespace

Tensor diagonal(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  dim1 = wrap_dim("diagonal", dim1, self.dim());
  dim2 = wrap_dim("diagonal", dim2, self.dim());
  SCONCE_CHECK(dim1 != dim2, kInvalidArgument, "diagonal: diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  const int64_t rows = self.size(dim1), columns = self.size(dim2);
  const int64_t length =
      std::max<int64_t>(0, offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns));
  int64_t start = self.storage_offset();
  if (length > 0) start += offset >= 0 ? offset * self.stride(dim2) : -offset * self.stride(dim1);
  Shape sizes, strides;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != dim1 && d != dim2) {
      sizes.push_back(self.size(d));
      strides.push_back(self.stride(d));
    }
  sizes.push_back(length);
  strides.push_back(self.stride(dim1) + self.stride(dim2));
  return self.as_strided(sizes, strides, start);
}

Tensor unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  const int64_t dim = wrap_dim("unfold", dimension, self.dim());
  const int64_t length = self.dim() == 0 ? 1 : self.size(dim);
  SCONCE_CHECK(size >= 0, kInvalidArgument, "unfold: size is ", size, " but must be >= 0");
  SCONCE_CHECK(size <= length, kInvalidArgument, "unfold: maximum size for tensor at dimension ", dim, " is ", length,
               " but size is ", size);
  SCONCE_CHECK(step > 0, kInvalidArgument, "unfold: step is ", step, " but must be > 0");
  Shape sizes(self.sizes()), strides(self.strides());
  if (self.dim() > 0) {
    sizes[static_cast<int>(dim)] = (length - size) / step + 1;
    strides[static_cast<int>(dim)] = self.stride(dim) * step;
  }
  sizes.push_back(size);
  strides.push_back(self.dim() == 0 ? 1 : self.stride(dim));
  return self.as_strided(sizes, strides, self.storage_offset());
}

Tensor squeeze_dims(const Tensor& self, IntSpan dims) {
  std::vector<bool> named(static_cast<size_t>(self.dim()), false);
  for (const int64_t d : dims) {
    const auto at = static_cast<size_t>(wrap_dim("squeeze", d, self.dim()));
    if (self.dim() == 0) continue;
    SCONCE_CHECK(!named[at], kInvalidArgument, "squeeze: dim ", d, " appears multiple times in the list of dims");
    named[at] = true;
  }
  Shape sizes, strides;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (!named[static_cast<size_t>(d)] || self.size(d) != 1) {
      sizes.push_back(self.size(d));
      strides.push_back(self.stride(d));
    }
  return self.as_strided(sizes, strides, self.storage_offset());
}

Tensor flip(const Tensor& self, IntSpan dims) {
  std::vector<bool> turned(static_cast<size_t>(self.dim()), false);
  for (const int64_t d : dims) {
    const auto at = static_cast<size_t>(wrap_dim("flip", d, self.dim()));
    if (self.dim() == 0) continue;
    SCONCE_CHECK(!turned[at], kInvalidArgument, "flip: dim ", d, " appears multiple times in the list of dims");
    turned[at] = true;
  }
  Tensor out = empty_like(self);
  if (self.numel() == 0) return out;
  // Read backwards: from the last element of each such dimension.
  Shape steps;
  const char* from = static_cast<const char*>(self.data());
  const auto item = static_cast<int64_t>(self.itemsize());
  for (int64_t d = 0; d < self.dim(); ++d) {
    const bool back = turned[static_cast<size_t>(d)];
    if (back) from += (self.size(d) - 1) * self.stride(d) * item;
    steps.push_back(back ? -self.stride(d) : self.stride(d));
  }
  const StridedLoop<2> loop(self.sizes(), {out.strides(), IntSpan(steps)}, {out.itemsize(), self.itemsize()});
  dispatch_bytes(self.itemsize(), [&]<class Bytes>() {
    const std::array<char*, 2> bases{static_cast<char*>(out.data()), const_cast<char*>(from)};
    parallel_for(0, loop.numel, 32768, [&](int64_t begin, int64_t end) noexcept {
      loop.run(bases, begin, end, [](char* const* pointers, const int64_t* strides, int64_t count) {
        char* to = pointers[0];
        const char* source = pointers[1];
        constexpr auto kItem = static_cast<int64_t>(sizeof(Bytes));
        if (strides[0] == kItem && strides[1] == -kItem) {
          auto* const forwards = reinterpret_cast<Bytes*>(to);
          const auto* const backwards = reinterpret_cast<const Bytes*>(source);
          for (int64_t i = 0; i < count; ++i) forwards[i] = backwards[-i];
          return;
        }
        for (; count; --count, to += strides[0], source += strides[1])
          *reinterpret_cast<Bytes*>(to) = *reinterpret_cast<const Bytes*>(source);
      });
    });
  });
  return out;
}

Tensor repeat(const Tensor& self, IntSpan repeats) {
  const auto rank = static_cast<int64_t>(repeats.size());
  SCONCE_CHECK(rank >= self.dim(), kInvalidArgument,
               "repeat: Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  SCONCE_CHECK(2 * rank <= Tensor::kMaxRank, kUnsupported, "repeat: more than ", Tensor::kMaxRank / 2, " dimensions");
  Shape sizes, from;  // [repeats of d, size of d] for each d
  Shape result;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t own = d - (rank - self.dim());
    const int64_t size = own >= 0 ? self.size(own) : 1, times = repeats[static_cast<size_t>(d)];
    SCONCE_CHECK(times >= 0, kInvalidArgument, "repeat: Repeats cannot be negative, got ", times);
    sizes.push_back(times);
    sizes.push_back(size);
    from.push_back(0);
    from.push_back(own >= 0 ? self.stride(own) : 0);
    result.push_back(times * size);
  }
  Tensor out = Tensor::empty(sizes, self.dtype(), self.device());
  if (out.numel() > 0) copy(self.as_strided(sizes, from, self.storage_offset()), out);
  return view(out, result);
}

Tensor constant_pad_nd(const Tensor& self, IntSpan pad, Scalar value) {
  if (!value.is_complex()) return cpu::pad(self, pad, "constant", value.to_double());
  Tensor out = cpu::pad(self, pad, "constant", 0.0);
  fill(out, value);
  Tensor inner = out, kept = self;
  for (size_t i = 0; i < pad.size(); i += 2) {
    const int64_t d = self.dim() - 1 - static_cast<int64_t>(i / 2), before = pad[i], after = pad[i + 1];
    const int64_t cut = std::max<int64_t>(0, -before) + std::max<int64_t>(0, -after);
    kept = narrow(kept, d, std::max<int64_t>(0, -before), self.size(d) - cut);
    inner = narrow(inner, d, std::max<int64_t>(0, before), self.size(d) - cut);
  }
  copy(kept, inner);
  return out;
}

Tensor slice_scatter(const Tensor& self, const Tensor& src, int64_t dim, std::optional<int64_t> start,
                     std::optional<int64_t> end, int64_t step) {
  const Tensor out = clone_storage(self);
  return with_part(self, src, "slice_scatter", slice_Tensor(out, dim, start, end, step), out);
}
Tensor select_scatter(const Tensor& self, const Tensor& src, int64_t dim, int64_t index) {
  const Tensor out = clone_storage(self);
  return with_part(self, src, "select_scatter", select(out, dim, index), out);
}
Tensor diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2) {
  const Tensor out = clone_storage(self);
  return with_part(self, src, "diagonal_scatter", diagonal(out, offset, dim1, dim2), out);
}
Tensor as_strided_scatter(const Tensor& self, const Tensor& src, IntSpan size, IntSpan stride,
                          std::optional<int64_t> storage_offset) {
  const Tensor out = clone_storage(self);
  return with_part(self, src, "as_strided_scatter", as_strided(out, size, stride, storage_offset), out);
}
Tensor copied(const Tensor& self, const Tensor& src) {
  Tensor out = clone_storage(self);
  copy(src, out);
  return out;
}

Tensor gather(const Tensor& self, int64_t dim, const Tensor& index) {
  dim = wrap_dim("gather", dim, self.dim());
  SCONCE_CHECK(index.dtype() == DType::kInt64 || index.dtype() == DType::kInt32 || index.numel() == 0, kInvalidArgument,
               "gather: Expected dtype int32/int64 for index, got ", dtype_name(index.dtype()));
  Tensor out = Tensor::empty(index.sizes(), self.dtype());
  if (index.numel() == 0) return out;
  const auto rank_of = [](const Tensor& t) { return std::max<int64_t>(t.dim(), 1); };
  SCONCE_CHECK(rank_of(index) == rank_of(self), kInvalidArgument,
               "gather: Index tensor must have the same number of dimensions as input tensor");
  for (int64_t d = 0; d < index.dim(); ++d)
    SCONCE_CHECK(d == dim || self.dim() == 0 || index.size(d) <= self.size(d), kInvalidArgument,
                 "gather: Size does not match at dimension ", d, " expected index ", to_string(index.sizes()),
                 " to be no larger than self ", to_string(self.sizes()), " apart from dimension ", dim);
  const int64_t length = self.dim() == 0 ? 1 : self.size(dim), step = self.dim() == 0 ? 0 : self.stride(dim);
  const Tensor places = contiguous(to_dtype(index, DType::kInt64));
  const auto* at = places.data_as<int64_t>();
  int64_t least = 0, most = -1;
  for (int64_t i = 0; i < places.numel(); ++i) {
    least = at[i] < least ? at[i] : least;
    most = at[i] > most ? at[i] : most;
  }
  SCONCE_CHECK(least >= 0 && most < length, kInvalidArgument, "gather: index ", least < 0 ? least : most,
               " is out of bounds for dimension ", dim, " with size ", length);
  // Along dim, only the index moves through self.
  Shape strides;
  for (int64_t d = 0; d < index.dim(); ++d) strides.push_back(d == dim || self.dim() == 0 ? 0 : self.stride(d));
  const StridedLoop<3> loop(index.sizes(), {out.strides(), places.strides(), IntSpan(strides)},
                            {out.itemsize(), sizeof(int64_t), self.itemsize()});
  const int64_t bytes = step * static_cast<int64_t>(self.itemsize());
  dispatch_bytes(self.itemsize(), [&]<class Bytes>() {
    const std::array<char*, 3> bases{static_cast<char*>(out.data()), static_cast<char*>(places.data()),
                                     static_cast<char*>(self.data())};
    const auto row = [bytes](char* const* pointers, const int64_t* steps, int64_t count) {
      char* to = pointers[0];
      const char *place = pointers[1], *from = pointers[2];
      constexpr auto kItem = static_cast<int64_t>(sizeof(Bytes));
      if (steps[0] == kItem && steps[1] == 8 && steps[2] == 0) {
        auto* const packed = reinterpret_cast<Bytes*>(to);
        const auto* const index = reinterpret_cast<const int64_t*>(place);
        if (bytes == kItem) {
          const auto* const line = reinterpret_cast<const Bytes*>(from);
          for (int64_t i = 0; i < count; ++i) packed[i] = line[index[i]];
        } else {
          for (int64_t i = 0; i < count; ++i) packed[i] = *reinterpret_cast<const Bytes*>(from + index[i] * bytes);
        }
        return;
      }
      for (; count; --count, to += steps[0], place += steps[1], from += steps[2])
        *reinterpret_cast<Bytes*>(to) =
            *reinterpret_cast<const Bytes*>(from + *reinterpret_cast<const int64_t*>(place) * bytes);
    };
    parallel_for(0, loop.numel, 16384, [&](int64_t begin, int64_t end) noexcept { loop.run(bases, begin, end, row); });
  });
  return out;
}

Tensor scatter_src(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  Tensor out = Tensor::empty(self.sizes(), self.dtype());
  scatter_src_out(out, self, dim, index, src);
  return out;
}
void scatter_value_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, Scalar value) {
  Tensor element = Tensor::empty({}, self.dtype());
  fill(element, value);
  scatter_src_out(out, self, dim, index, sconce::expand("scatter", element, index.sizes()));
}
Tensor scatter_value(const Tensor& self, int64_t dim, const Tensor& index, Scalar value) {
  Tensor out = Tensor::empty(self.sizes(), self.dtype());
  scatter_value_out(out, self, dim, index, value);
  return out;
}
Tensor scatter_reduce_by(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                         std::string_view reduce) {
  SCONCE_CHECK(reduce == "add" || reduce == "multiply", kInvalidArgument,
               "scatter: reduce argument must be either add or multiply, got ", reduce);
  Tensor out = Tensor::empty(self.sizes(), self.dtype());
  scatter_reduce_two_out(out, self, dim, index, src, reduce == "add" ? "sum" : "prod", true);
  return out;
}
Tensor scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  return scatter_reduce_by(self, dim, index, src, "add");
}

Tensor index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha) {
  dim = wrap_dim("index_add", dim, self.dim());
  SCONCE_CHECK(index.dim() <= 1, kInvalidArgument,
               "index_add: Index is supposed to be a vector, but got dim: ", index.dim());
  SCONCE_CHECK(index.dtype() == DType::kInt64 || index.dtype() == DType::kInt32, kInvalidArgument,
               "index_add: Expected dtype int32/int64 for index, got ", dtype_name(index.dtype()));
  SCONCE_CHECK(source.dtype() == self.dtype(), kInvalidArgument, "index_add: self (", dtype_name(self.dtype()),
               ") and source (", dtype_name(source.dtype()), ") must have the same scalar type");
  // alpha is converted to self's dtype first: 1.5 becomes 1 for integers. So integer products are not rounded as
  // floats. If there is nothing to add, alpha need not fit the dtype.
  Tensor scaled = source;
  if (alpha.to_complex() != 1.0 && source.numel() > 0) {
    Tensor factor = Tensor::empty({}, self.dtype());
    fill(factor, alpha);
    scaled = multiply(source, factor);
  }
  const int64_t one = 1;
  const Tensor places = index.dim() == 0 ? view(index, IntSpan(&one, 1)) : index;
  SCONCE_CHECK(scaled.dim() == self.dim() && (self.dim() == 0 || scaled.size(dim) == places.numel()), kInvalidArgument,
               "index_add: Number of indices (", places.numel(), ") should be equal to source.size(dim)");
  for (int64_t d = 0; d < self.dim(); ++d)
    SCONCE_CHECK(d == dim || scaled.size(d) == self.size(d), kInvalidArgument, "index_add: source ",
                 to_string(source.sizes()), " does not fit self ", to_string(self.sizes()), " along dimension ", d);
  if (self.numel() == 0) return clone_contiguous(self);  // ATen looks at no index then
  for (int64_t i = 0; i < places.numel(); ++i) {
    const int64_t at = places.dtype() == DType::kInt64 ? places.data_as<int64_t>()[i * places.stride(0)]
                                                       : places.data_as<int32_t>()[i * places.stride(0)];
    const int64_t length = self.dim() == 0 ? 1 : self.size(dim);
    SCONCE_CHECK(at >= 0 && at < length, kInvalidArgument, "index_add: index ", at, " is out of bounds for dimension ",
                 dim, " with size ", length);
  }
  Tensor out = clone_contiguous(self);
  if (self.dim() == 0) {
    for (int64_t i = 0; i < places.numel(); ++i) copy(add(out, scaled, Scalar(int64_t{1})), out);
    return out;
  }
  if (self.dtype() == DType::kFloat16 || self.dtype() == DType::kBFloat16) {
    // Sums are formed in float: a long sum in a half type would stop growing.
    Shape strides;
    for (int64_t d = 0; d < self.dim(); ++d) strides.push_back(d == dim ? places.stride(0) : 0);
    const Tensor spread = places.as_strided(scaled.sizes(), strides, places.storage_offset());
    scatter_reduce_two_out(out, out, dim, spread, scaled, "sum", true);
    return out;
  }
  std::vector<const Tensor*> indices(static_cast<size_t>(dim), nullptr);
  indices.push_back(&places);
  index_put_out(out, out, indices, scaled, true);
  return out;
}

Tensor _unsafe_masked_index(const Tensor& self, const Tensor& mask, OptTensorList indices, Scalar fill_value) {
  if (self.numel() == 0) {
    // self has no elements to read: the result holds the fill value only.
    Shape sizes(mask.sizes());
    for (int64_t d = static_cast<int64_t>(indices.size()); d < self.dim(); ++d) sizes.push_back(self.size(d));
    Tensor out = Tensor::empty(sizes, self.dtype());
    fill(out, fill_value);
    return out;
  }
  const ClampedIndices safe(self, indices);
  return masked_fill_number(index_Tensor(self, safe.list()), logical_not(mask), fill_value);
}

Tensor _unsafe_masked_index_put_accumulate(const Tensor& self, const Tensor& mask, OptTensorList indices,
                                           const Tensor& values) {
  if (self.numel() == 0) return clone(self);
  const ClampedIndices safe(self, indices);
  return index_put(self, safe.list(), masked_fill_number(values, logical_not(mask), Scalar(int64_t{0})), true);
}

Tensor embedding(const Tensor& weight, const Tensor& indices) {
  SCONCE_CHECK(weight.dim() == 2, kInvalidArgument, "embedding: 'weight' must be 2-D");
  SCONCE_CHECK(indices.dtype() == DType::kInt64 || indices.dtype() == DType::kInt32, kInvalidArgument,
               "embedding: expected indices of int64 or int32, got ", dtype_name(indices.dtype()));
  const int64_t count = indices.numel();
  Shape sizes(indices.sizes());
  sizes.push_back(weight.size(1));
  return view(index_select(weight, 0, reshape(indices, IntSpan(&count, 1))), sizes);
}

Tensor embedding_renorm(const Tensor& weight, const Tensor& indices, double max_norm, double norm_type) {
  SCONCE_CHECK(weight.dim() == 2, kInvalidArgument, "embedding_renorm: expected a weight of rank 2, got ",
               describe(weight));
  SCONCE_CHECK(indices.dtype() == DType::kInt64 || indices.dtype() == DType::kInt32, kInvalidArgument,
               "embedding_renorm: expected indices of int64 or int32, got ", dtype_name(indices.dtype()));
  Tensor out = clone(weight);
  const Tensor places = contiguous(to_dtype(indices, DType::kInt64));
  std::vector<int64_t> rows(places.data_as<int64_t>(), places.data_as<int64_t>() + places.numel());
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  for (const int64_t row : rows) {
    SCONCE_CHECK(row >= 0 && row < weight.size(0), kInvalidArgument, "embedding_renorm: index ", row,
                 " is out of range of ", weight.size(0), " rows");
    Tensor values = select(out, 0, row);
    const Tensor wide = contiguous(to_dtype(values, DType::kFloat64));
    const auto* const x = wide.data_as<double>();
    double total = 0;
    for (int64_t i = 0; i < wide.numel(); ++i) {
      const double size = std::fabs(x[i]);
      total = std::isinf(norm_type) ? std::max(total, size)
              : norm_type == 2      ? total + size * size
                                    : total + std::pow(size, norm_type);
    }
    const double norm = std::isinf(norm_type) ? total
                        : norm_type == 2      ? std::sqrt(total)
                                              : std::pow(total, 1 / norm_type);
    if (norm > max_norm) copy(multiply_number(values, Scalar(max_norm / (norm + 1e-7))), values);
  }
  return out;
}

}  // namespace sconce::cpu
