#include "server/grpc/library/message_cost.h"

#include <google/protobuf/wire_format_lite.h>
#include <inference.pb.h>

#include <algorithm>
#include <array>
#include <climits>
#include <string>
#include <vector>

#include "server/codecs/tensor_request.h"

namespace sconce::server::rpc {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using Input = inference::ModelInferRequest::InferInputTensor;
using Output = inference::ModelInferRequest::InferRequestedOutputTensor;

constexpr uint32_t kRaw = inference::ModelInferRequest::kRawInputContentsFieldNumber;

// Bytes that protobuf's arena needs for an object in addition to its size: the record of its destructor, and alignment.
constexpr size_t kNote = 32;
constexpr size_t kHeap = 32;  // overhead of an allocation: its header and rounding
// A list in the arena grows by doubling, and earlier arrays are not freed: up to four times its elements.
constexpr size_t kGrowth = 4;
constexpr size_t kPointer = kGrowth * sizeof(void*);
constexpr size_t kString = sizeof(std::string) + kNote;
constexpr size_t kInline = 15;  // bytes that a std::string stores inline
// A map's entry: its node, the entry into which a repeated key is parsed, and its share of the bucket table.
constexpr size_t kParameter = 2 * (sizeof(std::string) + sizeof(inference::InferParameter) + kNote) +
                              16 * sizeof(void*) + sizeof(codecs::RequestParameter);
constexpr size_t kUnknown = 3 * 16 + sizeof(std::string) + kHeap;  // UnknownFieldSet's list grows on the heap
// The arena's first block is inside the message object. Further blocks double from 2 to 8 KiB or have the size of the
// object that needs them. The last block may stay empty, and each block may end with a gap that was too small for the
// next object.
constexpr size_t kFirstBlock = 512, kSecondBlock = 2 * 1024, kLargestBlock = 8 * 1024, kGaps = 2;

// Elements of one field of `contents`, over all of its occurrences in an input.
struct Elements {
  size_t count = 0, pieces = 0;
};

class Measurement {
 public:
  Measurement(CodedInputStream& input, MessageCost& cost) : in_(input), cost_(cost) {}

  bool message() {
    for (;;) {
      const int begin = in_.CurrentPosition();
      const uint32_t tag = in_.ReadTag(), field = tag >> 3;
      if (tag == 0) break;
      if (is_bytes(tag) && field == kRaw) {
        uint32_t bytes = 0;
        if (!in_.ReadVarint32(&bytes) || bytes > INT_MAX || !in_.Skip(static_cast<int>(bytes))) return false;
        if (!count(cost_.raw, "raw_input_contents")) return false;
        continue;
      }
      bool ok = false;
      if (is_bytes(tag) && field >= 1 && field <= 3) {
        ok = text();
      } else if (is_bytes(tag) && field == inference::ModelInferRequest::kParametersFieldNumber) {
        ok = parameter();
      } else if (is_bytes(tag) && field == inference::ModelInferRequest::kInputsFieldNumber) {
        ok = count(cost_.inputs, "inputs") && nested([this] { return tensor(); });
      } else if (is_bytes(tag) && field == inference::ModelInferRequest::kOutputsFieldNumber) {
        ok = count(cost_.outputs, "outputs") && nested([this] { return output(); });
      } else {
        ok = skip(tag);
      }
      if (!ok) return false;
      cost_.text += static_cast<size_t>(in_.CurrentPosition() - begin);
    }
    if (!in_.ConsumedEntireMessage()) return false;
    charge();
    return true;
  }

 private:
  static bool is_bytes(uint32_t tag) { return (tag & 7) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED; }
  bool count(size_t& of, const char* what) {
    if (++of <= MessageCost::kMost) return true;
    cost_.excess = what;
    return false;
  }

  void charge() {
    cost_.bytes = heap_;
    if (const size_t arena = kGaps * arena_; arena > kFirstBlock)
      cost_.bytes += arena + std::min(kSecondBlock + arena, kLargestBlock) + kHeap;
    // The message's text, and lists of views; each list is allocated with its final length.
    cost_.bytes += cost_.text + kHeap;
    if (cost_.raw > 0) cost_.bytes += cost_.raw * (sizeof(size_t) + sizeof(int)) + 2 * kHeap;
    cost_.bytes += cost_.inputs * sizeof(codecs::TensorRequest::Input) +
                   cost_.outputs * sizeof(codecs::TensorRequest::Output) +
                   (1 + cost_.inputs + cost_.outputs) * (sizeof(std::vector<codecs::RequestParameter>)) + 3 * kHeap;
    if (cost_.parameters > 0) cost_.bytes += (1 + cost_.inputs + cost_.outputs) * kHeap;
  }

