#include "server/weights/validation/golden.h"

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "sconce/check.h"
#include "sconce/float_types.h"
#include "sconce/tensor_files.h"
#include "tests/runner/fake_runner.h"

namespace sconce::server::weights {

using namespace sconce::test;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

template <class T>
Tensor tensor_of(const Ints& sizes, const std::vector<T>& values) {
  Tensor t = Tensor::empty(sizes, kDType<T>);
  REQUIRE(static_cast<size_t>(t.numel()) == values.size());
  std::copy(values.begin(), values.end(), t.data_as<T>());
  return t;
}
template <class T>
Tensor row(const std::vector<T>& values) {
  return tensor_of<T>({static_cast<int64_t>(values.size())}, values);
}

std::string numbered(int i) {
  std::string name("r");
  return name.append(std::to_string(i));
}

template <class T>
bool passes(T expected, T got, const GoldenTolerance& tolerance) {
  return !compare_golden(row<T>({expected}), row<T>({got}), tolerance);
}

// A golden file for a fake model, whose answer to x is w * x + b.
struct Golden1 {
  TempFolder folder;
  ModelConfig config = ServerConfig().model("fake");
  std::vector<NamedTensor> tensors;
  std::map<std::string, std::string> metadata;

  void add(const std::string& request, float x, const std::vector<float>& y) {
    tensors.push_back({request + "/inputs/INPUT__0", filled({2, 4}, x)});
    std::vector<float> both = y;
    both.insert(both.end(), y.begin(), y.end());
    tensors.push_back({request + "/outputs/OUTPUT__0", tensor_of<float>({2, 4}, both)});
  }
  GoldenFile read(const Model& model) {
    config.golden = (folder / "golden.safetensors").string();
    write_safetensors(config.golden, tensors, metadata);
    return read_golden(config, scheduling::ModelSignature("fake", 1, model.info().spec), model);
  }
};

GoldenVerdict judged(Golden& golden, const Model& model, Rehearsal& rehearsal) {
  return golden.judge(scheduling::ModelSignature("fake", 1, model.info().spec), rehearsal, {}, [] {});
}

std::vector<Values> constant(float w, float b) {
  return {{"scale.w", std::vector<float>(4, w)}, {"scale.b", std::vector<float>(4, b)}};
}

}  // namespace

TEST_CASE("golden: floats by tolerance") {
  const GoldenTolerance t{.rtol = 0.1, .atol = 0.5};
  CHECK(passes<float>(10, 11.5, t));
  CHECK(passes<float>(-10, -11.5, t));
  CHECK(!passes<float>(10, 11.51F, t));
  CHECK(!passes<float>(-10, 10, t));
  CHECK(passes<double>(0, 0.5, t));
  CHECK(passes<float>(0.0F, -0.0F, {.rtol = 0, .atol = 0}));
  CHECK(!passes<double>(1, 1 + 1e-15, {.rtol = 0, .atol = 0}));
  CHECK(passes(Half(10.0F), Half(11.5F), t));
  CHECK(!passes(BFloat16(10.0F), BFloat16(12.0F), t));
  CHECK(passes(Float8E4M3FN(8.0F), Float8E4M3FN(9.0F), t));
}

TEST_CASE("golden: what is not finite") {
  for (const GoldenTolerance& t : {GoldenTolerance{}, GoldenTolerance{.rtol = 1, .atol = 1e30}}) {
    CHECK(passes(kNan, kNan, t));
    CHECK(!passes(kNan, 1.0F, t));
    CHECK(!passes(1.0F, kNan, t));
    CHECK(passes(kInf, kInf, t));
    CHECK(!passes(kInf, -kInf, t));
    CHECK(!passes(kInf, 1.0F, t));
    CHECK(!passes(1.0F, kInf, t));
    CHECK(!passes(ComplexFloat(1, kNan), ComplexFloat(1, 0), t));
    CHECK(passes(ComplexFloat(1, kNan), ComplexFloat(1, kNan), t));
    CHECK(!passes(ComplexFloat(kInf, 0), ComplexFloat(-kInf, 0), t));
  }
}

