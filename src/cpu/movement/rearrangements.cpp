#include "src/cpu/movement/rearrangements.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sconce/check.h"
#include "src/cpu/indexing/index_select.h"
#include "src/cpu/movement/movement.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/dimensions.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/fill.h"
#include "src/tensor/rows/planes.h"
#include "src/tensor/strided_loop.h"
#include "src/tensor/type_promotion.h"

namespace sconce::cpu {
namespace {

Tensor zeros(IntSpan sizes, DType dtype, Device device = {}) {
  Tensor out = Tensor::empty(sizes, dtype, device);
  zero(out);
  return out;
}

// Keeps the elements for which keep(row, column); the others are 0.
template <class Keep>
Tensor triangle(const char* name, const Tensor& self, const Keep& keep) {
  SCONCE_CHECK(self.dim() >= 2, kInvalidArgument, name, ": input tensor must have at least 2 dimensions");
  Tensor out = clone_contiguous(self);
  const int64_t rows = self.size(self.dim() - 2), columns = self.size(self.dim() - 1);
  const auto item = static_cast<int64_t>(out.itemsize());
  auto* const data = static_cast<char*>(out.data());
  const int64_t plane_size = rows * columns;
  for_planes(plane_size > 0 ? out.numel() / plane_size : 0, plane_size, [=](int64_t plane) noexcept {
    for (int64_t r = 0; r < rows; ++r) {
      char* const row = data + (plane * rows + r) * columns * item;
      const auto [from, to] = keep(r);
      const int64_t first = std::clamp<int64_t>(from, 0, columns), last = std::clamp<int64_t>(to, first, columns);
      std::fill(row, row + first * item, 0);
      std::fill(row + last * item, row + columns * item, 0);
    }
  });
  return out;
}

}  // namespace

Tensor roll(const Tensor& self, IntSpan shifts, IntSpan dims) {
  SCONCE_CHECK(!shifts.empty(), kInvalidArgument, "roll: `shifts` required");
  if (dims.empty() && shifts.size() == 1) {
    const int64_t flat[] = {-1}, first[] = {0};
    return reshape(roll(reshape(contiguous(self), flat), shifts, first), self.sizes());
  }
  SCONCE_CHECK(shifts.size() == dims.size(), kInvalidArgument,
               "roll: shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", dims.size());
  if (self.numel() == 0) return clone(self);
  // Two parts change places. A channels-last tensor stays channels-last on the CPU; ATen's CUDA kernel makes it
  // row-major.
  Tensor out = self.is_cpu() ? self : contiguous(self);
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t d = wrap_dim("roll", dims[i], self.dim());
    if (self.dim() == 0) return clone(self);
    const int64_t size = self.size(d), by = (shifts[i] % size + size) % size;
    const Tensor tail = narrow(out, d, size - by, by), head = narrow(out, d, 0, size - by);
    const Tensor* const parts[] = {&tail, &head};
    out = cat(TensorList(parts, 2), d);
  }
  return out;
}

Tensor rot90(const Tensor& self, int64_t k, IntSpan dims) {
  SCONCE_CHECK(dims.size() == 2, kInvalidArgument,
               "rot90: expected total rotation dims == 2, but got dims = ", dims.size());
  SCONCE_CHECK(self.dim() >= 2, kInvalidArgument, "rot90: expected total dims >= 2, but got total dims = ", self.dim());
  const int64_t a = wrap_dim("rot90", dims[0], self.dim()), b = wrap_dim("rot90", dims[1], self.dim());
  SCONCE_CHECK(a != b, kInvalidArgument, "rot90: expected rotation dims to be different, but got dim0 = ", dims[0],
               " and dim1 = ", dims[1]);
  const int64_t first[] = {a}, second[] = {b}, both[] = {a, b};
  switch ((k % 4 + 4) % 4) {
    case 1:
      return transpose(flip(self, second), a, b);
    case 2:
      return flip(self, both);
    case 3:
      return transpose(flip(self, first), a, b);
    default:
      return clone_contiguous(self);
  }
}

