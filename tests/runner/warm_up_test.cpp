#include "src/runner/warm_up.h"

#include <doctest/doctest.h>

#include "sconce/random.h"
#include "src/device/made_up_run.h"
#include "src/operators/cpu_ops.h"
#include "tests/runner/fake_runner.h"

using namespace sconce;
using namespace sconce::test;
using namespace sconce::runner;

namespace {

constexpr int64_t kWide = 131072;  // features of fake_wide

LoadOptions without_warm_up() {
  LoadOptions options;
  options.warm_up = false;
  return options;
}

}  // namespace

TEST_CASE("warm-up: a load runs a model of at least 1 MiB of weights once") {
  Loaded large("fake_wide");
  CHECK(large.model->info().constant_bytes == kWarmUpBytes);
  CHECK(large.knobs->runs == 1);
  CHECK(large.model->info().no_warm_up.empty());
  CHECK(run(*large.model, 2, kWide)[3] == fake::expected(2, 3));

  Loaded smaller("fake_narrower");
  CHECK(smaller.model->info().constant_bytes == kWarmUpBytes - 128);
  CHECK(smaller.knobs->runs == 0);
  CHECK(smaller.model->info().no_warm_up.empty());

  Loaded off("fake_wide", 1, true, without_warm_up());
  CHECK(off.knobs->runs == 0);
  Loaded several("fake_wide", 3);
  CHECK(several.knobs->runs == 1);
}

TEST_CASE("warm-up: a pinned replica is warmed up on its cores") {
  LoadOptions options;
  options.cpu_set = {0};
  Loaded m("fake_wide", 1, true, options);
  CHECK(m.knobs->runs == 1);
  CHECK(m.model->info().no_warm_up.empty());
}

TEST_CASE("warm-up: buffers that the model writes are as if it had not run") {
  Loaded m("fake_wide_state"), cold("fake_wide_state", 1, true, without_warm_up());
  CHECK(m.knobs->runs == 1);
  CHECK(cold.knobs->runs == 0);
  for (int i = 0; i < 3; ++i) CHECK(run(*m.model, 2, kWide) == run(*cold.model, 2, kWide));
}

TEST_CASE("warm-up: a model that fails on made-up inputs is loaded and says why") {
  for (const bool described : {true, false}) {
    CAPTURE(described);
    // Nothing is known of inputs without a source.
    ::setenv("FAKE_MODEL_FAIL_IN_RUNS", described ? "1" : "0", 1);
    Loaded m("fake_wide", 1, described);
    ::unsetenv("FAKE_MODEL_FAIL_IN_RUNS");
    const std::string& why = m.model->info().no_warm_up;
    CAPTURE(why);
    CHECK(why.starts_with("a run on made-up inputs: "));
    if (!described) CHECK(why.ends_with("is not described in full"));
    CHECK(run(*m.model, 2, kWide)[3] == fake::expected(2, 3));
  }
}

TEST_CASE("warm-up: models that could leave a trace or not end are not run") {
  ModelSpec spec;
  CHECK(why_no_made_up_run(spec).empty());
  spec.proxy_targets = {"aten::_linalg_det.default", "aten::sort.stable"};
  CHECK(why_no_made_up_run(spec).empty());
  spec.proxy_targets.emplace_back("mylib::count.default");
  CHECK(why_no_made_up_run(spec) == "it is not known what the operator mylib::count.default changes");
  spec.proxy_targets.clear();
  spec.imports = {"aoti_torch_cpu_mm_out", "aoti_torch_call_dispatcher"};
  CHECK(why_no_made_up_run(spec) == "it calls operators by name");
  spec.imports.clear();
  spec.loops = true;
  CHECK(why_no_made_up_run(spec) == "a loop of its graph may not end with made-up inputs");
}

TEST_CASE("warm-up: random numbers stay those of the seed") {
  const int64_t sizes[] = {3};
  const auto draw = [&] { return cpu::rand(sizes, DType::kFloat32, {}, {}, {}).data_as<float>()[0]; };
  manual_seed(7);
  const float first = draw();
  manual_seed(7);
  {
    const MadeUpRun made_up;
    CHECK(code_of([&] { draw(); }) == ErrorCode::kFailedPrecondition);
  }
  CHECK(draw() == first);
}
