#include "src/custom_ops/proxy_executor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "sconce/check.h"
#include "src/aoti_abi/guard.h"
#include "src/custom_ops/registry.h"
#include "tests/errors.h"

extern "C" AOTITorchError aoti_torch_proxy_executor_call_function(AOTIProxyExecutorHandle, int, int, int64_t*, int,
                                                                  AtenTensorHandle*);

namespace sconce::custom_ops {
namespace {

// An operator with one argument of each kind. Records its arguments and returns `answer`.
class Recorder final : public Operator {
 public:
  Recorder()
      : Operator(parse_schema(
            "test::record(Tensor x, Tensor[] many, Tensor?[] maybe, Tensor? absent, int n, int[] sizes, SymInt? s, "
            "Scalar number, Scalar real, float f, float[] fs, bool flag, bool[] flags, str text, str[] words, "
            "ScalarType dtype, Layout layout, MemoryFormat format, Device device, *, int extra=7, Tensor? more=None) "
            "-> (Tensor, Tensor[], int)")) {}
  void call(std::span<Value> arguments, std::span<Value> results) const override {
    check_arguments(schema(), arguments);
    seen.assign(arguments.begin(), arguments.end());
    results[0] = arguments[0].tensor();
    results[1] = Value::List{arguments[0].tensor(), Value(Tensor::empty({}, DType::kInt64))};
    results[2] = answer;
  }
  const Value& at(std::string_view name) const { return seen[static_cast<size_t>(schema().argument(name))]; }
  mutable std::vector<Value> seen;
  int64_t answer = 5;
};

constexpr std::string_view kRecord = R"({"nodes": [{"name": "buf0", "node": {"target": "test::record", "inputs": [
  {"name": "x", "arg": {"as_tensor": {"name": "a"}}, "kind": 1},
  {"name": "many", "arg": {"as_tensors": [{"name": "b"}, {"name": "c"}]}},
  {"name": "maybe", "arg": {"as_optional_tensors": [{"as_none": true}, {"as_tensor": {"name": "d"}}]}},
  {"name": "absent", "arg": {"as_none": true}},
  {"name": "n", "arg": {"as_int": 3}}, {"name": "sizes", "arg": {"as_ints": [4, 5]}},
  {"name": "s", "arg": {"as_sym_int": {"as_name": "s0"}}},
  {"name": "number", "arg": {"as_int": 1}}, {"name": "real", "arg": {"as_float": 2.5}},
  {"name": "f", "arg": {"as_float": 0.5}}, {"name": "fs", "arg": {"as_floats": [1.5, 2.0]}},
  {"name": "flag", "arg": {"as_bool": true}}, {"name": "flags", "arg": {"as_bools": [true, false]}},
  {"name": "text", "arg": {"as_string": "hello"}}, {"name": "words", "arg": {"as_strings": ["a", "b"]}},
  {"name": "dtype", "arg": {"as_scalar_type": 13}}, {"name": "layout", "arg": {"as_layout": 7}},
  {"name": "format", "arg": {"as_memory_format": 2}},
  {"name": "device", "arg": {"as_device": {"type": "cuda", "index": 1}}}],
  "outputs": [{"as_tensor": {"name": "o"}}, {"as_tensors": [{"name": "p"}, {"name": "q"}]}, {"as_int": 5}],
  "metadata": {}}}]})";

struct Handles {
  explicit Handles(std::initializer_list<Tensor> tensors) : held(tensors) {
    for (Tensor& tensor : held) handles.push_back(reinterpret_cast<AtenTensorHandle>(&tensor));
  }
  std::vector<Tensor> held;
  std::vector<AtenTensorHandle> handles;
};

Tensor number(float value) {
  Tensor tensor = Tensor::empty({}, DType::kFloat32);
  *tensor.data_as<float>() = value;
  return tensor;
}

std::string one_call(const std::string& target, const std::string& inputs, const std::string& outputs) {
  return R"({"nodes": [{"name": "b", "node": {"target": ")" + target + R"(", "inputs": [)" + inputs +
         R"(], "outputs": [)" + outputs + "]}}]}";
}

}  // namespace

