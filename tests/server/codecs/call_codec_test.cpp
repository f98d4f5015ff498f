#include "server/codecs/call_codec.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "server/support/json/base64.h"
#include "tests/errors.h"
#include "tests/server/spec_builder.h"
#include "tests/server/tensor_values.h"

namespace sconce::server::codecs {

using Kind = SpecNode::Kind;

namespace {

struct Decoded {
  BodyBuffer body;
  TensorScratch scratch;
  std::vector<Tensor> inputs;
  Decoded(const scheduling::ModelSignature& model, const std::string& json) {
    body.prepare(json.size(), 0);
    body.append(json.data(), json.size());
    decode_call(model, body, scratch, inputs);
  }
};

std::string error_of(const scheduling::ModelSignature& model, const std::string& json) {
  return error_from([&] { Decoded decoded(model, json); });
}

std::string encode(const scheduling::ModelSignature& model, const std::vector<Tensor>& outputs, bool base64 = false) {
  TensorScratch scratch;
  http::Response response;
  response.reset();
  encode_call(model, outputs, base64, scratch, response);
  return std::string(response.text().view().substr(http::Response::kHeadRoom));
}

TensorSpec any(DType dtype, std::vector<Dim> dims = {}) { return tensor_spec("x", dtype, std::move(dims)); }

// forward(x, [a, {"m": b}], *, scale, pair)
scheduling::ModelSignature nested_model() {
  ModelSpec spec = model_spec({any(DType::kFloat32), any(DType::kInt64), any(DType::kBool), any(DType::kFloat64),
                               any(DType::kComplex64), any(DType::kFloat16)},
                              {any(DType::kFloat32)});
  spec.call_spec.args =
      spec_tuple({spec_leaf(), spec_node(Kind::kList, {spec_leaf(), spec_node(Kind::kDict, {spec_leaf()}, {"m"})})});
  spec.call_spec.kwargs = spec_node(
      Kind::kDict, {spec_leaf(), spec_node(Kind::kNamedTuple, {spec_leaf(), spec_leaf()})}, {"scale", "pair"});
  return scheduling::ModelSignature("m", 1, spec);
}

}  // namespace

TEST_CASE("call_codec: nested arguments and keywords in any order") {
  const Decoded call(nested_model(), R"({"kwargs":{"pair":[[[1,2],[3,4]],[0.5]],"scale":2.5},
                                         "args":[[[1,2],[3,4.5]],[[[7]],{"m":[true,false]}]]})");
  REQUIRE(call.inputs.size() == 6);
  CHECK(values<float>(call.inputs[0]) == std::vector<float>{1, 2, 3, 4.5});
  CHECK(call.inputs[0].dim() == 2);
  CHECK(values<int64_t>(call.inputs[1]) == std::vector<int64_t>{7});
  CHECK(call.inputs[1].dim() == 2);
  CHECK(values<uint8_t>(call.inputs[2]) == std::vector<uint8_t>{1, 0});
  CHECK(values<double>(call.inputs[3]) == std::vector<double>{2.5});
  CHECK(call.inputs[3].dim() == 0);
  CHECK(call.inputs[4].dtype() == DType::kComplex64);
  CHECK(call.inputs[4].numel() == 2);
  CHECK(values<uint16_t>(call.inputs[5]) == std::vector<uint16_t>{0x3800});
}

TEST_CASE("call_codec: tensors as base64") {
  const scheduling::ModelSignature model("m", 1, model_spec({any(DType::kInt16)}, {any(DType::kInt16)}));
  const Decoded call(model, R"({"args":[{"shape":[3,1],"base64":"AQACAAMA","dtype":"int16"}]})");
  CHECK(values<int16_t>(call.inputs[0]) == std::vector<int16_t>{1, 2, 3});
  CHECK(call.inputs[0].dim() == 2);
  CHECK(Decoded(model, R"({"args":[{"shape":[0],"base64":"","dtype":"int16"}]})").inputs[0].numel() == 0);
  const auto refuses = [&](const std::string& tensor, std::string_view text) {
    CAPTURE(tensor);
    CHECK(contains(error_of(model, "{\"args\":[" + tensor + "]}"), text));
  };
  refuses(R"({"shape":[3],"base64":"AQACAAMA"})", "args[0]: a tensor needs 'dtype', 'shape' and 'base64'");
  refuses(R"({"shape":[3],"base64":"AQACAAMA","dtype":"int32"})", "args[0]: dtype must be int16, got int32");
  refuses(R"({"shape":[3],"base64":"AQACAAMA","dtype":"INT16"})", "unknown dtype: 'INT16'");
  refuses(R"({"shape":[4],"base64":"AQACAAMA","dtype":"int16"})", "has 8 bytes, 'base64' has 6");
  refuses(R"({"shape":[2],"base64":"AQACAAM=","dtype":"int16"})", "has 4 bytes, 'base64' has 5");
  refuses(R"({"shape":[3],"base64":"AQACAA*A","dtype":"int16"})", "malformed");
  refuses(R"({"shape":[3],"base64":"AQACAAMA","dtype":"int16","x":1})", "got 'x'");
  refuses(R"({"shape":[2305843009213693953,8],"base64":"AQACAAMA","dtype":"int16"})", "too many elements");
  refuses(R"({"shape":[1000000000000],"base64":"AQACAAMA","dtype":"int16"})", "has 2000000000000 bytes");
  refuses(R"({"shape":[-1],"base64":"","dtype":"int16"})", "unsigned integer");
}