TEST_CASE("golden: integers, booleans, complex and packed numbers") {
  const GoldenTolerance loose{.rtol = 0.5, .atol = 2};
  CHECK(passes<int64_t>(5, 5, {}));
  CHECK(!passes<int64_t>(1000, 1001, {}));  // rtol is not for integers
  CHECK(passes<int64_t>(1000, 1002, loose));
  CHECK(!passes<int64_t>(1000, 997, loose));
  CHECK(!passes<int64_t>(INT64_MIN, INT64_MAX, loose));
  CHECK(!passes<uint64_t>(0, UINT64_MAX, loose));
  CHECK(passes<int8_t>(-1, 1, loose));
  CHECK(!passes<bool>(true, false, loose));
  CHECK(passes<ComplexDouble>({3, 4}, {3, 4 + 4.5}, loose));  // by the length of the difference: 2 + 0.5 * 5
  CHECK(!passes<ComplexDouble>({3, 4}, {3, 4 + 4.51}, loose));
  CHECK(passes(Float4E2M1FNx2{0x12}, Float4E2M1FNx2{0x12}, loose));
  CHECK(!passes(Float4E2M1FNx2{0x12}, Float4E2M1FNx2{0x13}, loose));
}

TEST_CASE("golden: what differs is named") {
  const Tensor expected = tensor_of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto m = compare_golden(expected, tensor_of<float>({2, 3}, {1, 2, 3, 4.5, 5, 7}), {});
  REQUIRE(m);
  CHECK(m->at == "[1, 0]");
  CHECK(m->expected == "4");
  CHECK(m->got == "4.5");
  CHECK(m->wrong == 2);
  CHECK(m->compared == 6);
  CHECK(m->problem == "element [1, 0] is 4.5, expected 4 (2 of 6 differ)");
  CHECK(contains(compare_golden(expected, filled({3, 2}, 1), {})->problem, "shape is [3, 2], expected [2, 3]"));
  CHECK(contains(compare_golden(expected, tensor_of<double>({2, 3}, {1, 2, 3, 4, 5, 6}), {})->problem, "float64"));
  CHECK(contains(compare_golden(expected, Tensor(), {})->problem, "None"));
  // Other strides.
  const Tensor turned = tensor_of<float>({3, 2}, {1, 4, 2, 5, 3, 6});
  CHECK(!compare_golden(expected, turned.as_strided(Ints{2, 3}, Ints{1, 2}, 0), {}));
  CHECK(compare_golden(expected, turned.as_strided(Ints{2, 3}, Ints{3, 1}, 0), {}));
  CHECK(!compare_golden(tensor_of<float>({0, 3}, {}), tensor_of<float>({0, 3}, {}), {}));
  CHECK(compare_golden(tensor_of<float>({}, {1}), tensor_of<float>({}, {2}), {})->at == "[]");
}

TEST_CASE("golden: by argmax") {
  const GoldenTolerance t{.rtol = 0, .atol = 0, .argmax = true};
  const Tensor expected = tensor_of<float>({2, 3}, {1, 5, 2, 9, 0, 1});
  CHECK(!compare_golden(expected, tensor_of<float>({2, 3}, {0, 0.1F, 0, 7, 6, 5}), t));
  const auto m = compare_golden(expected, tensor_of<float>({2, 3}, {0, 0.1F, 0, 7, 8, 5}), t);
  REQUIRE(m);
  CHECK(m->at == "[1]");
  CHECK(m->expected == "0");
  CHECK(m->got == "1");
  CHECK(m->wrong == 1);
  CHECK(m->compared == 2);
  // Of equal ones any; NaN is the largest.
  CHECK(!compare_golden(row<float>({3, 3, 1}), row<float>({1, 2, 0}), t));
  CHECK(compare_golden(row<float>({3, 3, 1}), row<float>({1, 0, 2}), t));
  CHECK(compare_golden(row<float>({3, 2, 1}), row<float>({3, kNan, 1}), t));
  CHECK(!compare_golden(row<float>({3, kNan, 1}), row<float>({0, kNan, 9}), t));
  CHECK(!compare_golden(row<int32_t>({-3, -2, -9}), row<int32_t>({1, 7, 2}), t));
  CHECK(!compare_golden(row<uint8_t>({0, 255}), row<uint8_t>({3, 4}), t));
  // What argmax says nothing about is compared by tolerance.
  CHECK(compare_golden(tensor_of<float>({2, 1}, {1, 2}), tensor_of<float>({2, 1}, {1, 3}), t));
  CHECK(compare_golden(tensor_of<float>({}, {1}), tensor_of<float>({}, {2}), t));
  CHECK(compare_golden(row<ComplexFloat>({1, 2}), row<ComplexFloat>({2, 4}), t));
  CHECK(!compare_golden(tensor_of<float>({0, 3}, {}), tensor_of<float>({0, 3}, {}), t));
}

