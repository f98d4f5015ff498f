#include "server/scheduling/decoding/loop_plan.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/errors.h"
#include "tests/server/spec_builder.h"

namespace sconce::server::scheduling {
namespace {

using Dims = std::vector<Dim>;

Dim rows() { return variable_dim("s0", 2, 8); }

// Token, position and cache to logits and the next cache.
ModelSignature explicit_model() {
  return ModelSignature("m", 1,
                        model_spec({tensor_spec("t", DType::kInt64, Dims{rows(), fixed_dim(1)}),
                                    tensor_spec("p", DType::kInt32, Dims{rows()}),
                                    tensor_spec("c", DType::kFloat32, Dims{rows(), fixed_dim(4), fixed_dim(3)})},
                                   {tensor_spec("l", DType::kFloat32, Dims{rows(), fixed_dim(1), fixed_dim(9)}),
                                    tensor_spec("n", DType::kFloat32, Dims{rows(), fixed_dim(4), fixed_dim(3)})}));
}
ModelSignature prefix_model() {
  return ModelSignature(
      "m", 1,
      model_spec({tensor_spec("t", DType::kInt32, Dims{fixed_dim(1), variable_dim("s1", 3, 16)})},
                 {tensor_spec("l", DType::kBFloat16, Dims{fixed_dim(1), variable_dim("s1", 3, 16), fixed_dim(9)})}));
}

const std::string kLoop = R"({"token": {"input": "INPUT__0", "output": "OUTPUT__0"}, "feed": {"OUTPUT__1": "INPUT__2"},
  "count": {"input": "INPUT__1", "from": 1, "below": 5}, "stop": {"tokens": [0, 7], "steps": 20, "deadline": "250ms"},
  "pick": {"temperature": 0.5, "top_k": 3, "top_p": 0.9}})";

LoopPlan plan(const std::string& text, const ModelSignature& model, bool sequences = false) {
  return plan_loop(read_loop(text, "loop.json"), model, sequences);
}
std::string refusal(const std::string& text, const ModelSignature& model = explicit_model()) {
  const std::string message = error_from([&] { plan(text, model); });
  CHECK(message.ends_with(" [loop.json]"));
  return message;
}
std::string with(std::string text, const std::string& part, const std::string& other) {
  const size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  return text.replace(at, part.size(), other);
}
bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("loop plan: explicit state") {
  const LoopPlan made = plan(kLoop, explicit_model());
  CHECK(made.token_input == 0);
  CHECK(made.logits_output == 0);
  CHECK(made.most_tokens == 1);
  REQUIRE(made.feeds.size() == 1);
  CHECK(made.feeds[0].shape == std::vector<int64_t>{1, 4, 3});
  REQUIRE(made.count);
  CHECK(made.count->dtype == DType::kInt32);
  CHECK_FALSE(made.count->each);
  CHECK(made.given.empty());
  CHECK(made.stop_tokens == std::vector<int64_t>{0, 7});
  CHECK(made.deadline == std::chrono::milliseconds(250));
  CHECK(made.pick.top_k == 3);
  // Positions 1 to 4: a prompt of two leaves room for three tokens, the last of which is given to no step.
  CHECK(made.room_after(2) == 3);
  CHECK(made.room_after(5) == 0);
  CHECK_FALSE(made.sequence);
}

TEST_CASE("loop plan: the whole prefix") {
  const std::string loop =
      R"({"token": {"input": "INPUT__0", "output": "OUTPUT__0", "prefix": true}, "stop": {"steps": 9}})";
  const LoopPlan made = plan(loop, prefix_model());
  CHECK(made.prefix);
  CHECK(made.least_tokens == 3);
  CHECK(made.room_after(3) == 14);
  CHECK(made.most_token() == INT32_MAX);
  CHECK(has(refusal(with(loop, ", \"prefix\": true", ""), prefix_model()), "takes 3 tokens or more"));
  CHECK(has(refusal(with(kLoop, "\"OUTPUT__0\"}", "\"OUTPUT__0\", \"prefix\": true}")), "takes only 1 tokens"));
}

TEST_CASE("loop plan: inputs that the request brings") {
  CHECK(plan(with(kLoop, ", \"feed\": {\"OUTPUT__1\": \"INPUT__2\"}", ""), explicit_model()).given ==
        std::vector<size_t>{2});
}

