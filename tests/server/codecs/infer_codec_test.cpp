#include "server/codecs/infer_codec.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/scheduling/signature/recorded_strides.h"
#include "tests/errors.h"
#include "tests/server/spec_builder.h"
#include "tests/server/tensor_values.h"

namespace sconce::server::codecs {
namespace {

// A decoded request; its tensors live as long as the object.
struct Decoded {
  BodyBuffer body;
  TensorScratch scratch;
  InferRequest request;

  // Whether an input lies in the body.
  bool in_place(size_t input) const {
    const auto* data = static_cast<const std::byte*>(request.inputs[input].data());
    return data >= body.begin() && data < body.end();
  }

  Decoded(const scheduling::ModelSignature& model, const std::string& json, const std::string& binary = {},
          std::optional<uint64_t> json_length = std::nullopt) {
    body.prepare(json.size() + binary.size(), json_length.value_or(json.size()));
    body.append(json.data(), json.size());
    body.append(binary.data(), binary.size());
    decode_infer(model, body,
                 binary.empty() && !json_length ? std::nullopt : std::optional(json_length.value_or(json.size())),
                 nullptr, scratch, request);
  }
};

std::string error_of(const scheduling::ModelSignature& model, const std::string& json, const std::string& binary = {},
                     std::optional<uint64_t> json_length = std::nullopt) {
  try {
    Decoded decoded(model, json, binary, json_length);
  } catch (const Error& e) {
    CHECK(http_status(e.code()) < 502);
    CHECK(http_status(e.code()) != 500);
    return e.what();
  }
  return "no error";
}

scheduling::ModelSignature one_input(DType dtype, std::vector<Dim> dims = {variable_dim("s0")}) {
  return scheduling::ModelSignature(
      "m", 1, model_spec({tensor_spec("arg0_1", dtype, dims)}, {tensor_spec("output0", dtype, dims)}));
}

std::string input(std::string_view shape, std::string_view datatype, std::string_view rest,
                  std::string_view name = "ARGS[0]") {
  return "{\"inputs\":[{\"name\":\"" + std::string(name) + "\",\"shape\":" + std::string(shape) + ",\"datatype\":\"" +
         std::string(datatype) + "\"," + std::string(rest) + "}]}";
}

struct Json {
  std::string text;
  std::string tail;
  bool binary;
};

Json encode(const scheduling::ModelSignature& model, const InferRequest& request, std::vector<Tensor> outputs,
            std::string_view weights_name = "1") {
  TensorScratch scratch;
  http::Response response;
  response.reset();
  encode_infer(model, request, weights_name, outputs, scratch, response);
  Json json{
      std::string(response.text().view().substr(http::Response::kHeadRoom)), {}, response.json_length.has_value()};
  for (const http::Response::Segment& s : response.segments)
    json.tail.append(static_cast<const char*>(s.data), s.bytes);
  if (response.json_length) CHECK(*response.json_length == json.text.size());
  CHECK(response.body_bytes() == json.text.size() + json.tail.size());
  return json;
}

struct DatatypeRow {
  DType dtype;
  const char* name;
  const char* two;       // two elements as JSON
  const char* wrong[4];  // elements that must be refused
};
const DatatypeRow kRows[] = {
    {DType::kBool, "BOOL", "[true,false]", {"1", "\"true\"", "null", "0.0"}},
    {DType::kUInt8, "UINT8", "[0,255]", {"256", "-1", "1.5", "true"}},
    {DType::kUInt16, "UINT16", "[0,65535]", {"65536", "-1", "1e2", "null"}},
    {DType::kUInt32, "UINT32", "[0,4294967295]", {"4294967296", "-1", "\"1\"", "NaN"}},
    {DType::kUInt64, "UINT64", "[0,18446744073709551615]", {"18446744073709551616", "-1", "1.0", "NaN"}},
    {DType::kInt8, "INT8", "[-128,127]", {"128", "-129", "0.5", "false"}},
    {DType::kInt16, "INT16", "[-32768,32767]", {"32768", "-32769", "1e1", "{}"}},
    {DType::kInt32, "INT32", "[-2147483648,2147483647]", {"2147483648", "-2147483649", "1.0", "null"}},
    {DType::kInt64,
     "INT64",
     "[-9223372036854775808,9223372036854775807]",
     {"9223372036854775808", "-9223372036854775809", "1.0", "\"x\""}},
    {DType::kFloat32, "FP32", "[-0.5,NaN]", {"1e39", "null", "true", "nan"}},
    {DType::kFloat64, "FP64", "[1e300,-Infinity]", {"1e309", "null", "\"1\"", "inf"}},
};

}  // namespace

TEST_CASE("infer_codec: JSON tensors of every datatype, and what each refuses") {
  for (const DatatypeRow& row : kRows) {
    CAPTURE(std::string(row.name));
    const scheduling::ModelSignature model = one_input(row.dtype);
    const Decoded good(model, input("[2]", row.name, std::string("\"data\":") + row.two));
    REQUIRE(good.request.inputs.size() == 1);
    CHECK(good.request.inputs[0].dtype() == row.dtype);
    CHECK(good.request.inputs[0].numel() == 2);
    CHECK(reinterpret_cast<uintptr_t>(good.request.inputs[0].data()) % kTensorAlignment == 0);
    for (const char* wrong : row.wrong) {
      CAPTURE(std::string(wrong));
      const std::string error = error_of(model, input("[1]", row.name, std::string("\"data\":[") + wrong + "]"));
      CHECK(error.starts_with("JSON: input 'ARGS[0]': "));
    }
    // Applies every rule about sizes to every datatype.
    const auto refuses = [&](std::string_view shape, std::string_view rest, std::string_view text) {
      const std::string error = error_of(model, input(shape, row.name, rest));
      CHECK_MESSAGE(contains(error, text), error << " has not: " << text);
    };
    refuses("[3]", std::string("\"data\":") + row.two, "has 3 elements, 'data' has ");
    refuses("[1]", std::string("\"data\":") + row.two, "more elements than the shape holds");
    refuses("[-1]", "\"data\":[]", "a size in 'shape' must be an unsigned integer");
    refuses("[2305843009213693953,8]", std::string("\"data\":") + row.two, "shape has too many elements");
    refuses("[9223372036854775807]", std::string("\"data\":") + row.two,
            dtype_bytes(row.dtype) == 1 ? "'data' has fewer" : "shape has too many elements");
    refuses("[9223372036854775808]", "\"data\":[]", "out of range");
    refuses("[0,9223372036854775807,2]", "\"data\":[]", "shape has too many elements");
    refuses("[1.0]", "\"data\":[]", "a size in 'shape' must be an unsigned integer");
    refuses("2", "\"data\":[]", "an input's 'shape' must be an array");
    refuses("[2]", "\"data\":{}", "an input's 'data' must be an array");
    refuses("[2]", "\"data\":[[[[[[", "without an end");
    refuses("[2]", "\"x\":1", "neither 'data' nor 'binary_data_size'");
    refuses("[2]", "\"data\":[],\"parameters\":{\"binary_data_size\":2}", "both 'data' and 'binary_data_size'");
    refuses("[2]", "\"parameters\":{\"shared_memory_region\":\"r\"}", "shared memory is not for web pages");
    const Decoded empty(model, input("[0]", row.name, "\"data\":[]"));
    CHECK(empty.request.inputs[0].numel() == 0);
    const Decoded empty_rows(model, input("[3,0]", row.name, "\"data\":[[],[],[]]"));
    CHECK(empty_rows.request.inputs[0].size(0) == 3);
    CHECK(contains(error_of(model, input("[2]", row.dtype == DType::kInt8 ? "INT16" : "INT8", "\"data\":[1,2]")),
                   "data-type is '"));
  }
}

TEST_CASE("infer_codec: binary tensors of every datatype are used in place") {
  for (const DatatypeRow& row : kRows) {
    CAPTURE(std::string(row.name));
    const scheduling::ModelSignature model = one_input(row.dtype);
    const size_t bytes = 3 * dtype_bytes(row.dtype);
    const std::string data(bytes, '\1');
    const std::string size = "\"parameters\":{\"binary_data_size\":" + std::to_string(bytes) + "}";
    const Decoded good(model, input("[3]", row.name, size), data);
    const Tensor& tensor = good.request.inputs[0];
    CHECK(good.in_place(0));
    CHECK(reinterpret_cast<uintptr_t>(tensor.data()) % kTensorAlignment == 0);
    CHECK(std::memcmp(tensor.data(), data.data(), bytes) == 0);
    CHECK(error_of(model, input("[4]", row.name, size), data).starts_with("unexpected total byte size"));
    CHECK(contains(error_of(model, input("[3]", row.name, size), data.substr(1)), " bytes of binary data, "));
    CHECK(error_of(model, input("[3]", row.name, size), data + "x") ==
          "unexpected additional input data: 1 bytes after the last tensor");
    CHECK(contains(error_of(model, input("[2305843009213693953,8]", row.name, size), data), "too many elements"));
    CHECK(contains(error_of(model, input("[3]", row.name, "\"parameters\":{\"binary_data_size\":-1}"), data),
                   "'binary_data_size' must be an unsigned integer"));
  }
}

TEST_CASE("infer_codec: a binary tensor that starts at an odd address is copied") {
  const scheduling::ModelSignature model(
      "m", 1,
      model_spec({tensor_spec("a", DType::kUInt8, {fixed_dim(3)}), tensor_spec("b", DType::kInt32, {fixed_dim(2)})},
                 {tensor_spec("o", DType::kInt32, {fixed_dim(2)})}));
  const std::string json =
      R"({"inputs":[{"name":"ARGS[0]","shape":[3],"datatype":"UINT8","parameters":{"binary_data_size":3}},)"
      R"({"name":"INPUT__1","shape":[2],"datatype":"INT32","parameters":{"binary_data_size":8}}]})";
  const int32_t numbers[2] = {7, -8};
  const Decoded decoded(model, json, "abc" + std::string(reinterpret_cast<const char*>(numbers), 8));
  CHECK(decoded.in_place(0));
  CHECK_FALSE(decoded.in_place(1));
  CHECK(values<int32_t>(decoded.request.inputs[1]) == std::vector<int32_t>{7, -8});
  CHECK(values<char>(decoded.request.inputs[0].view_as(
            DType::kInt8, decoded.request.inputs[0].sizes(), decoded.request.inputs[0].strides(),
            decoded.request.inputs[0].storage_offset())) == std::vector<char>{'a', 'b', 'c'});
}

TEST_CASE("infer_codec: an input's storage begins with its first element") {
  const scheduling::ModelSignature model(
      "m", 1,
      model_spec({tensor_spec("a", DType::kFloat32, {fixed_dim(3)}), tensor_spec("b", DType::kFloat32, {fixed_dim(2)})},
                 {tensor_spec("o", DType::kFloat32, {fixed_dim(2)})}));
  const auto head = [](std::string_view a, std::string_view b) {
    return R"({"inputs":[{"name":"ARGS[0]","shape":[3],"datatype":"FP32",)" + std::string(a) +
           R"(},{"name":"ARGS[1]","shape":[2],"datatype":"FP32",)" + std::string(b) + "}]}";
  };
  const float numbers[5] = {1, 2, 3, 4, 5};
  const Decoded binary(model, head(R"("parameters":{"binary_data_size":12})", R"("parameters":{"binary_data_size":8})"),
                       std::string(reinterpret_cast<const char*>(numbers), sizeof numbers));
  const Decoded json(model, head(R"("data":[1,2,3])", R"("data":[4,5])"));
  for (const Decoded* decoded : {&binary, &json}) {
    const std::vector<Tensor>& inputs = decoded->request.inputs;
    CHECK(decoded->in_place(1) == (decoded == &binary));
    CHECK(values<float>(inputs[0]) == std::vector<float>{1, 2, 3});
    CHECK(values<float>(inputs[1]) == std::vector<float>{4, 5});
    for (const Tensor& input : inputs) {
      CHECK(input.storage_offset() == 0);
      CHECK(input.storage()->bytes() == input.bytes());
    }
  }
}

TEST_CASE("infer_codec: storages of inputs are used again, unless somebody kept them") {
  TensorScratch scratch;
  Tensor owner = scratch.tensor(std::vector<int64_t>{4}, DType::kInt32);
  static_cast<int32_t*>(owner.data())[3] = 9;
  const void* const first = owner.storage().get();
  owner = Tensor();
  scratch.reset();
  Tensor kept = scratch.tensor(std::vector<int64_t>{4}, DType::kInt32);
  CHECK(kept.storage().get() == first);
  static_cast<int32_t*>(kept.data())[3] = 7;
  scratch.reset();
  const Tensor other = scratch.tensor(std::vector<int64_t>{4}, DType::kInt32);
  CHECK(other.storage() != kept.storage());
  CHECK(other.data() != kept.data());
  static_cast<int32_t*>(other.data())[3] = 5;
  CHECK(values<int32_t>(kept)[3] == 7);
}

TEST_CASE("infer_codec: half types and carriers") {
  const scheduling::ModelSignature half = one_input(DType::kFloat16);
  CHECK(error_of(half, input("[1]", "FP16", "\"data\":[1]")) ==
        "input 'ARGS[0]': receiving FP16 data via JSON is not supported, use the binary data format");
  CHECK(
      Decoded(half, input("[1]", "FP16", "\"parameters\":{\"binary_data_size\":2}"), "ab").request.inputs[0].dtype() ==
      DType::kFloat16);
  const scheduling::ModelSignature complex = one_input(DType::kComplex64, {variable_dim("s0"), fixed_dim(1)});
  CHECK(complex.inputs[0].shape == std::vector<int64_t>{-1, 1, 2});
  const Decoded decoded(complex, input("[2,1,2]", "FP32", "\"data\":[1,2,3,4]"));
  CHECK(decoded.request.inputs[0].dtype() == DType::kComplex64);
  CHECK(decoded.request.inputs[0].dim() == 2);
  CHECK(values<uint64_t>(decoded.request.inputs[0]).size() == 2);
  CHECK(contains(error_of(complex, input("[2,1]", "FP32", "\"data\":[1,2]")), "needs a last dimension of 2"));
  const scheduling::ModelSignature float8 = one_input(DType::kFloat8E4M3FN);
  CHECK(values<uint8_t>(Decoded(float8, input("[2]", "UINT8", "\"data\":[56,64]")).request.inputs[0]) ==
        std::vector<uint8_t>{56, 64});
  CHECK(contains(error_of(one_input(DType::kFloat32), input("[1]", "BYTES", "\"data\":[\"a\"]")),
                 "data-type is 'BYTES', model 'm' expects 'FP32'"));
}

TEST_CASE("infer_codec: the order of keys does not matter") {
  const scheduling::ModelSignature model = one_input(DType::kInt64);
  const Decoded decoded(model, R"({"outputs":[{"name":"OUTPUT__0"}],"inputs":[{"data":[[4],[5]],"parameters":{},)"
                               R"("datatype":"INT64","shape":[2],"name":"arg0_1"}],"id":"x\"y","unknown":[{}]})");
  CHECK(values<int64_t>(decoded.request.inputs[0]) == std::vector<int64_t>{4, 5});
  CHECK(decoded.request.json_id == R"("x\"y")");
  REQUIRE(decoded.request.outputs.size() == 1);
  CHECK(decoded.request.outputs[0].json_name == "\"OUTPUT__0\"");
  CHECK_FALSE(decoded.request.outputs[0].binary);
  CHECK(decoded.request.rows == 2);
}