Tensor diag_embed(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t rank = self.dim() + 1;
  const int64_t a = wrap_dim("diag_embed", dim1, rank), b = wrap_dim("diag_embed", dim2, rank);
  SCONCE_CHECK(a != b, kInvalidArgument, "diag_embed: diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  SCONCE_CHECK(self.dim() >= 1, kInvalidArgument, "diag_embed: input must have at least 1 dimension");
  const int64_t size = self.size(self.dim() - 1) + std::abs(offset);
  Shape sizes;
  for (int64_t d = 0, from = 0; d < rank; ++d) sizes.push_back(d == a || d == b ? size : self.size(from++));
  Tensor out = zeros(sizes, self.dtype(), self.device());
  Tensor target = diagonal(out, offset, a, b);
  copy(self, target);
  return out;
}

Tensor tril(const Tensor& self, int64_t diagonal) {
  return triangle("tril", self, [=](int64_t r) { return std::pair<int64_t, int64_t>(0, r + diagonal + 1); });
}
Tensor triu(const Tensor& self, int64_t diagonal) {
  return triangle("triu", self, [=](int64_t r) {
    return std::pair<int64_t, int64_t>(r + diagonal, std::numeric_limits<int64_t>::max());
  });
}

Tensor block_diag(TensorList tensors) {
  ResultType type;
  int64_t sizes[2] = {0, 0};
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor* const tensor = &tensors[i];
    SCONCE_CHECK(tensor->dim() <= 2, kInvalidArgument,
                 "block_diag: Input tensors must have 2 or fewer dimensions, got ", describe(*tensor));
    type.add(Tensor::empty(IntSpan(sizes, 1), tensor->dtype()));  // by the dtype alone
    sizes[0] += tensor->dim() == 2 ? tensor->size(0) : 1;
    sizes[1] += tensor->dim() == 0 ? 1 : tensor->size(tensor->dim() - 1);
  }
  if (tensors.size() == 0) {
    sizes[0] = 1;
    return Tensor::empty(sizes, DType::kFloat32);
  }
  Tensor out = zeros(sizes, type.get());
  int64_t row = 0, column = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor* const tensor = &tensors[i];
    const int64_t block[] = {tensor->dim() == 2 ? tensor->size(0) : 1,
                             tensor->dim() == 0 ? 1 : tensor->size(tensor->dim() - 1)};
    Tensor target = narrow(narrow(out, 0, row, block[0]), 1, column, block[1]);
    copy(reshape(*tensor, block), target);
    row += block[0];
    column += block[1];
  }
  return out;
}

Tensor channel_shuffle(const Tensor& self, int64_t groups) {
  SCONCE_CHECK(self.dim() > 2, kInvalidArgument,
               "channel_shuffle: expects input with > 2 dims, but got input with sizes ", to_string(self.sizes()));
  const int64_t channels = self.size(1);
  SCONCE_CHECK(groups > 0, kInvalidArgument,
               "channel_shuffle: Number of groups to divide channels in must be positive.");
  SCONCE_CHECK(channels % groups == 0, kInvalidArgument,
               "channel_shuffle: Number of channels must be divisible by groups. Got ", channels, " channels and ",
               groups, " groups.");
  const int64_t apart[] = {self.size(0), groups, channels / groups, -1};
  if (self.numel() == 0) return clone(self);
  const Tensor shuffled = reshape(transpose(reshape(self, apart), 1, 2), self.sizes());
  return in_format("channel_shuffle", contiguous(shuffled), self.dtype(), suggested_format(self));
}

namespace {

// A reshape to `apart`, a permutation and a reshape to `sizes`, of the last three dimensions.
Tensor reordered(const Tensor& self, std::span<const int64_t> apart, std::span<const int64_t> order,
                 std::span<const int64_t> sizes) {
  const auto batch = self.sizes().first(static_cast<size_t>(self.dim() - 3));
  Shape split(batch), result(batch);
  std::vector<int64_t> dims;
  for (size_t d = 0; d < batch.size(); ++d) dims.push_back(static_cast<int64_t>(d));
  for (size_t i = 0; i < apart.size(); ++i) {
    split.push_back(apart[i]);
    dims.push_back(static_cast<int64_t>(batch.size()) + order[i]);
  }
  for (const int64_t size : sizes) result.push_back(size);
  const Tensor out = reshape(clone_contiguous(permute(reshape(self, split), dims)), result);
  return in_format("pixel_shuffle", out, self.dtype(), suggested_format(self));
}

}  // namespace

