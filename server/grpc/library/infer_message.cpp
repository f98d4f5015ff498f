#include "server/grpc/library/infer_message.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>
#include <zlib.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>
#include <vector>

namespace sconce::server::rpc {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

constexpr uint32_t kRawInput = inference::ModelInferRequest::kRawInputContentsFieldNumber;
constexpr uint32_t tag_of_bytes(uint32_t field) { return field << 3 | WireFormatLite::WIRETYPE_LENGTH_DELIMITED; }
// gRPC's list of slices grows by doubling.
constexpr size_t kPerSlice = 3 * sizeof(grpc_slice);
// Smaller tensors are cheaper to copy than to reference.
constexpr size_t kCopied = 4096;

std::string_view view(const std::string& text) { return text; }

std::variant<bool, int64_t, uint64_t, double, std::string_view> value_of(const inference::InferParameter& parameter) {
  switch (parameter.parameter_choice_case()) {
    case inference::InferParameter::kInt64Param:
      return parameter.int64_param();
    case inference::InferParameter::kUint64Param:
      return parameter.uint64_param();
    case inference::InferParameter::kDoubleParam:
      return parameter.double_param();
    case inference::InferParameter::kStringParam:
      return view(parameter.string_param());
    default:
      return parameter.bool_param();
  }
}

codecs::TensorContents contents_of(const inference::InferTensorContents& from) {
  codecs::TensorContents contents;
  const auto look = [&](codecs::TensorContents::Kind kind, const auto& field) {
    if (field.empty()) return;
    contents.several = contents.kind != codecs::TensorContents::Kind::kNone;
    contents.kind = kind;
    contents.data = field.data();
    contents.count = static_cast<size_t>(field.size());
  };
  look(codecs::TensorContents::Kind::kBool, from.bool_contents());
  look(codecs::TensorContents::Kind::kInt32, from.int_contents());
  look(codecs::TensorContents::Kind::kInt64, from.int64_contents());
  look(codecs::TensorContents::Kind::kUInt32, from.uint_contents());
  look(codecs::TensorContents::Kind::kUInt64, from.uint64_contents());
  look(codecs::TensorContents::Kind::kFloat, from.fp32_contents());
  look(codecs::TensorContents::Kind::kDouble, from.fp64_contents());
  look(codecs::TensorContents::Kind::kBytes, from.bytes_contents());
  return contents;
}

void append_varint(std::string& to, uint64_t value) {
  uint8_t digits[10];
  to.append(reinterpret_cast<const char*>(digits),
            static_cast<size_t>(CodedOutputStream::WriteVarint64ToArray(value, digits) - digits));
}

bool append_bytes(CodedInputStream& input, size_t bytes, std::string& to) {
  const size_t at = to.size();
  to.resize(at + bytes);
  return input.ReadRaw(to.data() + at, static_cast<int>(bytes));
}

// Appends a field whose tag was read. Groups do not occur, because measure() refuses them.
bool append_field(CodedInputStream& input, uint32_t tag, std::string& to) {
  append_varint(to, tag);
  switch (tag & 7) {
    case WireFormatLite::WIRETYPE_VARINT: {
      uint64_t number = 0;
      if (!input.ReadVarint64(&number)) return false;
      append_varint(to, number);
      return true;
    }
    case WireFormatLite::WIRETYPE_FIXED64:
      return append_bytes(input, sizeof(uint64_t), to);
    case WireFormatLite::WIRETYPE_FIXED32:
      return append_bytes(input, sizeof(uint32_t), to);
    case WireFormatLite::WIRETYPE_LENGTH_DELIMITED: {
      uint32_t bytes = 0;
      if (!input.ReadVarint32(&bytes) || bytes > INT_MAX) return false;
      append_varint(to, bytes);
      return append_bytes(input, bytes, to);
    }
    default:
      return false;
  }
}

// A message that gRPC left unparsed.
class RawReader : public grpc::ProtoBufferReader {
 public:
  explicit RawReader(grpc::ByteBuffer& message) : ProtoBufferReader(&message) {}
  grpc_compression_algorithm algorithm() { return is_raw() ? buffer().compression : GRPC_COMPRESS_NONE; }
  size_t pieces() { return is_raw() ? buffer().slice_buffer.count : 1; }

 private:
  bool is_raw() { return status().ok() && reader()->buffer_in->type == GRPC_BB_RAW; }
  const grpc_byte_buffer::grpc_byte_buffer_data::grpc_compressed_buffer& buffer() {
    return reader()->buffer_in->data.raw;
  }
};

}  // namespace

bool InferMessage::scan(grpc::ByteBuffer& message) {
  message_.Swap(&message);
  grpc::ProtoBufferReader reader(&message_);
  if (!reader.status().ok()) return false;
  CodedInputStream input(&reader);
  input.SetTotalBytesLimit(INT_MAX);
  return measure(input, cost_);
}

