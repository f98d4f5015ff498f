#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "sconce/check.h"
#include "sconce/excerpt.h"
#include "server/base/json_cursor.h"
#include "server/json/tensor_json.h"
#include "server/protocols/infer_codec.h"
#include "server/signature/recorded_strides.h"

namespace sconce::server {
namespace {

// Sizes as sent.
struct Shape {
  std::array<int64_t, Tensor::kMaxRank> sizes;
  size_t rank = 0;
  IntSpan span() const noexcept { return {sizes.data(), rank}; }
};

// The number of elements. kInvalidArgument if that or its bytes exceed 63 bits, even if another size is zero.
int64_t checked_elements(const Shape& shape, size_t itemsize, std::string_view what) {
  int64_t product = 1, bytes = 0;
  bool zero = false;
  for (const int64_t size : shape.span()) {
    zero = zero || size == 0;
    SCONCE_CHECK(!__builtin_mul_overflow(product, std::max<int64_t>(size, 1), &product), kInvalidArgument, what,
                 ": shape has too many elements: ", excerpt(to_string(shape.span())));
  }
  SCONCE_CHECK(!__builtin_mul_overflow(product, static_cast<int64_t>(itemsize), &bytes), kInvalidArgument, what,
               ": shape has too many elements: ", excerpt(to_string(shape.span())));
  return zero ? 0 : product;
}

// The shape of the model's tensor for elements sent in a carrier type: complex loses the last dimension of 2.
Shape model_shape(Shape shape, DType dtype, std::string_view what) {
  if (!is_complex(dtype)) return shape;
  SCONCE_CHECK(shape.rank > 0 && shape.sizes[shape.rank - 1] == 2, kInvalidArgument, what,
               ": a complex tensor needs a last dimension of 2, got shape ", excerpt(to_string(shape.span())));
  --shape.rank;
  return shape;
}

// One element of "inputs".
struct WireTensor {
  std::string_view name, datatype;
  Shape shape;
  bool has_shape = false;
  std::optional<size_t> data_at;  // offset of "data" in the JSON
  size_t data_bytes = 0;          // of its text
  std::optional<uint64_t> binary_bytes;
  std::shared_ptr<const SharedRegion> region;
  uint64_t region_offset = 0;
};

// The parameters of an input or output in shared memory.
struct RegionParameters {
  std::string_view region;
  std::optional<uint64_t> bytes;
  uint64_t offset = 0;

  // Reads the parameter if it is one of these, and returns whether it is.
  bool read(JsonCursor& json, std::string_view name) {
    if (name == "shared_memory_region") {
      region = json.string("'shared_memory_region'");
    } else if (name == "shared_memory_byte_size") {
      bytes = json.unsigned_integer("'shared_memory_byte_size'");
    } else if (name == "shared_memory_offset") {
      offset = json.unsigned_integer("'shared_memory_offset'");
    } else {
      return false;
    }
    return true;
  }
  std::shared_ptr<const SharedRegion> find(const SharedMemory* memory, std::string_view what) const {
    SCONCE_CHECK(memory != nullptr && memory->allowed(), kForbidden, what,
                 ": shared memory is not allowed on this server (setting allow_shared_memory)");
    SCONCE_CHECK(bytes, kInvalidArgument, what, " has 'shared_memory_region' and no 'shared_memory_byte_size'");
    std::shared_ptr<const SharedRegion> found = memory->find(region);
    found->check_range(offset, *bytes);
    return found;
  }
};

class InferDecoder {
 public:
  InferDecoder(const ModelInterface& model, const BodyBuffer& body, size_t json_length,
               const SharedMemory* shared_memory, TensorScratch& scratch, InferRequest& request)
      : model_(model),
        body_(body),
        shared_memory_(shared_memory),
        scratch_(scratch),
        request_(request),
        json_({reinterpret_cast<const char*>(body.begin()), json_length}),
        binary_at_(json_length) {}

  void run() {
    request_.inputs.resize(model_.inputs.size());
    bool inputs_seen = false, outputs_seen = false;
    json_.object("the request", [&](std::string_view key) {
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
        json_.object("'parameters'", [&](std::string_view name) { read_parameter(name); });
      } else {
        json_.skip();
      }
    });
    json_.finish();
    SCONCE_CHECK(inputs_seen, kInvalidArgument, "request has no 'inputs'");
    check_inputs_complete(model_, request_);
    SCONCE_CHECK(binary_at_ == body_.size(), kInvalidArgument,
                 "unexpected additional input data: ", body_.size() - binary_at_, " bytes after the last tensor");
    finish_outputs();
  }

