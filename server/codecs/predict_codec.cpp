#include "server/codecs/predict_codec.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "sconce/check.h"
#include "server/scheduling/signature/recorded_strides.h"
#include "server/support/json/tensor_json.h"
#include "server/support/json/tensor_list.h"
#include "server/support/json_cursor.h"
#include "src/support/excerpt.h"

namespace sconce::server::codecs {
namespace {

class PredictDecoder {
 public:
  PredictDecoder(const scheduling::ModelSignature& model, const BodyBuffer& body, TensorScratch& scratch,
                 InferRequest& request)
      : model_(model),
        scratch_(scratch),
        request_(request),
        json_({reinterpret_cast<const char*>(body.begin()), body.size()}),
        at_(model.inputs.size()) {}

  void run() {
    request_.inputs.resize(model_.inputs.size());
    bool instances = false;
    json_.members("the request", [&](std::string_view key) {
      if (key == "instances" || key == "inputs") {
        SCONCE_CHECK(!instances && !request_.columns, kInvalidArgument, "request has '", key,
                     "' and 'instances' or 'inputs' besides");
        (key == "inputs" ? request_.columns : instances) = true;
        json_.peek();
        find_values(key);
      } else if (key == "signature_name") {
        const std::string_view name = json_.string("'signature_name'");
        SCONCE_CHECK(name == "serving_default" || name.empty(), kInvalidArgument, "unknown signature: '", excerpt(name),
                     "', a package has one, serving_default");
      } else if (key == "parameters") {
        json_.members("'parameters'", [&](std::string_view name) {
          if (!read_schedule_parameter(json_, name, request_.schedule)) skip_parameter(json_, name);
        });
      } else {
        json_.skip();
      }
    });
    json_.finish();
    SCONCE_CHECK(instances || request_.columns, kInvalidArgument, "request has neither 'instances' nor 'inputs'");
    for (size_t i = 0; i < at_.size(); ++i) {
      if (no_instances_)
        make_empty(i);
      else if (!at_[i].empty())
        read_input(i);
    }
    check_inputs_complete(model_, request_);
    if (model_.max_batch_size > 0 && request_.inputs[0].dim() > 0) request_.rows = request_.inputs[0].size(0);
  }

 private:
  // Records the positions of each input's values and skips them.
  void find_values(std::string_view key) {
    if (request_.columns) {
      if (json_.peek() == '{') return find_named();
      return find_unnamed("'inputs'");
    }
    if (json_.peek() != '[') json_.fail_expected("'instances'", "an array");
    const size_t start = json_.offset();
    json_.array("'instances'", [&](size_t row) {
      if (json_.peek() == '{') {
        SCONCE_CHECK(!stacked_whole_, kInvalidArgument, "'", key, "' has values and objects");
        find_named();
        for (size_t i = 0; i < at_.size(); ++i) {
          SCONCE_CHECK(at_[i].size() == row + 1, kInvalidArgument, "instance ", row, " has no input '",
                       model_.input_names.name(i), "'");
        }
      } else {
        SCONCE_CHECK(row == 0 || stacked_whole_, kInvalidArgument, "'", key, "' has values and objects");
        stacked_whole_ = true;
        json_.skip_unchecked();
      }
    });
    if (!at_.empty() && at_[0].empty() && !stacked_whole_ && has_rows()) {
      no_instances_ = true;
      return;
    }
    if (!at_.empty() && at_[0].empty()) {
      // The tensor is the list of values, which may be empty.
      const size_t end = json_.offset();
      json_.seek(start);
      find_unnamed("'instances'");
      stacked_whole_ = true;
      json_.seek(end);
    }
  }

  // Whether each input has a row for each instance, so that there may be no instances.
  bool has_rows() const noexcept {
    return model_.max_batch_size > 0 && std::all_of(model_.inputs.begin(), model_.inputs.end(), [](const auto& input) {
             return input.shape_known && input.dtype && !input.shape.empty();
           });
  }

  void find_unnamed(std::string_view what) {
    SCONCE_CHECK(at_.size() == 1, kInvalidArgument, what, " must be by name, model '", model_.name, "' has ",
                 at_.size(), " inputs: ", model_.input_names.list());
    at_[0].push_back(json_.offset());
    json_.skip_unchecked();
  }