TEST_CASE("golden: a set passes or fails") {
  Loaded loaded("fake_model");
  Model& model = *loaded.model;
  Golden1 made;
  made.add("one", 1, stored(1));
  made.add("two/outputs/x", 2, stored(2));  // a request's name may be any text
  made.add("three", 3, stored(3));
  Golden golden(made.read(model));
  CHECK(golden.file().requests.size() == 3);
  CHECK(golden.file().requests[1].name == "two/outputs/x");
  CHECK(!golden.last());
  const auto active = model.rehearse(WeightState::kActive);
  CHECK(judged(golden, model, *active).good());
  CHECK(golden.last()->passed == 3);

  stage(model, constant(1, 0), {});
  const auto staged = model.rehearse(WeightState::kStaged);
  const GoldenVerdict verdict = judged(golden, model, *staged);
  CHECK(!verdict.good());
  CHECK(verdict.passed == 0);
  REQUIRE(verdict.failures.size() == 3);
  CHECK(verdict.failures[1].request == "two/outputs/x");
  CHECK(verdict.failures[1].output == "RESULT");
  CHECK(contains(refusal_of(verdict), "0 of 3 golden requests, 3 must pass: request 'one', output 'RESULT': element"));
  const OrderedJson json = verdict_json(verdict);
  CHECK(json["verdict"] == "failed");
  CHECK(json["failed"] == 3);
  CHECK(json["failures"][0]["at"].is_array());
  CHECK(golden_json(golden)["last"]["verdict"] == "failed");
}

TEST_CASE("golden: a share of the requests is enough, and only the first failures are kept") {
  Loaded loaded("fake_model");
  Golden1 made;
  for (int i = 0; i < 20; ++i) made.add(numbered(100 + i), 1, i < 14 ? stored(1) : stored(7));
  made.config.golden_pass = 0.7;
  Golden golden(made.read(*loaded.model));
  const auto active = loaded.model->rehearse(WeightState::kActive);
  GoldenVerdict verdict = judged(golden, *loaded.model, *active);
  CHECK(verdict.needed == 14);
  CHECK(verdict.passed == 14);
  CHECK(verdict.good());
  CHECK(verdict.failures.size() == 6);
  made.config.golden_pass = 0.71;
  Golden stricter(made.read(*loaded.model));
  verdict = judged(stricter, *loaded.model, *active);
  CHECK(verdict.needed == 15);
  CHECK(!verdict.good());
  CHECK(verdict_json(verdict)["failures"].size() == 6);
}

TEST_CASE("golden: a run that fails counts against the set, a lack of memory does not") {
  Loaded loaded("fake_model");
  Golden1 made;
  made.add("one", 1, stored(1));
  made.add("two", 2, stored(2));
  made.config.golden_pass = 0.5;
  Golden golden(made.read(*loaded.model));
  const auto active = loaded.model->rehearse(WeightState::kActive);
  loaded.knobs->fail_in_runs = 1;
  const GoldenVerdict verdict = judged(golden, *loaded.model, *active);
  CHECK(verdict.good());
  REQUIRE(verdict.failures.size() == 1);
  CHECK(verdict.failures[0].request == "one");
  CHECK(verdict.failures[0].output.empty());
  CHECK(!verdict.failures[0].mismatch.problem.empty());
  // What stops the judge stops it before the next request.
  int asked = 0;
  CHECK(code_of([&] {
          golden.judge(scheduling::ModelSignature("fake", 1, loaded.model->info().spec), *active, {}, [&] {
            if (++asked == 2) SCONCE_FAIL(kCancelled, "cancelled");
          });
        }) == ErrorCode::kCancelled);
  CHECK(asked == 2);
  CHECK(golden.last()->failures.size() == 1);  // that of before
}

TEST_CASE("golden: requests run in order on one replica, which begins with the set's buffers") {
  Loaded loaded("fake_state");
  Model& model = *loaded.model;
  const float first = run(model, 0).front();
  Golden1 made;
  for (int i = 0; i < 3; ++i) {
    std::vector<float> y = stored(0);
    for (float& value : y) value += first - stored(0).front() + static_cast<float>(i);
    made.add(numbered(i), 0, y);
  }
  Golden golden(made.read(model));
  for (int i = 0; i < 2; ++i) CHECK(judged(golden, model, *model.rehearse(WeightState::kActive)).good());
}

