#include "server/registry/repository.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/errors.h"
#include "tests/server/registry/served_folder.h"

namespace sconce::server::registry {

using test::ServedFolder;

namespace {

void all_versions(ServerConfig& config) { config.versions = Versions::kAll; }

// Adds a model's setting.
auto with_setting(const std::string& assignment) {
  return [assignment](ServerConfig& config) {
    all_versions(config);
    config.set_model(assignment, "the test");
  };
}

// The version that a path without one, or with this one, is answered by.
int64_t version_of(const ServedFolder& served, const std::string& version) {
  return served.now()->ready("m", version)->interface().version;
}

// A pipeline of one step, which is the model `step`.
PackageEntry pipeline(const std::string& name, const std::string& step) {
  const std::string text = R"({"inputs": ["x"], "outputs": ["y"], "steps": [{"model": ")" + step +
                           R"(", "inputs": {"INPUT__0": "x"}, "outputs": {"OUTPUT__0": "y"}}]})";
  PackageEntry entry;
  entry.name = entry.file.stem = name;
  entry.pipeline =
      std::make_shared<const scheduling::PipelineSpec>(scheduling::read_pipeline(text, name + ".pipeline.json"));
  return entry;
}

}  // namespace

TEST_CASE("repository: models of the start are awaited until they are served") {
  ServedFolder served({"a/1", "b/1"});
  CHECK(served.states() == "a/1 loading, b/1 loading");
  CHECK_FALSE(served.now()->is_ready());
  CHECK(error_from(ErrorCode::kUnavailable, [&] { served.now()->ready("a", ""); }) ==
        "'a' version 1 is not at ready state");
  served.publish("a");
  CHECK(served.states() == "a/1 ready, b/1 loading");
  CHECK_FALSE(served.now()->is_ready());
  served.publish("b");
  CHECK(served.now()->is_ready());
}

TEST_CASE("repository: without a model it is ready, and no more once it had some and all are unloaded") {
  ServedFolder served({});
  CHECK(served.now()->is_ready());
  served.put("m/1");
  served.publish("m");
  CHECK(served.now()->is_ready());
  served.repository->unload("m");
  CHECK_FALSE(served.now()->is_ready());
}

TEST_CASE("repository: a model that cannot be loaded keeps the server from being ready, until it is unloaded") {
  ServedFolder served({"a/1", "b/1"});
  served.publish("a");
  served.repository->publish_failure(served.package("b"), "no such file");
  CHECK(served.states() == "a/1 ready, b/1 failed: no such file");
  CHECK(error_from(ErrorCode::kUnavailable, [&] { served.now()->ready("b", ""); }) ==
        "'b' version 1 is not at ready state: no such file");
  CHECK_FALSE(served.now()->is_ready());
  served.repository->unload("b");
  CHECK(served.now()->is_ready());
}

TEST_CASE("repository: what is served stays after a load that failed, and its reason until the next one") {
  ServedFolder served({"m/1"});
  served.publish("m");
  const auto before = served.now()->ready("m", "");
  served.repository->publish_loading(served.package("m"));
  CHECK(served.states() == "m/1 ready");
  served.repository->publish_failure(served.package("m"), "broken");
  CHECK(served.states() == "m/1 ready: broken");
  CHECK(served.now()->ready("m", "") == before);
  CHECK(served.now()->is_ready());
  CHECK(served.repository->was_rewritten(served.package("m")));
  served.publish("m");
  CHECK(served.states() == "m/1 ready");
  CHECK(served.now()->ready("m", "") != before);
  CHECK_FALSE(served.repository->was_rewritten(served.package("m")));
}

TEST_CASE("repository: a file that was replaced by another one was not rewritten") {
  ServedFolder served({"m/1"});
  served.publish("m");
  fake::write_package(served.folder / "new");
  std::filesystem::rename(served.folder / "new", served.folder / "m/1/model.pt2");
  CHECK_FALSE(served.repository->was_rewritten(served.package("m")));
}

