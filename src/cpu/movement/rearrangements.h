// Operators that rearrange elements, in addition to those of movement.h. Any dtypes, any strides; row-major results
// unless said otherwise. Match aten's of the same names (torch 2.15, CPU). kInvalidArgument where ATen refuses.
#pragma once

#include "src/operators/arguments.h"
#include "src/tensor/scalar.h"

namespace sconce::cpu {

Tensor roll(const Tensor& self, IntSpan shifts, IntSpan dims);
Tensor rot90(const Tensor& self, int64_t k, IntSpan dims);
Tensor diag_embed(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2);
Tensor tril(const Tensor& self, int64_t diagonal);
Tensor triu(const Tensor& self, int64_t diagonal);
Tensor block_diag(TensorList tensors);
Tensor channel_shuffle(const Tensor& self, int64_t groups);
Tensor pixel_shuffle(const Tensor& self, int64_t upscale_factor);
Tensor pixel_unshuffle(const Tensor& self, int64_t downscale_factor);
// Splits every tensor into num_chunks pieces along dim, padded with zeros and flattened, and concatenates the pieces.
Tensor _chunk_cat(TensorList tensors, int64_t dim, int64_t num_chunks);

// index: int64, by row-major number.
Tensor take(const Tensor& self, const Tensor& index);
Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate);
// Copies of self whose slices at the positions of index, int64 [n] or [], are replaced.
Tensor index_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source);
Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, Scalar value);
Tensor index_fill_tensor(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value);  // value: 0-d

// Zeros of input_sizes except for the part that the view selected.
Tensor select_backward(const Tensor& grad_output, IntSpan input_sizes, int64_t dim, int64_t index);
Tensor slice_backward(const Tensor& grad_output, IntSpan input_sizes, int64_t dim, int64_t start, int64_t end,
                      int64_t step);
Tensor unfold_backward(const Tensor& grad_in, IntSpan input_sizes, int64_t dim, int64_t size, int64_t step);

// The patches of a kernel as columns, [N, C * kernel, positions], and their sum back into an image.
Tensor im2col(const Tensor& self, IntSpan kernel_size, IntSpan dilation, IntSpan padding, IntSpan stride);
Tensor col2im(const Tensor& self, IntSpan output_size, IntSpan kernel_size, IntSpan dilation, IntSpan padding,
              IntSpan stride);

}  // namespace sconce::cpu
