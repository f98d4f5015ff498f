// Requests without an encoding to the models of ScriptedService. They own what their request views.
#pragma once

#include <array>
#include <cstdint>

#include "server/codecs/tensor_request.h"

namespace sconce::test {

// To the fake model "m".
struct FakeRequest {
  FakeRequest() {
    request.model = "m";
    request.inputs.push_back({"INPUT__0",
                              "FP32",
                              shape,
                              {},
                              {server::codecs::TensorContents::Kind::kFloat, false, values.data(), values.size()}});
  }
  FakeRequest(const FakeRequest&) = delete;

  std::array<int64_t, 2> shape{1, 4};
  std::array<float, 4> values{1, 2, 3, 4};
  server::codecs::TensorRequest request;
};

// To the decode loop of "loops.explicit".
struct LoopRequestOf {
  explicit LoopRequestOf(uint64_t most_tokens) : parameters{{{"max_tokens", most_tokens}}} {
    using Kind = server::codecs::TensorContents::Kind;
    request.model = "loops.explicit";
    request.parameters = parameters;
    request.inputs.push_back({"INPUT__0", "INT64", shape, {}, {Kind::kInt64, false, prompt.data(), prompt.size()}});
    request.inputs.push_back({"INPUT__1", "INT64", one, {}, {Kind::kInt64, false, &position, 1}});
  }
  LoopRequestOf(const LoopRequestOf&) = delete;

  std::array<server::codecs::RequestParameter, 1> parameters;
  std::array<int64_t, 2> shape{1, 3}, one{1, 1};
  std::array<int64_t, 3> prompt{3, 4, 5};
  int64_t position = 5;
  server::codecs::TensorRequest request;
};

}  // namespace sconce::test
