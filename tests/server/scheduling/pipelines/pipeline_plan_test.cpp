#include "server/scheduling/pipelines/pipeline_plan.h"

#include <doctest/doctest.h>

#include <deque>

#include "tests/errors.h"
#include "tests/server/spec_builder.h"

namespace sconce::server::scheduling {
namespace {

using Dims = std::vector<Dim>;

ModelSignature model(std::vector<TensorSpec> inputs, std::vector<TensorSpec> outputs) {
  return ModelSignature("m", 1, model_spec(std::move(inputs), std::move(outputs)));
}
TensorSpec rows(DType dtype, int64_t columns, int64_t most = 8, std::string symbol = "s0") {
  return tensor_spec("t", dtype, Dims{variable_dim(std::move(symbol), 2, most), fixed_dim(columns)});
}
// Rows of `in` numbers to rows of `out`.
ModelSignature layer(int64_t in, int64_t out, int64_t most = 8) {
  return model({rows(DType::kFloat32, in, most)}, {rows(DType::kFloat32, out, most)});
}

PipelinePlan plan(const std::string& text, const std::vector<ModelSignature>& models) {
  std::vector<const ModelSignature*> members;
  for (const ModelSignature& one : models) members.push_back(&one);
  return plan_pipeline(read_pipeline(text, "p.pipeline.json"), "p", 3, members);
}
std::string refusal(const std::string& text, const std::vector<ModelSignature>& models) {
  std::string message = error_from([&] { plan(text, models); });
  const std::string end = " [p.pipeline.json]";
  CHECK(message.ends_with(end));
  return message.substr(0, message.size() - std::min(message.size(), end.size()));
}

const std::string kTwo = R"({"inputs": ["x"], "outputs": ["y"], "steps": [
  {"model": "a", "inputs": {"ARGS[0]": "x"}, "outputs": {"RESULT": "mid"}},
  {"model": "b", "inputs": {"INPUT__0": "mid"}, "outputs": {"OUTPUT__0": "y"}}]})";

}  // namespace

TEST_CASE("pipeline plan: two steps") {
  const PipelinePlan made = plan(kTwo, {layer(4, 3, 8), layer(3, 2, 6)});
  CHECK(made.values == 3);
  CHECK(made.outputs == std::vector<size_t>{2});
  REQUIRE(made.steps.size() == 2);
  CHECK(made.steps[0].needs == 0);
  CHECK(made.steps[0].next == std::vector<size_t>{1});
  CHECK(made.steps[1].needs == 1);
  CHECK(made.steps[1].inputs[0].value == 1);
  const ModelSignature& whole = made.interface;
  CHECK(whole.name == "p");
  CHECK(whole.version == 3);
  CHECK(whole.pipeline);
  CHECK(whole.input_names.name(0) == "x");
  CHECK(whole.input_names.find("KWARGS[x]") == 0);
  CHECK(whole.output_names.name(0) == "y");
  CHECK(whole.inputs[0].shape == std::vector<int64_t>{-1, 4});
  CHECK(whole.outputs[0].shape == std::vector<int64_t>{-1, 2});
  CHECK(whole.inputs[0].datatype == "FP32");
  CHECK(whole.max_batch_size == 6);  // the least of all steps
}

TEST_CASE("pipeline plan: branches that come together, an output for two readers and for the client") {
  const ModelSignature sum = model({rows(DType::kFloat32, 3), rows(DType::kFloat32, 3)}, {rows(DType::kFloat32, 1)});
  const PipelinePlan made = plan(R"({"inputs": ["x"], "outputs": ["z", "f"], "steps": [
    {"model": "sum", "inputs": {"ARGS[0]": "l", "ARGS[1]": "r"}, "outputs": {"RESULT": "z"}},
    {"model": "left", "inputs": {"ARGS[0]": "f"}, "outputs": {"RESULT": "l"}},
    {"model": "right", "inputs": {"ARGS[0]": "f"}, "outputs": {"RESULT": "r"}},
    {"model": "first", "inputs": {"ARGS[0]": "x"}, "outputs": {"RESULT": "f"}}]})",
                                 {sum, layer(2, 3), layer(2, 3), layer(4, 2)});
  CHECK(made.steps[3].next == std::vector<size_t>{1, 2});
  CHECK(made.steps[0].needs == 2);
  CHECK(made.steps[1].needs == 1);
  CHECK(made.interface.outputs.size() == 2);
  CHECK(made.interface.max_batch_size == 8);
}