TEST_CASE("loop plan: state in buffers") {
  ModelSignature model = prefix_model();
  model.mutates_constants = true;
  const std::string loop =
      R"({"token": {"input": "INPUT__0", "output": "OUTPUT__0", "prefix": true}, "stop": {"steps": 9}})";
  CHECK(has(refusal(loop, model), "setting sequences"));
  CHECK(plan(loop, model, true).sequence);
}

TEST_CASE("loop plan: on a device") {
  const LoopPlan host = plan(kLoop, explicit_model());
  CHECK((!host.on_device && !host.feeds_stay));
  ModelSignature model = explicit_model();
  model.spec.device_key = "cuda";
  const LoopPlan there = plan(kLoop, model);
  CHECK((there.on_device && there.feeds_stay));
  model.mutates_constants = true;  // its outputs may be buffers that the next run writes
  const LoopPlan writes = plan(kLoop, model, true);
  CHECK((writes.on_device && !writes.feeds_stay));
}

// Token, position and a number that the request brings to logits, with a buffer of eight rows.
ModelSignature row_model(Dims token, Dims position, Dims brought, std::vector<int64_t> buffer = {8, 3}) {
  ModelSpec spec = model_spec(
      {tensor_spec("t", DType::kInt64, std::move(token)), tensor_spec("p", DType::kInt32, std::move(position)),
       tensor_spec("g", DType::kFloat32, std::move(brought))},
      {tensor_spec("l", DType::kFloat32, Dims{fixed_dim(8), fixed_dim(1), fixed_dim(9)})});
  ConstantSpec written;
  written.name = written.fqn = "cache";
  written.shape = std::move(buffer);
  written.mutated = true;
  spec.constants = {written};
  return ModelSignature("m", 1, std::move(spec));
}

TEST_CASE("loop plan: a row of the buffers for each loop") {
  const std::string loop = R"({"token": {"input": "INPUT__0", "output": "OUTPUT__0"},
    "count": {"input": "INPUT__1", "from": 1, "below": 5}, "stop": {"steps": 20}})";
  const Dim eight = fixed_dim(8), one = fixed_dim(1), any = variable_dim("s1", 1, 8);
  const LoopPlan made = plan(loop, row_model({eight, one}, {eight}, {eight, fixed_dim(2)}), true);
  CHECK(made.rows == 8);
  CHECK(made.row_inputs == std::vector<std::vector<int64_t>>{{8, 1}, {8}, {8, 2}});
  CHECK(made.given == std::vector<size_t>{2});
  CHECK(made.most_tokens == 1);
  CHECK(made.idle_steps == 4);
  CHECK(made.tokens_below == 9);
  CHECK(
      plan(with(loop, "\"OUTPUT__0\"", "\"OUTPUT__0\", \"below\": 7"), row_model({eight, one}, {eight}, {eight}), true)
          .tokens_below == 7);
  CHECK(plan(loop, row_model({eight}, {eight, one}, {eight}), true).row_inputs[0] == std::vector<int64_t>{8});
  // More than one token would fit, and positions for them.
  CHECK(plan(loop, row_model({eight, any}, {eight, any}, {eight}), true).row_inputs[1] == std::vector<int64_t>{8, 1});
  // A variable first dimension says nothing of rows, unless the file does.
  const ModelSignature variable = row_model({any, one}, {any, one}, {any});
  CHECK(plan(loop, variable, true).rows == 0);
  const std::string eight_rows = with(loop, "\"stop\"", "\"rows\": 8, \"stop\"");
  CHECK(plan(eight_rows, variable, true).rows == 8);

  const auto refused = [](const std::string& text, const ModelSignature& model) {
    return error_from([&] { plan(text, model, true); });
  };
  CHECK(
      has(refused(loop, row_model({eight, one}, {eight}, {eight}, {2, 8})), "buffer 'cache', which the model writes"));
  CHECK(
      has(refused(loop, row_model({eight, one}, {one}, {eight})), "input 'ARGS[1]' does not take a row for each of 8"));
  CHECK(has(refused(loop, row_model({eight, one}, {}, {eight})), "its first dimension must be 8"));
  CHECK(has(refused(loop, row_model({eight, one}, {eight}, {one})), "input 'ARGS[2]' does not take a row"));
  CHECK(
      has(refused(loop, row_model({eight, one}, {eight}, {eight, any})), "dimension 1 of input 'ARGS[2]' is variable"));
  CHECK(has(refused(loop, row_model({eight, fixed_dim(2)}, {eight}, {eight})), "takes 2 tokens or more"));
  CHECK(has(refused(with(loop, "\"stop\"", "\"feed\": {\"OUTPUT__0\": \"INPUT__2\"}, \"stop\""),
                    row_model({eight, one}, {eight}, {eight, one, fixed_dim(9)})),
            "'feed' does not go together with rows"));
  CHECK(has(refused(eight_rows, row_model({fixed_dim(4), one}, {eight}, {eight})), "does not take 8 rows"));
  CHECK(has(refused(with(kLoop, "\"stop\"", "\"rows\": 8, \"stop\""), explicit_model()), "writes none"));
  CHECK(has(refused(with(loop, "\"stop\"", "\"rows\": 5000, \"stop\""), variable), "'rows' must be 2 to 4096"));
}

