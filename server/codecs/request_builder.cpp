#include "server/codecs/request_builder.h"

#include <algorithm>
#include <utility>

#include "sconce/check.h"
#include "server/scheduling/signature/recorded_strides.h"
#include "src/support/excerpt.h"

namespace sconce::server::codecs {
namespace {

// The number of elements. kInvalidArgument if it or the number of bytes exceeds 63 bits, even if another size is zero.
int64_t checked_elements(const WireShape& shape, size_t itemsize, std::string_view what) {
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
WireShape model_shape(WireShape shape, DType dtype, std::string_view what) {
  if (!is_complex(dtype)) return shape;
  SCONCE_CHECK(shape.rank > 0 && shape.sizes[shape.rank - 1] == 2, kInvalidArgument, what,
               ": a complex tensor needs a last dimension of 2, got shape ", excerpt(to_string(shape.span())));
  --shape.rank;
  return shape;
}

}  // namespace

void WireShape::add(uint64_t size) {
  SCONCE_CHECK(rank < sizes.size(), kInvalidArgument, "an input's shape has more than ", sizes.size(), " dimensions");
  SCONCE_CHECK(size <= INT64_MAX, kInvalidArgument, "a size in 'shape' is out of range: ", size);
  sizes[rank++] = static_cast<int64_t>(size);
}

RequestBuilder::RequestBuilder(const scheduling::ModelSignature& model, const SharedMemory* shared_memory,
                               TensorScratch& scratch, InferRequest& request)
    : model_(model), shared_memory_(shared_memory), scratch_(scratch), request_(request) {
  request_.inputs.resize(model_.inputs.size());
}

size_t RequestBuilder::find_input(std::string_view name) {
  SCONCE_CHECK(!name.empty(), kInvalidArgument, "an input has no 'name'");
  const std::optional<size_t> index = model_.input_names.find(name);
  SCONCE_CHECK(index, kInvalidArgument, "unexpected inference input '", excerpt(name), "' for model '", model_.name,
               "', inputs are ", model_.input_names.list());
  SCONCE_CHECK(!request_.inputs[*index].defined(), kInvalidArgument, "input '", name, "' is given twice");
  SCONCE_CHECK(!model_.is_control(*index), kInvalidArgument, "unexpected inference input '", excerpt(name),
               "' for model '", model_.name, "': the server fills it, as a control of sequences");
  request_.context.assign("input '").append(name).append("'");
  return *index;
}

WireForm RequestBuilder::form_of(size_t input, std::string_view datatype, const WireShape& shape) const {
  const scheduling::TensorInterface& known = model_.inputs[input];
  SCONCE_CHECK(!known.dtype || datatype == known.datatype, kInvalidArgument, "inference ", what(), " data-type is '",
               excerpt(datatype), "', model '", model_.name, "' expects '", known.datatype, "'");
  std::optional<DType> dtype = known.dtype;
  if (!dtype) dtype = scheduling::dtype_from_oip(datatype);
  SCONCE_CHECK(dtype, kInvalidArgument, what(), ": datatype is not supported: '", excerpt(datatype), "'");
  const DType carrier = wire_dtype(*dtype);
  const int64_t elements = checked_elements(shape, dtype_bytes(carrier), what());
  return {*dtype, carrier, model_shape(shape, *dtype, what()), elements};
}

void RequestBuilder::check_bytes(const WireForm& form, uint64_t given) const {
  SCONCE_CHECK(given == form.bytes(), kInvalidArgument, "unexpected total byte size ", given, " for ", what(),
               ", expecting ", form.bytes());
}

Tensor RequestBuilder::from_region(size_t input, const WireForm& form, const WireRegion& where) {
  const std::shared_ptr<const SharedRegion> region = find(where);
  check_bytes(form, *where.bytes);
  // The bytes on the device are used in place if the model runs there, does not write them and has this layout.
  const TensorSpec& spec = model_.spec.inputs[input];
  if (region->device() && model_.spec.device_key == "cuda" && form.bytes() != 0 && !spec.may_be_written &&
      scheduling::row_major_is_recorded(form.shape.span(), spec)) {
    request_.device_inputs = true;
    return region->device()->tensor(where.offset, form.dtype, form.shape.span());
  }
  Tensor tensor = scratch_.tensor(form.shape.span(), form.dtype);
  region->read(where.offset, static_cast<std::byte*>(tensor.data()), static_cast<size_t>(form.bytes()));
  return tensor;
}

void RequestBuilder::set_input(size_t index, Tensor tensor) {
  if (index == 0 && model_.max_batch_size > 0 && tensor.dim() > 0) request_.rows = tensor.size(0);
  request_.inputs[index] = scheduling::in_recorded_strides(std::move(tensor), model_.spec.inputs[index], scratch_);
}

void RequestBuilder::add_output(std::string_view name, std::string_view json_name, std::optional<bool> binary,
                                uint64_t classes, const WireRegion& region) {
  SCONCE_CHECK(!name.empty(), kInvalidArgument, "an output has no 'name'");
  const std::optional<size_t> index = model_.output_names.find(name);
  SCONCE_CHECK(index, kInvalidArgument, "unexpected inference output '", excerpt(name), "' for model '", model_.name,
               "', outputs are ", model_.output_names.list());
  for (const InferRequest::Output& other : request_.outputs) {
    SCONCE_CHECK(other.index != *index, kInvalidArgument, "output '", name, "' is asked for twice");
  }
  InferRequest::Output output{*index, json_name, binary.value_or(false), classes, nullptr};
  if (!region.name.empty()) {
    request_.context.assign("output '").append(name).append("'");
    SCONCE_CHECK(classes == 0 && !binary.value_or(false), kInvalidArgument, what(),
                 " in shared memory can have neither 'classification' nor 'binary_data'");
    output.region = find(region);
    output.region_offset = region.offset;
    output.region_bytes = *region.bytes;
    request_.device_outputs = request_.device_outputs || output.region->device();
  } else if (!binary) {
    pending_binary_.push_back(request_.outputs.size());
  }
  request_.outputs.push_back(std::move(output));
}

void RequestBuilder::complete_inputs() {
  for (const scheduling::ControlInput& control : model_.controls) fill(control);
  check_inputs_complete(model_, request_);
}

void RequestBuilder::fill(const scheduling::ControlInput& control) {
  if (request_.inputs[control.input].defined()) return;
  const scheduling::TensorInterface& input = model_.inputs[control.input];
  WireShape shape;
  for (const int64_t size : input.shape) shape.add(size == -1 ? 1 : static_cast<uint64_t>(size));
  // The batch size is that of the first input from the client.
  if (model_.max_batch_size > 0) {
    for (const Tensor& sent : request_.inputs) {
      if (!sent.defined() || sent.dim() == 0) continue;
      request_.rows = shape.sizes[0] = sent.size(0);
      break;
    }
  }
  Tensor tensor = scratch_.tensor(shape.span(), *input.dtype);
  scheduling::fill_control(control, request_.sequence, tensor);
  request_.inputs[control.input] =
      scheduling::in_recorded_strides(std::move(tensor), model_.spec.inputs[control.input], scratch_);
}

void RequestBuilder::finish(bool default_binary) {
  complete_inputs();
  if (request_.outputs.empty()) {
    for (size_t i = 0; i < model_.outputs.size(); ++i)
      request_.outputs.push_back({i, model_.output_names.json(i), default_binary, 0, nullptr});
    return;
  }
  for (const size_t i : pending_binary_) request_.outputs[i].binary = default_binary;
}

std::shared_ptr<const SharedRegion> RequestBuilder::find(const WireRegion& region) const {
  SCONCE_CHECK(shared_memory_ != nullptr, kForbidden, what(),
               ": shared memory is not for web pages of other origins without a token");
  SCONCE_CHECK(shared_memory_->allowed(), kForbidden, what(),
               ": shared memory is not allowed on this server (setting allow_shared_memory)");
  SCONCE_CHECK(region.bytes, kInvalidArgument, what(), " has 'shared_memory_region' and no 'shared_memory_byte_size'");
  std::shared_ptr<const SharedRegion> found = shared_memory_->find(region.name);
  found->check_range(region.offset, *region.bytes);
  return found;
}

}  // namespace sconce::server::codecs
