#include "sconce/trial/trial_process.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "fake_package.h"
#include "tests/errors.h"
#include "tests/files.h"

using namespace sconce;
using namespace std::chrono_literals;

namespace {

// A package in its three forms.
struct Packages {
  TempFolder folder;
  std::shared_ptr<const Package> directory, archive;
  Packages() {
    fake::write_directory(folder.path() / "package", {{"model", fake::model("fake_model")}}, true);
    directory = Package::open(folder.path() / "package");
    pack_directory(folder.path() / "package", folder.path() / "model.pt2");
    archive = Package::open(folder.path() / "model.pt2");
  }
};

TrialSettings settings(std::chrono::nanoseconds time = 60s) { return {.program = FAKE_TRIAL_PROGRAM, .time = time}; }

TrialEnd end_of(const std::string& request, const TrialSettings& with = settings()) {
  static const Packages packages;
  return TrialProcess(with, *packages.archive, request).wait();
}

bool has_children() {
  // ECHILD: every child was waited for.
  return ::waitpid(-1, nullptr, WNOHANG) >= 0;
}

}  // namespace

TEST_CASE("trial process: the child opens the very bytes of archives, directories and memory") {
  const Packages packages;
  const std::string bytes = content_of(packages.folder.path() / "model.pt2");
  const auto in_memory = Package::open(std::as_bytes(std::span(bytes)), nullptr, "in memory");
  for (const std::shared_ptr<const Package>& package : {packages.directory, packages.archive, in_memory}) {
    CAPTURE(package->path());
    std::vector<std::string> expected{"model", package->path().native()};
    for (const PackageMember& member : package->members())
      expected.push_back(member.name + " " + std::to_string(member.bytes));
    const TrialEnd end = TrialProcess(settings(), *package, "say").wait();
    CHECK(end.problem == "");
    CHECK(end.lines == expected);
    CHECK_FALSE(end.stopped);
  }
}

TEST_CASE("trial process: a package whose file was replaced by another is still the one that was opened") {
  TempFolder folder;
  fake::write_directory(folder.path() / "package", {{"model", fake::model("fake_model")}}, true);
  pack_directory(folder.path() / "package", folder.path() / "model.pt2");
  const auto package = Package::open(folder.path() / "model.pt2");
  folder.write("other", "not a package");
  std::filesystem::rename(folder / "other", folder / "model.pt2");
  const TrialEnd end = TrialProcess(settings(), *package, "say").wait();
  CHECK(end.problem == "");
  REQUIRE(end.lines.size() > 2);
  CHECK(end.lines[0] == "model");
}

TEST_CASE("trial process: the child has no descriptor but its own") {
  const int open = ::open("/dev/null", O_RDONLY);  // without close-on-exec
  CHECK(end_of("descriptors").lines == std::vector<std::string>{"0", "1", "2", "3"});
  ::close(open);
}

TEST_CASE("trial process: how a child ended, and its last words") {
  const TrialEnd aborted = end_of("abort");
  CAPTURE(aborted.problem);
  CHECK(aborted.problem.starts_with("ended by SIGABRT after "));
  CHECK(aborted.problem.ends_with(" ms: told to end"));
  CHECK(aborted.lines == std::vector<std::string>{"before"});
  CHECK(end_of("crash").problem.starts_with("ended by SIGSEGV after "));
  const TrialEnd failed = end_of("status");
  CHECK(failed.problem.starts_with("ended with status 3 after "));
  CHECK(failed.problem.ends_with(": the last words"));
  CHECK_FALSE(has_children());
}

TEST_CASE("trial process: a child that has reported all is not waited for") {
  for (const char* request : {"complete", "complete and hang"}) {
    CAPTURE(request);
    const TrialEnd end = end_of(request, settings(1h));
    CHECK(end.problem == "");
    CHECK(end.lines == std::vector<std::string>{"a line that says end"});
  }
  const TrialEnd broken = end_of("half an end");
  CHECK(broken.problem.starts_with("ended with status 3 after "));
  CHECK(broken.lines == std::vector<std::string>{"extend"});
  CHECK_FALSE(has_children());
}

TEST_CASE("trial process: a child that was started ahead takes its task later, from another thread") {
  const Packages packages;
  TrialProcess child(FAKE_TRIAL_PROGRAM);
  TrialEnd end;
  std::thread other([&] {
    child.give(settings(), *packages.archive, "say");
    end = child.wait();
  });
  other.join();
  CHECK(end.problem == "");
  REQUIRE(end.lines.size() > 2);
  CHECK(end.lines[0] == "model");
  // One that never gets a task.
  { const TrialProcess forgotten{FAKE_TRIAL_PROGRAM}; }
  CHECK(code_of([] { TrialProcess{"/no/such/program"}; }) == ErrorCode::kIo);
}

TEST_CASE("trial process: where nothing else is served, the child does not give way") {
  const Packages packages;
  TrialSettings with = settings();
  const int before = ::getpriority(PRIO_PROCESS, 0);
  for (const bool gives_way : {false, true}) {
    with.gives_way = gives_way;
    const TrialEnd end = TrialProcess(with, *packages.archive, "nice").wait();
    CHECK(end.lines == std::vector<std::string>{std::to_string(gives_way ? std::min(before + 10, 19) : before)});
  }
}

TEST_CASE("trial process: a child that hangs is ended at the limit, and so are its own children") {
  for (const char* request : {"hang", "stubborn"}) {
    CAPTURE(request);
    const TrialEnd end = end_of(request, settings(200ms));
    CHECK(end.problem.starts_with("was ended at its limit after "));
    CHECK_FALSE(end.stopped);
  }
  CHECK_FALSE(has_children());
}

TEST_CASE("trial process: a caller that wants to stop waits no longer") {
  const int stop = ::eventfd(0, EFD_CLOEXEC);
  const Packages packages;
  TrialProcess child(settings(1h), *packages.archive, "hang");
  std::thread stopping([&] { ::eventfd_write(stop, 1); });
  const TrialEnd end = child.wait(stop);
  stopping.join();
  CHECK(end.stopped);
  CHECK_FALSE(has_children());
  // Nobody waits for this one at all.
  { const TrialProcess forgotten(settings(1h), *packages.archive, "hang"); }
  CHECK_FALSE(has_children());
  ::close(stop);
}

TEST_CASE("trial process: what it reports and says is bounded") {
  CHECK(end_of("flood").problem == "was ended, because it reports without end");
  const TrialEnd wordy = end_of("words");
  CHECK(wordy.problem == "");
  CHECK(wordy.lines == std::vector<std::string>{"after"});
  CHECK(end_of("half").lines == std::vector<std::string>{"whole"});
  CHECK_FALSE(has_children());
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which have no such limit
TEST_CASE("trial process: a child that takes more memory than it may has none") {
  TrialSettings with = settings();
  with.memory = uint64_t{256} << 20;
  const TrialEnd end = end_of("memory", with);
  CAPTURE(end.problem);
  CHECK(end.problem.starts_with("ended by SIGABRT after "));
  CHECK(end.problem.ends_with("std::bad_alloc"));
}
#endif

TEST_CASE("trial process: programs that are none of ours") {
  const Packages packages;
  CHECK(code_of([&] { TrialProcess({.program = "/no/such/program"}, *packages.archive, ""); }) == ErrorCode::kIo);
  // It reads no task.
  CHECK(TrialProcess({.program = "/bin/true"}, *packages.archive, "").wait().problem == "");
  CHECK(TrialProcess({.program = "/bin/false"}, *packages.archive, "")
            .wait()
            .problem.starts_with("ended with status 1 after "));
  CHECK_FALSE(has_children());
}
