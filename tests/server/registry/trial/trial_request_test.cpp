#include "server/registry/trial/trial_request.h"

#include <doctest/doctest.h>

#include "tests/errors.h"

namespace sconce::server::registry {

TEST_CASE("trial request: what is written is what is read") {
  TrialRequest request;
  request.model = "a \"model\"";
  request.threads = 3;
  request.op_libraries = {"/a.so", "/b.so"};
  request.check_inputs = false;
  request.warm_up = request.outputs = true;
  request.weights = "/w.safetensors";
  request.weights_ignore = {"x"};
  request.rows = {.max_batch_size = 7, .preferred = {2, 4}};
  request.inputs = {.seed = UINT64_MAX, .sizes = {"s0=3"}};
  const TrialRequest read = trial_request(to_text(request));
  CHECK(read.model == request.model);
  CHECK(read.threads == 3);
  CHECK(read.op_libraries == request.op_libraries);
  CHECK_FALSE(read.check_inputs);
  CHECK(read.warm_up);
  CHECK(read.outputs);
  CHECK(read.weights == request.weights);
  CHECK(read.weights_ignore == request.weights_ignore);
  REQUIRE(read.rows);
  CHECK(read.rows->max_batch_size == 7);
  CHECK(read.rows->preferred == std::vector<int64_t>{2, 4});
  REQUIRE(read.inputs);
  CHECK(read.inputs->seed == UINT64_MAX);
  CHECK(read.inputs->sizes == std::vector<std::string>{"s0=3"});

  const TrialRequest empty = trial_request(to_text({}));
  CHECK_FALSE(empty.warm_up);
  CHECK_FALSE(empty.rows);
  CHECK_FALSE(empty.inputs);
  CHECK(code_of([] { trial_request("[]"); }) == ErrorCode::kInvalidArgument);
}

}  // namespace sconce::server::registry