std::string InferMessage::problem() const {
  if (cost_.excess == nullptr) return "not a ModelInferRequest";
  return std::string("the request has more than ")
      .append(std::to_string(MessageCost::kMost))
      .append(" ")
      .append(cost_.excess);
}

// Records the positions of tensors' bytes, and copies everything else to text_.
bool InferMessage::split() {
  text_.reserve(cost_.text);
  raw_at_.reserve(cost_.raw);
  bytes_of.reserve(cost_.raw);
  grpc::ProtoBufferReader reader(&message_);
  if (!reader.status().ok()) return false;
  CodedInputStream input(&reader);
  input.SetTotalBytesLimit(INT_MAX);
  while (const uint32_t tag = input.ReadTag()) {
    if (tag != tag_of_bytes(kRawInput)) {
      if (!append_field(input, tag, text_)) return false;
      continue;
    }
    uint32_t bytes = 0;
    if (!input.ReadVarint32(&bytes) || bytes > INT_MAX) return false;
    raw_at_.push_back(input.CurrentPosition());
    bytes_of.push_back(bytes);
    if (!input.Skip(static_cast<int>(bytes))) return false;
  }
  return input.ConsumedEntireMessage();
}

void InferMessage::copy(size_t index, std::byte* to) const noexcept {
  grpc::ByteBuffer whole = message_;
  grpc::ProtoBufferReader reader(&whole);
  CodedInputStream input(&reader);
  input.SetTotalBytesLimit(INT_MAX);
  input.Skip(raw_at_[index]);
  input.ReadRaw(to, static_cast<int>(bytes_of[index]));
}

std::span<const codecs::RequestParameter> InferMessage::parameters_of(const Parameters& from) {
  if (from.empty()) return {};
  std::vector<codecs::RequestParameter> parameters;
  parameters.reserve(from.size());
  for (const auto& [name, parameter] : from) parameters.push_back({name, value_of(parameter)});
  return parameters_.emplace_back(std::move(parameters));
}

bool InferMessage::read() {
  if (!split() || !head_->ParseFromString(text_)) return false;
  parameters_.reserve(static_cast<size_t>(1 + head_->inputs_size() + head_->outputs_size()));
  request_.model = head_->model_name();
  request_.version = head_->model_version();
  request_.id = head_->id();
  // Triton's parameter for clients of models with any number of answers.
  constexpr const char* kFinal = "triton_enable_empty_final_response";
  if (const auto found = head_->parameters().find(kFinal); found != head_->parameters().end()) {
    wants_final_ = found->second.bool_param();
    head_->mutable_parameters()->erase(kFinal);
  }
  request_.parameters = parameters_of(head_->parameters());
  request_.inputs.reserve(static_cast<size_t>(head_->inputs_size()));
  for (const auto& input : head_->inputs()) {
    request_.inputs.push_back({input.name(),
                               input.datatype(),
                               {input.shape().data(), static_cast<size_t>(input.shape_size())},
                               parameters_of(input.parameters()),
                               contents_of(input.contents())});
  }
  request_.outputs.reserve(static_cast<size_t>(head_->outputs_size()));
  for (const auto& output : head_->outputs())
    request_.outputs.push_back({output.name(), parameters_of(output.parameters())});
  request_.raw = bytes_of.empty() ? nullptr : this;
  return true;
}

namespace {

struct OutputOwner {
  std::shared_ptr<const void> owner;
};

}  // namespace

grpc::ByteBuffer infer_response(const codecs::TensorAnswer& answer, const std::shared_ptr<const void>& owner,
                                bool final, bool streamed) {
  alignas(8) char first[1024];  // enough for most answers
  google::protobuf::Arena arena(first, sizeof first);
  auto& response = *google::protobuf::Arena::CreateMessage<inference::ModelInferResponse>(&arena);
  response.set_model_name(answer.model.data(), answer.model.size());
  response.set_model_version(std::to_string(answer.version));
  response.set_id(answer.id.data(), answer.id.size());
  const auto set_text = [&](const char* name, std::string_view text) {
    (*response.mutable_parameters())[name].set_string_param(text.data(), text.size());
  };
  set_text("weight_version", answer.weights_name);
  if (answer.streamed) {
    (*response.mutable_parameters())["triton_final_response"].set_bool_param(answer.last);
    if (!answer.finish_reason.empty()) set_text("finish_reason", answer.finish_reason);
  } else if (final)
    (*response.mutable_parameters())["triton_final_response"].set_bool_param(true);
  uint64_t raw_bytes = 0;
  constexpr uint32_t kRawOutput = inference::ModelInferResponse::kRawOutputContentsFieldNumber;
  for (const codecs::TensorAnswer::Output& output : answer.outputs) {
    auto* const to = response.add_outputs();
    to->set_name(output.name.data(), output.name.size());
    to->set_datatype(output.datatype.data(), output.datatype.size());
    const std::span<const int64_t> shape = answer.shape(output);
    to->mutable_shape()->Add(shape.begin(), shape.end());
    raw_bytes += 1 + CodedOutputStream::VarintSize64(output.bytes) + output.bytes;
  }
  const size_t head_bytes = response.ByteSizeLong();
  std::vector<grpc::Slice> slices;
  std::string piece;
  piece.reserve(head_bytes + 32 + (raw_bytes < kCopied ? raw_bytes : 0));
  if (streamed) {
    piece += static_cast<char>(tag_of_bytes(inference::ModelStreamInferResponse::kInferResponseFieldNumber));
    append_varint(piece, head_bytes + raw_bytes);
  }
  response.AppendToString(&piece);
  for (const codecs::TensorAnswer::Output& output : answer.outputs) {
    piece += static_cast<char>(tag_of_bytes(kRawOutput));
    append_varint(piece, output.bytes);
    if (output.bytes == 0) continue;
    if (output.bytes <= kCopied) {
      piece.append(static_cast<const char*>(output.data), output.bytes);
      continue;
    }
    slices.emplace_back(piece);
    piece.clear();
    auto holder = std::make_unique<OutputOwner>(OutputOwner{owner});
    slices.emplace_back(
        const_cast<void*>(output.data), output.bytes, [](void* holder) { delete static_cast<OutputOwner*>(holder); },
        holder.get());
    holder.release();
  }
  if (!piece.empty()) slices.emplace_back(piece);
  return {slices.data(), slices.size()};
}

