#include "server/registry/trial/row_checks.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "fake_package.h"
#include "package_format/files/host_memory.h"
#include "tests/files.h"

namespace sconce::server::registry {
namespace {

constexpr const char* kDiffers = R"(report {"rows":{"found":"differs","reason":"they meet"}})";

// Served models whose child does what FAKE_TRIAL says (tests/runner/trial/fake_trial.cpp).
struct Served {
  TempFolder folder;
  PackageEntry entry;
  int stop = ::eventfd(0, EFD_CLOEXEC);
  std::mutex mutex;
  std::condition_variable told;
  std::vector<std::string> contradicted;
  int asked = 0;      // whether a model is still served
  bool gone = false;  // none is

  explicit Served(const std::string& instead) {
    fake::write_directory(folder.path() / "package", {{"model", fake::model("fake_model")}}, true);
    entry.name = entry.file.stem = "m";
    entry.package = Package::open(folder.path() / "package");
    ::setenv("FAKE_TRIAL", instead.c_str(), 1);
  }
  ~Served() {
    ::unsetenv("FAKE_TRIAL");
    ::close(stop);
  }

  void add(RowChecks& checks, const std::string& name = "m", const std::string& setting = "") {
    ServerConfig config;
    if (!setting.empty()) config.set_model("m." + setting, "test");
    entry.name = name;
    scheduling::ModelSignature interface(name, 1, entry.package->model());
    interface.spec.rows = {.by = RowProof::By::kSource};
    checks.add(entry, interface, config.model("m"),
               {.served =
                    [this] {
                      {
                        const std::lock_guard lock(mutex);
                        ++asked;
                      }
                      told.notify_all();
                      return !gone;
                    },
                .contradict =
                    [this, name](const scheduling::InvarianceFinding& found) {
                      {
                        const std::lock_guard lock(mutex);
                        contradicted.push_back(name + ": " + found.reason);
                      }
                      told.notify_all();
                    }});
  }
  void wait_until_asked() {
    std::unique_lock lock(mutex);
    told.wait(lock, [&] { return asked > 0; });
  }
  // As many models were contradicted.
  void wait(size_t count) {
    std::unique_lock lock(mutex);
    told.wait(lock, [&] { return contradicted.size() >= count; });
  }
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("row checks: a contradiction is told, of each model by itself, and nothing is checked before the start") {
  Served served(kDiffers);
  RowChecks checks(served.stop);
  served.add(checks, "a");
  served.add(checks, "b");
  CHECK(served.asked <= 1);  // no thread yet
  CHECK(served.contradicted.empty());
  checks.start(FAKE_TRIAL_PROGRAM, std::make_unique<TrialProcess>(FAKE_TRIAL_PROGRAM));
  served.wait(2);
  CHECK(served.contradicted == Names{"a: they meet", "b: they meet"});
  // The thread may have ended, and begins anew.
  served.add(checks, "c");
  served.wait(3);
  CHECK(served.contradicted.back() == "c: they meet");
}

TEST_CASE("row checks: the child that waits is used first") {
  Served served(kDiffers);
  RowChecks checks(served.stop);
  served.add(checks);
  checks.start("/no/such/program", std::make_unique<TrialProcess>(FAKE_TRIAL_PROGRAM));
  served.wait(1);
}

TEST_CASE("row checks: a child that saw nothing, hangs or ends contradicts nothing") {
  for (const char* instead :
       {R"(report {"rows":{"found":"same","reason":""}})",
        R"(report {"rows":{"found":"unknown","reason":"it is too slow"}})", "abort", "nonsense", "hang", "crash"}) {
    CAPTURE(instead);
    Served served(instead);
    RowChecks checks(served.stop);
    checks.start(FAKE_TRIAL_PROGRAM, nullptr);
    served.add(checks, "m", "trial_timeout=300ms");
    served.wait_until_asked();
    checks.end();  // waits for the check that has begun
    CHECK(served.contradicted.empty());
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which have no such limit
TEST_CASE("row checks: a child takes no more than half of the memory that is left, or what is set") {
  for (const char* setting : {"", "trial_memory=128M"}) {
    CAPTURE(setting);
    Served served("data limit");
    RowChecks checks(served.stop);
    checks.start(FAKE_TRIAL_PROGRAM, nullptr);
    const uint64_t all = host_memory().limit;
    served.add(checks, "m", setting);
    served.wait(1);
    const std::string told = served.contradicted.at(0).substr(std::string("m: ").size());
    if (*setting != '\0')
      CHECK(told == std::to_string(uint64_t{128} << 20));
    else
      CHECK(std::stoull(told) <= all / 2);
  }
}
#endif

TEST_CASE("row checks: models that have gone are not checked") {
  Served gone(kDiffers), served(kDiffers);
  gone.gone = true;
  RowChecks checks(gone.stop);
  gone.add(checks, "first");
  gone.add(checks, "second");
  served.add(checks, "third");
  checks.start(FAKE_TRIAL_PROGRAM, nullptr);
  served.wait(1);
  CHECK(gone.contradicted.empty());
}

TEST_CASE("row checks: a server that ends waits for no child, and starts no other") {
  Served served("hang");
  RowChecks checks(served.stop);
  checks.start(FAKE_TRIAL_PROGRAM, nullptr);
  served.add(checks, "a", "trial_timeout=60m");
  served.add(checks, "b", "trial_timeout=60m");
  served.wait_until_asked();
  ::eventfd_write(served.stop, 1);
  checks.end();
  served.add(checks, "c");
  CHECK(served.contradicted.empty());
}

TEST_CASE("row checks: without a program, or before any start, there is nothing to end") {
  Served served(kDiffers);
  {
    RowChecks never(served.stop);
    served.add(never);
  }
  RowChecks off(served.stop);
  served.add(off);
  off.start("", nullptr);
  served.add(off);
  off.end();
  CHECK(served.contradicted.empty());
  RowChecks unknown(served.stop);
  unknown.start("/no/such/program", nullptr);
  served.asked = 0;
  served.add(unknown);
  served.wait_until_asked();
  unknown.end();
  CHECK(served.contradicted.empty());
}

}  // namespace sconce::server::registry
