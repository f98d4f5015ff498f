#include <span>
#include <string>

#include "sconce/check.h"
#include "server/codecs/answer_parts.h"
#include "server/codecs/infer_codec.h"
#include "server/support/json/tensor_json.h"
#include "server/support/json_cursor.h"
#include "src/support/excerpt.h"

namespace sconce::server::codecs {
namespace {

void append_sizes(TextBuffer& text, IntSpan sizes) {
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (d != 0) text.append(',');
    append_number(text, sizes[d]);
  }
}

// Appends an output of the classification extension, starting with its datatype.
void append_classes(const Classes& classes, bool binary, TensorScratch& scratch, http::Response& response) {
  TextBuffer& text = response.text();
  text.append(",\"datatype\":\"BYTES\",\"shape\":[");
  append_sizes(text, classes.shape);
  if (!binary) {
    text.append("],\"data\":[");
    std::string json;
    for (size_t i = 0; i < classes.elements.size(); ++i) {
      if (i != 0) json += ',';
      append_json_string(json, classes.elements[i]);
    }
    text.append(json);
    return text.append("]}");
  }
  const std::span<const std::byte> packed = pack_classes(classes, scratch);
  text.append("],\"parameters\":{\"binary_data_size\":");
  append_number(text, static_cast<int64_t>(packed.size()));
  text.append("}}");
  if (!packed.empty()) response.segments.push_back({packed.data(), packed.size()});
}

}  // namespace

void append_answer_head(const scheduling::ModelSignature& model, const InferRequest& request, TextBuffer& text) {
  text.append('{');
  if (!request.json_id.empty()) {
    text.append("\"id\":");
    text.append(request.json_id);
    text.append(',');
  }
  text.append("\"model_name\":\"");
  text.append(model.name);
  text.append("\",\"model_version\":\"");
  append_number(text, model.version);
  text.append('"');
}

void encode_infer(const scheduling::ModelSignature& model, const InferRequest& request, std::string_view weights_name,
                  std::span<const Tensor> outputs, TensorScratch& scratch, http::Response& response) {
  TextBuffer& text = response.text();
  append_answer_head(model, request, text);
  text.append(",\"parameters\":{\"weight_version\":\"");
  for (const char c : weights_name) {
    if (c == '"' || c == '\\') text.append('\\');
    text.append(c);
  }
  text.append("\"},\"outputs\":[");
  bool first = true;
  for (const InferRequest::Output& wanted : request.outputs) {
    const Tensor& tensor = outputs[wanted.index];
    if (!tensor.defined()) continue;  // the model returned None
    check_infer_output(tensor, wanted);
    if (!first) text.append(',');
    first = false;
    text.append("{\"name\":");
    text.append(wanted.json_name);
    if (wanted.classes != 0) {
      append_classes(classify(tensor, wanted.classes, model.max_batch_size > 0, model.labels), wanted.binary, scratch,
                     response);
      continue;
    }
    text.append(",\"datatype\":\"");
    text.append(dtype_oip(tensor.dtype()));
    text.append("\",\"shape\":[");
    append_sizes(text, tensor.sizes());
    if (is_complex(tensor.dtype())) text.append(tensor.dim() > 0 ? ",2" : "2");
    if (wanted.region) {
      text.append("]}");
      send_to_region(tensor, wanted, scratch);
      continue;
    }
    if (wanted.binary) {
      text.append("],\"parameters\":{\"binary_data_size\":");
      append_number(text, static_cast<int64_t>(tensor.bytes()));
      text.append("}}");
      if (tensor.numel() == 0) continue;
      response.segments.push_back({scratch.row_major(tensor), tensor.bytes()});
    } else {
      const DType carrier = wire_dtype(tensor.dtype());
      SCONCE_CHECK(carrier != DType::kFloat16 && carrier != DType::kBFloat16, kInvalidArgument, "output ",
                   excerpt(wanted.json_name), ": sending ", dtype_oip(tensor.dtype()),
                   " data via JSON is not supported, use the binary data format");
      text.append("],\"data\":");
      // float8 and float4 travel as bytes.
      const bool bytes = carrier == DType::kUInt8 && tensor.dtype() != DType::kUInt8;
      write_flat(text,
                 bytes ? tensor.view_as(carrier, tensor.sizes(), tensor.strides(), tensor.storage_offset()) : tensor);
      text.append('}');
    }
  }
  text.append("]}");
  if (!response.segments.empty()) {
    response.type = http::content_type::kBinary;
    response.json_length = response.text_bytes();
  }
}

}  // namespace sconce::server::codecs