TEST_CASE("infer_codec: an answer is whole wherever its memory has to grow") {
  const scheduling::ModelSignature model = one_input(DType::kFloat32);
  Tensor output = Tensor::empty({{1, 2, 3}}, DType::kFloat32);
  std::fill_n(static_cast<float*>(output.data()), 6, 1.0f);
  for (size_t length = 1; length < 2100; ++length) {
    CAPTURE(length);
    const Decoded decoded(model, R"({"id":")" + std::string(length, 'i') +
                                     R"(","inputs":[{"name":"ARGS[0]","shape":[1],"datatype":"FP32","data":[1]}]})");
    const auto answer = nlohmann::json::parse(encode(model, decoded.request, {output}).text, nullptr, false);
    REQUIRE(answer.is_object());
    REQUIRE(answer["id"].get<std::string>().size() == length);
    REQUIRE(answer["outputs"][0]["shape"] == nlohmann::json({1, 2, 3}));
    REQUIRE(answer["outputs"][0]["data"].size() == 6);
  }
}

TEST_CASE("infer_codec: envelopes that are refused") {
  const scheduling::ModelSignature model = one_input(DType::kFloat32);
  const std::string good = R"({"name":"ARGS[0]","shape":[1],"datatype":"FP32","data":[1]})";
  const auto refuses = [&](const std::string& json, std::string_view text) {
    CAPTURE(json);
    CHECK(contains(error_of(model, json), text));
  };
  refuses("", "the request must be an object");
  refuses("[]", "the request must be an object");
  refuses("{}", "request has no 'inputs'");
  refuses("{\"inputs\":{}}", "'inputs' must be an array");
  refuses("{\"inputs\":[]}", "expected 1 inputs but got 0 inputs for model 'm', missing 'ARGS[0]'");
  refuses("{\"inputs\":[1]}", "an input must be an object");
  refuses("{\"inputs\":[" + good + "," + good + "]}", "input 'ARGS[0]' is given twice");
  refuses(R"({"inputs":[)" + good + R"(,{"name":"INPUT__0","shape":[1],"datatype":"FP32","data":[1]}]})",
          "input 'INPUT__0' is given twice");
  refuses("{\"inputs\":[" + good + "],\"inputs\":[]}", "'inputs' twice");
  refuses("{\"inputs\":[" + good + "]} x", "unexpected text after the value");
  refuses(R"({"inputs":[{"name":"nope","shape":[1],"datatype":"FP32","data":[1]}]})",
          "unexpected inference input 'nope' for model 'm', inputs are 'ARGS[0]'");
  refuses(R"({"inputs":[{"shape":[1],"datatype":"FP32","data":[1]}]})", "an input has no 'name'");
  refuses(R"({"inputs":[{"name":5}]})", "an input's 'name' must be a string");
  refuses(R"({"inputs":[{"name":"ARGS[0]","datatype":"FP32","data":[1]}]})", "has no 'shape'");
  refuses(R"({"inputs":[{"name":"ARGS[0]","shape":[1],"data":[1]}]})", "has no 'datatype'");
  refuses("{\"inputs\":[" + good + "],\"outputs\":[{\"name\":\"nope\"}]}", "unexpected inference output 'nope'");
  refuses("{\"inputs\":[" + good + "],\"outputs\":[{}]}", "an output has no 'name'");
  refuses("{\"inputs\":[" + good + "],\"outputs\":[{\"name\":\"RESULT\"},{\"name\":\"OUTPUT__0\"}]}",
          "asked for twice");
  refuses("{\"inputs\":[" + good + R"(],"outputs":[{"name":"RESULT","parameters":{"classification":-2}}]})",
          "'classification' must be an unsigned integer");
  refuses("{\"inputs\":[" + good + R"(],"outputs":[{"name":"RESULT","parameters":{"binary_data":1}}]})",
          "'binary_data' must be true or false");
  refuses("{\"inputs\":[" + good + "],\"parameters\":{\"triton_x\":1}}", "reserved: 'triton_x'");
  refuses("{\"inputs\":[" + good + "],\"parameters\":{\"timeout\":-1}}", "timeout must be an unsigned integer");
  refuses("{\"inputs\":[" + good + "],\"parameters\":{\"priority\":\"1\"}}", "priority must be an unsigned integer");
  refuses("{\"inputs\":[" + good + "],\"parameters\":[]}", "'parameters' must be an object");
  refuses("{\"inputs\":[" + good + "],\"id\":7}", "'id' must be a string");
  refuses("{\"inputs\":[" + good + "],\"x\":" + std::string(101, '[') + "}", "nested deeper than 100 levels");
  refuses("{\"inputs\":[" + good + "],\"x\":\"\xff\"}", "not valid UTF-8");
  refuses(input("[1]", "FP32", "\"data\":" + std::string(101, '[') + "1" + std::string(101, ']')),
          "nested deeper than 100 levels");
  std::string many = "[1";
  for (int i = 0; i < 64; ++i) many += ",1";
  refuses(input(many + "]", "FP32", "\"data\":[1]"), "more than 64 dimensions");
  refuses(input("[1000000000000]", "FP32", "\"data\":[1]"), "has 1000000000000 elements, 'data' has fewer");
  CHECK(contains(error_of(model, "{}", "abc", 100), "Inference-Header-Content-Length is larger than the body"));
  const std::string brackets(100'000'000, '[');
  CHECK(contains(error_of(model, brackets), "the request must be an object"));
  CHECK(contains(error_of(model, "{\"inputs\":" + brackets), "an input must be an object"));
  CHECK(contains(error_of(model, "{\"x\":" + brackets), "nested deeper"));
}