Tensor pixel_shuffle(const Tensor& self, int64_t r) {
  SCONCE_CHECK(self.dim() >= 3, kInvalidArgument,
               "pixel_shuffle: expects input to have at least 3 dimensions, but got input with ", self.dim(),
               " dimension(s)");
  SCONCE_CHECK(r > 0, kInvalidArgument, "pixel_shuffle: expects a positive upscale_factor, but got ", r);
  const int64_t c = self.size(self.dim() - 3), h = self.size(self.dim() - 2), w = self.size(self.dim() - 1);
  SCONCE_CHECK(
      c % (r * r) == 0, kInvalidArgument,
      "pixel_shuffle: expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
      "but input.size(-3)=",
      c, " is not divisible by ", r * r);
  const int64_t apart[] = {c / (r * r), r, r, h, w}, order[] = {0, 3, 1, 4, 2}, sizes[] = {c / (r * r), h * r, w * r};
  return reordered(self, apart, order, sizes);
}
Tensor pixel_unshuffle(const Tensor& self, int64_t r) {
  SCONCE_CHECK(self.dim() >= 3, kInvalidArgument,
               "pixel_unshuffle: expects input to have at least 3 dimensions, but got input with ", self.dim(),
               " dimension(s)");
  SCONCE_CHECK(r > 0, kInvalidArgument, "pixel_unshuffle: expects a positive downscale_factor, but got ", r);
  const int64_t c = self.size(self.dim() - 3), h = self.size(self.dim() - 2), w = self.size(self.dim() - 1);
  SCONCE_CHECK(h % r == 0 && w % r == 0, kInvalidArgument,
               "pixel_unshuffle: expects height and width to be divisible by downscale_factor, but ", h, " x ", w,
               " is not divisible by ", r);
  const int64_t apart[] = {c, h / r, r, w / r, r}, order[] = {0, 2, 4, 1, 3}, sizes[] = {c * r * r, h / r, w / r};
  return reordered(self, apart, order, sizes);
}

Tensor _chunk_cat(TensorList tensors, int64_t dim, int64_t num_chunks) {
  SCONCE_CHECK(tensors.size() > 0, kInvalidArgument, "_chunk_cat: expects a non-empty input tensor list");
  SCONCE_CHECK(num_chunks >= 1, kInvalidArgument, "_chunk_cat: expects positive num_chunks");
  std::vector<Tensor> pieces;
  std::vector<const Tensor*> pointers;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor* const tensor = &tensors[i];
    const int64_t d = wrap_dim("_chunk_cat", dim, tensor->dim());
    const int64_t each = (tensor->size(d) + num_chunks - 1) / num_chunks;
    Shape padded(tensor->sizes());
    padded[static_cast<int>(d)] = each * num_chunks;
    Tensor whole = zeros(padded, tensor->dtype());
    Tensor front = narrow(whole, d, 0, tensor->size(d));
    copy(*tensor, front);
    Shape sizes(tensor->sizes().first(static_cast<size_t>(d)));
    sizes.push_back(num_chunks);
    sizes.push_back(-1);
    pieces.push_back(reshape(whole, sizes));
  }
  for (const Tensor& piece : pieces) pointers.push_back(&piece);
  return cat(TensorList(pointers.data(), pointers.size()), pieces[0].dim() - 1);
}

namespace {

// Positions of every element of a view of `self` that has self's sizes without the strides; checked, and wrapped where
// negative ones count from the end.
Tensor wrapped_index(const char* name, const Tensor& index, int64_t size, bool from_end = true) {
  SCONCE_CHECK(index.dtype() == DType::kInt64, kInvalidArgument, name, ": Expected a long tensor for index, but got ",
               dtype_name(index.dtype()));
  Tensor out = clone_contiguous(index);
  auto* const at = out.data_as<int64_t>();
  for (int64_t i = 0; i < out.numel(); ++i) {
    SCONCE_CHECK(at[i] >= (from_end ? -size : 0) && at[i] < size, kInvalidArgument, name,
                 ": out of range: tried to access index ", at[i], " on a tensor of ", size, " elements.");
    if (at[i] < 0) at[i] += size;
  }
  return out;
}
// `out`, a copy of self, with `values` at index along dim.
Tensor with_slices(const Tensor& self, Tensor out, int64_t dim, const Tensor& index, const Tensor& values) {
  Tensor view = self.dim() == 0 ? unsqueeze(out, 0) : out;
  const auto* const at = index.data_as<int64_t>();
  for (int64_t i = 0; i < index.numel(); ++i) {
    Tensor target = select(view, dim, at[i]);
    copy(values.dim() == 0 || self.dim() == 0 ? values : select(values, dim, i), target);
  }
  return out;
}

}  // namespace