TEST_CASE("call_codec: what does not fit the call spec is refused with its place") {
  const scheduling::ModelSignature model = nested_model();
  const auto refuses = [&](const std::string& json, std::string_view text) {
    CAPTURE(json);
    CHECK(contains(error_of(model, json), text));
  };
  refuses("", "the call must be an object");
  refuses("{}", "args[0] is missing");
  refuses(R"({"args":{}})", "'args' must be an array");
  refuses(R"({"args":[1,[1,{"m":true}]],"kwargs":[]})", "'kwargs' must be an object");
  refuses(R"({"args":[1,[1,{"m":true}]]})", "kwargs[\"scale\"] is missing");
  refuses(R"({"args":[1,[1,{"m":true}],3]})", "args has more than 2 elements");
  refuses(R"({"args":[1,[1,{"n":true}]]})", "args[1][1] has no key 'n', keys are 'm'");
  refuses(R"({"args":[1,[1,{"m":true,"m":true}]]})", "twice");
  refuses(R"({"args":[1,[1,[true]]]})", "args[1][1] must be an object");
  refuses(R"({"args":[1,5]})", "args[1] must be an array");
  refuses(R"({"args":[[1,[2]],[1,{"m":true}]],"kwargs":{"scale":1,"pair":[[1,2],1]}})",
          "JSON: args[0]: rows of different length or depth");
  refuses(R"({"args":[1,[1.5,{"m":true}]],"kwargs":{"scale":1,"pair":[[1,2],1]}})",
          "JSON: args[1][0]: expected an integer");
  refuses(R"({"args":[1,[1,{"m":true}]],"kwargs":{"scale":1,"pair":[[1,2,3],1]}})", "complex numbers are pairs");
  refuses(R"({"args":["x",[1,{"m":true}]],"kwargs":{"scale":1,"pair":[[1,2],1]}})", "args[0] must be a tensor");
  refuses(R"({"args":[null,[1,{"m":true}]],"kwargs":{"scale":1,"pair":[[1,2],1]}})", "args[0] must be a tensor");
  refuses(R"({"args":[],"extra":1})", "the call has 'args' and 'kwargs' only, got 'extra'");
  refuses(R"({"args":[],"args":[]})", "'args' twice");
  refuses("{\"args\":" + std::string(100'000'000, '['), "nested deeper than 100 levels");
  refuses(R"({"args":[1,[1,{"m":true}]],"kwargs":{"scale":1,"pair":[[1,2],70000]}})", "out of range");
}

TEST_CASE("call_codec: leaves that the package dropped take no tensor, and ignore other values") {
  ModelSpec spec = model_spec({any(DType::kFloat32), any(DType::kFloat32)}, {any(DType::kFloat32)});
  spec.call_spec.args = spec_tuple({spec_leaf(), spec_leaf(), spec_leaf()});
  spec.call_spec.kwargs = spec_node(Kind::kDict, {spec_leaf(), spec_leaf()}, {"mode", "mask"});
  spec.call_spec.input_leaf = {0, 2};
  const scheduling::ModelSignature known("m", 1, spec);
  for (const char* json : {R"({"args":[[1],5,[2]],"kwargs":{"mode":"fast","mask":null}})", R"({"args":[[1],null,[2]]})",
                           R"({"args":[[1],"five",[2]],"kwargs":{"mask":true}})"}) {
    CAPTURE(std::string(json));
    const Decoded call(known, json);
    CHECK(values<float>(call.inputs[0]) == std::vector<float>{1});
    CHECK(values<float>(call.inputs[1]) == std::vector<float>{2});
  }
  CHECK(error_of(known, R"({"args":[[1]]})") == "args[2] is missing");
  // An argument that was None at the export: the answer would be that of a call without it.
  CHECK(contains(error_of(known, R"({"args":[[1],5,[2]],"kwargs":{"mask":[0,0]}})"),
                 "kwargs[\"mask\"] cannot be a tensor: it was None, a number or a string when the model was exported"));
  CHECK(contains(error_of(known, R"({"args":[[1],[],[2]]})"), "args[1] cannot be a tensor"));
  CHECK(contains(error_of(known, R"({"args":[[1],{"dtype":"int64","shape":[],"base64":"AAAAAAAAAAA="},[2]]})"),
                 "args[1] cannot be a tensor"));

  // If the package does not say which leaves the model drops, their JSON values tell.
  spec.call_spec.input_leaf.clear();
  const scheduling::ModelSignature unknown("m", 1, spec);
  const Decoded call(unknown, R"({"args":[[1],5,[2]],"kwargs":{"mode":"fast","mask":null}})");
  CHECK(values<float>(call.inputs[1]) == std::vector<float>{2});
  const Decoded scalars(unknown, R"({"args":[1,null,2],"kwargs":{"mode":"fast"}})");
  CHECK(values<float>(scalars.inputs[0]) == std::vector<float>{1});
  CHECK(values<float>(scalars.inputs[1]) == std::vector<float>{2});
  CHECK(contains(error_of(unknown, R"({"args":[[1],5,6]})"), "to tell them from numbers"));
  CHECK(contains(error_of(unknown, R"({"args":[[1],"5"]})"), "the call has 1 tensors, the model takes 2"));
}

