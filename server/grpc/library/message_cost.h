// The memory that a ModelInferRequest needs to be read, counted from its bytes before any of it is taken. Pure
// functions, which allocate nothing.
#pragma once

#include <google/protobuf/io/coded_stream.h>

#include <cstddef>

namespace sconce::server {

struct MessageCost {
  // No model has so many inputs, outputs or parameters; a message may have as many of each.
  static constexpr size_t kMost = 4096;

  size_t bytes = 0;  // besides the message itself, at most
  size_t text = 0;   // bytes of the message without its raw contents
  size_t inputs = 0, outputs = 0, parameters = 0, raw = 0, unknown = 0;
  const char* excess = nullptr;  // of which the message has more than kMost; null: of none
};

// Reads the whole stream. False: it is no message, or has an excess.
bool measure(google::protobuf::io::CodedInputStream& input, MessageCost& cost);

}  // namespace sconce::server
