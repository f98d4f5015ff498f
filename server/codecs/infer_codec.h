// Inference request and answer of Open Inference Protocol v2, with the JSON and binary tensor extension. Compatible
// with Triton 24.10 except in errors: integers are exact, size checks do not overflow, and invalid input is always 400.
//
// Tensors of a request are views of its body if alignment and strides permit, else copies in the scratch. Used by one
// thread at a time for a request, as Inference is. Errors are kInvalidArgument and name the tensor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/codecs/request_parameters.h"
#include "server/codecs/shared_memory.h"
#include "server/http/response.h"
#include "server/scheduling/decoding/loop_plan.h"
#include "server/scheduling/signature/model_signature.h"
#include "server/support/memory/request_memory.h"

namespace sconce::server::codecs {

struct InferRequest {
  struct Output {
    size_t index;
    std::string_view json_name;  // as in the request, a JSON string; views the body
    bool binary;
    uint64_t classes = 0;  // number of classes (classification extension); 0: the tensor itself
    // Destination of the bytes; null: the answer.
    std::shared_ptr<const SharedRegion> region;
    uint64_t region_offset = 0, region_bytes = 0;
  };
  std::string_view json_id;     // a JSON string; empty: none
  std::vector<Output> outputs;  // in the order of the answer
  std::vector<Tensor> inputs;   // in the model's order and strides
  int64_t rows = 1;             // batch size, if the model has a batch dimension
  bool columns = false;         // :predict only: the request has columns, not rows
  bool device_inputs = false;   // at least one input is on a device
  bool device_outputs = false;  // at least one output goes to device memory
  SchedulePolicy schedule;
  scheduling::SequenceParameters sequence;
  scheduling::LoopRequest loop;  // for a model with a decode loop
  std::string weights;           // the named weight set in the request; empty: none
  std::string context;           // name of an input for errors of the decoder; a member so that its memory is reused

  void clear() noexcept {
    json_id = {};
    outputs.clear();
    inputs.clear();
    rows = 1;
    columns = device_inputs = device_outputs = false;
    schedule = {};
    sequence.clear();
    loop.clear();
    weights.clear();
  }
};

// json_length: the Inference-Header-Content-Length field, if sent. shared_memory: null if not available.
void decode_infer(const scheduling::ModelSignature& model, const BodyBuffer& body, std::optional<uint64_t> json_length,
                  const SharedMemory* shared_memory, TensorScratch& scratch, InferRequest& request);

// weights_name: label or version of the weights that answered, printable ASCII. Binary outputs are sent from their own
// memory, so `outputs` must live until the answer is sent.
void encode_infer(const scheduling::ModelSignature& model, const InferRequest& request, std::string_view weights_name,
                  std::span<const Tensor> outputs, TensorScratch& scratch, http::Response& response);

// Begins an answer: {"id":...,"model_name":"...","model_version":"..."
void append_answer_head(const scheduling::ModelSignature& model, const InferRequest& request, TextBuffer& text);

// The dtype of the elements on the wire: components of complex, bytes of float8 and float4.
DType wire_dtype(DType dtype) noexcept;

// For codecs. kInvalidArgument names the missing inputs.
void check_inputs_complete(const scheduling::ModelSignature& model, const InferRequest& request);
// kUnsupported unless the output is a strided tensor on this host.
void check_output(const Tensor& tensor);

}  // namespace sconce::server::codecs