TEST_CASE("infer_codec: raw binary requests") {
  const scheduling::ModelSignature model = one_input(DType::kFloat32, {variable_dim("s0"), fixed_dim(2)});
  REQUIRE(model.max_batch_size > 0);
  const Decoded decoded(model, std::string(8, '\0'), {}, 0);
  CHECK(decoded.request.inputs[0].size(0) == 1);
  CHECK(decoded.in_place(0));
  CHECK(decoded.request.outputs[0].binary);
  CHECK(error_of(model, std::string(16, '\0'), {}, 0).starts_with("unexpected total byte size 16"));
  const scheduling::ModelSignature rows = one_input(DType::kFloat32, {fixed_dim(3), variable_dim("s1")});
  CHECK(Decoded(rows, std::string(24, '\0'), {}, 0).request.inputs[0].size(1) == 2);
  CHECK(contains(error_of(rows, std::string(25, '\0'), {}, 0), "not a multiple of 12"));
  const scheduling::ModelSignature two =
      one_input(DType::kFloat32, {fixed_dim(3), variable_dim("s1"), variable_dim("s2")});
  CHECK(contains(error_of(two, std::string(24, '\0'), {}, 0), "allows one variable dimension"));
}

TEST_CASE("infer_codec: recorded strides") {
  TensorScratch scratch;
  std::vector<float> data(24);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
  const auto lay_out = [&](std::vector<int64_t> sizes, std::vector<std::optional<int64_t>> recorded) {
    std::vector<int64_t> strides(sizes.size());
    contiguous_strides(sizes, strides.data());
    const Tensor dense = Tensor::from_blob(data.data(), sizes, strides, DType::kFloat32);
    const Tensor tensor =
        scheduling::in_recorded_strides(dense, tensor_spec("x", DType::kFloat32, {}, std::move(recorded)), scratch);
    CHECK(values<float>(tensor) == values<float>(dense));
    return std::vector<int64_t>(tensor.strides().begin(), tensor.strides().end());
  };
  using S = std::vector<int64_t>;
  CHECK(lay_out({2, 3, 4}, {12, 4, 1}) == S{12, 4, 1});
  CHECK(lay_out({2, 3, 4}, {}) == S{12, 4, 1});
  CHECK(lay_out({2, 3, 4}, {std::nullopt, 4, 1}) == S{12, 4, 1});
  CHECK(lay_out({4, 6}, {1, 4}) == S{1, 4});                                           // transposed
  CHECK(lay_out({1, 2, 3, 4}, {24, 1, 8, 2}) == S{24, 1, 8, 2});                       // channels last
  CHECK(lay_out({2, 2, 2, 3}, {std::nullopt, 1, std::nullopt, 2}) == S{12, 1, 6, 2});  // the same with unknown sizes
  CHECK(lay_out({1, 4}, {99, 1}) == S{4, 1});                                          // a size of 1 has any stride
  CHECK(lay_out({2, 3}, {8, 1}) == S{8, 1});                                           // padded rows
  CHECK(lay_out({2, 2, 6}, {std::nullopt, 1, 2}) == S{12, 1, 2});
  // The recorded input was expanded. Inputs are accepted if all rows are equal.
  std::vector<float> same = {1, 2, 1, 2};
  const int64_t sizes[2] = {2, 2}, strides[2] = {2, 1};
  const TensorSpec expanded = tensor_spec("x", DType::kFloat32, {}, {0, 1});
  CHECK(scheduling::in_recorded_strides(Tensor::from_blob(same.data(), sizes, strides, DType::kFloat32), expanded,
                                        scratch)
            .stride(0) == 0);
  same[0] = 5;
  CHECK_THROWS_WITH_AS(scheduling::in_recorded_strides(Tensor::from_blob(same.data(), sizes, strides, DType::kFloat32),
                                                       expanded, scratch),
                       doctest::Contains("share memory"), Error);
}

