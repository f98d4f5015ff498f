// Tensors as JSON numbers, both ways: integers exact to 64 bits, floats correctly rounded when read and shortest when
// written, NaN, Infinity and -Infinity as bare tokens.
//
// Elements are read in row-major order, at any nesting up to JsonCursor::kMaxDepth. float16 and bfloat16 are rounded
// from float32, as PyTorch does; float8 from float32 to nearest. A finite number that the dtype cannot hold is refused,
// never wrapped or turned into infinity. Booleans are true and false only. Complex tensors are read and written as
// their components with one more dimension of 2. float4 has no JSON form. Every error is kInvalidArgument and names the
// byte offset or the element.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sconce/tensor.h"
#include "server/base/json_cursor.h"
#include "server/base/text_buffer.h"

namespace sconce::server {

// Where elements are read to: room for `capacity` of them, more if `grow` says so.
struct ElementSink {
  std::byte* data = nullptr;
  size_t count = 0;
  size_t capacity = 0;
  // Makes data and capacity larger; null where the number of elements is fixed.
  void (*grow)(ElementSink& sink) = nullptr;
  void* context = nullptr;
};

// Sizes of nested arrays, outermost first.
struct NestedShape {
  std::array<int64_t, JsonCursor::kMaxDepth> sizes;
  int rank = 0;
};

// True where elements of the dtype have a JSON form.
bool has_json_form(DType dtype) noexcept;
// The real dtype of a complex dtype's components; any other dtype itself.
DType component_dtype(DType dtype) noexcept;

// Reads one value: an array of elements, however nested, or a single element. dtype is not complex (see
// component_dtype). With `shape`, rows must have equal length and the shape is stored; without, nesting is ignored.
void read_elements(JsonCursor& in, DType dtype, ElementSink& sink, NestedShape* shape);

// "[1,2,3]" over all elements of a CPU tensor, any strides.
void write_flat(TextBuffer& out, const Tensor& tensor);
// Nested lists like Tensor.tolist(); a 0-dimensional tensor is one element; complex elements are [re, im].
void write_nested(TextBuffer& out, const Tensor& tensor);

}  // namespace sconce::server