Tensor take(const Tensor& self, const Tensor& index) {
  SCONCE_CHECK(self.numel() > 0 || index.numel() == 0, kInvalidArgument, "take: tried to take from an empty tensor");
  const int64_t flat[] = {-1};
  const Tensor at = wrapped_index("take", index, self.numel());
  return reshape(index_select(reshape(contiguous(self), flat), 0, reshape(at, flat)), index.sizes());
}
Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  SCONCE_CHECK(index.numel() == source.numel(), kInvalidArgument,
               "put_: Expected source and index to have the same number of elements, but got source.numel() = ",
               source.numel(), ", index.numel() = ", index.numel());
  SCONCE_CHECK(self.dtype() == source.dtype(), kInvalidArgument,
               "put_: Expected self and source to have the same dtype, but got self.dtype = ", dtype_name(self.dtype()),
               " and source.dtype = ", dtype_name(source.dtype()));
  SCONCE_CHECK(self.numel() > 0 || index.numel() == 0, kInvalidArgument,
               "put_: Tried to put elements into an empty tensor");
  const Tensor at = wrapped_index("put_", index, self.numel());
  const int64_t flat[] = {-1};
  const Tensor positions = reshape(at, flat);
  const Tensor* const pointer = &positions;
  const Tensor* const* const handle[] = {&pointer};
  Tensor out = clone(self);
  copy(reshape(index_put(reshape(contiguous(self), flat), OptTensorList(handle, 1), reshape(contiguous(source), flat),
                         accumulate),
               self.sizes()),
       out);
  return out;
}

Tensor index_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  const int64_t d = wrap_dim("index_copy", dim, self.dim());
  SCONCE_CHECK(index.dim() <= 1, kInvalidArgument, "index_copy_: Index should have dimension 1 or 0 (got ", index.dim(),
               ")");
  SCONCE_CHECK(self.dtype() == source.dtype(), kInvalidArgument,
               "index_copy_: self and source expected to have the same dtype, but got (self) ",
               dtype_name(self.dtype()), " and (source) ", dtype_name(source.dtype()));
  const int64_t count = source.dim() == 0 ? 1 : source.size(std::min(d, source.dim() - 1));
  SCONCE_CHECK(source.dim() == 0 ? index.numel() == 1 : index.numel() == count, kInvalidArgument,
               "index_copy_: Number of indices (", index.numel(), ") should be equal to source.size(dim) (", count,
               ")");
  bool fits = source.dim() == 0 || self.dim() == 0 || source.dim() == self.dim();
  for (int64_t k = 0; fits && source.dim() == self.dim() && k < self.dim(); ++k)
    fits = k == d || source.size(k) == self.size(k);
  SCONCE_CHECK(fits, kInvalidArgument,
               "index_copy_: Source/destination tensor must have same slice shapes. Destination: ", describe(self),
               ", source: ", describe(source));
  const Tensor at = wrapped_index("index_copy_", index, self.dim() ? self.size(d) : 1, false);
  const int64_t none[] = {0};
  return with_slices(self, clone_contiguous(self), d, at,
                     self.dim() == 0 && source.dim() == 1 ? reshape(source, IntSpan(none, size_t{0})) : source);
}
Tensor index_fill_tensor(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  SCONCE_CHECK(value.dim() == 0, kInvalidArgument,
               "index_fill_: only supports a 0-dimensional value tensor, but got tensor with ", value.dim(),
               " dimension(s).");
  SCONCE_CHECK(index.dim() <= 1, kInvalidArgument, "index_fill_: Index is supposed to be a vector");
  SCONCE_CHECK(is_complex(self.dtype()) || !is_complex(value.dtype()), kInvalidArgument,
               "index_fill_: Converting complex Scalar to non-complex type is not supported");
  const int64_t d = wrap_dim("index_fill", dim, self.dim());
  if (self.numel() == 0) return clone(self);  // ATen looks at no index then
  const Tensor at = wrapped_index("index_fill_", index, self.dim() ? self.size(d) : 1);
  return with_slices(self, clone(self), d, at, to_dtype(value, self.dtype()));
}
Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, Scalar value) {
  Tensor element = Tensor::empty({}, self.dtype());
  fill(element, value);
  return index_fill_tensor(self, dim, index, element);
}