TEST_CASE("call_codec: packages without a call spec take a flat list") {
  ModelSpec spec = model_spec({any(DType::kFloat32), any(DType::kInt64)}, {any(DType::kFloat32), any(DType::kFloat32)});
  spec.call_spec = {};
  const scheduling::ModelSignature model("m", 1, spec);
  const Decoded call(model, R"({"args":[[1.5],[2]]})");
  CHECK(values<int64_t>(call.inputs[1]) == std::vector<int64_t>{2});
  CHECK(contains(error_of(model, R"({"args":[[1.5],[2]],"kwargs":{}})"), "no call spec"));
  CHECK(encode(model, {call.inputs[0], call.inputs[0]}) == "[[1.5],[1.5]]");
  spec.outputs.resize(1);
  CHECK(encode(scheduling::ModelSignature("m", 1, spec), {call.inputs[0]}) == "[1.5]");
}

TEST_CASE("call_codec: answers are shaped like the return value") {
  ModelSpec spec =
      model_spec({}, {any(DType::kFloat32), any(DType::kBool), any(DType::kInt64), any(DType::kComplex64)});
  spec.call_spec.result = spec_node(Kind::kDict,
                                    {spec_leaf(), spec_tuple({spec_leaf(), spec_node(Kind::kNone)}),
                                     spec_node(Kind::kDataclass, {spec_leaf(), spec_leaf()}, {"ids", "z\"w"})},
                                    {"logits", "pair", "stats"});
  const scheduling::ModelSignature model("m", 1, spec);
  std::vector<float> floats = {1, 2.5, 3, 4};
  bool flag = true;
  const int64_t sizes[2] = {2, 2}, strides[2] = {1, 2}, two = 2, one = 1;
  const Tensor matrix = Tensor::from_blob(floats.data(), sizes, strides, DType::kFloat32);
  const Tensor scalar = Tensor::from_blob(&flag, {}, {}, DType::kBool);
  const Tensor complex = Tensor::from_blob(floats.data(), {&two, 1}, {&one, 1}, DType::kComplex64);
  CHECK(encode(model, {matrix, scalar, Tensor(), complex}) ==
        R"({"logits":[[1.0,3.0],[2.5,4.0]],"pair":[true,null],"stats":{"ids":null,"z\"w":[[1.0,2.5],[3.0,4.0]]}})");
  CHECK(encode(model, {matrix, scalar, Tensor(), complex}, true) ==
        R"({"logits":{"dtype":"float32","shape":[2,2],"base64":"AACAPwAAQEAAACBAAACAQA=="},)"
        R"("pair":[{"dtype":"bool","shape":[],"base64":"AQ=="},null],)"
        R"("stats":{"ids":null,"z\"w":{"dtype":"complex64","shape":[2],"base64":"AACAPwAAIEAAAEBAAACAQA=="}}})");
}

TEST_CASE("base64: both ways") {
  const std::pair<const char*, const char*> pairs[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"\xff\xfe", "//4="},
                                                       {"\xfb\xef\xbe", "++++"}};
  for (const auto& [plain, text] : pairs) {
    TextBuffer out;
    append_base64(out, reinterpret_cast<const std::byte*>(plain), std::string(plain).size());
    CHECK(out.view() == text);
    std::byte decoded[16];
    REQUIRE(decode_base64(text, decoded) == std::string(plain).size());
    CHECK(std::string(reinterpret_cast<char*>(decoded), std::string(plain).size()) == plain);
  }
  std::byte decoded[16];
  for (const char* bad :
       {"Z", "Zg", "Zg=", "Zg==Zg==", "=Zg=", "Zh==", "Zm9=", "Zm 9v", "Zm9v\n", "Z-9v", "====", "\x80m9v"}) {
    CAPTURE(std::string(bad));
    CHECK_FALSE(decode_base64(bad, decoded).has_value());
  }
}

}  // namespace sconce::server::codecs