  template <class Body>
  bool nested(const Body& body) {
    uint32_t bytes = 0;
    if (!in_.ReadVarint32(&bytes) || bytes > INT_MAX) return false;
    const auto limit = in_.PushLimit(static_cast<int>(bytes));
    const bool ok = body() && in_.ConsumedEntireMessage() && in_.BytesUntilLimit() == 0;
    in_.PopLimit(limit);
    return ok;
  }
  bool string(size_t extra) {
    uint32_t bytes = 0;
    if (!in_.ReadVarint32(&bytes) || bytes > INT_MAX || !in_.Skip(static_cast<int>(bytes))) return false;
    arena_ += kString + extra;
    if (bytes > kInline) heap_ += bytes + kHeap;
    return true;
  }
  bool text() { return string(0); }

  // Skips a field that ModelInferRequest does not know. Groups are refused, because clients do not send them.
  bool skip(uint32_t tag) {
    if (!count(cost_.unknown, "unknown fields")) return false;
    heap_ += kUnknown;
    uint64_t number = 0;
    switch (tag & 7) {
      case WireFormatLite::WIRETYPE_VARINT:
        return in_.ReadVarint64(&number);
      case WireFormatLite::WIRETYPE_FIXED64:
        return in_.Skip(sizeof(uint64_t));
      case WireFormatLite::WIRETYPE_FIXED32:
        return in_.Skip(sizeof(uint32_t));
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED: {
        uint32_t bytes = 0;
        if (!in_.ReadVarint32(&bytes) || bytes > INT_MAX || !in_.Skip(static_cast<int>(bytes))) return false;
        heap_ += bytes + kHeap;
        return true;
      }
      default:
        return false;
    }
  }

  bool parameter() {
    if (!count(cost_.parameters, "parameters")) return false;
    arena_ += kParameter;
    return nested([this] {
      while (const uint32_t tag = in_.ReadTag()) {
        const bool ok = is_bytes(tag) && tag >> 3 == 1   ? string(0)
                        : is_bytes(tag) && tag >> 3 == 2 ? nested([this] { return parameter_value(); })
                                                         : skip(tag);
        if (!ok) return false;
      }
      return true;
    });
  }
  bool parameter_value() {
    while (const uint32_t tag = in_.ReadTag()) {
      const uint32_t field = tag >> 3;
      uint64_t number = 0;
      bool ok = false;
      if (is_bytes(tag) && field == inference::InferParameter::kStringParamFieldNumber) {
        ok = string(0);
      } else if ((tag & 7) == WireFormatLite::WIRETYPE_VARINT && field <= 5) {
        ok = in_.ReadVarint64(&number);
      } else if ((tag & 7) == WireFormatLite::WIRETYPE_FIXED64 && field <= 5) {
        ok = in_.Skip(sizeof(uint64_t));
      } else {
        ok = skip(tag);
      }
      if (!ok) return false;
    }
    return true;
  }

  bool output() {
    arena_ += sizeof(Output) + kNote + kPointer;
    while (const uint32_t tag = in_.ReadTag()) {
      const bool ok = is_bytes(tag) && tag >> 3 == Output::kNameFieldNumber         ? string(0)
                      : is_bytes(tag) && tag >> 3 == Output::kParametersFieldNumber ? parameter()
                                                                                    : skip(tag);
      if (!ok) return false;
    }
    return true;
  }

  bool tensor() {
    arena_ += sizeof(Input) + kNote + kPointer;
    Elements shape;
    Contents contents{};
    bool has_contents = false;
    while (const uint32_t tag = in_.ReadTag()) {
      const uint32_t field = tag >> 3;
      bool ok = false;
      if (is_bytes(tag) && (field == Input::kNameFieldNumber || field == Input::kDatatypeFieldNumber)) {
        ok = text();
      } else if (field == Input::kShapeFieldNumber) {
        ok = elements(tag, Wire::kVarint, shape);
      } else if (is_bytes(tag) && field == Input::kParametersFieldNumber) {
        ok = parameter();
      } else if (is_bytes(tag) && field == Input::kContentsFieldNumber) {
        has_contents = true;
        ok = nested([&] { return contents_of(contents); });
      } else {
        ok = skip(tag);
      }
      if (!ok) return false;
    }
    add(shape, sizeof(int64_t), false);
    if (has_contents) arena_ += sizeof(inference::InferTensorContents) + kNote;
    for (size_t i = 0; i < contents.size(); ++i) add(contents[i], kFields[i].bytes, kFields[i].wire != Wire::kVarint);
    return true;
  }

