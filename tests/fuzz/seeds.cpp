// Seeds: small inputs of every form that the entries read.
#include <fstream>
#include <string>
#include <vector>

#include "package_format/archive/archive_reader.h"
#include "package_format/text/json_value.h"
#include "sconce/package.h"
#include "server/http/compression.h"
#include "server/support/json/base64.h"
#include "tests/fuzz/entries.h"
#include "tests/package_format/fixtures.h"

namespace sconce::fuzz {
using namespace server;

namespace {

using testing::u16;
using testing::u32;
using testing::u64;

const char* const kWeightsConfig =
    R"({"config": {"l.w": {"path_name": "weight_0", "is_param": true, "use_pickle": false, "tensor_meta": {"dtype": 7,
"sizes": [{"as_int": 4}, {"as_int": 5}], "strides": [{"as_int": 5}, {"as_int": 1}], "storage_offset": {"as_int": 0},
"device": {"type": "cpu", "index": null}, "layout": 7, "requires_grad": false}}}})";

std::string npy(const std::string& header, const std::string& data) {
  return "\x93NUMPY" + std::string("\x01\x00", 2) + u16(header.size()) + header + data;
}

std::string safetensors(const std::string& header, const std::string& data) {
  return u64(header.size()) + header + data;
}

// The length for the header field, then the body.
std::string infer(const std::string& json, const std::string& binary, bool field = true) {
  return u16(field ? json.size() : 0xffff) + json + binary;
}

}  // namespace

std::vector<std::string> package_seeds() {
  const std::string so = testing::fixture("model_2_15"), source = testing::fixture_source();
  const std::string folder = "net/data/aotinductor/model/";
  testing::RawZip deflated = testing::package(so, source);
  for (testing::RawMember& member : deflated.members) member.deflated = true;
  testing::RawZip later = testing::package(so, source);
  for (testing::RawMember& member : later.members) member.flags = 0x0808;
  testing::RawZip old;
  old.members = {{"data/aotinductor/model/x.so", so}, {"data/aotinductor/model/x.cpp", source}};
  return {build(testing::package(so, source)),
          build(deflated),
          build(later),
          build(old),
          build(testing::package(testing::appended_fixture(), source)),
          build(testing::package(so, testing::fixture_source(false),
                                 {{folder + "x_serialized_weights.bin", std::string(256, '\1')}})),
          build(testing::package(so, testing::fixture_source(false),
                                 {{"net/data/weights/model_weights_config.json", kWeightsConfig},
                                  {"net/data/weights/weight_0", std::string(80, '\1')}})),
          so};
}

std::vector<std::string> library_seeds() {
  return {testing::fixture("model_2_15"), testing::fixture("model_2_6"), testing::fixture("model_writable"),
          testing::appended_fixture()};
}

std::vector<std::string> source_seeds() {
  std::vector<std::string> seeds = {testing::fixture_source(), testing::fixture_source(false, "    n.fill_(1);\n")};
  for (const char* path : {"examples/digits/digits.pt2", "tests/server/packages/several.pt2"}) {
    const auto reader = ArchiveReader::open(std::string(SCONCE_SOURCE_DIR "/") + path);
    for (const ArchiveMember& member : reader->members())
      if (member.name.ends_with(".wrapper.cpp")) seeds.emplace_back(reader->read_text(member));
  }
  return seeds;
}