TEST_CASE("repository: a path without a version means the highest one that is ready") {
  ServedFolder served({"m/1", "m/2", "m/3"}, with_setting("m.version_labels=stable:1,next:3"));
  CHECK(error_from(ErrorCode::kUnavailable, [&] { version_of(served, ""); }) == "'m' version 3 is not at ready state");
  served.publish("m", 1);
  CHECK(version_of(served, "") == 1);
  served.publish("m", 2);
  CHECK(version_of(served, "") == 2);
  served.repository->publish_failure(served.package("m", 3), "broken");
  CHECK(version_of(served, "") == 2);
  CHECK(version_of(served, "1") == 1);
  CHECK(version_of(served, "stable") == 1);
  CHECK(code_of([&] { version_of(served, "3"); }) == ErrorCode::kUnavailable);
  CHECK(code_of([&] { version_of(served, "next"); }) == ErrorCode::kUnavailable);
  CHECK(code_of([&] { version_of(served, "4"); }) == ErrorCode::kNotFound);
  CHECK(code_of([&] { version_of(served, "other"); }) == ErrorCode::kNotFound);
  served.publish("m", 3);
  CHECK(version_of(served, "") == 3);
  CHECK(version_of(served, "next") == 3);
}

TEST_CASE("repository: requests finish with the model they began with, and later ones do not find it") {
  ServedFolder served({"m/1"});
  served.publish("m");
  const auto before = served.now();
  const uint64_t revision = served.repository->revision();
  served.repository->unload("m");
  CHECK(served.repository->revision() == revision + 1);
  CHECK(before->ready("m", "")->model().info().replicas == 1);
  CHECK(served.states() == "m/1 unloaded: unloaded");
  CHECK(error_from(ErrorCode::kNotFound, [&] { served.now()->ready("m", ""); }) ==
        "Request for unknown model: 'm' has no available versions");
  CHECK(error_from(ErrorCode::kUnavailable, [&] { served.now()->ready("m", "1"); }) ==
        "'m' version 1 is not at ready state: unloaded");
  served.publish("m");
  CHECK(served.states() == "m/1 ready");
}

TEST_CASE("repository: nothing is unloaded that is not there") {
  ServedFolder served({"m/1"});
  const uint64_t revision = served.repository->revision();
  CHECK(error_from(ErrorCode::kNotFound, [&] { served.repository->unload("other"); }) ==
        "Request for unknown model: 'other' is not found");
  CHECK(code_of([&] { served.repository->keep_only("other", {}); }) == ErrorCode::kNotFound);
  CHECK(served.repository->revision() == revision);
  served.repository->forget("other");
  CHECK(served.states() == "m/1 loading");
}

TEST_CASE("repository: versions that are superseded are unloaded, and forgotten the next time") {
  ServedFolder served({"m/1", "m/2", "m/3"}, all_versions);
  for (int64_t version = 1; version <= 3; ++version) served.publish("m", version);
  const std::vector<PackageEntry> last = {served.package("m", 3)};
  served.repository->keep_only("m", std::vector{served.package("m", 2), last[0]});
  CHECK(served.states() == "m/1 unloaded: unloaded, m/2 ready, m/3 ready");
  served.repository->keep_only("m", last);
  CHECK(served.states() == "m/2 unloaded: unloaded, m/3 ready");
  served.repository->keep_only("m", last);
  CHECK(served.states() == "m/3 ready");
  const uint64_t revision = served.repository->revision();
  served.repository->keep_only("m", last);
  CHECK(served.repository->revision() == revision);  // nothing changed
}

TEST_CASE("repository: a model that is forgotten is unknown") {
  ServedFolder served({"a/1", "b/1", "c/1"});
  for (const char* const name : {"a", "b", "c"}) served.publish(name);
  served.repository->forget(std::vector<std::string>{"a", "c"});
  CHECK(served.states() == "b/1 ready");
  CHECK(code_of([&] { served.now()->ready("a", "1"); }) == ErrorCode::kNotFound);
  CHECK(served.now()->ready("b", "1")->interface().name == "b");
}

TEST_CASE("repository: counts of a version survive a reload, and end with it") {
  ServedFolder served({"m/1"});
  served.publish("m");
  const auto counts = [&] { return &served.now()->ready("m", "")->statistics(); };
  const auto* const before = counts();
  const auto keeps = served.now();  // or its memory could be had anew
  served.publish("m");
  CHECK(counts() == before);
  served.repository->unload("m");
  served.publish("m");
  CHECK(counts() != before);
}