  enum class Wire : int8_t { kVarint, kFixed32, kFixed64 };
  struct Field {
    Wire wire;
    size_t bytes;  // of an element in memory
  };
  // The fields 1 to 7 of InferTensorContents; bytes_contents is field 8.
  static constexpr Field kFields[] = {{Wire::kVarint, sizeof(bool)},     {Wire::kVarint, sizeof(int32_t)},
                                      {Wire::kVarint, sizeof(int64_t)},  {Wire::kVarint, sizeof(uint32_t)},
                                      {Wire::kVarint, sizeof(uint64_t)}, {Wire::kFixed32, sizeof(float)},
                                      {Wire::kFixed64, sizeof(double)}};
  using Contents = std::array<Elements, std::size(kFields)>;

  bool contents_of(Contents& contents) {
    while (const uint32_t tag = in_.ReadTag()) {
      const uint32_t field = tag >> 3;
      const bool ok =
          field >= 1 && field <= contents.size() ? elements(tag, kFields[field - 1].wire, contents[field - 1])
          : is_bytes(tag) && field == inference::InferTensorContents::kBytesContentsFieldNumber ? string(kPointer)
                                                                                                : skip(tag);
      if (!ok) return false;
    }
    return true;
  }

  // Elements are packed, or one per field; both forms are accepted, whatever the .proto file says.
  bool elements(uint32_t tag, Wire wire, Elements& to) {
    uint64_t number = 0;
    switch (tag & 7) {
      case WireFormatLite::WIRETYPE_VARINT:
        if (wire != Wire::kVarint) return skip(tag);
        ++to.pieces, ++to.count;
        return in_.ReadVarint64(&number);
      case WireFormatLite::WIRETYPE_FIXED32:
        if (wire != Wire::kFixed32) return skip(tag);
        ++to.pieces, ++to.count;
        return in_.Skip(sizeof(uint32_t));
      case WireFormatLite::WIRETYPE_FIXED64:
        if (wire != Wire::kFixed64) return skip(tag);
        ++to.pieces, ++to.count;
        return in_.Skip(sizeof(uint64_t));
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
        return packed(wire, to);
      default:
        return false;
    }
  }
  bool packed(Wire wire, Elements& to) {
    uint32_t bytes = 0;
    if (!in_.ReadVarint32(&bytes) || bytes > INT_MAX) return false;
    ++to.pieces;
    if (wire != Wire::kVarint) {
      to.count += bytes / (wire == Wire::kFixed32 ? sizeof(uint32_t) : sizeof(uint64_t));
      return in_.Skip(static_cast<int>(bytes));
    }
    // A varint ends with a byte whose highest bit is 0.
    for (int left = static_cast<int>(bytes); left > 0;) {
      const void* data = nullptr;
      int size = 0;
      if (!in_.GetDirectBufferPointer(&data, &size)) return false;
      size = std::min(size, left);
      const auto* const begin = static_cast<const uint8_t*>(data);
      size_t ends = 0;
      for (const uint8_t* at = begin; at != begin + size; ++at) ends += static_cast<size_t>(*at >> 7 ^ 1);
      to.count += ends;
      if (!in_.Skip(size)) return false;
      left -= size;
    }
    return true;
  }
  // A single packed field of fixed size is allocated with its final length.
  void add(const Elements& elements, size_t bytes, bool fixed) {
    if (elements.count == 0) return;
    arena_ += (fixed && elements.pieces == 1 ? 1 : kGrowth) * elements.count * bytes + kNote;
  }

  CodedInputStream& in_;
  MessageCost& cost_;
  size_t arena_ = 0, heap_ = 0;
};

}  // namespace

bool measure(CodedInputStream& input, MessageCost& cost) { return Measurement(input, cost).message(); }

}  // namespace sconce::server::rpc
