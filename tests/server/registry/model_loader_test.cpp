#include "server/registry/model_loader.h"

#include <doctest/doctest.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

#include "tests/errors.h"
#include "tests/server/registry/served_folder.h"

namespace sconce::server::registry {

using test::ServedFolder;

namespace {

void all_versions(ServerConfig& config) { config.versions = Versions::kAll; }
void goes_on(ServerConfig& config) { config.exit_on_error = false; }

// Has the loader's thread wait until it is let go.
class Gate {
 public:
  explicit Gate(ModelLoader& loader) {
    loader.submit(
        [this] {
          begun_.set_value();
          open_.get_future().wait();
        },
        [this](const std::exception_ptr&) { over_.set_value(); });
    begun_.get_future().wait();
  }
  void open() { open_.set_value(); }
  void wait() { over_.get_future().wait(); }

 private:
  std::promise<void> begun_, open_, over_;
};

// Starts the loader, and returns when it has loaded what it begins with.
void start(ModelLoader& loader) {
  loader.start();
  std::promise<void> over;
  loader.submit([] {}, [&](const std::exception_ptr&) { over.set_value(); });
  over.get_future().wait();
}

}  // namespace

TEST_CASE("model loader: a new version takes the place of the earlier one") {
  ServedFolder served({"m/1"});
  served.loader->load_model("m");
  CHECK(served.states() == "m/1 ready");
  served.put("m/2");
  served.loader->load_model("m");
  CHECK(served.states() == "m/1 unloaded: unloaded, m/2 ready");
  served.remove("m/2");
  served.loader->load_model("m");
  CHECK(served.states() == "m/1 ready, m/2 unloaded: unloaded");
}

TEST_CASE("model loader: only what is new is loaded, or all of it where nothing is") {
  ServedFolder served({"m/1"}, all_versions);
  served.loader->load_model("m");
  served.put("m/2");
  const auto first = served.now()->ready("m", "1");
  served.loader->load_model("m");
  CHECK(served.states() == "m/1 ready, m/2 ready");
  CHECK(served.now()->ready("m", "1") == first);
  const auto second = served.now()->ready("m", "2");
  served.loader->load_model("m");
  CHECK(served.now()->ready("m", "1") != first);
  CHECK(served.now()->ready("m", "2") != second);
}

TEST_CASE("model loader: a version that cannot be opened does not keep the others from being loaded") {
  ServedFolder served({"m/1", "m/3"}, all_versions);
  served.put_broken("m/2");
  CHECK(code_of([&] { served.loader->load_model("m"); }).has_value());
  const std::string states = served.states();
  CHECK(states.starts_with("m/1 ready, m/2 failed: "));
  CHECK(states.ends_with(", m/3 ready"));
  served.put("m/2");
  served.loader->load_model("m");
  CHECK(served.states() == "m/1 ready, m/2 ready, m/3 ready");
}

TEST_CASE("model loader: a package that became worse leaves what is served") {
  ServedFolder served({"m/1"});
  served.loader->load_model("m");
  const auto first = served.now()->ready("m", "");
  served.remove("m/1");
  served.put_broken("m/1");
  CHECK(code_of([&] { served.loader->load_model("m"); }).has_value());
  CHECK(served.states().starts_with("m/1 ready: "));
  CHECK(served.now()->ready("m", "") == first);
}

TEST_CASE("model loader: a setting that is wrong fails the load and names the model") {
  ServedFolder served({"m/1"}, [](ServerConfig& config) { config.set_model("m.replicas=0", "the test"); });
  const std::string reason = "setting replicas of model 'm' must be 1 or more";
  CHECK(error_from(ErrorCode::kInvalidArgument, [&] { served.loader->load_model("m"); }) == reason);
  CHECK(served.states() == "m/1 failed: " + reason);
}

TEST_CASE("model loader: after a version that cannot be loaded the next one is tried, and the first error is told") {
  ServedFolder served({"m/1", "m/2"}, [](ServerConfig& config) {
    all_versions(config);
    config.set_model("m.replicas=0", "the test");
  });
  const std::string reason = "setting replicas of model 'm' must be 1 or more";
  CHECK(error_from(ErrorCode::kInvalidArgument, [&] { served.loader->load_model("m"); }) == reason);
  CHECK(served.states() == "m/1 failed: " + reason + ", m/2 failed: " + reason);
}

TEST_CASE("model loader: what is not there is neither loaded nor unloaded") {
  ServedFolder served({"m/1"});
  CHECK(error_from(ErrorCode::kNotFound, [&] { served.loader->load_model("other"); }) ==
        "no package of a model 'other' in what is served");
  CHECK(code_of([&] { served.loader->unload_model("other"); }) == ErrorCode::kNotFound);
  CHECK(code_of([&] { served.loader->load_model("../m"); }) == ErrorCode::kNotFound);
  CHECK(served.states() == "m/1 loading");
}

TEST_CASE("model loader: a model is unloaded and loaded again") {
  ServedFolder served({"m/1"});
  served.loader->load_model("m");
  served.loader->unload_model("m");
  CHECK(served.states() == "m/1 unloaded: unloaded");
  served.loader->load_model("m");
  CHECK(served.states() == "m/1 ready");
}

TEST_CASE("model loader: a loaded model is told of before anybody else can find it") {
  ServedFolder served({"m/1"});
  std::vector<std::string> told;
  served.loader->on_loaded([&](const std::shared_ptr<ServedModel>& model, const weights::StartingWeights&) {
    told.push_back(model->interface().name + ": " + served.states());
  });
  served.loader->load_model("m");
  CHECK(told == std::vector<std::string>{"m: m/1 loading"});
}

TEST_CASE("model loader: once the server ends nothing is loaded, and that is no failure of the model") {
  ServedFolder served({"m/1"});
  served.loader->end_loads();
  CHECK(error_from(ErrorCode::kUnavailable, [&] { served.loader->load_model("m"); }) == "the server is ending");
  CHECK(served.states() == "m/1 loading");
}

TEST_CASE("model loader: it begins with the models of the start, in their order") {
  ServedFolder served({"a/1", "b/1"});
  std::string loaded;
  served.loader->on_loaded([&](const std::shared_ptr<ServedModel>& model, const weights::StartingWeights&) {
    loaded += model->interface().name;
  });
  start(*served.loader);
  CHECK(loaded == "ab");
  CHECK(served.states() == "a/1 ready, b/1 ready");
  CHECK(served.now()->is_ready());
  CHECK(served.failures.empty());
}

TEST_CASE("model loader: a model of the start that cannot be loaded ends the server, unless it may go on") {
  const auto wrong = [](ServerConfig& config) { config.set_model("a.replicas=0", "the test"); };
  SUBCASE("ends") {
    ServedFolder served({"a/1", "b/1"}, wrong);
    start(*served.loader);
    CHECK(served.failures == std::vector<std::string>{"setting replicas of model 'a' must be 1 or more"});
    CHECK(served.states() == "a/1 failed: " + served.failures[0] + ", b/1 loading");
  }
  SUBCASE("goes on") {
    ServedFolder served({"a/1", "b/1"}, [&](ServerConfig& config) {
      goes_on(config);
      wrong(config);
    });
    start(*served.loader);
    CHECK(served.failures.empty());
    CHECK(served.states() == "a/1 failed: setting replicas of model 'a' must be 1 or more, b/1 ready");
    CHECK_FALSE(served.now()->is_ready());
  }
}

TEST_CASE("model loader: a package of the start that could not be opened is not served, though the others are") {
  ServedFolder served({"b/1"}, goes_on);
  served.put_broken("a/1");
  ServedFolder again({}, [&](ServerConfig& config) {
    goes_on(config);
    config.serve = served.config.serve;
  });
  start(*again.loader);
  CHECK(again.states().starts_with("a/1 failed: "));
  CHECK(again.states().ends_with(", b/1 ready"));
  served.put("a/1");
  again.loader->load_model("a");
  CHECK(again.states() == "a/1 ready, b/1 ready");
}

TEST_CASE("model loader: tasks run one at a time in order, and what one throws is told and ends no other") {
  ServedFolder served({});
  served.loader->start();
  Gate gate(*served.loader);
  std::string order;
  std::vector<std::string> problems;
  std::promise<void> over;
  const auto told = [&](const std::exception_ptr& problem) {
    problems.push_back(problem ? describe_failure(problem).message : "");
    if (problems.size() == 3) over.set_value();
  };
  served.loader->submit([&] { order += 'a'; }, told);
  served.loader->submit([&] { throw Error(ErrorCode::kNotFound, "b is not there"); }, told);
  served.loader->submit([&] { order += 'c'; }, told);
  CHECK(order.empty());
  gate.open();
  over.get_future().wait();
  CHECK(order == "ac");
  CHECK(problems == std::vector<std::string>{"", "b is not there", ""});
}

TEST_CASE("model loader: the end lets the task under way finish and refuses the others, also new ones") {
  ServedFolder served({});
  served.loader->start();
  Gate gate(*served.loader);
  std::vector<std::string> problems;
  bool ran = false;
  for (int i = 0; i < 2; ++i)
    served.loader->submit([&] { ran = true; },
                          [&](const std::exception_ptr& problem) {
                            problems.push_back(problem ? describe_failure(problem).message : "");
                          });
  std::thread stops([&] { served.loader->stop(); });
  const auto refused = [&] {
    return code_of([&] { served.loader->submit([] {}, [](const std::exception_ptr&) {}); }) == ErrorCode::kUnavailable;
  };
  while (!refused()) std::this_thread::yield();
  CHECK(problems.empty());
  gate.open();
  gate.wait();
  stops.join();
  CHECK_FALSE(ran);
  CHECK(problems == std::vector<std::string>(2, "the server is ending"));
}

TEST_CASE("model loader: a thousand tasks may wait, and no more") {
  ServedFolder served({});
  served.loader->start();
  Gate gate(*served.loader);
  const auto submit = [&] { served.loader->submit([] {}, [](const std::exception_ptr&) {}); };
  for (int i = 0; i < 1000; ++i) submit();
  CHECK(code_of(submit) == ErrorCode::kQueueFull);
  gate.open();
  gate.wait();
}

}  // namespace sconce::server::registry