  // The whole body is the only input's bytes.
  void run_raw() {
    SCONCE_CHECK(model_.inputs.size() == 1, kInvalidArgument, "a raw binary request needs a model with one input, '",
                 model_.name, "' has ", model_.inputs.size());
    request_.inputs.resize(1);
    const TensorInterface& input = model_.inputs[0];
    const std::string what = "input '" + model_.input_names.name(0) + "'";
    SCONCE_CHECK(input.shape_known && input.dtype, kInvalidArgument, what,
                 ": a raw binary request needs a package that records shapes");
    WireTensor wire;
    wire.shape.rank = std::min(input.shape.size(), wire.shape.sizes.size());
    int64_t fixed = static_cast<int64_t>(dtype_bytes(wire_dtype(*input.dtype)));
    size_t variable = SIZE_MAX;
    for (size_t d = 0; d < wire.shape.rank; ++d) {
      const bool batch = d == 0 && model_.max_batch_size > 0;
      wire.shape.sizes[d] = batch ? 1 : input.shape[d];
      if (wire.shape.sizes[d] == -1) {
        SCONCE_CHECK(variable == SIZE_MAX, kInvalidArgument, what,
                     ": a raw binary request allows one variable dimension, shape is ", to_string(input.shape));
        variable = d;
      } else {
        fixed *= wire.shape.sizes[d];
      }
    }
    const int64_t bytes = static_cast<int64_t>(body_.size());
    if (variable != SIZE_MAX) {
      SCONCE_CHECK(fixed > 0 && bytes % fixed == 0, kInvalidArgument, what, ": ", bytes,
                   " bytes are not a multiple of ", fixed);
      wire.shape.sizes[variable] = bytes / fixed;
    }
    wire.binary_bytes = body_.size();
    binary_at_ = 0;
    request_.inputs[0] = make_tensor(0, wire, what);
    default_binary_ = true;
    finish_outputs();
  }

 private:
  void read_input() {
    WireTensor wire;
    RegionParameters shared;
    const auto once = [](bool first, std::string_view key) {
      SCONCE_CHECK(first, kInvalidArgument, "an input has '", key, "' twice");
    };
    json_.object("an input", [&](std::string_view key) {
      if (key == "name") {
        once(wire.name.empty(), key);
        wire.name = json_.string("an input's 'name'");
      } else if (key == "datatype") {
        once(wire.datatype.empty(), key);
        wire.datatype = json_.string("an input's 'datatype'");
      } else if (key == "shape") {
        once(!wire.has_shape, key);
        wire.has_shape = true;
        json_.array("an input's 'shape'", [&](size_t i) { read_size(wire.shape, i); });
      } else if (key == "data") {
        once(!wire.data_at, key);
        if (json_.peek() != '[') json_.fail_expected("an input's 'data'", "an array");
        wire.data_at = json_.offset();
        wire.data_bytes = json_.skip_unchecked().size();
      } else if (key == "parameters") {
        json_.object("an input's 'parameters'", [&](std::string_view name) {
          if (name == "binary_data_size") {
            wire.binary_bytes = json_.unsigned_integer("'binary_data_size'");
          } else if (!shared.read(json_, name)) {
            skip_parameter(json_, name);
          }
        });
      } else {
        json_.skip();
      }
    });
    SCONCE_CHECK(!wire.name.empty(), kInvalidArgument, "an input has no 'name'");
    const std::optional<size_t> index = model_.input_names.find(wire.name);
    SCONCE_CHECK(index, kInvalidArgument, "unexpected inference input '", excerpt(wire.name), "' for model '",
                 model_.name, "', inputs are ", model_.input_names.list());
    SCONCE_CHECK(!request_.inputs[*index].defined(), kInvalidArgument, "input '", wire.name, "' is given twice");
    const std::string_view name = wire.name;
    // For errors; built only if there is an input.
    context_.assign("input '").append(name).append("'");
    SCONCE_CHECK(wire.has_shape, kInvalidArgument, context_, " has no 'shape'");
    SCONCE_CHECK(!wire.datatype.empty(), kInvalidArgument, context_, " has no 'datatype'");
    const bool has_region = !shared.region.empty();
    const int given = wire.data_at.has_value() + wire.binary_bytes.has_value() + has_region;
    SCONCE_CHECK(given == 1, kInvalidArgument, context_,
                 given == 0   ? " has neither 'data' nor 'binary_data_size'"
                 : has_region ? " has 'shared_memory_region' and other data"
                              : " has both 'data' and 'binary_data_size'");
    if (has_region) {
      wire.region = shared.find(shared_memory_, context_);
      wire.region_offset = shared.offset;
      wire.binary_bytes = shared.bytes;
    }
    const TensorInterface& input = model_.inputs[*index];
    SCONCE_CHECK(!input.dtype || wire.datatype == input.datatype, kInvalidArgument, "inference input '", name,
                 "' data-type is '", excerpt(wire.datatype), "', model '", model_.name, "' expects '", input.datatype,
                 "'");
    request_.inputs[*index] = make_tensor(*index, wire, context_);
  }

