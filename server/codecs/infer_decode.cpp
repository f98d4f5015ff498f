#include <algorithm>
#include <cstring>
#include <string>

#include "sconce/check.h"
#include "server/codecs/infer_codec.h"
#include "server/codecs/request_builder.h"
#include "server/support/json/tensor_json.h"
#include "server/support/json_cursor.h"
#include "src/support/excerpt.h"

namespace sconce::server::codecs {
namespace {

// Reads the parameter and returns true if it belongs to a tensor in shared memory.
bool read_region(JsonCursor& json, std::string_view name, WireRegion& region) {
  if (name == "shared_memory_region") {
    region.name = json.string("'shared_memory_region'");
  } else if (name == "shared_memory_byte_size") {
    region.bytes = json.unsigned_integer("'shared_memory_byte_size'");
  } else if (name == "shared_memory_offset") {
    region.offset = json.unsigned_integer("'shared_memory_offset'");
  } else {
    return false;
  }
  return true;
}

class InferDecoder {
 public:
  InferDecoder(const scheduling::ModelSignature& model, const BodyBuffer& body, size_t json_length,
               const SharedMemory* shared_memory, TensorScratch& scratch, InferRequest& request)
      : model_(model),
        body_(body),
        scratch_(scratch),
        request_(request),
        builder_(model, shared_memory, scratch, request),
        json_({reinterpret_cast<const char*>(body.begin()), json_length}),
        binary_at_(json_length) {}

  void run() {
    bool inputs_seen = false, outputs_seen = false;
    json_.members("the request", [&](std::string_view key) {
      if (key == "inputs") {
        SCONCE_CHECK(!inputs_seen, kInvalidArgument, "request has 'inputs' twice");
        inputs_seen = true;
        json_.array("'inputs'", [&](size_t) { read_input(); });
      } else if (key == "outputs") {
        SCONCE_CHECK(!outputs_seen, kInvalidArgument, "request has 'outputs' twice");
        outputs_seen = true;
        json_.array("'outputs'", [&](size_t) { read_output(); });
      } else if (key == "id") {
        const std::string_view id = json_.raw_string("'id'");
        if (id.size() > 2) request_.json_id = id;
      } else if (key == "parameters") {
        json_.members("'parameters'", [&](std::string_view name) { read_parameter(name); });
      } else {
        json_.skip();
      }
    });
    json_.finish();
    SCONCE_CHECK(inputs_seen, kInvalidArgument, "request has no 'inputs'");
    builder_.complete_inputs();
    SCONCE_CHECK(binary_at_ == body_.size(), kInvalidArgument,
                 "unexpected additional input data: ", body_.size() - binary_at_, " bytes after the last tensor");
    builder_.finish(default_binary_);
  }

  // The whole body is the bytes of the only input.
  void run_raw() {
    SCONCE_CHECK(model_.inputs.size() == 1, kInvalidArgument, "a raw binary request needs a model with one input, '",
                 model_.name, "' has ", model_.inputs.size());
    const scheduling::TensorInterface& input = model_.inputs[0];
    builder_.find_input(model_.input_names.name(0));
    SCONCE_CHECK(input.shape_known && input.dtype, kInvalidArgument, builder_.what(),
                 ": a raw binary request needs a package that records shapes");
    WireShape shape;
    shape.rank = std::min(input.shape.size(), shape.sizes.size());
    int64_t fixed = static_cast<int64_t>(dtype_bytes(wire_dtype(*input.dtype)));
    size_t variable = SIZE_MAX;
    for (size_t d = 0; d < shape.rank; ++d) {
      const bool batch = d == 0 && model_.max_batch_size > 0;
      shape.sizes[d] = batch ? 1 : input.shape[d];
      if (shape.sizes[d] == -1) {
        SCONCE_CHECK(variable == SIZE_MAX, kInvalidArgument, builder_.what(),
                     ": a raw binary request allows one variable dimension, shape is ", to_string(input.shape));
        variable = d;
      } else {
        fixed *= shape.sizes[d];
      }
    }
    const int64_t bytes = static_cast<int64_t>(body_.size());
    if (variable != SIZE_MAX) {
      SCONCE_CHECK(fixed > 0 && bytes % fixed == 0, kInvalidArgument, builder_.what(), ": ", bytes,
                   " bytes are not a multiple of ", fixed);
      shape.sizes[variable] = bytes / fixed;
    }
    const WireForm form = builder_.form_of(0, input.datatype, shape);
    builder_.check_bytes(form, body_.size());
    binary_at_ = 0;
    builder_.set_input(0, binary_tensor(form));
    builder_.finish(true);
  }

