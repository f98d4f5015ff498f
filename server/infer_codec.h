// Open Inference Protocol v2's inference request and answer, JSON and binary tensor extension. Matches Triton 24.10,
// but for what it gets wrong: integers are exact, sizes are checked without overflow, bad input is always 400.
//
// Tensors of a request are views of its body where alignment and strides permit, else copies in the scratch. Confined
// to the connection's thread. Errors are kInvalidArgument and name the tensor.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "server/interface.h"
#include "server/request_memory.h"
#include "server/response.h"

namespace sconce {

// What a request says about its turn.
struct SchedulePolicy {
  uint64_t priority = 0;                 // 0: the model's default, 1: the highest
  std::chrono::microseconds timeout{0};  // in the queue; 0: the model's default
};

struct InferRequest {
  struct Output {
    size_t index;
    std::string_view json_name;  // as asked for, a JSON string; views the body
    bool binary;
  };
  std::string_view json_id;     // a JSON string; empty: none
  std::vector<Output> outputs;  // in the order of the answer
  std::vector<Tensor> inputs;   // in the model's order, in the strides that it wants
  int64_t rows = 1;             // batch size, where the model has a batch dimension
  SchedulePolicy schedule;

  void clear() noexcept {
    json_id = {};
    outputs.clear();
    inputs.clear();
    rows = 1;
    schedule = {};
  }
};

// json_length: the Inference-Header-Content-Length field, if sent.
void decode_infer(const ModelInterface& model, const BodyBuffer& body, std::optional<uint64_t> json_length,
                  TensorScratch& scratch, InferRequest& request);

// weight_version: of the weights that answered, printable ASCII. Tensors that are asked for in binary are sent from
// where they are: outputs live until the answer is sent.
void encode_infer(const ModelInterface& model, const InferRequest& request, std::string_view weight_version,
                  std::span<const Tensor> outputs, TensorScratch& scratch, Response& response);

// A contiguous tensor in the strides that the package recorded for the input: itself, or a copy.
Tensor in_recorded_strides(Tensor tensor, const TensorSpec& spec, TensorScratch& scratch);

}  // namespace sconce