TEST_CASE("loop plan: what does not fit the model") {
  CHECK(has(refusal(with(kLoop, "\"input\": \"INPUT__0\"", "\"input\": \"words\"")), "no input 'words'"));
  CHECK(has(refusal(with(kLoop, "\"output\": \"OUTPUT__0\"", "\"output\": \"words\"")), "no output 'words'"));
  CHECK(has(refusal(with(kLoop, "\"input\": \"INPUT__0\"", "\"input\": \"INPUT__2\"")), "FP32, not INT64 or INT32"));
  CHECK(has(refusal(with(kLoop, "\"INPUT__2\"}", "\"INPUT__0\"}")), "filled already"));
  CHECK(has(refusal(with(kLoop, "\"INPUT__2\"}", "\"INPUT__1\"}")), "is FP32, input 'INPUT__1' is INT32"));
  CHECK(
      has(refusal(with(kLoop, "\"OUTPUT__1\": \"INPUT__2\"", "\"OUTPUT__0\": \"INPUT__2\"")), "has 1 in dimension 1"));
  CHECK(has(refusal(with(kLoop, "\"input\": \"INPUT__1\"", "\"input\": \"INPUT__2\"")), "filled already"));
  CHECK(has(refusal(with(kLoop, "\"INPUT__2\"", R"({"input": "INPUT__2", "shape": [1, 4]})")), "has 2 sizes"));
  CHECK(has(refusal(with(kLoop, "\"INPUT__2\"", R"({"input": "INPUT__2", "shape": [1, 5, 3]})")), "does not take 5"));
  CHECK(has(refusal(with(kLoop, "[0, 7]", "[9223372036854775808]")), "out of range"));
}

TEST_CASE("loop file: hostile ones") {
  const auto bad = [](const std::string& text, const std::string& part) { CHECK(has(refusal(text), part)); };
  bad("", "");
  bad("[]", "");
  bad("{", "");
  bad("{}", "no 'token'");
  bad(with(kLoop, "\"feed\"", "\"fed\""), "unknown member 'fed'");
  bad(with(kLoop, "\"from\"", "\"form\""), "unknown member 'form' of 'count'");
  bad(with(kLoop, "\"top_k\"", "\"topk\""), "unknown member 'topk' of 'pick'");
  bad(with(kLoop, "\"steps\"", "\"step\""), "unknown member 'step' of 'stop'");
  bad(with(kLoop, "\"pick\"", "\"stop\": {\"steps\": 1}, \"pick\""), "'stop' is there twice");
  bad(with(kLoop, "\"steps\": 20, ", ""), "'steps' of 'stop'");
  bad(with(kLoop, "\"steps\": 20", "\"steps\": 0"), "'steps' of 'stop'");
  bad(with(kLoop, "\"steps\": 20", "\"steps\": 100000000"), "'steps' of 'stop'");
  bad(with(kLoop, "\"steps\": 20", "\"steps\": -1"), "'steps'");
  bad(with(kLoop, "250ms", "soon"), "'deadline' of 'stop' must be a duration");
  bad(with(kLoop, "0.5", "-1"), "'temperature'");
  bad(with(kLoop, "0.5", "NaN"), "'temperature'");
  bad(with(kLoop, "0.9", "0"), "'top_p'");
  bad(with(kLoop, "\"below\": 5", "\"below\": 1"), "'below'");
  bad(kLoop + "x", "");
}

}  // namespace sconce::server::scheduling