TEST_CASE("infer_codec: answers in JSON") {
  const scheduling::ModelSignature model(
      "m", 3,
      model_spec({tensor_spec("a", DType::kFloat32, {variable_dim("s0")})},
                 {tensor_spec("o", DType::kFloat32, {variable_dim("s0")}), tensor_spec("p", DType::kComplex64, {})}));
  const Decoded all(model, input("[1]", "FP32", "\"data\":[1]"));
  std::vector<float> data = {1.5f, -2, 3, 4};
  const int64_t two = 2, one = 1;
  const Tensor vector = Tensor::from_blob(data.data(), {&two, 1}, {&one, 1}, DType::kFloat32);
  const Tensor complex = Tensor::from_blob(data.data() + 2, {}, {}, DType::kComplex64);
  CHECK(encode(model, all.request, {vector, complex}).text ==
        R"({"model_name":"m","model_version":"3","parameters":{"weight_version":"1"},"outputs":[)"
        R"({"name":"RESULT[0]","datatype":"FP32","shape":[2],"data":[1.5,-2.0]},)"
        R"({"name":"RESULT[1]","datatype":"FP32","shape":[2],"data":[3.0,4.0]}]})");
  const Decoded some(model, R"({"id":"7","inputs":[{"name":"ARGS[0]","shape":[1],"datatype":"FP32","data":[1]}],)"
                            R"("outputs":[{"name":"OUTPUT__1"},{"name":"o"}]})");
  CHECK(
      encode(model, some.request, {vector, Tensor()}).text ==
      R"({"id":"7","model_name":"m","model_version":"3","parameters":{"weight_version":"1"},"outputs":[{"name":"o","datatype":"FP32","shape":[2],"data":[1.5,-2.0]}]})");
  CHECK(contains(encode(model, some.request, {vector, Tensor()}, R"(a "b" \c)").text,
                 R"("parameters":{"weight_version":"a \"b\" \\c"},)"));
  const Decoded empty_id(model, R"({"id":"","inputs":[{"name":"ARGS[0]","shape":[1],"datatype":"FP32","data":[1]}]})");
  CHECK(empty_id.request.json_id.empty());
}