std::vector<std::string> call_spec_seeds() {
  const std::string leaf = R"({"type": null, "context": null, "children_spec": []})";
  const auto spec = [](const std::string& type, const std::string& context, const std::string& children) {
    return R"({"type": ")" + type + R"(", "context": )" + context + R"(, "children_spec": [)" + children + "]}";
  };
  const std::string tuple = "builtins.tuple", dict = "builtins.dict";
  const std::string in =
      "[1, " + spec(tuple, "null", spec(tuple, "null", leaf + ", " + leaf) + ", " + spec(dict, R"("[\"k\"]")", leaf)) +
      "]\n";
  return {in + "[1, " + leaf + "]\n",
          in + "[1, " + spec("builtins.list", "null", leaf + ", " + spec("builtins.NoneType", "null", "")) + "]\n",
          in + "[1, " + spec("collections.OrderedDict", R"("[\"a\", 1]")", leaf + ", " + leaf) + "]\n",
          in + "[1, " + spec("collections.defaultdict", R"("[null, [\"a\"]]")", leaf) + "]\n",
          in + "[1, " + spec("collections.deque", "\"2\"", leaf) + "]\n",
          in + "[1, " + spec("collections.namedtuple", R"({"class_name": "P", "fields": ["x"]})", leaf) + "]\n",
          in + "[1, " + leaf + "]\n" +
              R"({"graph_module": {"graph": {"inputs": [{"as_tensor": {"name": "x"}}, {"as_int": 3}]}, "signature": )" +
              R"({"input_specs": [{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}]}}})"};
}

std::vector<std::string> tensor_file_seeds() {
  std::vector<std::string> seeds = {
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", std::string(24, '\1')),
      npy("{'descr': '>i8', 'fortran_order': True, 'shape': (3,), }\n", std::string(24, '\1')),
      npy("{'descr': '|b1', 'fortran_order': False, 'shape': (), }\n", std::string(1, '\1')),
      safetensors(R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"b":{"dtype":"BF16","shape":[0],)"
                  R"("data_offsets":[16,16]},"__metadata__":{"k":"v"}})",
                  std::string(16, '\1')),
  };
  testing::RawZip npz;
  npz.members = {{"a.npy", seeds[0]}, {"b.npy", seeds[1]}};
  npz.members[1].deflated = true;
  seeds.push_back(build(npz));
  return seeds;
}

std::vector<std::string> weight_stream_seeds() {
  const std::string two = R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"b":{"dtype":"BF16","shape":[0],)"
                          R"("data_offsets":[16,16]},"c":{"dtype":"BOOL","shape":[3],"data_offsets":[16,19]}})";
  const std::string large = R"({"a":{"dtype":"F64","shape":[9000],"data_offsets":[3,72003]},)"
                            R"("__metadata__":{"k":"v"},"b":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})";
  std::vector<std::string> seeds;
  for (const int choice : {0, 3, 17, 128 + 5, 128 + 17})
    for (const std::string& file :
         {safetensors(two, std::string(19, '\1')), safetensors(large, std::string(72003, '\2')), safetensors("{}", "")})
      seeds.push_back(static_cast<char>(choice) + file);
  return seeds;
}

std::vector<std::string> weight_file_seeds() {
  std::vector<std::string> seeds = tensor_file_seeds();
  seeds.emplace_back(128, '\1');  // a blob for the entry's two constants
  seeds.push_back(build(testing::package(testing::fixture("model_2_15"), testing::fixture_source())));
  testing::RawZip deflated = testing::package(testing::fixture("model_2_15"), testing::fixture_source());
  for (testing::RawMember& member : deflated.members) member.deflated = true;
  seeds.push_back(build(deflated));
  return seeds;
}

// PyTorch's own pickles of CPU tensors, and calls with made-up device handles.
std::vector<std::string> pickle_seeds() {
  std::ifstream file(SCONCE_SOURCE_DIR "/tests/server/trainer_pickles.json");
  const OrderedJson pickles = OrderedJson::parse(file);
  std::vector<std::string> seeds;
  for (const auto& [name, text] : pickles.items()) {
    const auto& encoded = text.get_ref<const std::string&>();
    std::string bytes(base64_decoded_bound(encoded.size()), '\0');
    bytes.resize(decode_base64(encoded, reinterpret_cast<std::byte*>(bytes.data())).value());
    seeds.push_back(static_cast<char>(name.starts_with("flat")) + bytes);
  }
  // An opcode with a length byte and so many bytes.
  const auto sized = [](char op, const std::string& value) {
    return std::string(1, op).append(1, static_cast<char>(value.size())).append(value);
  };
  const auto text = [&](const std::string& value) { return sized('\x8c', value); };
  const auto name = [&](const std::string& module, const std::string& what) {
    return text(module) + text(what) + "\x93";
  };
  const auto blob = [&](size_t size) { return sized('C', std::string(size, '\1')); };
  const std::string nothing(1, '\0');
  const std::string function = name("torch.multiprocessing.reductions", "rebuild_cuda_tensor");
  const std::string arguments =
      "(" + name("torch", "Tensor") + name("torch", "Size") + "K\x04\x85\x85RK\x01\x85K" + nothing +
      name("torch.storage", "TypedStorage") + name("torch", "float32") + "K" + nothing +
      "C\x42\x02"
      "c" +
      std::string(64, '\1') + "K\x10K" + nothing + "\x89" + blob(12) + "K\x05" + blob(64) + "\x88t";
  seeds.push_back(nothing + "\x80\x04](" + text("a") + function + arguments + "R\x86" + "e.");
  seeds.push_back("\2\x80\x04]}" + text("gpu") + function + arguments + "\x86sa.");
  seeds.push_back("\3\x80\x04}" + text("gpu") + function + arguments + "\x86s.");
  return seeds;
}

std::vector<std::string> json_seeds() {
  return {R"({"a": [1, -2.5e3, true, false, null, {"b": {}}], "c": "x"})",
          R"("\ud83d\ude00 \u00e9 \n\\\/\"")",
          "\"\xc3\xa9\xf0\x9f\x98\x80\"",
          "[NaN, Infinity, -Infinity]",
          "-0.0e-0",
          "18446744073709551615",
          " [[[[[[[[]]]]]]]] "};
}

std::vector<std::string> infer_seeds() {
  const auto json = [](const std::string& a, const std::string& more) {
    return R"({"id":"7","inputs":[{"name":"ARGS[0]","datatype":"FP32","shape":[1,3],)" + a +
           R"(},{"name":"INPUT__1","datatype":"FP64","shape":[1],"data":[0.5]},{"name":"ARGS[1][1]",)"
           R"("datatype":"INT64","shape":[2,3],"data":[[1,2,3],[4,5,6]]},{"name":"KWARGS[mask]","datatype":"BOOL",)"
           R"("shape":[],"data":[true]},{"name":"KWARGS[scale]","datatype":"FP32","shape":[2,2],"data":[1,2,3,4]}])" +
           more + "}";
  };
  const std::string outputs = R"(,"outputs":[{"name":"RESULT","parameters":{"binary_data":true}}])";
  const std::string floats(12, '\1');
  return {
      infer(json(R"("data":[1,2.5,-3e-2])", ""), "", false), infer(json(R"("data":[[1,NaN,-Infinity]])", outputs), ""),
      infer(json(R"("parameters":{"binary_data_size":12})", outputs), floats),
      infer(json(R"("parameters":{"binary_data_size":12})", R"(,"parameters":{"binary_data_output":true})"), floats)};
}

std::vector<std::string> call_seeds() {
  return {R"({"args":[[[1,2,3]],[[0.5],[[1,2,3],[4,5,6]]]],"kwargs":{"mask":true,"scale":[[1,2],[3,4]]}})",
          R"({"kwargs":{"scale":[],"mask":false},"args":[[[1,NaN,-Infinity],[1,2,3]],[[1,2],[[1,2,3],[4,5,6]]]]})",
          R"({"args":[{"dtype":"float32","shape":[1,3],"base64":"AACAPwAAAEAAAEBA"},[[0.5],{"dtype":"int64",)"
          R"("shape":[2,3],"base64":"AQAAAAAAAAACAAAAAAAAAAMAAAAAAAAABAAAAAAAAAAFAAAAAAAAAAYAAAAAAAAA"}]],)"
          R"("kwargs":{"mask":{"dtype":"bool","shape":[],"base64":"AQ=="},"scale":[[1,2]]}})"};
}

std::vector<std::string> generate_seeds() {
  return {R"({"id":"7","ARGS[0]":[1,2.5,-3e-2],"INPUT__1":0.5,"ARGS[1][1]":[1,2,3,4,5,6],"KWARGS[mask]":true,)"
          R"("KWARGS[scale]":[[1,2],[3,4]],"temperature":1,"priority":2})",
          R"({"parameters":{"ARGS[0]":[[1,NaN,-Infinity],[1,2,3]],"timeout":9,"KWARGS[scale]":[]},"INPUT__1":[1,2],)"
          R"("ARGS[1][1]":[[1,2,3],[4,5,6]],"KWARGS[mask]":false})"};
}

std::vector<std::string> predict_seeds() {
  return {
      R"({"signature_name":"serving_default","inputs":{"ARGS[0]":[[1,2,3]],"INPUT__1":[0.5],"ARGS[1][1]":)"
      R"([[1,2,3],[4,5,6]],"KWARGS[mask]":true,"KWARGS[scale]":[[1,2],[3,4]]}})",
      R"({"instances":[{"ARGS[0]":[1,2,3],"INPUT__1":0.5,"ARGS[1][1]":[1,2,3],"KWARGS[mask]":true,"KWARGS[scale]":)"
      R"([1,2]},{"ARGS[0]":[1,2,3],"INPUT__1":0.5,"ARGS[1][1]":[4,5,6],"KWARGS[mask]":true,"KWARGS[scale]":[3,4]}]})",
      R"({"instances":[[1,2,3],[4,5,6]],"parameters":{"priority":1}})"};
}

std::vector<std::string> compressed_seeds() {
  std::vector<std::string> seeds;
  for (const http::Coding coding : {http::Coding::kGzip, http::Coding::kDeflate}) {
    http::Response response;
    response.reset();
    response.set_text(std::string(20000, 'a') + predict_seeds()[0]);
    http::compress(coding, response);
    seeds.push_back(std::string(1, coding == http::Coding::kGzip ? '\0' : '\1') +
                    std::string(response.text().view().substr(http::Response::kHeadRoom)));
  }
  return seeds;
}

std::vector<std::string> request_seeds() {
  return {
      "POST /v2/models/m/versions/1/infer?a=b HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n"
      "Inference-Header-Content-Length: 2\r\nContent-Encoding: gzip\r\nAccept-Encoding: gzip;q=0.5, deflate\r\n"
      "X-Request-Id: abc\r\ntraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n{}ab",
      "POST /v1/models/%6d:predict HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
      "5;x=y\r\nabcde\r\n3\r\nabc\r\n0\r\nTrailer: z\r\n\r\n",
      "GET http://h/v2/health/live HTTP/1.0\r\nAccept: text/html\r\nAuthorization: Bearer t\r\n\r\n",
      "GET /v2 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer\r\n t\r\nX-Request-Id:\r\n\tabc\r\nOrigin: o\r\n \r\n\r\n",
      "POST /v2/admin/models/m/weights HTTP/1.1\r\nHost: x\r\nOrigin: o\r\nContent-Type: application/octet-stream\r\n"
      "Content-Digest: sha-256=:YQ==:\r\nTransfer-Encoding: chunked\r\n\r\n"
      "003 ; a = \"b\\\"c\" ; d=e\r\nabc\r\n0;f\r\nX: y\r\nZ:\r\n\r\n"};
}

std::vector<std::string> triton_seeds() {
  return {
      "name: \"m\" # c\nplatform: 'torch_aoti' max_batch_size: 8\n"
      "input [ { name: \"x\", data_type: TYPE_FP32, dims: [ -1, 3 ] } ] output < name: 'y' dims: 1; >\n"
      "instance_group { count: 2 kind: KIND_GPU gpus: [0, 1] } version_policy: { specific { versions: [1, 3] } }",
      "dynamic_batching { preferred_batch_size: [4, 8] max_queue_delay_microseconds: 100 default_queue_policy {"
      " timeout_action: DELAY default_timeout_microseconds: 0x10 max_queue_size: 1 allow_timeout_override: true } }"
      " parameters { key: \"a\\n\\x41\\101\\u00e9\" value { string_value: 'b' \"c\" } }",
      "model_warmup { name: 'w' batch_size: 1 inputs { key: 'x' value { data_type: TYPE_INT64 dims: 4 "
      "input_data_file: 'a/b' } } inputs { key: 'z' value { data_type: TYPE_FP16 zero_data: true } } }",
      "platform: \"ensemble\" input { name: 'x' data_type: TYPE_FP32 dims: 4 } output { name: 'y' } "
      "ensemble_scheduling {"
      " step [ { model_name: \"a\" model_version: -1 input_map { key: 'i' value: 'x' } output_map { key: 'o' value: "
      "'y' }"
      " } ] }"};
}

std::vector<std::string> pipeline_seeds() {
  return {
      R"({"inputs": ["x"], "outputs": ["y"], "steps": [{"model": "a", "version": 1, "inputs": {"INPUT__0": "x"},)"
      R"( "outputs": {"OUTPUT__0": "m"}}, {"model": "b", "inputs": {"INPUT__0": {"tensor": "m", "cast": "FP32"}},)"
      R"( "outputs": {"OUTPUT__0": "y"}}]})",
      R"({"outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 4]}], "inputs": [{"name": "x", "datatype":)"
      R"( "INT64"}], "steps": [{"model": "a", "version": "stable", "inputs": {"INPUT__0": {"cast": "FP32", "tensor":)"
      R"( "x"}}, "outputs": {"OUTPUT__0": "y"}}]})"};
}

}  // namespace sconce::fuzz