 private:
  void read_input() {
    std::string_view name, datatype;
    WireShape shape;
    WireRegion region;
    bool has_shape = false;
    std::optional<size_t> data_at;  // offset of "data" in the JSON
    size_t data_bytes = 0;          // of its text
    std::optional<uint64_t> binary_bytes;
    const auto once = [](bool first, std::string_view key) {
      SCONCE_CHECK(first, kInvalidArgument, "an input has '", key, "' twice");
    };
    json_.members("an input", [&](std::string_view key) {
      if (key == "name") {
        once(name.empty(), key);
        name = json_.string("an input's 'name'");
      } else if (key == "datatype") {
        once(datatype.empty(), key);
        datatype = json_.string("an input's 'datatype'");
      } else if (key == "shape") {
        once(!has_shape, key);
        has_shape = true;
        json_.array("an input's 'shape'", [&](size_t) { shape.add(json_.unsigned_integer("a size in 'shape'")); });
      } else if (key == "data") {
        once(!data_at, key);
        if (json_.peek() != '[') json_.fail_expected("an input's 'data'", "an array");
        data_at = json_.offset();
        data_bytes = json_.skip_unchecked().size();
      } else if (key == "parameters") {
        json_.members("an input's 'parameters'", [&](std::string_view parameter) {
          if (parameter == "binary_data_size") {
            binary_bytes = json_.unsigned_integer("'binary_data_size'");
          } else if (!read_region(json_, parameter, region)) {
            skip_parameter(json_, parameter);
          }
        });
      } else {
        json_.skip();
      }
    });
    const size_t index = builder_.find_input(name);
    const std::string_view what = builder_.what();
    SCONCE_CHECK(has_shape, kInvalidArgument, what, " has no 'shape'");
    SCONCE_CHECK(!datatype.empty(), kInvalidArgument, what, " has no 'datatype'");
    const bool has_region = !region.name.empty();
    const int given = data_at.has_value() + binary_bytes.has_value() + has_region;
    SCONCE_CHECK(given == 1, kInvalidArgument, what,
                 given == 0   ? " has neither 'data' nor 'binary_data_size'"
                 : has_region ? " has 'shared_memory_region' and other data"
                              : " has both 'data' and 'binary_data_size'");
    const WireForm form = builder_.form_of(index, datatype, shape);
    if (has_region) {
      builder_.set_input(index, builder_.from_region(index, form, region));
    } else if (binary_bytes) {
      builder_.check_bytes(form, *binary_bytes);
      builder_.set_input(index, binary_tensor(form));
    } else {
      builder_.set_input(index, json_tensor(form, shape, *data_at, data_bytes));
    }
  }

  Tensor binary_tensor(const WireForm& form) {
    const uint64_t expected = form.bytes();
    SCONCE_CHECK(expected <= body_.size() - binary_at_, kInvalidArgument, builder_.what(), ": expected ", expected,
                 " bytes of binary data, ", body_.size() - binary_at_, " are left in the request");
    std::byte* const data = body_.begin() + binary_at_;
    binary_at_ += static_cast<size_t>(expected);
    const auto offset = data - static_cast<std::byte*>(body_.storage()->data());
    const ptrdiff_t itemsize = static_cast<ptrdiff_t>(dtype_bytes(form.dtype));
    if (offset % itemsize == 0) return scratch_.over(body_.storage(), data, form.dtype, form.shape.span());
    Tensor copy = scratch_.tensor(form.shape.span(), form.dtype);
    if (expected != 0) std::memcpy(copy.data(), data, static_cast<size_t>(expected));
    return copy;
  }