TEST_CASE("proxy executor: arguments of every kind reach the operator, results the handles") {
  const auto recorder = std::make_shared<Recorder>();
  const Registration registration(recorder);
  auto nodes = std::make_shared<const ExternNodes>(ExternNodes::parse(kRecord));
  CHECK(nodes->missing().empty());
  CHECK(nodes->problems() == std::vector<std::string>{});
  ProxyExecutor executor(nodes);
  Handles t{number(1), number(2), number(3), number(4), Tensor(), Tensor(), Tensor()};
  const int64_t ints[] = {30, 40, 50, 60, 70, 5};
  executor.call(0, ints, t.handles);
  CHECK(*recorder->at("n").get_if<int64_t>() == 30);
  CHECK(*recorder->at("sizes").get_if<Value::Ints>() == Value::Ints{40, 50});
  CHECK(*recorder->at("s").get_if<int64_t>() == 60);
  CHECK(*recorder->at("number").get_if<int64_t>() == 70);
  CHECK(*recorder->at("real").get_if<double>() == 2.5);
  CHECK(*recorder->at("dtype").get_if<int64_t>() == 15);
  CHECK(*recorder->at("layout").get_if<int64_t>() == 0);
  CHECK(*recorder->at("format").get_if<int64_t>() == 2);
  CHECK(*recorder->at("device").get_if<Device>() == Device{});
  CHECK(*recorder->at("extra").get_if<int64_t>() == 7);
  CHECK(recorder->at("more").is_none());
  CHECK(recorder->at("absent").is_none());
  CHECK(*recorder->at("text").get_if<std::string>() == "hello");
  const auto& maybe = *recorder->at("maybe").get_if<Value::List>();
  CHECK(maybe[0].is_none());
  CHECK(*Value(maybe[1]).tensor().data_as<float>() == 4);
  CHECK(t.held[4].storage() == t.held[0].storage());
  CHECK(t.held[5].storage() == t.held[0].storage());
  CHECK(t.held[6].dtype() == DType::kInt64);
  // A second call with other values.
  const int64_t others[] = {31, 41, 51, 61, 71, 5};
  executor.call(0, others, t.handles);
  CHECK(*recorder->at("sizes").get_if<Value::Ints>() == Value::Ints{41, 51});
}

TEST_CASE("proxy executor: calls that are not as recorded fail") {
  const auto recorder = std::make_shared<Recorder>();
  const Registration registration(recorder);
  ProxyExecutor executor(std::make_shared<const ExternNodes>(ExternNodes::parse(kRecord)));
  Handles t{number(1), number(2), number(3), number(4), Tensor(), Tensor(), Tensor()};
  const std::vector<int64_t> ints{30, 40, 50, 60, 70, 5};
  const auto call = [&](int64_t node, std::span<const int64_t> i, std::span<const AtenTensorHandle> h) {
    return code_of([&] { executor.call(node, i, h); });
  };
  CHECK(call(1, ints, t.handles) == ErrorCode::kModelFailed);
  CHECK(call(-1, ints, t.handles) == ErrorCode::kModelFailed);
  CHECK(call(0, std::span(ints).first(5), t.handles) == ErrorCode::kModelFailed);
  CHECK(call(0, ints, std::span(t.handles).first(6)) == ErrorCode::kModelFailed);
  std::vector<AtenTensorHandle> with_null = t.handles;
  with_null[1] = nullptr;
  CHECK(call(0, ints, with_null) == ErrorCode::kModelFailed);
  recorder->answer = 6;  // the code was compiled for 5
  CHECK(call(0, ints, t.handles) == ErrorCode::kModelFailed);
  recorder->answer = 5;
  executor.call(0, ints, t.handles);
}

TEST_CASE("proxy executor: an error keeps the operator's name and stays with the thread") {
  const std::string json = one_call("aten::mm", R"({"name": "self", "arg": {"as_tensor": {"name": "a"}}},
    {"name": "mat2", "arg": {"as_tensor": {"name": "b"}}})",
                                    R"({"as_tensor": {"name": "c"}})");
  ProxyExecutor executor(std::make_shared<const ExternNodes>(ExternNodes::parse(json)));
  Handles t{number(1), number(2), Tensor()};
  aoti_abi::take_error();
  CHECK(aoti_torch_proxy_executor_call_function(executor.handle(), 0, 0, nullptr, 3, t.handles.data()) == 1);
  const auto error = aoti_abi::take_error();
  REQUIRE(error);
  CHECK(error->code == ErrorCode::kInvalidArgument);
  CHECK(error->text.starts_with("aten::mm: mm: expected a tensor of rank 2"));
  CHECK(aoti_torch_proxy_executor_call_function(nullptr, 0, 0, nullptr, 3, t.handles.data()) == 1);
  CHECK(aoti_abi::take_error());
}

