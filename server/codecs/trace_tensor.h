// TraceTensor: a request's tensor in a trace of level TENSORS, in the format of Triton's trace files.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "sconce/tensor.h"

namespace sconce::server::codecs {

inline constexpr const char* kQueueInput = "TENSOR_QUEUE_INPUT";
inline constexpr const char* kBackendOutput = "TENSOR_BACKEND_OUTPUT";

struct TraceTensor {
  const char* activity;  // kQueueInput or kBackendOutput
  std::string name;
  std::string_view datatype;  // v2's
  std::string shape;          // "1,16", as on the wire
  std::string data;           // the first elements in row-major order, "1.0,2.5,NaN"; booleans are 0 and 1
  bool truncated;             // data has only part of the elements
};

// A tensor of any device; only the described elements are copied to the host. most: number of elements in `data`.
TraceTensor describe_for_trace(const char* activity, std::string name, const Tensor& tensor, size_t most);

}  // namespace sconce::server::codecs