  void find_named() {
    json_.object("the inputs", [&](std::string_view name) {
      const std::optional<size_t> index = model_.input_names.find(name);
      SCONCE_CHECK(index, kInvalidArgument, "unexpected inference input '", excerpt(name), "' for model '", model_.name,
                   "', inputs are ", model_.input_names.list());
      json_.peek();
      at_[*index].push_back(json_.offset());
      json_.skip_unchecked();
    });
  }

  void read_input(size_t index) {
    const std::string what = "input '" + model_.input_names.name(index) + "'";
    const std::optional<DType> dtype = model_.inputs[index].dtype;
    SCONCE_CHECK(dtype, kInvalidArgument, what, ": the package does not record the dtype, use the route infer");
    SCONCE_CHECK(has_json_form(*dtype), kInvalidArgument, what, ": ", dtype_name(*dtype), " has no JSON form");
    const bool rows = !request_.columns && !stacked_whole_;
    SCONCE_CHECK(rows || at_[index].size() == 1, kInvalidArgument, what, " is given twice");
    TensorList list(*dtype, scratch_);
    json_.set_context(what);
    for (const size_t at : at_[index]) {
      json_.seek(at);
      list.add(json_, what);
    }
    json_.set_context({});
    request_.inputs[index] = scheduling::in_recorded_strides(rows ? list.stacked(what) : list.single(what),
                                                             model_.spec.inputs[index], scratch_);
  }

  // Makes the input for zero instances.
  void make_empty(size_t index) {
    const scheduling::TensorInterface& input = model_.inputs[index];
    std::vector<int64_t> sizes(input.shape.begin(), input.shape.end());
    for (int64_t& size : sizes) size = std::max<int64_t>(size, 1);
    sizes[0] = 0;
    request_.inputs[index] = scratch_.tensor(sizes, *input.dtype);
  }

  const scheduling::ModelSignature& model_;
  TensorScratch& scratch_;
  InferRequest& request_;
  JsonCursor json_;
  std::vector<std::vector<size_t>> at_;  // for each input, the positions of the values of each row
  bool stacked_whole_ = false;           // 'instances' is the list of the only input
  bool no_instances_ = false;            // 'instances' is an empty list
};

Tensor row_of(const Tensor& tensor, int64_t row) {
  return tensor.view_as(tensor.dtype(), tensor.sizes().subspan(1), tensor.strides().subspan(1),
                        tensor.storage_offset() + row * tensor.strides()[0]);
}

}  // namespace

void decode_predict(const scheduling::ModelSignature& model, const BodyBuffer& body, TensorScratch& scratch,
                    InferRequest& request) {
  PredictDecoder(model, body, scratch, request).run();
}

void encode_predict(const scheduling::ModelSignature& model, const InferRequest& request,
                    std::span<const Tensor> outputs, http::Response& response) {
  TextBuffer& text = response.text();
  std::vector<size_t> defined;  // the others are None
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined()) continue;
    check_output(outputs[i]);
    defined.push_back(i);
  }
  text.append(request.columns ? "{\"outputs\":" : "{\"predictions\":");
  const auto named = [&](auto&& tensor_of) {
    char separator = '{';
    for (const size_t i : defined) {
      text.append(separator);
      text.append(model.output_names.json(i));
      text.append(':');
      write_nested(text, tensor_of(i));
      separator = ',';
    }
    text.append(defined.empty() ? "{}" : "}");
  };
  if (defined.size() == 1) {
    write_nested(text, outputs[defined[0]]);
  } else if (request.columns) {
    named([&](size_t i) -> const Tensor& { return outputs[i]; });
  } else {
    const int64_t rows = request.inputs.empty() || request.inputs[0].dim() == 0 ? 0 : request.inputs[0].size(0);
    for (const size_t i : defined) {
      SCONCE_CHECK(outputs[i].dim() > 0 && outputs[i].size(0) == rows, kInvalidArgument, "output '",
                   model.output_names.name(i), "' has no row for each instance: use the form \"inputs\", shape is ",
                   to_string(outputs[i].sizes()));
    }
    text.append('[');
    for (int64_t row = 0; row < rows; ++row) {
      if (row != 0) text.append(',');
      named([&](size_t i) { return row_of(outputs[i], row); });
    }
    text.append(']');
  }
  text.append('}');
}

}  // namespace sconce::server::codecs
