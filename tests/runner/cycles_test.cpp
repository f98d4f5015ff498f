// After 1,000 loads, the process has no more memory, mappings or threads than before.
#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <limits>

#include "sconce/model.h"
#include "tests/runner/fake_runner.h"

using namespace sconce;
using namespace sconce::runner;
using namespace sconce::test;

namespace {

struct Process {
  int64_t files = 0, mappings = 0, threads = 0, resident_kb = 0;
};

Process process() {
  Process now;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) now.files += entry.exists();
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) now.threads += entry.exists();
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++now.mappings;
  malloc_trim(0);
  std::ifstream memory("/proc/self/statm");
  int64_t pages = 0;
  memory >> pages >> pages;
  now.resident_kb = pages * 4;
  return now;
}

void cycle(const std::filesystem::path& package, int i) {
  LoadOptions options;
  options.replicas = 1 + i % 3;
  const auto model = Model::load(Package::open(package), options);
  stage(*model, {{"scale.w", {1, 1, 1, 1}}, {"scale.b", {0, 0, 0, 0}}}, {.label = std::to_string(i)});
  if (i % 5 == 0) return;  // unloaded with a staged set
  model->commit_weights();
  CHECK(run(*model, 7)[0] == (i % 2 == 0 ? 14 : 7));
  if (i % 4 == 0) model->rollback_weights();
  if (i % 7 == 0) model->remove_replica(model->add_replica(Device{}));
  if (i % 16 == 0) {  // a lane's thread
    struct Request final : RunRequest {
      std::atomic<bool> done{false};
      void finished() noexcept override {
        done = true;
        done.notify_one();
      }
    } request;
    const std::vector<Tensor> inputs{filled({2, 4}, 1)};
    std::vector<Tensor> outputs(1);
    request.inputs = inputs;
    request.outputs = outputs;
    model->submit(request);
    request.done.wait(false);
  }
  const auto abandoned = model->begin_update({.full = false});
  fill(*abandoned, {{"scale.w", {2, 2, 2, 2}}});
}

}  // namespace

TEST_CASE("cycles: 1,000 loads, updates and unloads leave memory, files, mappings and threads as they were") {
  TempFolder folder;
  fake::write_package(folder.path() / "folded.pt2", {{"model", fake::model("fake_folded")}});
  fake::write_package(folder.path() / "plain.pt2");
  const auto some = [&](int count) {
    for (int i = 0; i < count; ++i) cycle(folder.path() / (i % 2 == 0 ? "folded.pt2" : "plain.pt2"), i);
  };
  some(100);
  const Process before = process();
  int64_t least_growth = std::numeric_limits<int64_t>::max();  // a leak grows in every round
  for (int round = 0; round < 4; ++round) {
    const int64_t resident_kb = process().resident_kb;
    some(250);
    least_growth = std::min(least_growth, process().resident_kb - resident_kb);
  }
  const Process after = process();
  CHECK(after.files == before.files);
  CHECK(after.threads == before.threads);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(after.mappings <= before.mappings + 4);  // allowed for the heap
  CHECK(least_growth <= 256);
#endif
  CHECK(fake::loaded().empty());
}
