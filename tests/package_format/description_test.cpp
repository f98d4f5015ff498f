#include "package_format/description.h"

#include <doctest/doctest.h>

#include <new>
#include <string>

#include "tests/runner/counted_memory.h"

using namespace sconce;

TEST_CASE("description: a model, and no memory at any step of it") {
  ModelSpec model;
  model.name = "m";
  model.metadata = {{"AOTI_DEVICE_KEY", "cpu"}};
  model.inputs.resize(1);
  model.inputs[0].has_shape = true;
  model.inputs[0].dims.resize(2);
  model.constants.resize(1);
  model.call_spec.known = true;
  model.call_spec.args = {SpecNode::Kind::kTuple, "builtins.tuple", {}, {}, {SpecNode()}};
  model.call_spec.kwargs = {
      SpecNode::Kind::kDict, "builtins.dict", {"1", "b"}, {true, false}, {SpecNode(), SpecNode()}};
  std::string text;
  bool failed = true;
  for (int64_t step = 1; failed; ++step) {
    CAPTURE(step);
    const test::FailingMemory failing(step);
    bool threw = false;
    try {
      text = json_text(model);
    } catch (const std::bad_alloc&) {
      threw = true;
    }
    failed = failing.failed();
    CHECK(threw == failed);
  }
  CHECK(text.find(R"("keys":[1,"b"],"children":[{)") != std::string::npos);
}
