// Padding by a constant, by reflection, by the border's value or around the other side.
#include <algorithm>
#include <array>
#include <vector>

#include "sconce/check.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/factory.h"
#include "src/tensor/fill.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {
namespace {

enum class Border { kReflect, kReplicate, kCircular };

// Padding of one dimension.
struct Side {
  int64_t before = 0, after = 0;
  int64_t crop_before() const { return std::max<int64_t>(-before, 0); }
  int64_t crop_after() const { return std::max<int64_t>(-after, 0); }
  int64_t grow_before() const { return std::max<int64_t>(before, 0); }
  int64_t grow_after() const { return std::max<int64_t>(after, 0); }
};

struct Sides {
  std::array<Side, Tensor::kMaxRank> of;
  int first;  // the first padded dimension
  Shape output;
};

Tensor part(const Tensor& t, int64_t dim, int64_t begin, int64_t end) {
  return begin == 0 && end == t.size(dim) ? t : narrow(t, dim, begin, end - begin);
}

Sides sides_of(const Tensor& self, IntSpan pad) {
  SCONCE_CHECK(pad.size() % 2 == 0, kInvalidArgument, "pad: Padding length must be divisible by 2, got ", pad.size());
  const int64_t dims = static_cast<int64_t>(pad.size() / 2), rank = self.dim();
  SCONCE_CHECK(dims <= rank, kInvalidArgument,
               "pad: Padding length should be less than or equal to two times the input dimension but got padding "
               "length ",
               pad.size(), " and input of dimension ", rank);
  Sides sides;
  sides.first = static_cast<int>(rank - dims);
  sides.output = Shape(self.sizes());
  for (int d = sides.first; d < rank; ++d) {
    const size_t pair = 2 * static_cast<size_t>(rank - 1 - d);
    sides.of[d] = {pad[pair], pad[pair + 1]};
    int64_t size = self.size(d);
    const bool overflow =
        __builtin_add_overflow(size, pad[pair], &size) | __builtin_add_overflow(size, pad[pair + 1], &size);
    SCONCE_CHECK(!overflow && size >= 0, kInvalidArgument, "pad: padding (", pad[pair], ", ", pad[pair + 1],
                 ") of dimension ", d, " of size ", self.size(d), " leaves a negative size");
    sides.output[d] = size;
  }
  return sides;
}

Tensor cropped(const Tensor& self, const Sides& sides) {
  Tensor t = self;
  for (int d = sides.first; d < self.dim(); ++d) {
    const int64_t begin = std::min(sides.of[d].crop_before(), self.size(d));
    t = part(t, d, begin, std::max(begin, self.size(d) - sides.of[d].crop_after()));
  }
  return t;
}

Tensor empty_padded(const Tensor& self, const Sides& sides, MemoryFormat format) {
  int64_t strides[Tensor::kMaxRank];
  format_strides("pad", sides.output, format, strides);
  return Tensor::empty_strided(sides.output, {strides, static_cast<size_t>(self.dim())}, self.dtype(), self.device());
}

Tensor pad_constant(const Tensor& self, const Sides& sides, double value) {
  const bool grows = std::any_of(sides.of.begin() + sides.first, sides.of.begin() + self.dim(),
                                 [](const Side& s) { return s.before > 0 || s.after > 0; });
  const Tensor inner = cropped(self, sides);
  if (!grows) return clone(inner);
  Tensor out = empty_padded(self, sides, suggested_format(self));
  alignas(16) std::byte element[16];
  scalar_bytes(value, self.dtype(), element);
  // Removes the borders dimension by dimension, so that every element is written once.
  Tensor rest = out;
  for (int d = sides.first; d < self.dim(); ++d) {
    const int64_t begin = sides.of[d].grow_before(), end = rest.size(d) - sides.of[d].grow_after();
    for (Tensor border : {part(rest, d, 0, begin), part(rest, d, end, rest.size(d))})
      if (border.numel() > 0) fill_bytes(border, element);
    rest = part(rest, d, begin, end);
  }
  copy(inner, rest);
  return out;
}

// The source of border position j of a dimension, both counted from the first inner element.
int64_t source_of(Border border, int64_t j, int64_t inner) {
  switch (border) {
    case Border::kReflect:
      return j < 0 ? -j : 2 * (inner - 1) - j;
    case Border::kReplicate:
      return j < 0 ? 0 : inner - 1;
    default:
      return (j % inner + inner) % inner;
  }
}

// Fills positions of dimension d outside [begin, begin + inner) from those inside.
void fill_borders(const Tensor& out, int d, int64_t begin, int64_t inner, Border border) {
  const auto each = [&](const auto& fill) {
    for (int64_t j = 0; j < begin; ++j) fill(j, begin + source_of(border, j - begin, inner));
    for (int64_t j = begin + inner; j < out.size(d); ++j) fill(j, begin + source_of(border, j - begin, inner));
  };
  if (out.stride(d) != 1 || !out.is_cpu())
    return each([&](int64_t j, int64_t source) {
      Tensor to = narrow(out, d, j, 1);
      copy(narrow(out, d, source, 1), to);
    });
  const Tensor rows = part(out, d, 0, 1);
  const StridedLoop<1> loop(rows.sizes(), {rows.strides()}, {out.itemsize()});
  dispatch_bytes(out.itemsize(), [&]<class T>() {
    loop.run({static_cast<char*>(rows.data())}, [&](char* const* pointers, const int64_t* strides, int64_t count) {
      for (char* at = pointers[0]; count; --count, at += strides[0]) {
        T* const row = reinterpret_cast<T*>(at);
        each([row](int64_t j, int64_t source) { row[j] = row[source]; });
      }
    });
  });
}

// Row by row, if the elements of a row are consecutive.
void pad_rows(const Tensor& inner, Tensor& out, const Sides& sides, Border border) {
  const int rank = static_cast<int>(out.dim()), last = rank - 1;
  const int64_t width = out.size(last), kept = inner.size(last), before = sides.of[last].grow_before();
  std::vector<int64_t> borders;  // positions in the row's inner part, for the borders before and after it
  for (int64_t j = 0; j < width; ++j)
    if (j < before || j >= before + kept) borders.push_back(source_of(border, j - before, kept));
  const int64_t height = last ? out.size(last - 1) : 1;
  const int64_t* const sides_from = borders.data();
  const auto place_in = [&](int d, int64_t at) noexcept {
    const int64_t j = d >= sides.first ? at - sides.of[d].grow_before() : at;
    return j < 0 || j >= inner.size(d) ? source_of(border, j, inner.size(d)) : j;
  };
  dispatch_bytes(out.itemsize(), [&]<class T>() {
    parallel_for(0, out.numel() / width, std::max<int64_t>(1, 32768 / width), [&](int64_t begin, int64_t end) noexcept {
      for (int64_t row = begin, next = begin; row < end; row = next) {
        // Of a plane, which has its position.
        next = std::min((row / height + 1) * height, end);
        int64_t rest = row / height, to = 0, from = 0;
        for (int d = last - 2; d >= 0; --d) {
          const int64_t at = rest % out.size(d);
          rest /= out.size(d);
          to += at * out.stride(d);
          from += place_in(d, at) * inner.stride(d);
        }
        for (int64_t at = row % height; row < next; ++row, ++at) {
          const T* const source =
              static_cast<const T*>(inner.data()) + from + (last ? place_in(last - 1, at) * inner.stride(last - 1) : 0);
          T* const target = static_cast<T*>(out.data()) + to + (last ? at * out.stride(last - 1) : 0);
          for (int64_t j = 0; j < before; ++j) target[j] = source[sides_from[j]];
          std::copy_n(source, kept, target + before);
          for (int64_t j = before + kept; j < width; ++j) target[j] = source[sides_from[j - kept]];
        }
      }
    });
  });
}

// Returns the padded tensor; every side's padding is positive, except for circular padding, which wraps the part left
// after cropping.
void pad_border_into(Tensor& out, const Tensor& self, const Sides& sides, Border border) {
  const int rank = static_cast<int>(self.dim());
  const Tensor inner = cropped(self, sides);
  SCONCE_CHECK(inner.numel() > 0, kInvalidArgument, "pad: negative padding leaves nothing of ", to_string(self.sizes()),
               " to take the border from");
  if (out.is_cpu() && out.stride(rank - 1) == 1 && inner.stride(rank - 1) == 1 && out.numel() > 0)
    return pad_rows(inner, out, sides, border);
  Tensor region = out;
  for (int d = sides.first; d < rank; ++d)
    region = part(region, d, sides.of[d].grow_before(), sides.of[d].grow_before() + inner.size(d));
  copy(inner, region);
  // From the last dimension on; each step covers the elements that earlier steps have completed.
  for (int d = rank - 1; d >= sides.first; --d) {
    Tensor slab = out;
    for (int e = sides.first; e < d; ++e)
      slab = part(slab, e, sides.of[e].grow_before(), sides.of[e].grow_before() + inner.size(e));
    fill_borders(slab, d, sides.of[d].grow_before(), inner.size(d), border);
  }
}

bool has_border_kernel(DType dtype) {
  return is_floating(dtype) || dtype == DType::kComplex64 || dtype == DType::kComplex128 || dtype == DType::kUInt8 ||
         dtype == DType::kInt8 || dtype == DType::kInt16 || dtype == DType::kInt32 || dtype == DType::kInt64;
}

Tensor pad_border(const Tensor& self, const Sides& sides, Border border) {
  const int rank = static_cast<int>(self.dim()), dims = rank - sides.first;
  const bool fits = dims >= 1 && dims <= 3 && (rank == dims + 1 || rank == dims + 2);
  SCONCE_CHECK(
      fits, kUnsupported, "pad: Padding size ", 2 * dims, " is not supported for ", rank,
      "D input tensor with non-constant padding: it pads the last 1, 2 or 3 dimensions of a tensor with one or "
      "two more");
  if (border == Border::kCircular) {
    for (int d = sides.first; d < rank; ++d) {
      SCONCE_CHECK(sides.of[d].before <= self.size(d) && sides.of[d].after <= self.size(d), kInvalidArgument,
                   "pad: Padding value causes wrapping around more than once.");
    }
  } else {
    if (!has_border_kernel(self.dtype())) fail_dispatch(self.dtype(), "pad");
    for (int d = rank == dims + 2 ? 1 : 0; d < rank; ++d)
      SCONCE_CHECK(self.size(d) > 0, kInvalidArgument,
                   "pad: Expected a tensor with possibly 0 batch size and other non-zero dimensions, but got: ",
                   to_string(self.sizes()));
    for (int d = sides.first; d < rank; ++d) {
      const Side& side = sides.of[d];
      SCONCE_CHECK(border != Border::kReflect || (side.before < self.size(d) && side.after < self.size(d)),
                   kInvalidArgument,
                   "pad: Padding size should be less than the corresponding input dimension, but got: padding (",
                   side.before, ", ", side.after, ") at dimension ", d, " of input ", to_string(self.sizes()));
      SCONCE_CHECK(sides.output[d] >= 1, kInvalidArgument, "pad: input is too small. Calculated output size ",
                   sides.output[d], " of dimension ", d);
    }
  }
  Tensor out =
      empty_padded(self, sides, border == Border::kCircular ? MemoryFormat::kContiguous : suggested_format(self));
  if (out.numel() == 0) return out;

  const bool crops = std::any_of(sides.of.begin() + sides.first, sides.of.begin() + rank,
                                 [](const Side& s) { return s.before < 0 || s.after < 0; });
  if (!crops || border == Border::kCircular) {
    pad_border_into(out, self, sides, border);
    return out;
  }
  // The borders may come from the part cropped on the other side.
  Sides grown = sides;
  for (int d = sides.first; d < rank; ++d) {
    grown.of[d] = {sides.of[d].grow_before(), sides.of[d].grow_after()};
    grown.output[d] = self.size(d) + grown.of[d].before + grown.of[d].after;
  }
  Tensor whole = empty_padded(self, grown, MemoryFormat::kContiguous);
  pad_border_into(whole, self, grown, border);
  copy(cropped(whole, sides), out);
  return out;
}

}  // namespace

// pad: pairs (before, after) from the last dimension on; negative ones crop. mode: "constant" (any number of
// dimensions; value defaults to 0), "reflect", "replicate" (no bool), "circular" (these three: the last 1, 2 or 3
// dimensions of a tensor with one or two more). Channels-last stays, except for "circular". Any dtype, any strides,
// any device. Matches at::pad on the CPU, torch 2.15.
Tensor pad(const Tensor& self, IntSpan pad, std::string_view mode, std::optional<double> value) {
  const Sides sides = sides_of(self, pad);
  if (mode == "constant") return pad_constant(self, sides, value.value_or(0.0));
  SCONCE_CHECK(!value || *value == 0.0, kInvalidArgument, "pad: Padding mode \"", mode,
               "\" doesn't take in value argument");
  if (mode == "reflect") return pad_border(self, sides, Border::kReflect);
  if (mode == "replicate") return pad_border(self, sides, Border::kReplicate);
  if (mode == "circular") return pad_border(self, sides, Border::kCircular);
  SCONCE_FAIL(kUnsupported, "pad: Unrecognised padding mode ", mode);
}

}  // namespace sconce::cpu
