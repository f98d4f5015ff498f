#include "server/codecs/generate_codec.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "sconce/check.h"
#include "server/scheduling/signature/recorded_strides.h"
#include "server/support/json/tensor_json.h"
#include "server/support/json/tensor_list.h"
#include "server/support/json_cursor.h"

namespace sconce::server::codecs {
namespace {

// Gives a flat list the sizes in the metadata: 1 for the batch dimension, the remaining count for one variable
// dimension.
Tensor in_recorded_shape(Tensor tensor, const scheduling::ModelSignature& model, size_t index, bool one_row,
                         std::string_view what) {
  const scheduling::TensorInterface& input = model.inputs[index];
  size_t rank = input.shape.size();
  if (is_complex(tensor.dtype())) --rank;
  if (!input.shape_known || static_cast<size_t>(tensor.dim()) == rank) return tensor;
  SCONCE_CHECK(tensor.dim() <= 1, kInvalidArgument, what, " has ", tensor.dim(), " dimensions, the model takes ", rank);
  std::array<int64_t, Tensor::kMaxRank> sizes, strides;
  std::copy_n(input.shape.begin(), rank, sizes.begin());
  if (rank > 0 && (one_row || (sizes[0] == -1 && model.max_batch_size > 0))) sizes[0] = 1;
  int64_t known = 1;
  size_t variable = rank;
  for (size_t d = 0; d < rank; ++d) {
    if (sizes[d] != -1) {
      SCONCE_CHECK(!__builtin_mul_overflow(known, sizes[d], &known), kInvalidArgument, what, " is too large");
      continue;
    }
    SCONCE_CHECK(variable == rank, kInvalidArgument, what,
                 " has more than one variable dimension: give nested lists, shape is ", to_string(input.shape));
    variable = d;
  }
  if (variable != rank && known > 0) sizes[variable] = tensor.numel() / known;
  int64_t elements = 1;
  for (size_t d = 0; d < rank; ++d) elements *= std::max<int64_t>(sizes[d], 0);
  SCONCE_CHECK(elements == tensor.numel(), kInvalidArgument, what, " has ", tensor.numel(),
               " elements, which do not fill the shape ", to_string(input.shape));
  const IntSpan shape{sizes.data(), rank};
  contiguous_strides(shape, strides.data());
  return tensor.view_as(tensor.dtype(), shape, {strides.data(), rank}, tensor.storage_offset());
}

}  // namespace

void read_generate_input(const scheduling::ModelSignature& model, JsonCursor& json, size_t index,
                         TensorScratch& scratch, InferRequest& request, bool one_row) {
  const std::string what = "input '" + model.input_names.name(index) + "'";
  SCONCE_CHECK(!request.inputs[index].defined(), kInvalidArgument, what, " is given twice");
  const std::optional<DType> dtype = model.inputs[index].dtype;
  SCONCE_CHECK(dtype, kInvalidArgument, what, ": the package does not record the dtype, use the route infer");
  SCONCE_CHECK(has_json_form(*dtype), kInvalidArgument, what, ": ", dtype_name(*dtype), " has no JSON form");
  TensorList list(*dtype, scratch);
  json.set_context(what);
  list.add(json, what);
  json.set_context({});
  request.inputs[index] = scheduling::in_recorded_strides(
      in_recorded_shape(list.single(what), model, index, one_row, what), model.spec.inputs[index], scratch);
}

void decode_generate(const scheduling::ModelSignature& model, const BodyBuffer& body, TensorScratch& scratch,
                     InferRequest& request) {
  JsonCursor json({reinterpret_cast<const char*>(body.begin()), body.size()});
  request.inputs.resize(model.inputs.size());
  const auto member = [&](std::string_view key, bool top) {
    const std::optional<size_t> index = model.input_names.find(key);
    if (!index) {
      if (top && key == "id") {
        const std::string_view id = json.raw_string("'id'");
        if (id.size() > 2) request.json_id = id;
      } else if (key == "weights") {
        request.weights = json.string("'weights'");
      } else if (!read_schedule_parameter(json, key, request.schedule)) {
        top ? (void)json.skip() : skip_parameter(json, key);
      }
      return;
    }
    read_generate_input(model, json, *index, scratch, request);
  };
  read_generate_members(model, json, member);
  check_inputs_complete(model, request);
  if (model.max_batch_size > 0 && request.inputs[0].dim() > 0) request.rows = request.inputs[0].size(0);
}

void encode_generate(const scheduling::ModelSignature& model, const InferRequest& request,
                     std::span<const Tensor> outputs, bool stream, http::Response& response) {
  TextBuffer& text = response.text();
  if (stream) {
    response.type = http::content_type::kEvents;
    text.append("data: ");
  }
  append_answer_head(model, request, text);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& tensor = outputs[i];
    if (!tensor.defined()) continue;  // the model returned None
    check_output(tensor);
    text.append(',');
    text.append(model.output_names.json(i));
    text.append(':');
    if (tensor.numel() == 1 && !is_complex(tensor.dtype())) {
      write_nested(text, tensor.view_as(tensor.dtype(), {}, {}, tensor.storage_offset()));
    } else {
      write_flat(text, tensor);
    }
  }
  text.append(stream ? "}\n\n" : "}");
}

}  // namespace sconce::server::codecs