TEST_CASE("infer_codec: answers in binary, by default or for each output") {
  const scheduling::ModelSignature model("m", 1,
                                         model_spec({tensor_spec("a", DType::kFloat32, {variable_dim("s0")})},
                                                    {tensor_spec("o", DType::kInt16, {variable_dim("s0")}),
                                                     tensor_spec("p", DType::kInt16, {variable_dim("s0")})}));
  const std::string start = R"({"inputs":[{"name":"ARGS[0]","shape":[1],"datatype":"FP32","data":[1]}],)";
  std::vector<int16_t> data = {1, 2, 3, 4};
  const int64_t sizes[2] = {2, 2}, row_major[2] = {2, 1}, transposed[2] = {1, 2}, none[2] = {0, 2};
  const Tensor dense = Tensor::from_blob(data.data(), sizes, row_major, DType::kInt16);
  const Tensor strided = Tensor::from_blob(data.data(), sizes, transposed, DType::kInt16);
  const Tensor empty = Tensor::from_blob(data.data(), none, row_major, DType::kInt16);
  const Decoded all(model, start + R"("parameters":{"binary_data_output":true}})");
  Json answer = encode(model, all.request, {dense, strided});
  CHECK(answer.binary);
  CHECK(answer.text ==
        R"({"model_name":"m","model_version":"1","parameters":{"weight_version":"1"},"outputs":[)"
        R"({"name":"RESULT[0]","datatype":"INT16","shape":[2,2],"parameters":{"binary_data_size":8}},)"
        R"({"name":"RESULT[1]","datatype":"INT16","shape":[2,2],"parameters":{"binary_data_size":8}}]})");
  const int16_t want[8] = {1, 2, 3, 4, 1, 3, 2, 4};
  CHECK(answer.tail == std::string(reinterpret_cast<const char*>(want), 16));
  // binary_data_output decides for outputs without binary_data, wherever it stands in the request.
  const Decoded mixed(model, start + R"("outputs":[{"name":"RESULT[0]","parameters":{"binary_data":false}},)"
                                     R"({"name":"RESULT[1]"}],"parameters":{"binary_data_output":true}})");
  CHECK_FALSE(mixed.request.outputs[0].binary);
  CHECK(mixed.request.outputs[1].binary);
  answer = encode(model, all.request, {empty, empty});
  CHECK_FALSE(answer.binary);  // nothing follows the JSON
  CHECK(contains(answer.text, R"("shape":[0,2],"parameters":{"binary_data_size":0}})"));
}