  void read_size(Shape& shape, size_t i) {
    SCONCE_CHECK(i < shape.sizes.size(), kInvalidArgument, "an input's shape has more than ", shape.sizes.size(),
                 " dimensions");
    const uint64_t size = json_.unsigned_integer("a size in 'shape'");
    SCONCE_CHECK(size <= INT64_MAX, kInvalidArgument, "a size in 'shape' is out of range: ", size);
    shape.sizes[i] = static_cast<int64_t>(size);
    shape.rank = i + 1;
  }

  Tensor make_tensor(size_t index, const WireTensor& wire, std::string_view what) {
    std::optional<DType> dtype = model_.inputs[index].dtype;
    if (!dtype) dtype = dtype_from_oip(wire.datatype);
    SCONCE_CHECK(dtype, kInvalidArgument, what, ": datatype is not supported: '", excerpt(wire.datatype), "'");
    const DType carrier = wire_dtype(*dtype);
    const int64_t elements = checked_elements(wire.shape, dtype_bytes(carrier), what);
    const Shape shape = model_shape(wire.shape, *dtype, what);
    Tensor tensor = wire.binary_bytes ? binary_tensor(index, wire, shape, *dtype, elements, what)
                                      : json_tensor(wire, shape, *dtype, elements, what);
    if (index == 0 && model_.max_batch_size > 0 && tensor.dim() > 0) request_.rows = tensor.size(0);
    return in_recorded_strides(std::move(tensor), model_.spec.inputs[index], scratch_);
  }

  Tensor binary_tensor(size_t index, const WireTensor& wire, const Shape& shape, DType dtype, int64_t elements,
                       std::string_view what) {
    const uint64_t expected = static_cast<uint64_t>(elements) * dtype_bytes(wire_dtype(dtype));
    SCONCE_CHECK(*wire.binary_bytes == expected, kInvalidArgument, "unexpected total byte size ", *wire.binary_bytes,
                 " for ", what, ", expecting ", expected);
    if (wire.region) {
      // The bytes on the device are used in place if the model runs there, does not write them and wants this layout.
      const TensorSpec& spec = model_.spec.inputs[index];
      if (wire.region->device() && model_.spec.device_key == "cuda" && expected != 0 && !spec.may_be_written &&
          row_major_is_recorded(shape.span(), spec)) {
        request_.device_inputs = true;
        return wire.region->device()->tensor(wire.region_offset, dtype, shape.span());
      }
      Tensor tensor = scratch_.tensor(shape.span(), dtype);
      wire.region->read(wire.region_offset, static_cast<std::byte*>(tensor.data()), static_cast<size_t>(expected));
      return tensor;
    }
    SCONCE_CHECK(expected <= body_.size() - binary_at_, kInvalidArgument, what, ": expected ", expected,
                 " bytes of binary data, ", body_.size() - binary_at_, " are left in the request");
    std::byte* const data = body_.begin() + binary_at_;
    binary_at_ += static_cast<size_t>(expected);
    const auto offset = data - static_cast<std::byte*>(body_.storage()->data());
    const ptrdiff_t itemsize = static_cast<ptrdiff_t>(dtype_bytes(dtype));
    if (offset % itemsize == 0) return scratch_.over(body_.storage(), data, dtype, shape.span());
    Tensor copy = scratch_.tensor(shape.span(), dtype);
    if (expected != 0) std::memcpy(copy.data(), data, static_cast<size_t>(expected));
    return copy;
  }