Tensor select_backward(const Tensor& grad_output, IntSpan input_sizes, int64_t dim, int64_t index) {
  Tensor out = zeros(input_sizes, grad_output.dtype(), grad_output.device());
  Tensor part = select(out, dim, index);
  copy(grad_output, part);
  return out;
}
Tensor slice_backward(const Tensor& grad_output, IntSpan input_sizes, int64_t dim, int64_t start, int64_t end,
                      int64_t step) {
  Tensor out = zeros(input_sizes, grad_output.dtype(), grad_output.device());
  Tensor part = slice_Tensor(out, dim, start, end, step);
  copy(grad_output, part);
  return out;
}
Tensor unfold_backward(const Tensor& grad_in, IntSpan input_sizes, int64_t dim, int64_t size, int64_t step) {
  Tensor out = zeros(input_sizes, grad_in.dtype());
  if (out.numel() == 0) return out;
  if (input_sizes.empty()) {
    const int64_t one[] = {1};
    Tensor view = reshape(out, one);
    copy(grad_in, view);
    return out;
  }
  const int64_t d = wrap_dim("unfold_backward", dim, out.dim());
  const Tensor windows = unfold(out, d, size, step);
  SCONCE_CHECK(
      std::equal(windows.sizes().begin(), windows.sizes().end(), grad_in.sizes().begin(), grad_in.sizes().end()),
      kInvalidArgument, "unfold_backward: grad ", describe(grad_in), " does not go with windows ",
      to_string(windows.sizes()));
  // Windows overlap, so they are added one after the other.
  for (int64_t w = 0; w < windows.size(d); ++w) {
    Tensor target = narrow(out, d, w * step, size);
    const Tensor slopes = transpose(unsqueeze(select(grad_in, d, w), d), d, grad_in.dim() - 1);
    const int64_t last = slopes.dim() - 1;
    const Tensor placed = last == d ? slopes : squeeze_dim(slopes, last);
    dispatch_all_no_small(out.dtype(), "unfold_backward", [&]<class T>() -> void {
      const StridedLoop<2> loop(target.sizes(), {target.strides(), placed.strides()}, {sizeof(T), sizeof(T)});
      loop.run({static_cast<char*>(target.data()), static_cast<char*>(placed.data())},
               [](char* const* p, const int64_t* stride, int64_t n) {
                 for (int64_t i = 0; i < n; ++i) {
                   T& to = *reinterpret_cast<T*>(p[0] + i * stride[0]);
                   to = static_cast<T>(to + *reinterpret_cast<const T*>(p[1] + i * stride[1]));
                 }
               });
    });
  }
  return out;
}

namespace {

struct Patches {
  int64_t batch, channels, height, width;  // of the image
  int64_t kernel[2], dilation[2], padding[2], stride[2], places[2];
  int64_t columns() const noexcept { return kernel[0] * kernel[1]; }
  int64_t count() const noexcept { return places[0] * places[1]; }
};
Patches patches_of(const char* name, IntSpan kernel, IntSpan dilation, IntSpan padding, IntSpan stride, int64_t batch,
                   int64_t channels, IntSpan image) {
  Patches p{batch, channels, image[0], image[1], {}, {}, {}, {}, {}};
  for (size_t d = 0; d < 2; ++d) {
    SCONCE_CHECK(kernel.size() == 2 && dilation.size() == 2 && padding.size() == 2 && stride.size() == 2 &&
                     kernel[d] > 0 && dilation[d] > 0 && padding[d] >= 0 && stride[d] > 0,
                 kInvalidArgument, name, ": kernel, dilation and stride should be greater than zero, got ",
                 to_string(kernel), ", ", to_string(dilation), ", ", to_string(stride), " and padding ",
                 to_string(padding));
    p.kernel[d] = kernel[d];
    p.dilation[d] = dilation[d];
    p.padding[d] = padding[d];
    p.stride[d] = stride[d];
    const int64_t room = image[d] + 2 * padding[d] - (dilation[d] * (kernel[d] - 1) + 1);
    SCONCE_CHECK(room >= 0, kInvalidArgument, name, ": an image of ", to_string(image),
                 " is smaller than the kernel; shape is too small");
    p.places[d] = room / stride[d] + 1;
  }
  return p;
}
// f(offset in the image's plane or -1, row of the columns, place)
template <class F>
void each_patch(const Patches& p, const F& f) {
  for (int64_t k = 0; k < p.columns(); ++k)
    for (int64_t y = 0; y < p.places[0]; ++y)
      for (int64_t x = 0; x < p.places[1]; ++x) {
        const int64_t row = y * p.stride[0] - p.padding[0] + k / p.kernel[1] * p.dilation[0],
                      column = x * p.stride[1] - p.padding[1] + k % p.kernel[1] * p.dilation[1];
        const bool inside = row >= 0 && row < p.height && column >= 0 && column < p.width;
        f(inside ? row * p.width + column : -1, k, y * p.places[1] + x);
      }
}

}  // namespace

