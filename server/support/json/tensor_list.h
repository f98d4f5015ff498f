// TensorList: a tensor from nested JSON lists, whose nesting gives the shape.
//
// Used by one thread at a time. Errors are kInvalidArgument.
#pragma once

#include <cstddef>
#include <string_view>

#include "sconce/tensor.h"
#include "server/support/json/tensor_json.h"
#include "server/support/json_cursor.h"
#include "server/support/memory/request_memory.h"

namespace sconce::server {

class TensorList {
 public:
  // dtype: of the tensor; complex numbers are pairs [re, im].
  TensorList(DType dtype, TensorScratch& scratch);
  TensorList(const TensorList&) = delete;
  TensorList& operator=(const TensorList&) = delete;

  // Reads the value at the cursor: nested lists or a single element. All values must have the same shape. what: names
  // the tensor in errors.
  void add(JsonCursor& json, std::string_view what);
  // The added values along a new first dimension (stacked), or the only value itself (single).
  Tensor stacked(std::string_view what) const;
  Tensor single(std::string_view what) const;

 private:
  Tensor tensor(IntSpan sizes, std::string_view what) const;

  const DType dtype_;
  const size_t itemsize_;  // of a list element
  TensorScratch& scratch_;
  TensorScratch::Piece piece_;
  ElementSink sink_;
  NestedShape shape_;  // of each value
  int64_t values_ = 0;
};

}  // namespace sconce::server
