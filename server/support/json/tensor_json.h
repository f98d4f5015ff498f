// Tensors as JSON numbers: integers are exact to 64 bits; floats are correctly rounded when read and shortest when
// written; NaN, Infinity and -Infinity are bare tokens.
//
// Elements are read in row-major order, nested up to JsonCursor::kMaxDepth. float16, bfloat16 and float8 are rounded
// from float32 as in PyTorch. A finite number outside the dtype's range is refused, never wrapped or made infinite.
// Booleans are only true and false. Complex tensors are read and written as components with an additional dimension of
// 2. float4 has no JSON form. All errors are kInvalidArgument and name the byte offset or the element.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sconce/tensor.h"
#include "server/support/json_cursor.h"
#include "server/support/text_buffer.h"

namespace sconce::server {

// Destination of elements, with room for `capacity`; `grow` may enlarge it.
struct ElementSink {
  std::byte* data = nullptr;
  size_t count = 0;
  size_t capacity = 0;
  // Enlarges data and capacity; null if the number of elements is fixed.
  void (*grow)(ElementSink& sink) = nullptr;
  void* context = nullptr;
};

// Sizes of nested arrays, outermost first.
struct NestedShape {
  std::array<int64_t, JsonCursor::kMaxDepth> sizes;
  int rank = 0;
};

// Whether elements of the dtype have a JSON form.
bool has_json_form(DType dtype) noexcept;
// The real dtype of a complex dtype's components; other dtypes unchanged.
DType component_dtype(DType dtype) noexcept;

// Reads one value: an array of elements with any nesting, or a single element. dtype must not be complex (see
// component_dtype). With `shape`, rows must have equal lengths and the shape is stored; without it, nesting is ignored.
void read_elements(JsonCursor& in, DType dtype, ElementSink& sink, NestedShape* shape);

// "[1,2,3]" for all elements of a CPU tensor of any strides.
void write_flat(TextBuffer& out, const Tensor& tensor);
// Nested lists like those of Tensor.tolist(). A 0-dimensional tensor is one element; complex elements are [re, im].
void write_nested(TextBuffer& out, const Tensor& tensor);

}  // namespace sconce::server