grpc::ByteBuffer stream_error(const std::string& id, const std::string& message) {
  inference::ModelStreamInferResponse response;
  response.set_error_message(message);
  // Identifies the request, as in Triton.
  response.mutable_infer_response()->set_id(id);
  const grpc::Slice slice(response.SerializeAsString());
  return {&slice, 1};
}

grpc_compression_algorithm compression_of(grpc::ByteBuffer& message) {
  return message.Valid() ? RawReader(message).algorithm() : GRPC_COMPRESS_NONE;
}

size_t held_bytes(grpc::ByteBuffer& message) {
  return message.Valid() ? message.Length() + RawReader(message).pieces() * 2 * sizeof(grpc_slice) : 0;
}

Inflated inflate(grpc::ByteBuffer& message, grpc_compression_algorithm algorithm, size_t most,
                 const std::function<bool(size_t)>& room, GrpcStatus& status) {
  constexpr size_t kStep = 64 * 1024, kZlib = 64 * 1024;  // kZlib: maximum of zlib's own memory
  const auto refuse = [&](GrpcCode code, const char* text) {
    status = {code, text};
    return Inflated::kRefused;
  };
  if (!room(kZlib + kStep)) return Inflated::kNoRoom;
  std::vector<grpc::Slice> pieces, inflated;
  if (!message.Dump(&pieces).ok()) return refuse(GrpcCode::kInternal, "the message cannot be read");
  z_stream stream{};
  constexpr int kZlibWindow = 15, kGzip = 16;
  if (inflateInit2(&stream, algorithm == GRPC_COMPRESS_GZIP ? kZlibWindow + kGzip : kZlibWindow) != Z_OK)
    return refuse(GrpcCode::kResourceExhausted, "no memory to decompress the message");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, &inflateEnd);
  size_t total = 0;
  int result = Z_OK;
  std::vector<uint8_t> step(kStep);
  stream.next_out = step.data();
  stream.avail_out = kStep;
  Inflated problem = Inflated::kDone;
  // Appends the step's output to the message.
  const auto keep = [&] {
    const size_t got = step.size() - stream.avail_out;
    if (got == 0) return true;
    total += got;
    if (total > most) {
      problem = refuse(GrpcCode::kResourceExhausted, "the message decompresses to more than max_inflated_bytes");
      return false;
    }
    if (!room(kZlib + kStep + total + kPerSlice * (inflated.size() + 1))) {
      problem = Inflated::kNoRoom;
      return false;
    }
    inflated.emplace_back(step.data(), got);
    stream.next_out = step.data();
    stream.avail_out = kStep;
    return true;
  };
  for (const grpc::Slice& piece : pieces) {
    stream.next_in = const_cast<uint8_t*>(piece.begin());
    stream.avail_in = static_cast<uInt>(piece.size());
    while (result == Z_OK && stream.avail_in > 0) {
      result = ::inflate(&stream, Z_NO_FLUSH);
      if (stream.avail_out == 0 && !keep()) return problem;
    }
  }
  // Output that zlib still holds after the last input byte.
  while (result == Z_OK) {
    result = ::inflate(&stream, Z_NO_FLUSH);
    if (stream.avail_out != 0) break;
    if (!keep()) return problem;
  }
  if (!keep()) return problem;
  if (result != Z_STREAM_END) return refuse(GrpcCode::kInvalidArgument, "the message's compression is damaged");
  grpc::ByteBuffer whole(inflated.data(), inflated.size());
  message.Swap(&whole);
  return Inflated::kDone;
}

}  // namespace sconce::server::rpc