TEST_CASE("pipeline plan: casts") {
  const ModelSignature half = model({rows(DType::kFloat16, 3)}, {rows(DType::kFloat16, 2)});
  const auto with = [](const std::string& cast) {
    return R"({"inputs": [{"name": "x", "datatype": "FP32"}], "outputs": ["y"], "steps": [
      {"model": "a", "inputs": {"ARGS[0]": "x"}, "outputs": {"RESULT": "mid"}},
      {"model": "b", "inputs": {"ARGS[0]": )" +
           cast + R"(}, "outputs": {"RESULT": "y"}}]})";
  };
  const PipelinePlan made = plan(with(R"({"tensor": "mid", "cast": "FP16"})"), {layer(4, 3), half});
  CHECK(made.steps[1].inputs[0].cast == DType::kFloat16);
  CHECK(made.interface.outputs[0].datatype == "FP16");
  CHECK(refusal(with(R"("mid")"), {layer(4, 3), half}) ==
        "step 2 (model 'b'): input 'ARGS[0]', tensor 'mid': it is float32, the model takes float16 (\"cast\" converts "
        "it)");
  CHECK(refusal(with(R"({"tensor": "mid", "cast": "INT8"})"), {layer(4, 3), half}) ==
        "step 2 (model 'b'): input 'ARGS[0]', tensor 'mid': the cast makes it int8, the model takes float16");
  // A cast to the same dtype is no work.
  CHECK(!plan(with(R"({"tensor": "mid", "cast": "FP32"})"), {layer(4, 3), layer(3, 2)}).steps[1].inputs[0].cast);
  const ModelSignature complex = model({rows(DType::kFloat32, 4)}, {rows(DType::kComplex64, 3)});
  CHECK(refusal(with(R"({"tensor": "mid", "cast": "FP32"})"), {complex, layer(3, 2)}) ==
        "step 2 (model 'b'): input 'ARGS[0]', tensor 'mid': there is no cast from complex64 to float32");
}

TEST_CASE("pipeline plan: sizes that no size suits") {
  CHECK(refusal(kTwo, {layer(4, 3), layer(5, 2)}) ==
        "step 2 (model 'b'): input 'INPUT__0', tensor 'mid': it is [-1, 3], the model takes [-1, 5]: no size of "
        "dimension 1 suits all steps; before this one it was 3 to 3");
  const ModelSignature flat =
      model({tensor_spec("t", DType::kFloat32, {fixed_dim(3)})}, {tensor_spec("t", DType::kFloat32, {fixed_dim(3)})});
  CHECK(refusal(kTwo, {layer(4, 3), flat}) ==
        "step 2 (model 'b'): input 'INPUT__0', tensor 'mid': it is [-1, 3], the model takes [3]");
  // The ranges of the batch do not meet.
  const TensorSpec large = tensor_spec("t", DType::kFloat32, {variable_dim("s0", 16, 32), fixed_dim(3)});
  CHECK(contains(refusal(kTwo, {layer(4, 3, 8), model({large}, {large})}), "no size of dimension 0 suits all steps"));
  // A step for one row leaves no batch.
  const TensorSpec one = tensor_spec("t", DType::kFloat32, {fixed_dim(1), fixed_dim(3)});
  const PipelinePlan made = plan(kTwo, {layer(4, 3), model({one}, {one})});
  CHECK(made.interface.max_batch_size == 0);
  CHECK(made.interface.inputs[0].shape == std::vector<int64_t>{1, 4});
}

TEST_CASE("pipeline plan: declared inputs and outputs are compared with the models") {
  const auto with = [](const std::string& x, const std::string& y) {
    return R"({"inputs": [)" + x + R"(], "outputs": [)" + y + R"(], "steps": [
      {"model": "a", "inputs": {"ARGS[0]": "x"}, "outputs": {"RESULT": "y"}}]})";
  };
  CHECK_NOTHROW(
      plan(with(R"({"name": "x", "datatype": "FP32", "shape": [-1, 4]})", R"({"name": "y", "shape": [8, 3]})"),
           {layer(4, 3)}));
  CHECK(refusal(with(R"({"name": "x", "datatype": "FP64"})", "\"y\""), {layer(4, 3)}) ==
        "step 1 (model 'a'): input 'ARGS[0]', tensor 'x': it is float64, the model takes float32 (\"cast\" converts "
        "it)");
  CHECK(refusal(with("\"x\"", R"({"name": "y", "datatype": "FP64"})"), {layer(4, 3)}) ==
        "output 'y' is float32, not float64");
  CHECK(refusal(with("\"x\"", R"({"name": "y", "shape": [-1, 4]})"), {layer(4, 3)}) ==
        "output 'y' is [-1, 3], not [-1, 4]");
  CHECK(refusal(with(R"({"name": "x", "shape": [-1]})", "\"y\""), {layer(4, 3)}) == "input 'x' is [-1, 4], not [-1]");
}