  Tensor json_tensor(const WireTensor& wire, const Shape& shape, DType dtype, int64_t elements, std::string_view what) {
    const DType carrier = wire_dtype(dtype);
    SCONCE_CHECK(carrier != DType::kFloat16 && carrier != DType::kBFloat16, kInvalidArgument, what, ": receiving ",
                 dtype_oip(dtype), " data via JSON is not supported, use the binary data format");
    // Each element takes a digit and a separator: refuse before taking memory for elements that cannot be there.
    const auto count = static_cast<uint64_t>(elements);
    SCONCE_CHECK(count <= wire.data_bytes / 2, kInvalidArgument, what, ": shape ",
                 excerpt(to_string(wire.shape.span())), " has ", elements, " elements, 'data' has fewer");
    Tensor tensor = scratch_.tensor(shape.span(), dtype);
    ElementSink sink{static_cast<std::byte*>(tensor.data()), 0, static_cast<size_t>(elements)};
    const size_t resume = json_.offset();
    json_.seek(*wire.data_at);
    json_.set_context(what);
    read_elements(json_, carrier, sink, nullptr);
    json_.set_context({});
    json_.seek(resume);
    SCONCE_CHECK(sink.count == sink.capacity, kInvalidArgument, what, ": shape ", excerpt(to_string(wire.shape.span())),
                 " has ", elements, " elements, 'data' has ", sink.count);
    return tensor;
  }

  void read_output() {
    std::string_view name, json_name;
    std::optional<bool> binary;
    RegionParameters shared;
    uint64_t classes = 0;
    json_.object("an output", [&](std::string_view key) {
      if (key == "name") {
        SCONCE_CHECK(name.empty(), kInvalidArgument, "an output has 'name' twice");
        json_.peek();
        const size_t at = json_.offset();
        name = json_.string("an output's 'name'");
        json_name = {json_.position() - (json_.offset() - at), json_.offset() - at};
      } else if (key == "parameters") {
        json_.object("an output's 'parameters'", [&](std::string_view parameter) {
          if (parameter == "binary_data") {
            binary = json_.boolean("'binary_data'");
          } else if (parameter == "classification") {
            classes = json_.unsigned_integer("'classification'");
          } else if (!shared.read(json_, parameter)) {
            skip_parameter(json_, parameter);
          }
        });
      } else {
        json_.skip();
      }
    });
    SCONCE_CHECK(!name.empty(), kInvalidArgument, "an output has no 'name'");
    const std::optional<size_t> index = model_.output_names.find(name);
    SCONCE_CHECK(index, kInvalidArgument, "unexpected inference output '", excerpt(name), "' for model '", model_.name,
                 "', outputs are ", model_.output_names.list());
    for (const InferRequest::Output& other : request_.outputs) {
      SCONCE_CHECK(other.index != *index, kInvalidArgument, "output '", name, "' is asked for twice");
    }
    InferRequest::Output output{*index, json_name, binary.value_or(false), classes, nullptr};
    if (!shared.region.empty()) {
      context_.assign("output '").append(name).append("'");
      SCONCE_CHECK(classes == 0 && !binary.value_or(false), kInvalidArgument, context_,
                   " in shared memory can have neither 'classification' nor 'binary_data'");
      output.region = shared.find(shared_memory_, context_);
      output.region_offset = shared.offset;
      output.region_bytes = *shared.bytes;
      request_.device_outputs = request_.device_outputs || output.region->device();
    } else if (!binary) {
      pending_binary_.push_back(request_.outputs.size());
    }
    request_.outputs.push_back(std::move(output));
  }

  void read_parameter(std::string_view name) {
    if (read_schedule_parameter(json_, name, request_.schedule)) return;
    if (name == "weights") {
      request_.weights = json_.string("'weights'");
    } else if (name == "binary_data_output") {
      default_binary_ = json_.boolean("'binary_data_output'");
    } else {
      skip_parameter(json_, name);
    }
  }

  // Decides what depends on the whole request.
  void finish_outputs() {
    if (request_.outputs.empty()) {
      for (size_t i = 0; i < model_.outputs.size(); ++i) {
        request_.outputs.push_back({i, model_.output_names.json(i), default_binary_, 0, nullptr});
      }
      return;
    }
    for (const size_t i : pending_binary_) request_.outputs[i].binary = default_binary_;
  }

  const ModelInterface& model_;
  const BodyBuffer& body_;
  const SharedMemory* const shared_memory_;
  TensorScratch& scratch_;
  InferRequest& request_;
  JsonCursor json_;
  size_t binary_at_;
  bool default_binary_ = false;
  std::string& context_ = request_.context;
  std::vector<size_t> pending_binary_;  // outputs whose form the request does not give
};

}  // namespace

DType wire_dtype(DType dtype) noexcept {
  if (is_complex(dtype)) return component_dtype(dtype);
  if (is_float8(dtype) || dtype == DType::kFloat4E2M1FNx2) return DType::kUInt8;
  return dtype;
}

void check_inputs_complete(const ModelInterface& model, const InferRequest& request) {
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

void decode_infer(const ModelInterface& model, const BodyBuffer& body, std::optional<uint64_t> json_length,
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

}  // namespace sconce::server