TEST_CASE("proxy executor: in a run, a failed call leaves the generated code, which would ignore its return code") {
  const std::string json = one_call("aten::mm", R"({"name": "self", "arg": {"as_tensor": {"name": "a"}}},
    {"name": "mat2", "arg": {"as_tensor": {"name": "b"}}})",
                                    R"({"as_tensor": {"name": "c"}})");
  ProxyExecutor executor(std::make_shared<const ExternNodes>(ExternNodes::parse(json)));
  executor.leave_run_on_failure();
  Handles t{number(1), number(2), Tensor()};
  aoti_abi::take_error();
  bool went_on = false;
  CHECK(code_of([&] {
          aoti_torch_proxy_executor_call_function(executor.handle(), 0, 0, nullptr, 3, t.handles.data());
          went_on = true;
        }) == ErrorCode::kModelFailed);
  CHECK_FALSE(went_on);
  const auto error = aoti_abi::take_error();
  REQUIRE(error);
  CHECK(error->text.starts_with("aten::mm: mm: expected a tensor of rank 2"));
}

TEST_CASE("extern nodes: operators that nobody has are named, each once") {
  const std::string node = R"({"name": "b", "node": {"target": "TARGET", "inputs": [], "outputs": []}})";
  const auto of = [&](std::string target) { return std::string(node).replace(node.find("TARGET"), 6, target); };
  const ExternNodes nodes =
      ExternNodes::parse("{\"nodes\": [" + of("mine::z") + "," + of("aten::no_such") + "," + of("mine::z") + "]}");
  CHECK(nodes.missing() == std::vector<std::string>{"aten::no_such", "mine::z"});
  ProxyExecutor executor(std::make_shared<const ExternNodes>(nodes));
  CHECK(code_of([&] { executor.call(0, {}, {}); }) == ErrorCode::kUnsupported);
}

TEST_CASE("extern nodes: what cannot be called is a problem") {
  const auto problem = [](const std::string& inputs, const std::string& outputs = R"({"as_tensor": {"name": "c"}})") {
    const ExternNodes nodes = ExternNodes::parse(one_call("aten::t", inputs, outputs));
    return nodes.problems().empty() ? std::string() : nodes.problems()[0];
  };
  const std::string good = R"({"name": "self", "arg": {"as_tensor": {"name": "a"}}})";
  CHECK(problem(good) == "");
  CHECK(problem("") == "aten::t: argument 'self' is missing");
  CHECK(problem(good + "," + good) == "aten::t: argument 'self' is given twice");
  CHECK(problem(R"({"name": "other", "arg": {"as_tensor": {"name": "a"}}})") == "aten::t: it has no argument 'other'");
  CHECK(problem(R"({"name": "self", "arg": {"as_int": 3}})") == "aten::t: argument 'self': as_int for Tensor");
  CHECK(problem(R"({"name": "self", "arg": {"as_custom_obj": {}}})") ==
        "aten::t: argument 'self': as_custom_obj for Tensor");
  CHECK(problem(R"({"name": "self", "arg": 4})") == "aten::t: argument 'self': it has no value");
  CHECK(problem(good, R"({"as_graph": {}})") == "aten::t: outputs as_graph are not supported");
  CHECK(problem(good, R"({"as_none": true}, {"as_none": true})") == "aten::t: 2 outputs, but it has 1 results");
}

TEST_CASE("extern nodes: damaged text does no more than fail") {
  for (const std::string_view text :
       {"", "[]", "{}", "{\"nodes\": 3}", "{\"nodes\": [3]}", "{\"nodes\": [{\"node\": {}}]}"})
    CHECK(code_of([&] { ExternNodes::parse(text); }) == ErrorCode::kCorruptPackage);
  const auto recorder = std::make_shared<Recorder>();
  const Registration registration(recorder);
  for (size_t at = 0; at < kRecord.size(); ++at)
    for (const char c : {'\0', '"', '{', ']', '9', ','}) {
      std::string damaged(kRecord);
      damaged[at] = c;
      try {
        ExternNodes::parse(damaged);
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::kCorruptPackage);
      }
    }
}

TEST_CASE("registry: names are taken once and free again") {
  const auto recorder = std::make_shared<Recorder>();
  {
    const Registration registration(recorder);
    CHECK(find_operator("test::record") == recorder);
    CHECK(code_of([&] { Registration again(recorder); }) == ErrorCode::kAlreadyExists);
  }
  CHECK(find_operator("test::record") == nullptr);
  CHECK(find_operator("aten::mm") != nullptr);
  const auto names = aten_operators();
  CHECK(std::is_sorted(names.begin(), names.end()));
  CHECK(std::find(names.begin(), names.end(), "aten::add.Tensor") != names.end());
}

}  // namespace sconce::custom_ops
