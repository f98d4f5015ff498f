// An inference request and its answer as tensors and parameters, without an encoding. Protocols whose messages have
// their own fields, such as gRPC, are converted to and from it. Views belong to the code that fills them, and must live
// until the answer was sent. Includes only std headers, because libsconce_grpc uses it too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace sconce::server::codecs {

struct RequestParameter {
  std::string_view name;
  std::variant<bool, int64_t, uint64_t, double, std::string_view> value;
};

// A tensor's elements in a field by kind of number.
struct TensorContents {
  enum class Kind : int8_t { kNone, kBool, kInt32, kInt64, kUInt32, kUInt64, kFloat, kDouble, kBytes };
  Kind kind = Kind::kNone;
  bool several = false;  // more than one kind is given
  const void* data = nullptr;
  size_t count = 0;
};

// The bytes of tensors that a request has outside its inputs. They may be in pieces.
class RawTensors {
 public:
  // Copies all bytes of a tensor; there are `bytes_of[index]` bytes.
  virtual void copy(size_t index, std::byte* to) const noexcept = 0;
  std::vector<size_t> bytes_of;

 protected:
  ~RawTensors() = default;
};

struct TensorRequest {
  struct Input {
    std::string_view name, datatype;
    std::span<const int64_t> shape;
    std::span<const RequestParameter> parameters;
    TensorContents contents;
  };
  struct Output {
    std::string_view name;
    std::span<const RequestParameter> parameters;
  };
  std::string_view model, version, id;
  std::span<const RequestParameter> parameters;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  const RawTensors* raw =
      nullptr;  // in the order of the inputs that are not in shared memory; null: values are in `contents`
};

struct TensorAnswer {
  struct Output {
    std::string_view name, datatype;
    size_t shape_at, rank;  // in `sizes`
    const void* data;       // row-major; null if the output is in shared memory or empty
    size_t bytes;
  };
  std::string_view model, id;
  int64_t version = 0;
  std::string_view weights_name, weights;  // weights: the named set that answered; empty: none
  uint64_t weight_version = 0;
  std::vector<Output> outputs;
  std::vector<int64_t> sizes;
  // For one of several answers to a request: `last` marks the last one, and finish_reason says why.
  bool streamed = false, last = true;
  std::string_view finish_reason;  // empty: not sent
  std::span<const int64_t> shape(const Output& output) const noexcept {
    return std::span(sizes).subspan(output.shape_at, output.rank);
  }
};

}  // namespace sconce::server::codecs