  Tensor json_tensor(const WireForm& form, const WireShape& sent, size_t data_at, size_t data_bytes) {
    const std::string_view what = builder_.what();
    SCONCE_CHECK(form.carrier != DType::kFloat16 && form.carrier != DType::kBFloat16, kInvalidArgument, what,
                 ": receiving ", dtype_oip(form.dtype), " data via JSON is not supported, use the binary data format");
    // Each element takes a digit and a separator: refuses the request before allocating memory for more elements than
    // the text can hold.
    const auto count = static_cast<uint64_t>(form.elements);
    SCONCE_CHECK(count <= data_bytes / 2, kInvalidArgument, what, ": shape ", excerpt(to_string(sent.span())), " has ",
                 form.elements, " elements, 'data' has fewer");
    Tensor tensor = scratch_.tensor(form.shape.span(), form.dtype);
    ElementSink sink{static_cast<std::byte*>(tensor.data()), 0, static_cast<size_t>(form.elements)};
    const size_t resume = json_.offset();
    json_.seek(data_at);
    json_.set_context(what);
    read_elements(json_, form.carrier, sink, nullptr);
    json_.set_context({});
    json_.seek(resume);
    SCONCE_CHECK(sink.count == sink.capacity, kInvalidArgument, what, ": shape ", excerpt(to_string(sent.span())),
                 " has ", form.elements, " elements, 'data' has ", sink.count);
    return tensor;
  }

  void read_output() {
    std::string_view name, json_name;
    std::optional<bool> binary;
    WireRegion region;
    uint64_t classes = 0;
    json_.members("an output", [&](std::string_view key) {
      if (key == "name") {
        SCONCE_CHECK(name.empty(), kInvalidArgument, "an output has 'name' twice");
        json_.peek();
        const size_t at = json_.offset();
        name = json_.string("an output's 'name'");
        json_name = {json_.position() - (json_.offset() - at), json_.offset() - at};
      } else if (key == "parameters") {
        json_.members("an output's 'parameters'", [&](std::string_view parameter) {
          if (parameter == "binary_data") {
            binary = json_.boolean("'binary_data'");
          } else if (parameter == "classification") {
            classes = json_.unsigned_integer("'classification'");
          } else if (!read_region(json_, parameter, region)) {
            skip_parameter(json_, parameter);
          }
        });
      } else {
        json_.skip();
      }
    });
    builder_.add_output(name, json_name, binary, classes, region);
  }

  void read_parameter(std::string_view name) {
    if (read_schedule_parameter(json_, name, request_.schedule)) return;
    if (read_sequence_parameter(json_, name, request_.sequence)) return;
    if (name == "weights") {
      request_.weights = json_.string("'weights'");
    } else if (name == "binary_data_output") {
      default_binary_ = json_.boolean("'binary_data_output'");
    } else {
      skip_parameter(json_, name);
    }
  }

  const scheduling::ModelSignature& model_;
  const BodyBuffer& body_;
  TensorScratch& scratch_;
  InferRequest& request_;
  RequestBuilder builder_;
  JsonCursor json_;
  size_t binary_at_;
  bool default_binary_ = false;
};

}  // namespace

DType wire_dtype(DType dtype) noexcept {
  if (is_complex(dtype)) return component_dtype(dtype);
  if (is_float8(dtype) || dtype == DType::kFloat4E2M1FNx2) return DType::kUInt8;
  return dtype;
}

void check_inputs_complete(const scheduling::ModelSignature& model, const InferRequest& request) {
  std::string missing;
  size_t given = 0;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    if (request.inputs[i].defined()) {
      ++given;
    } else {
      missing += (missing.empty() ? "'" : ", '") + model.input_names.name(i) + "'";
    }
  }
  SCONCE_CHECK(missing.empty(), kInvalidArgument, "expected ", request.inputs.size(), " inputs but got ", given,
               " inputs for model '", model.name, "', missing ", missing);
}

void decode_infer(const scheduling::ModelSignature& model, const BodyBuffer& body, std::optional<uint64_t> json_length,
                  const SharedMemory* shared_memory, TensorScratch& scratch, InferRequest& request) {
  SCONCE_CHECK(!json_length || *json_length <= body.size(), kInvalidArgument,
               "Inference-Header-Content-Length is larger than the body: ", json_length.value_or(0), " of ",
               body.size(), " bytes");
  InferDecoder decoder(model, body, static_cast<size_t>(json_length.value_or(body.size())), shared_memory, scratch,
                       request);
  if (json_length && *json_length == 0 && body.size() != 0) {
    decoder.run_raw();
  } else {
    decoder.run();
  }
}

}  // namespace sconce::server::codecs