TEST_CASE("pipeline plan: names that are wrong") {
  const auto with = [](const std::string& steps, const std::string& inputs = "\"x\"") {
    return R"({"inputs": [)" + inputs + R"(], "outputs": ["y"], "steps": [)" + steps + "]}";
  };
  const std::string good = R"({"model": "a", "inputs": {"ARGS[0]": "x"}, "outputs": {"RESULT": "y"}})";
  CHECK(refusal(with(R"({"model": "a", "inputs": {"x": "x"}, "outputs": {"RESULT": "y"}})"), {layer(4, 3)}) ==
        "step 1 (model 'a'): the model has no input 'x'; it has 'ARGS[0]'");
  CHECK(refusal(with(R"({"model": "a", "inputs": {"ARGS[0]": "x"}, "outputs": {"y": "y"}})"), {layer(4, 3)}) ==
        "step 1 (model 'a'): the model has no output 'y'; it has 'RESULT'");
  CHECK(refusal(with(R"({"model": "a", "inputs": {"ARGS[0]": "z"}, "outputs": {"RESULT": "y"}})"), {layer(4, 3)}) ==
        "step 1 (model 'a'): input 'ARGS[0]' is tensor 'z', which is no input of the pipeline and no step's output");
  CHECK(refusal(with(R"({"model": "a", "inputs": {}, "outputs": {"RESULT": "y"}})"), {layer(4, 3)}) ==
        "step 1 (model 'a'): the model's input 'ARGS[0]' gets no tensor");
  CHECK(refusal(with(R"({"model": "a", "inputs": {"ARGS[0]": "x", "INPUT__0": "x"}, "outputs": {"RESULT": "y"}})"),
                {layer(4, 3)}) == "step 1 (model 'a'): input 'INPUT__0' is named twice");
  CHECK(refusal(with(R"({"model": "a", "inputs": {"ARGS[0]": "x"}, "outputs": {"RESULT": "x"}})"), {layer(4, 3)}) ==
        "step 1 (model 'a'): tensor 'x' is an input already");
  CHECK(refusal(with(good + "," + good), {layer(4, 3), layer(4, 3)}) ==
        "step 2 (model 'a'): tensor 'y' is an output of step 1 (model 'a') already");
  CHECK(refusal(with(good, "\"x\", \"w\""), {layer(4, 3)}) == "input 'w': nobody needs it");
  CHECK(refusal(with(R"({"model": "a", "inputs": {"ARGS[0]": "x"}, "outputs": {"RESULT": "q"}})"), {layer(4, 3)}) ==
        "output 'y': no step makes this tensor");
  CHECK(refusal(with(good + R"(,{"model": "b", "inputs": {"ARGS[0]": "y"}, "outputs": {"RESULT": "q"}})"),
                {layer(4, 3), layer(3, 3)}) == "tensor 'q': nobody needs it");
}

TEST_CASE("pipeline plan: steps in a circle") {
  const std::string circle = R"({"inputs": ["x"], "outputs": ["y"], "steps": [
    {"model": "a", "inputs": {"ARGS[0]": "x", "ARGS[1]": "c"}, "outputs": {"RESULT": "b"}},
    {"model": "b", "inputs": {"ARGS[0]": "b"}, "outputs": {"RESULT": "c"}},
    {"model": "c", "inputs": {"ARGS[0]": "c"}, "outputs": {"RESULT": "y"}}]})";
  const ModelSignature two = model({rows(DType::kFloat32, 3), rows(DType::kFloat32, 3)}, {rows(DType::kFloat32, 3)});
  CHECK(refusal(circle, {two, layer(3, 3), layer(3, 3)}) == "step 1 (model 'a'): its inputs depend on its own outputs");
}

TEST_CASE("pipeline file: what is malformed is refused") {
  const auto refused = [](const std::string& text) { return error_from([&] { read_pipeline(text, "p.json"); }); };
  const auto with = [](const std::string& step) {
    return R"({"inputs": ["x"], "outputs": ["y"], "steps": [)" + step + "]}";
  };
  CHECK(refused("{}") == "it has no inputs [p.json]");
  CHECK(refused(R"({"inputs": ["x"], "outputs": ["y"], "steps": []})") == "it has no steps [p.json]");
  CHECK(refused(R"({"stages": []})") == "unknown member 'stages' of the pipeline [p.json]");
  CHECK(refused(with(R"({"model": "../x"})")) == "step 1: not a model's name: '../x' [p.json]");
  CHECK(refused(with(R"({"model": "a", "input": {}})")) == "unknown member 'input' of a step [p.json]");
  CHECK(refused(with(R"({"model": "a", "inputs": {"A": {"tensor": "x", "cast": "FLOAT"}}})")) ==
        "unknown datatype 'FLOAT' [p.json]");
  CHECK(refused(R"({"inputs": [{"name": "x", "shape": [1.5]}]})") ==
        "a size in 'shape' must be -1 or a whole number of 0 or more [p.json]");
  CHECK(contains(refused("{\"inputs\": [\"x\""), "[p.json]"));
  CHECK(read_pipeline(with(R"({"model": "a", "version": 2})"), "p").steps[0].version == "2");
  CHECK(read_pipeline(with(R"({"model": "a", "version": "stable"})"), "p").steps[0].version == "stable");
}

}  // namespace sconce::server::scheduling
