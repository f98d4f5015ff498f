// The memory for parsing a ModelInferRequest, computed from its bytes before any memory is allocated. Pure functions
// without allocations.
#pragma once

#include <google/protobuf/io/coded_stream.h>

#include <cstddef>

namespace sconce::server::rpc {

struct MessageCost {
  // Maximum number of inputs, of outputs and of parameters in a message; no model has more.
  static constexpr size_t kMost = 4096;

  size_t bytes = 0;  // maximum, in addition to the message itself
  size_t text = 0;   // bytes of the message without its raw tensor contents
  size_t inputs = 0, outputs = 0, parameters = 0, raw = 0, unknown = 0;
  const char* excess = nullptr;  // the kind of element that exceeds kMost; null: none
};

// Reads the whole stream. False: malformed, or something exceeds kMost.
bool measure(google::protobuf::io::CodedInputStream& input, MessageCost& cost);

}  // namespace sconce::server::rpc
