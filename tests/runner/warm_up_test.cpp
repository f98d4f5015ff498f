#include "src/runner/warm_up.h"

#include <doctest/doctest.h>

#include "sconce/random.h"
#include "src/device/dummy_run.h"
#include "src/operators/cpu_ops.h"
#include "tests/runner/fake_runner.h"

using namespace sconce;
using namespace sconce::test;
using namespace sconce::runner;

namespace {

constexpr int64_t kWide = 131072;  // features of fake_wide

LoadOptions with_trial(bool warm_up = true) {
  LoadOptions options;
  options.warm_up = warm_up;
  options.trial.program = FAKE_TRIAL_PROGRAM;
  return options;
}

// A variable of the environment while this object lives: the child has it too.
struct Variable {
  const char* name;
  Variable(const char* variable, const std::string& value) : name(variable) { ::setenv(name, value.c_str(), 1); }
  ~Variable() { ::unsetenv(name); }
};

}  // namespace

TEST_CASE("warm-up: a load runs a model of at least 1 MiB of weights once, after a child did") {
  Loaded large("fake_wide", 1, true, with_trial());
  CHECK(large.model->info().constant_bytes == kWarmUpBytes);
  CHECK(large.knobs->runs == 1);
  CHECK(large.model->info().no_warm_up.empty());
  CHECK(run(*large.model, 2, kWide)[3] == fake::expected(2, 3));

  Loaded smaller("fake_narrower", 1, true, with_trial());
  CHECK(smaller.model->info().constant_bytes == kWarmUpBytes - 128);
  CHECK(smaller.knobs->runs == 0);
  CHECK(smaller.model->info().no_warm_up.empty());

  Loaded off("fake_wide", 1, true, with_trial(false));
  CHECK(off.knobs->runs == 0);
  Loaded several("fake_wide", 3, true, with_trial());
  CHECK(several.knobs->runs == 1);
}

TEST_CASE("warm-up: a pinned replica is warmed up on its cores") {
  LoadOptions options = with_trial();
  options.cpu_set = {0};
  Loaded m("fake_wide", 1, true, options);
  CHECK(m.knobs->runs == 1);
  CHECK(m.model->info().no_warm_up.empty());
}

TEST_CASE("warm-up: buffers that the model writes are as if it had not run") {
  Loaded m("fake_wide_state", 1, true, with_trial()), cold("fake_wide_state", 1, true, with_trial(false));
  CHECK(m.knobs->runs == 1);
  CHECK(cold.knobs->runs == 0);
  for (int i = 0; i < 3; ++i) CHECK(run(*m.model, 2, kWide) == run(*cold.model, 2, kWide));
}

TEST_CASE("warm-up: without a program that tries it first, a load runs nothing") {
  Loaded m("fake_wide");
  CHECK(m.knobs->runs == 0);
  CHECK(m.model->info().no_warm_up == "no program was given that tries made-up inputs first");
  CHECK(run(*m.model, 2, kWide)[3] == fake::expected(2, 3));
}

TEST_CASE("warm-up: a model that fails on made-up inputs is loaded and says why") {
  for (const bool described : {true, false}) {
    CAPTURE(described);
    // Nothing is known of inputs without a source.
    const Variable fails("FAKE_MODEL_FAIL_IN_RUNS", described ? "1" : "0");
    Loaded m("fake_wide", 1, described, with_trial());
    m.knobs->fail_in_runs = 0;
    const std::string& why = m.model->info().no_warm_up;
    CAPTURE(why);
    CHECK(why.starts_with("a run on made-up inputs: "));
    if (!described) CHECK(why.ends_with("is not described in full"));
    CHECK(m.knobs->runs == 0);
    CHECK(run(*m.model, 2, kWide)[3] == fake::expected(2, 3));
  }
}

TEST_CASE("warm-up: a model that ends its process or never returns ends the child alone") {
  const Variable fails("FAKE_MODEL_FAIL_IN_RUNS", "1");
  for (const auto& [kind, why] :
       {std::pair(FakeFailure::kEnd, "its trial in a child process ended by SIGABRT after "),
        std::pair(FakeFailure::kHang, "its trial in a child process was ended at its limit after ")}) {
    CAPTURE(why);
    const Variable how("FAKE_MODEL_FAIL_KIND", std::to_string(static_cast<int>(kind)));
    LoadOptions options = with_trial();
    options.trial.time = std::chrono::milliseconds(kind == FakeFailure::kHang ? 500 : 60'000);
    Loaded m("fake_wide", 1, true, options);
    m.knobs->fail_in_runs = 0;
    CHECK(m.model->info().no_warm_up.starts_with(why));
    CHECK(m.knobs->runs == 0);
    CHECK(run(*m.model, 2, kWide)[3] == fake::expected(2, 3));
  }
}

TEST_CASE("warm-up: a child that reports nonsense or nothing vouches for no run") {
  for (const char* instead : {"nonsense", "half", "status", "descriptors"}) {
    CAPTURE(instead);
    const Variable does("FAKE_TRIAL", instead);
    Loaded m("fake_wide", 1, true, with_trial());
    CAPTURE(m.model->info().no_warm_up);
    CHECK(m.model->info().no_warm_up.starts_with("its trial in a child process "));
    CHECK(m.knobs->runs == 0);
  }
}

TEST_CASE("warm-up: only the bytes that a child has run") {
  Loaded m("fake_wide", 1, true, with_trial(false));
  const WarmUp run = m.model->warm_up();
  CHECK(run.problem.empty());
  CHECK(run.inputs != 0);
  CHECK(m.knobs->runs == 1);
  CHECK(m.model->warm_up(run.inputs).problem.empty());
  CHECK(m.model->warm_up(run.inputs + 1).problem ==
        "a run on made-up inputs: a child process has run other inputs than these");
  CHECK(m.knobs->runs == 2);
}

TEST_CASE("warm-up: models that could leave a trace are not run") {
  ModelSpec spec;
  CHECK(why_no_dummy_run(spec).empty());
  spec.proxy_targets = {"aten::_linalg_det.default", "aten::sort.stable"};
  CHECK(why_no_dummy_run(spec).empty());
  spec.proxy_targets.emplace_back("mylib::count.default");
  CHECK(why_no_dummy_run(spec) == "it is not known what the operator mylib::count.default changes");
  spec.proxy_targets.clear();
  spec.imports = {"aoti_torch_cpu_mm_out", "aoti_torch_call_dispatcher"};
  CHECK(why_no_dummy_run(spec) == "it calls operators by name");
  spec.imports.clear();
  spec.loops = true;  // the child has a limit
  CHECK(why_no_dummy_run(spec).empty());
}

TEST_CASE("warm-up: random numbers stay those of the seed") {
  const int64_t sizes[] = {3};
  const auto draw = [&] { return cpu::rand(sizes, DType::kFloat32, {}, {}, {}).data_as<float>()[0]; };
  manual_seed(7);
  const float first = draw();
  manual_seed(7);
  {
    const DummyRun dummy;
    CHECK(code_of([&] { draw(); }) == ErrorCode::kFailedPrecondition);
  }
  CHECK(draw() == first);
}