TEST_CASE("golden: tolerances come from the settings, else from the file") {
  Loaded loaded("fake_model");
  Golden1 made;
  made.add("one", 1, stored(1));
  GoldenFile file = made.read(*loaded.model);
  CHECK(file.tolerance.rtol == 1e-3);
  CHECK(file.tolerance.atol == 1e-5);
  CHECK(!file.tolerance.argmax);
  CHECK(file.pass == 1);
  made.metadata = {{"rtol", "0.25"}, {"atol", "1e-2"}, {"pass", "0.5"}, {"argmax", "true"}, {"format", "pt"}};
  file = made.read(*loaded.model);
  CHECK(file.tolerance.rtol == 0.25);
  CHECK(file.tolerance.atol == 0.01);
  CHECK(file.tolerance.argmax);
  CHECK(file.pass == 0.5);
  made.config.golden_rtol = 0;
  made.config.golden_atol = 3;
  made.config.golden_pass = 0.75;
  made.config.golden_argmax = false;
  file = made.read(*loaded.model);
  CHECK(file.tolerance.rtol == 0);
  CHECK(file.tolerance.atol == 3);
  CHECK(!file.tolerance.argmax);
  CHECK(file.pass == 0.75);
  for (const char* key : {"rtol", "atol", "pass", "argmax"})
    for (const char* value : {"nan", "-1", "inf", "", "1x"}) {
      Golden1 wrong;
      wrong.add("one", 1, stored(1));
      wrong.metadata = {{key, value}};
      const std::string error = error_from([&] { wrong.read(*loaded.model); });
      CHECK_MESSAGE(contains(error, std::string("'") + key + "'"), error);
      CHECK_MESSAGE(contains(error, "golden.safetensors"), error);
    }
  for (const char* value : {"0", "1.5"}) {
    Golden1 wrong;
    wrong.add("one", 1, stored(1));
    wrong.metadata = {{"pass", value}};
    CHECK(contains(error_from([&] { wrong.read(*loaded.model); }), "above 0 and at most 1"));
  }
}

TEST_CASE("golden: a file that does not fit the model is refused, and the error names what is wrong") {
  Loaded loaded("fake_model");
  const auto refused = [&](std::vector<NamedTensor> tensors) {
    Golden1 made;
    made.tensors = std::move(tensors);
    return error_from([&] { made.read(*loaded.model); });
  };
  const Tensor x = filled({2, 4}, 1);
  const NamedTensor in{"r/inputs/INPUT__0", x}, out{"r/outputs/OUTPUT__0", x};
  CHECK(contains(refused({}), "has no requests"));
  CHECK(contains(refused({in}), "request 'r' has no outputs"));
  CHECK(contains(refused({out}), "request 'r' lacks input 'ARGS[0]'"));
  CHECK(contains(refused({in, {"r/outputs/nobody", x}}), "no such output: 'r/outputs/nobody'; it has 'RESULT'"));
  CHECK(contains(refused({{"r/inputs/nobody", x}, out}), "no such input: 'r/inputs/nobody'"));
  for (const char* name : {"weights", "r/input/INPUT__0", "/inputs/INPUT__0", "inputs/INPUT__0"})
    CHECK(contains(refused({in, out, {name, x}}), std::string("'") + name + "' is not named REQUEST/inputs/NAME"));
  CHECK(contains(refused({in, {"r/outputs/output0", x}, out}), "two tensors are the same output"));
  CHECK(contains(refused({{"r/inputs/INPUT__0", tensor_of<double>({2, 4}, std::vector<double>(8, 1))}, out}),
                 "'r/inputs/INPUT__0'"));
  CHECK(contains(refused({{"r/inputs/INPUT__0", filled({8}, 1)}, out}), "'r"));
  CHECK(contains(refused({{"r/inputs/INPUT__0", filled({2, 5}, 1)}, out}), "request 'r'"));

  Golden1 made;
  made.config.golden = (made.folder / "golden.npz").string();
  write_npz(made.config.golden, std::vector<NamedTensor>{in, out});
  const scheduling::ModelSignature interface("fake", 1, loaded.model->info().spec);
  CHECK(read_golden(made.config, interface, *loaded.model).requests.size() == 1);
  made.config.golden = (made.folder / "golden.pt").string();
  CHECK(contains(error_from([&] { read_golden(made.config, interface, *loaded.model); }), "golden.pt"));
  made.config.golden = (made.folder / "missing.npz").string();
  CHECK(code_of([&] { read_golden(made.config, interface, *loaded.model); }) == ErrorCode::kIo);
}

TEST_CASE("golden: a damaged file is an error") {
  Loaded loaded("fake_model");
  const scheduling::ModelSignature interface("fake", 1, loaded.model->info().spec);
  Golden1 made;
  made.add("one", 1, stored(1));
  made.read(*loaded.model);
  const std::string good = content_of(made.config.golden);
  for (size_t bytes = 0; bytes < good.size(); bytes += 7) {
    made.folder.write("golden.safetensors", good.substr(0, bytes));
    CHECK_THROWS_AS(read_golden(made.config, interface, *loaded.model), Error);
  }
  for (size_t at = 0; at < good.size(); at += 3) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x5a);
    made.folder.write("golden.safetensors", bad);
    (void)code_of([&] { read_golden(made.config, interface, *loaded.model); });
  }
}

}  // namespace sconce::server::weights
