#include "server/registry/trial/trial_plan.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "fake_package.h"
#include "tests/files.h"

namespace sconce::server::registry {
namespace {

struct Planned {
  TempFolder folder;
  PackageEntry entry;

  // described: the source tells the shapes of outputs.
  explicit Planned(const std::string& model, bool described = true) {
    fake::write_directory(folder.path() / "package", {{"model", fake::model(model)}});
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder.path() / "package")) {
      if (described || file.path().extension() != ".cpp") continue;
      std::string source = content_of(file.path());
      const std::string made_by = "aoti_torch_empty_strided";
      for (size_t at = 0; (at = source.find(made_by)) != std::string::npos;)
        source.replace(at, made_by.size(), "of_another_compiler");
      std::ofstream(file.path()) << source;
    }
    entry.name = entry.file.stem = "m";
    entry.package = Package::open(folder.path() / "package");
  }
  static ModelConfig config(const std::string& setting) {
    ServerConfig config;
    if (!setting.empty()) config.set_model("m." + setting, "test");
    return config.model("m");
  }
  std::optional<TrialRequest> before(const std::string& setting = "") const {
    return trial_before(entry, config(setting));
  }
  std::optional<TrialRequest> served(const std::string& setting = "",
                                     const RowProof& proof = {.by = RowProof::By::kSource}) const {
    scheduling::ModelSignature interface("m", 1, entry.package->model());
    interface.spec.rows = proof;
    return trial_while_served(entry, interface, config(setting));
  }
};

}  // namespace

TEST_CASE("trial plan: large weights are packed before a model is served, small ones keep no start waiting") {
  const Planned large("fake_wide"), small("fake_model");
  const auto request = large.before();
  REQUIRE(request);
  CHECK(request->warm_up);
  CHECK_FALSE(request->outputs);
  CHECK_FALSE(request->rows);
  CHECK(large.before("batching=off"));
  CHECK_FALSE(large.before("warm_up=false"));
  CHECK_FALSE(large.before("trial_timeout=0"));
  CHECK_FALSE(small.before());
}

TEST_CASE("trial plan: what is not known of outputs is found out before a model is served") {
  const Planned unknown("fake_model", false);
  const auto request = unknown.before();
  REQUIRE(request);
  CHECK(request->outputs);
  CHECK(request->warm_up);
  CHECK_FALSE(request->rows);
  CHECK_FALSE(unknown.before("trial_timeout=0"));
}

TEST_CASE("trial plan: rows are tried where a proof lets requests share runs, and only then") {
  const Planned model("fake_model");
  const auto request = model.served("max_batch_size=7");
  REQUIRE(request);
  REQUIRE(request->rows);
  CHECK(request->rows->max_batch_size == 7);
  CHECK_FALSE(request->warm_up);
  CHECK_FALSE(request->outputs);
  CHECK_FALSE(model.served("", {.reason = "relu at model.py:7"}));
  for (const char* setting : {"batching=on", "batching=off", "max_batch_size=1", "trial_timeout=0"})
    CHECK_FALSE(model.served(setting));
}

TEST_CASE("trial plan: limits of the child are the settings'") {
  const TrialSettings set = trial_settings("/p", Planned::config("trial_timeout=7s")),
                      none = trial_settings("", Planned::config(""));
  CHECK(set.program == "/p");
  CHECK(set.time == std::chrono::seconds(7));
  CHECK(none.memory == 0);
  CHECK(trial_settings("", Planned::config("trial_memory=1048576")).memory == 1048576);
}

}  // namespace sconce::server::registry
