#include "tests/conformance/case.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace sconce::conformance {
namespace {

using Json = nlohmann::json;

DType read_dtype(const Json& json) {
  // Where PyTorch's container runner does not give a tensor, the dtype is PyTorch's number.
  const std::optional<DType> dtype =
      json.is_number() ? dtype_from_number(json.get<int64_t>()) : dtype_from_name(json.get_ref<const std::string&>());
  if (!dtype) throw std::runtime_error("case.json: unknown dtype " + json.dump());
  return *dtype;
}

TensorCase read_tensor(const Json& json) {
  TensorCase t;
  t.dtype = read_dtype(json.at("dtype"));
  json.at("shape").get_to(t.shape);
  json.at("stride").get_to(t.stride);
  json.at("offset").get_to(t.offset);
  json.at("at").get_to(t.at);
  json.at("bytes").get_to(t.bytes);
  t.device = json.value("device", "cpu");
  if (const auto it = json.find("same_as"); it != json.end() && !it->is_null()) t.same_as = it->get<size_t>();
  if (const auto it = json.find("alias"); it != json.end() && !it->is_null())
    t.alias = {it->at(0).get<std::string>() == "input", it->at(1).get<size_t>()};
  if (const auto it = json.find("rtol"); it != json.end()) t.rtol = it->get<double>();
  if (const auto it = json.find("atol"); it != json.end()) t.atol = it->get<double>();
  return t;
}

StepCase::Do read_kind(const std::string& name) {
  using Do = StepCase::Do;
  static const std::map<std::string, Do> kinds = {{"run", Do::kRun},         {"update", Do::kUpdate},
                                                  {"fold", Do::kFold},       {"swap", Do::kSwap},
                                                  {"extract", Do::kExtract}, {"free_inactive", Do::kFreeInactive}};
  const auto it = kinds.find(name);
  if (it == kinds.end()) throw std::runtime_error("case.json: unknown step \"" + name + "\"");
  return it->second;
}

StepCase read_step(const Json& json) {
  StepCase step;
  step.what_name = json.at("do").get<std::string>();
  step.what = read_kind(step.what_name);
  for (const Json& input : json.value("inputs", Json::array())) step.inputs.push_back(read_tensor(input));
  for (const Json& output : json.value("outputs", Json::array()))
    step.outputs.push_back(output.is_null() ? std::nullopt : std::optional(read_tensor(output)));
  for (const Json& change : json.value("mutated", Json::array()))
    step.mutated.emplace(change.at("input").get<size_t>(), read_tensor(change.at("after")));
  step.rtol = json.value("rtol", 0.0);
  step.atol = json.value("atol", 0.0);
  step.compare_values = json.value("compare", "value") == "value";
  if (const auto it = json.find("seed"); it != json.end() && !it->is_null()) step.seed = it->get<uint64_t>();
  step.fails = json.value("fails", false);
  step.checks = json.value("checks", false);
  step.message = json.value("message", "");
  step.inactive = json.value("buffer", "active") != "active";
  step.full = json.value("full", false);
  const Json constants = json.value("constants", Json::object());
  for (const auto& [fqn, tensor] : constants.items()) step.constants.emplace(fqn, read_tensor(tensor));
  return step;
}

ConstantCase read_constant(const Json& json) {
  ConstantCase constant;
  constant.name = json.value("name", "");
  constant.fqn = json.value("fqn", "");
  const auto given = [&](const char* key) { return json.contains(key) && !json[key].is_null(); };
  if (given("dtype")) constant.dtype = read_dtype(json["dtype"]);
  if (given("shape")) constant.shape = json["shape"].get<std::vector<int64_t>>();
  if (given("data_size")) constant.data_size = json["data_size"].get<uint64_t>();
  return constant;
}

}  // namespace

Case read_case(const std::filesystem::path& folder) {
  std::ifstream file(folder / "case.json");
  if (!file) throw std::runtime_error("cannot open " + (folder / "case.json").string());
  const Json json = Json::parse(file);
  if (json.at("format") != 1) throw std::runtime_error("case.json: unknown format " + json["format"].dump());
  Case c;
  c.folder = folder;
  json.at("name").get_to(c.name);
  json.at("device").get_to(c.device);
  c.sm = json.value("sm", "");
  c.package = folder / json.value("package", "model.pt2");
  c.model = json.value("model", "");
  c.tags = json.value("tags", std::vector<std::string>());
  c.metadata = json.value("metadata", std::map<std::string, std::string>());
  if (const auto it = json.find("constants"); it != json.end()) {
    c.constants.emplace();
    for (const Json& constant : *it) c.constants->push_back(read_constant(constant));
  }
  for (const Json& step : json.at("steps")) c.steps.push_back(read_step(step));
  if (c.steps.empty()) throw std::runtime_error("case.json: no steps");
  return c;
}

}  // namespace sconce::conformance