TEST_CASE("infer_codec: half outputs need the binary form") {
  const scheduling::ModelSignature model = one_input(DType::kBFloat16);
  const Decoded decoded(model, input("[1]", "BF16", "\"parameters\":{\"binary_data_size\":2}"), "ab");
  CHECK_THROWS_WITH_AS(encode(model, decoded.request, {decoded.request.inputs[0]}),
                       doctest::Contains("sending BF16 data via JSON is not supported"), Error);
}

TEST_CASE("infer_codec: priority and timeout") {
  const scheduling::ModelSignature model = one_input(DType::kInt64);
  const auto with = [](std::string_view parameters) {
    return R"({"parameters":{)" + std::string(parameters) +
           R"(},"inputs":[{"name":"ARGS[0]","shape":[1],"datatype":"INT64","data":[1]}]})";
  };
  const Decoded decoded(model, with(R"("priority":3,"timeout":250,"mine":"x")"));
  CHECK(decoded.request.schedule.priority == 3);
  CHECK(decoded.request.schedule.timeout == std::chrono::microseconds(250));
  CHECK(Decoded(model, with("")).request.schedule.priority == 0);
  CHECK(contains(error_of(model, with(R"("timeout":9223372036854775807)")), "out of range"));
  CHECK(error_of(model, with(R"("timeout":18446744073709551616)")) != "no error");
  CHECK(error_of(model, with(R"("timeout":-1)")) != "no error");
  CHECK(error_of(model, with(R"("priority":"high")")) != "no error");
  CHECK(contains(error_of(model, with(R"("triton_x":1)")), "reserved"));
}

}  // namespace sconce::server::codecs
