#include "server/registry/documents.h"

#include <doctest/doctest.h>

#include <array>
#include <new>
#include <string>
#include <utility>

#include "server/support/json_document.h"
#include "tests/runner/counted_memory.h"

namespace sconce::server::registry {

TEST_CASE("documents: a call spec, and no memory at any step of it") {
  scheduling::ModelSignature model("m", 1, ModelSpec());
  model.spec.call_spec.known = true;
  model.spec.call_spec.args = {SpecNode::Kind::kTuple, "builtins.tuple", {}, {}, {SpecNode(), SpecNode()}};
  model.spec.call_spec.kwargs = {
      SpecNode::Kind::kDict, "builtins.dict", {"1", "b"}, {true, false}, {SpecNode(), SpecNode()}};
  model.spec.call_spec.input_leaf = {0, 1};
  const std::array<int64_t, 2> versions{1, 2};
  std::string text;
  bool failed = true;
  for (int64_t step = 1; failed; ++step) {
    CAPTURE(step);
    const test::FailingMemory failing(step);
    bool threw = false;
    try {
      text = metadata_document(model, versions);
    } catch (const std::bad_alloc&) {
      threw = true;
    }
    failed = failing.failed();
    CHECK(threw == failed);
  }
  CHECK(
      text.find(
          R"("kwargs":{"kind":"dict","type":"builtins.dict","keys":[1,"b"],"children":[{"kind":"leaf"},{"kind":"leaf"}]})") !=
      std::string::npos);
  CHECK(text.find("input_leaf") == std::string::npos);
}

TEST_CASE("documents: a key of the call spec that is no 64-bit integer stays text") {
  scheduling::ModelSignature model("m", 1, ModelSpec());
  model.spec.call_spec.known = true;
  model.spec.call_spec.args = {SpecNode::Kind::kDict, "builtins.dict", {"123456789012345678901"}, {true}, {SpecNode()}};
  CHECK(metadata_document(model, {}).find(R"("keys":["123456789012345678901"])") != std::string::npos);
}

TEST_CASE("documents: the config says what decides whether requests share runs") {
  const auto parameters = [](const scheduling::BatchPolicy& policy) {
    const scheduling::ModelSignature model("m", 1, ModelSpec());
    const ModelConfig settings = ServerConfig().model("m");
    const OrderedJson config = parse_document(config_document(model, policy, settings, nullptr));
    CHECK(config.contains("dynamic_batching") == policy.alone.empty());
    std::string text;
    for (const auto& [name, value] : config["parameters"].items())
      text += name + "=" + value["string_value"].get<std::string>() + ";";
    return text;
  };
  using By = scheduling::RowSharing::By;
  scheduling::BatchPolicy policy;
  for (const auto& [by, name] :
       {std::pair(By::kExport, "export"), {By::kSource, "source"}, {By::kSetting, "setting"}}) {
    policy.rows = {.shared = true, .by = by};
    CHECK(parameters(policy) == std::string("rows_proof=") + name + ";");
  }
  policy.rows = {.reason = "relu at model.py:7"};
  policy.alone = policy.rows.reason;
  CHECK(parameters(policy) == "requests_run_alone=relu at model.py:7;rows_proof=none;");
  policy.alone = "setting batching is off";
  CHECK(parameters(policy) ==
        "requests_run_alone=setting batching is off;rows_proof=none;rows_reason=relu at model.py:7;");
}

}  // namespace sconce::server::registry
