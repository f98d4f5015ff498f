#include "server/codecs/tensor_codec.h"

#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "sconce/check.h"
#include "server/codecs/answer_parts.h"
#include "server/codecs/request_builder.h"
#include "server/support/cpp_type.h"
#include "src/support/excerpt.h"

namespace sconce::server::codecs {
namespace {

using Kind = TensorContents::Kind;

std::string_view text_of(const RequestParameter& parameter) {
  const auto* const text = std::get_if<std::string_view>(&parameter.value);
  SCONCE_CHECK(text, kInvalidArgument, "parameter '", excerpt(parameter.name), "' must be a string");
  return *text;
}

}  // namespace

uint64_t count_of(const RequestParameter& parameter) {
  if (const auto* const number = std::get_if<uint64_t>(&parameter.value)) return *number;
  const auto* const number = std::get_if<int64_t>(&parameter.value);
  SCONCE_CHECK(number && *number >= 0, kInvalidArgument, "parameter '", excerpt(parameter.name),
               "' must be an integer that is not negative");
  return static_cast<uint64_t>(*number);
}

namespace {

bool flag_of(const RequestParameter& parameter) {
  const bool* const flag = std::get_if<bool>(&parameter.value);
  SCONCE_CHECK(flag, kInvalidArgument, "parameter '", excerpt(parameter.name), "' must be a boolean");
  return *flag;
}

// Reads the parameter and returns true if it belongs to a tensor in shared memory.
bool read_region(const RequestParameter& parameter, WireRegion& region) {
  if (parameter.name == "shared_memory_region") {
    region.name = text_of(parameter);
  } else if (parameter.name == "shared_memory_byte_size") {
    region.bytes = count_of(parameter);
  } else if (parameter.name == "shared_memory_offset") {
    region.offset = count_of(parameter);
  } else {
    return false;
  }
  return true;
}

// The kind of contents with elements of this type; kNone: only raw bytes.
Kind kind_for(DType carrier) noexcept {
  switch (carrier) {
    case DType::kBool:
      return Kind::kBool;
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
      return Kind::kInt32;
    case DType::kInt64:
      return Kind::kInt64;
    case DType::kUInt8:
    case DType::kUInt16:
    case DType::kUInt32:
      return Kind::kUInt32;
    case DType::kUInt64:
      return Kind::kUInt64;
    case DType::kFloat32:
      return Kind::kFloat;
    case DType::kFloat64:
      return Kind::kDouble;
    default:
      return Kind::kNone;
  }
}

std::string_view field_of(Kind kind) noexcept {
  constexpr std::string_view kNames[] = {"raw_input_contents", "bool_contents", "int_contents",
                                         "int64_contents",     "uint_contents", "uint64_contents",
                                         "fp32_contents",      "fp64_contents", "bytes_contents"};
  return kNames[static_cast<size_t>(kind)];
}

template <class To, class From>
void convert(const TensorContents& contents, void* to, std::string_view what) {
  const From* const from = static_cast<const From*>(contents.data);
  if constexpr (std::is_same_v<To, From>) {
    if (contents.count != 0) std::memcpy(to, from, contents.count * sizeof(To));
  } else {
    To* const out = static_cast<To*>(to);
    for (size_t i = 0; i < contents.count; ++i) {
      SCONCE_CHECK(from[i] >= std::numeric_limits<To>::min() && from[i] <= std::numeric_limits<To>::max(),
                   kInvalidArgument, what, ": element ", i, " is out of range: ", from[i]);
      out[i] = static_cast<To>(from[i]);
    }
  }
}

void convert(DType carrier, const TensorContents& contents, void* to, std::string_view what) {
  switch (carrier) {
    case DType::kBool:
      return convert<bool, bool>(contents, to, what);
    case DType::kInt8:
      return convert<int8_t, int32_t>(contents, to, what);
    case DType::kInt16:
      return convert<int16_t, int32_t>(contents, to, what);
    case DType::kInt32:
      return convert<int32_t, int32_t>(contents, to, what);
    case DType::kInt64:
      return convert<int64_t, int64_t>(contents, to, what);
    case DType::kUInt8:
      return convert<uint8_t, uint32_t>(contents, to, what);
    case DType::kUInt16:
      return convert<uint16_t, uint32_t>(contents, to, what);
    case DType::kUInt32:
      return convert<uint32_t, uint32_t>(contents, to, what);
    case DType::kUInt64:
      return convert<uint64_t, uint64_t>(contents, to, what);
    case DType::kFloat32:
      return convert<float, float>(contents, to, what);
    default:
      return convert<double, double>(contents, to, what);
  }
}

Tensor typed_tensor(const WireForm& form, const TensorContents& contents, std::string_view what,
                    TensorScratch& scratch) {
  const Kind wanted = kind_for(form.carrier);
  SCONCE_CHECK(!contents.several && (contents.kind == wanted || contents.kind == Kind::kNone) && wanted != Kind::kNone,
               kInvalidArgument, what, ": elements of ", dtype_oip(form.dtype), " must be in ", field_of(wanted));
  SCONCE_CHECK(contents.count == static_cast<uint64_t>(form.elements), kInvalidArgument, what, ": its shape has ",
               form.elements, " elements, its contents have ", contents.count);
  Tensor tensor = scratch.tensor(form.shape.span(), form.dtype);
  convert(form.carrier, contents, tensor.data(), what);
  return tensor;
}

}  // namespace

namespace {

// Reads all inputs except those that the server fills.
void read_tensors(const TensorRequest& sent, RequestBuilder& builder, TensorScratch& scratch, InferRequest& request) {
  request.json_id = sent.id;
  for (const RequestParameter& parameter : sent.parameters) {
    if (parameter.name == "weights") {
      request.weights = text_of(parameter);
    } else if (parameter.name == "sequence_id") {
      if (std::holds_alternative<std::string_view>(parameter.value)) {
        set_sequence_text(text_of(parameter), request.sequence);
      } else {
        request.sequence.id.number = count_of(parameter);
      }
    } else if (parameter.name == "sequence_start") {
      request.sequence.start = flag_of(parameter);
    } else if (parameter.name == "sequence_end") {
      request.sequence.end = flag_of(parameter);
    } else if (is_schedule_parameter(parameter.name)) {
      set_schedule_parameter(parameter.name, count_of(parameter), request.schedule);
    }
  }
  size_t raw = 0;
  for (const TensorRequest::Input& input : sent.inputs) {
    const size_t index = builder.find_input(input.name);
    const std::string_view what = builder.what();
    SCONCE_CHECK(!input.datatype.empty(), kInvalidArgument, what, " has no 'datatype'");
    WireRegion region;
    for (const RequestParameter& parameter : input.parameters) read_region(parameter, region);
    WireShape shape;
    for (const int64_t size : input.shape) {
      SCONCE_CHECK(size >= 0, kInvalidArgument, what, ": a size in 'shape' is negative: ", size);
      shape.add(static_cast<uint64_t>(size));
    }
    const WireForm form = builder.form_of(index, input.datatype, shape);
    const bool has_contents = input.contents.kind != Kind::kNone;
    if (!region.name.empty()) {
      SCONCE_CHECK(!has_contents, kInvalidArgument, what, " has 'shared_memory_region' and contents");
      builder.set_input(index, builder.from_region(index, form, region));
    } else if (sent.raw != nullptr) {
      SCONCE_CHECK(!has_contents, kInvalidArgument, what, " has contents, and the request has raw_input_contents");
      SCONCE_CHECK(raw < sent.raw->bytes_of.size(), kInvalidArgument, what,
                   " is missing in raw_input_contents, which has ", sent.raw->bytes_of.size(), " tensors");
      builder.check_bytes(form, sent.raw->bytes_of[raw]);
      Tensor tensor = scratch.tensor(form.shape.span(), form.dtype);
      sent.raw->copy(raw++, static_cast<std::byte*>(tensor.data()));
      builder.set_input(index, std::move(tensor));
    } else {
      builder.set_input(index, typed_tensor(form, input.contents, what, scratch));
    }
  }
  SCONCE_CHECK(sent.raw == nullptr || raw == sent.raw->bytes_of.size(), kInvalidArgument, "raw_input_contents has ",
               sent.raw->bytes_of.size(), " tensors, ", raw, " inputs are to be there");
  for (const TensorRequest::Output& output : sent.outputs) {
    WireRegion region;
    uint64_t classes = 0;
    for (const RequestParameter& parameter : output.parameters) {
      if (parameter.name == "classification") {
        classes = count_of(parameter);
      } else {
        read_region(parameter, region);
      }
    }
    builder.add_output(output.name, output.name, std::nullopt, classes, region);
  }
}

}  // namespace

void decode_some_tensors(const scheduling::ModelSignature& model, const TensorRequest& sent,
                         const SharedMemory* shared_memory, TensorScratch& scratch, InferRequest& request) {
  RequestBuilder builder(model, shared_memory, scratch, request);
  read_tensors(sent, builder, scratch, request);
}

void decode_tensors(const scheduling::ModelSignature& model, const TensorRequest& sent,
                    const SharedMemory* shared_memory, TensorScratch& scratch, InferRequest& request) {
  RequestBuilder builder(model, shared_memory, scratch, request);
  read_tensors(sent, builder, scratch, request);
  // Without JSON names, because the model's names are used below.
  builder.finish(true);
}

void encode_tensors(const scheduling::ModelSignature& model, const InferRequest& request,
                    std::span<const Tensor> outputs, TensorScratch& scratch, TensorAnswer& answer) {
  answer.model = model.name;
  answer.version = model.version;
  answer.id = request.json_id;
  answer.outputs.clear();
  answer.sizes.clear();
  const auto add_sizes = [&](IntSpan sizes) { answer.sizes.insert(answer.sizes.end(), sizes.begin(), sizes.end()); };
  for (const InferRequest::Output& wanted : request.outputs) {
    const Tensor& tensor = outputs[wanted.index];
    if (!tensor.defined()) continue;  // the model returned None
    check_infer_output(tensor, wanted);
    // Outputs that the request did not name use their JSON names.
    const std::string& own = model.output_names.json(wanted.index);
    const bool named = wanted.json_name.data() != own.data();
    TensorAnswer::Output output{named ? wanted.json_name : std::string_view(model.output_names.name(wanted.index)),
                                {},
                                answer.sizes.size(),
                                0,
                                nullptr,
                                0};
    if (wanted.classes != 0) {
      const Classes classes = classify(tensor, wanted.classes, model.max_batch_size > 0, model.labels);
      const std::span<const std::byte> packed = pack_classes(classes, scratch);
      output.datatype = "BYTES";
      add_sizes(classes.shape);
      output.data = packed.data();
      output.bytes = packed.size();
    } else {
      output.datatype = dtype_oip(tensor.dtype());
      add_sizes(tensor.sizes());
      if (is_complex(tensor.dtype())) answer.sizes.push_back(2);
      if (wanted.region) {
        send_to_region(tensor, wanted, scratch);
      } else if (tensor.numel() != 0) {
        output.data = scratch.row_major(tensor);
        output.bytes = tensor.bytes();
      }
    }
    output.rank = answer.sizes.size() - output.shape_at;
    answer.outputs.push_back(output);
  }
}

}  // namespace sconce::server::codecs