Tensor im2col(const Tensor& self, IntSpan kernel_size, IntSpan dilation, IntSpan padding, IntSpan stride) {
  constexpr const char* kName = "im2col";
  SCONCE_CHECK(self.dim() == 3 || self.dim() == 4, kInvalidArgument, kName,
               ": Expected 3D or 4D (batch mode) tensor, got ", describe(self));
  const Tensor in = contiguous(self);
  const int64_t batch = self.dim() == 4 ? self.size(0) : 1, channels = self.size(self.dim() - 3);
  const Patches p = patches_of(kName, kernel_size, dilation, padding, stride, batch, channels, self.sizes().last(2));
  Shape sizes;
  if (self.dim() == 4) sizes.push_back(batch);
  sizes.push_back(channels * p.columns());
  sizes.push_back(p.count());
  Tensor out = zeros(sizes, self.dtype());
  dispatch_bytes(in.itemsize(), [&]<class Bytes>() {
    const auto* const from = static_cast<const Bytes*>(in.data());
    auto* const to = static_cast<Bytes*>(out.data());
    for_planes(batch * channels, p.columns() * p.count(), [&](int64_t plane) noexcept {
      const Bytes* const image = from + plane * p.height * p.width;
      Bytes* const columns = to + plane * p.columns() * p.count();
      each_patch(p, [&](int64_t at, int64_t row, int64_t place) {
        if (at >= 0) columns[row * p.count() + place] = image[at];
      });
    });
  });
  return out;
}
Tensor col2im(const Tensor& self, IntSpan output_size, IntSpan kernel_size, IntSpan dilation, IntSpan padding,
              IntSpan stride) {
  constexpr const char* kName = "col2im";
  SCONCE_CHECK(output_size.size() == 2 && (self.dim() == 2 || self.dim() == 3), kInvalidArgument, kName,
               ": Expected 2D or 3D (batch mode) tensor for input, got ", describe(self));
  const int64_t rows = self.size(self.dim() - 2), batch = self.dim() == 3 ? self.size(0) : 1;
  Patches p = patches_of(kName, kernel_size, dilation, padding, stride, batch, 0, output_size);
  SCONCE_CHECK(rows % p.columns() == 0, kInvalidArgument, kName,
               ": Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got ", rows);
  SCONCE_CHECK(
      self.size(self.dim() - 1) == p.count(), kInvalidArgument, kName,
      ": Given output_size, kernel_size, dilation, padding and stride, expected size of input's dimension 2 to "
      "match the calculated number of sliding blocks ",
      p.count(), ", but got ", self.size(self.dim() - 1));
  p.channels = rows / p.columns();
  Shape sizes;
  if (self.dim() == 3) sizes.push_back(batch);
  sizes.push_back(p.channels);
  sizes.push_back(output_size[0]);
  sizes.push_back(output_size[1]);
  const DType dtype = summed_dtype(self.dtype());
  const Tensor in = contiguous(to_dtype(self, dtype));
  Tensor out = zeros(sizes, dtype);
  dispatch_all_no_small(dtype, kName, [&]<class T>() -> void {
    for_planes(batch * p.channels, p.columns() * p.count(), [&](int64_t plane) noexcept {
      T* const image = out.data_as<T>() + plane * p.height * p.width;
      const T* const columns = in.data_as<T>() + plane * p.columns() * p.count();
      each_patch(p, [&](int64_t at, int64_t row, int64_t place) {
        if (at >= 0) image[at] = static_cast<T>(image[at] + columns[row * p.count() + place]);
      });
    });
  });
  return to_dtype(out, self.dtype());
}

}  // namespace sconce::cpu