TEST_CASE("repository: the budget counts what is loaded") {
  ServedFolder served({"a/1", "b/1"});
  CHECK(served.budget.used()[ModelBudget::kHost] == 0);
  served.publish("a");
  const uint64_t one = served.budget.used()[ModelBudget::kHost];
  CHECK(one > 0);
  served.publish("a");  // in place of the earlier one
  CHECK(served.budget.used()[ModelBudget::kHost] == one);
  served.publish("b");
  CHECK(served.budget.used()[ModelBudget::kHost] == 2 * one);
  served.repository->unload("a");
  CHECK(served.budget.used()[ModelBudget::kHost] == one);
  served.repository->forget("b");
  CHECK(served.budget.used()[ModelBudget::kHost] == 0);
}

TEST_CASE("repository: while a repository is away, unknown models may be there") {
  ServedFolder served({"m/1"});
  served.publish("m");
  served.repository->set_away("s3://bucket", {"no connection", false});
  CHECK_FALSE(served.now()->is_ready());
  CHECK(version_of(served, "") == 1);
  CHECK(error_from(ErrorCode::kUnavailable, [&] { served.now()->ready("other", ""); }) ==
        "model 'other' is not known: no connection");
  served.repository->set_away("s3://bucket", {"no connection", true});  // its models are known from earlier
  CHECK(served.now()->is_ready());
  CHECK(code_of([&] { served.now()->ready("other", ""); }) == ErrorCode::kNotFound);
  served.repository->set_away("s3://bucket", {});
  CHECK(served.now()->away().empty());
}

TEST_CASE("repository: a pipeline is ready while its models are") {
  ServedFolder served({"m/1"});
  const std::string waits = served.repository->publish_pipeline(pipeline("p", "m"));
  CHECK(waits == "'m' version 1 is not at ready state");
  CHECK(served.states() == "m/1 loading, p/1 failed: " + waits);
  CHECK(served.now()->needs("p", "m"));
  CHECK_FALSE(served.now()->needs("m", "p"));
  served.publish("m");
  CHECK(served.states() == "m/1 ready, p/1 ready");
  const auto first = served.now()->ready("p", "");
  CHECK(first->is_pipeline());
  served.repository->unload("m");
  CHECK(served.states() ==
        "m/1 unloaded: unloaded, p/1 failed: Request for unknown model: 'm' has no available versions");
  served.publish("m");
  CHECK(served.states() == "m/1 ready, p/1 ready");
  CHECK(served.now()->ready("p", "") != first);  // of the new model
}

TEST_CASE("repository: a pipeline is made anew only when one of its models is") {
  ServedFolder served({"m/1", "other/1"});
  served.publish("m");
  CHECK(served.repository->publish_pipeline(pipeline("p", "m")).empty());
  const auto first = served.now()->ready("p", "");
  served.publish("other");
  CHECK(served.now()->ready("p", "") == first);
  served.publish("m");
  CHECK(served.now()->ready("p", "") != first);
}

TEST_CASE("repository: pipelines of pipelines come and go with the model below, whatever their names") {
  ServedFolder served({"m/1"});
  served.repository->publish_pipeline(pipeline("a", "z"));
  served.repository->publish_pipeline(pipeline("z", "m"));
  CHECK(served.now()->needs("a", "m"));
  served.publish("m");
  CHECK(served.states() == "a/1 ready, m/1 ready, z/1 ready");
  served.repository->unload("m");
  CHECK(served.states().find("ready,") == std::string::npos);
  CHECK(code_of([&] { served.now()->ready("a", ""); }) == ErrorCode::kUnavailable);
}

TEST_CASE("repository: a pipeline that is a step of itself is refused, also by way of another") {
  ServedFolder served({});
  const std::string itself = "the pipeline is a step of itself [";
  CHECK(served.repository->publish_pipeline(pipeline("p", "p")) == itself + "p.pipeline.json]");
  served.repository->publish_pipeline(pipeline("a", "b"));
  CHECK(served.repository->publish_pipeline(pipeline("b", "a")) == itself + "b.pipeline.json]");
  CHECK(served.states().find("ready,") == std::string::npos);
}

TEST_CASE("repository: a pipeline whose new file is wrong is served as before") {
  ServedFolder served({"m/1"});
  served.publish("m");
  CHECK(served.repository->publish_pipeline(pipeline("p", "m")).empty());
  const auto first = served.now()->ready("p", "");
  CHECK(served.repository->publish_pipeline(pipeline("p", "missing")) ==
        "Request for unknown model: 'missing' is not found");
  CHECK(served.now()->ready("p", "") == first);
}

}  // namespace sconce::server::registry
