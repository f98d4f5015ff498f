// Models whose package is written in place while they serve.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>

#include "sconce/mapped_files.h"
#include "tests/package_format/without_leases.h"
#include "tests/runner/fake_runner.h"

using namespace sconce;
using namespace sconce::runner;
using namespace sconce::test;
namespace fs = std::filesystem;

namespace {

constexpr int64_t kColumns = 2097152;  // of fake_large: 16 MiB of weights

// A package on tmpfs. Files there cannot share blocks, so the runtime can keep old bytes only if it has a lease.
struct Packaged {
  TempFolder folder{"/dev/shm"};
  fs::path path = folder.path() / "large.pt2";
  std::shared_ptr<Model> model;

  Packaged() { fake::write_package(path, {{"model", fake::model("fake_large")}}); }
  void load(int replicas = 1) {
    LoadOptions options;
    options.replicas = replicas;
    model = Model::load(Package::open(path), options);
  }
  // Changes every byte of the package.
  void overwrite(bool truncate) const {
    const auto bytes = fs::file_size(path);
    std::fstream file(path, std::ios::binary | (truncate ? std::ios::out : std::ios::in | std::ios::out));
    const std::string other(1 << 20, 'x');
    for (uint64_t at = 0; at < bytes; at += other.size())
      file.write(other.data(), static_cast<std::streamsize>(std::min<uint64_t>(other.size(), bytes - at)));
  }
  std::string failure() const {
    const std::vector<Tensor> inputs{filled({2, kColumns}, 1)};
    std::vector<Tensor> outputs(model->info().spec.outputs.size());
    const std::string reason = error_from(ErrorCode::kUnavailable, [&] { model->run(inputs, outputs); });
    CHECK(!outputs[0].defined());
    return reason;
  }
};

bool is_stored(const std::vector<float>& got, float x) {
  for (size_t i = 0; i < got.size(); ++i)
    if (got[i] != fake::expected(x, static_cast<int64_t>(i))) return false;
  return got.size() == kColumns;
}

}  // namespace

TEST_CASE("package files: a model answers as before when its package is overwritten") {
  for (const bool truncate : {true, false}) {
    Packaged packaged;
    packaged.load(2);
    CHECK(is_stored(run(*packaged.model, 3, kColumns), 3));
    const std::string digest = packaged.model->weights_digest(WeightState::kActive);
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0}, runs{0};
    std::thread client([&] {
      while (!stop) {
        wrong += !is_stored(run(*packaged.model, 2, kColumns), 2);
        ++runs;
      }
    });
    while (runs == 0) std::this_thread::yield();
    packaged.overwrite(truncate);
    for (const int before = runs; runs < before + 3;) std::this_thread::yield();
    stop = true;
    client.join();
    CHECK(wrong == 0);
    CHECK(packaged.model->package_fault().empty());
    // Replicas and sets that are made later have the old weights as well.
    packaged.model->add_replica(Device{});
    CHECK(is_stored(run(*packaged.model, 5, kColumns), 5));
    publish(*packaged.model, {}, {.full = false});
    CHECK(is_stored(run(*packaged.model, 6, kColumns), 6));
    CHECK(packaged.model->weights_digest(WeightState::kActive) == digest);
  }
}

TEST_CASE("package files: without a lease a model that was overwritten says so, and others serve") {
  guard_mapped_files();
  for (const int how : {0, 1, 2}) {
    CAPTURE(how);
    Packaged packaged, other;
    const testing::WithoutLeases without(packaged.path);
    if (!without) return;  // only root can give files to another user
    packaged.load();
    other.load();
    CHECK(is_stored(run(*packaged.model, 3, kColumns), 3));
    CHECK(packaged.model->package_fault().empty());
    if (how == 0) packaged.overwrite(true);
    if (how == 1) packaged.overwrite(false);
    if (how == 2) REQUIRE(::truncate(packaged.path.c_str(), 0) == 0);
    for (int i = 0; i < 3; ++i) {
      const std::string why = packaged.failure();
      CHECK_MESSAGE(contains(why, packaged.path.string()), why);
      CHECK(contains(why, "in place"));
    }
    CHECK(contains(packaged.model->package_fault(), packaged.path.string()));
    CHECK(!packaged.model->failed());
    CHECK(code_of([&] { packaged.model->add_replica(Device{}); }) == ErrorCode::kUnavailable);
    CHECK(code_of([&] { packaged.model->weights_digest(WeightState::kActive); }) == ErrorCode::kUnavailable);
    CHECK(code_of([&] { packaged.model->extract_constants(WeightState::kActive); }) == ErrorCode::kUnavailable);
    CHECK(is_stored(run(*other.model, 4, kColumns), 4));
    CHECK(other.model->package_fault().empty());
    // A new load serves the new content.
    fake::write_package(packaged.path, {{"model", fake::model("fake_large")}});
    packaged.load();
    CHECK(is_stored(run(*packaged.model, 3, kColumns), 3));
  }
}

TEST_CASE("package files: weights that came later serve whatever becomes of the package") {
  guard_mapped_files();
  Packaged packaged;
  const testing::WithoutLeases without(packaged.path);
  if (!without) return;
  packaged.load();
  std::vector<Values> all;
  for (const ConstantSpec& constant : packaged.model->constants()) {
    REQUIRE(constant.shape.size() == 1);
    all.push_back({constant.fqn.empty() ? constant.name : constant.fqn,
                   std::vector<float>(static_cast<size_t>(constant.shape[0]), 2)});
  }
  stage(*packaged.model, all, {.full = true});
  packaged.model->commit_weights();
  const std::vector<float> before = run(*packaged.model, 3, kColumns);
  REQUIRE(::truncate(packaged.path.c_str(), 0) == 0);
  CHECK(run(*packaged.model, 3, kColumns) == before);
  CHECK(packaged.model->package_fault().empty());
  // The package's weights are gone, so there is nothing to roll back to.
  CHECK(code_of([&] { packaged.model->rollback_weights(); }) == ErrorCode::kUnavailable);
  CHECK(run(*packaged.model, 3, kColumns) == before);
}

TEST_CASE("package files: a package that is overwritten while it is loaded") {
  guard_mapped_files();
  for (int i = 0; i < 6; ++i) {
    CAPTURE(i);
    Packaged packaged;
    const bool lease = i % 2 == 0;
    std::optional<testing::WithoutLeases> without;
    if (!lease && !without.emplace(packaged.path)) return;
    std::atomic<bool> begun{false};
    std::thread writer([&] {
      while (!begun) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(i));
      packaged.overwrite(i < 3);
    });
    begun = true;
    code_of([&] {
      packaged.load();
      // Loading fails, or the model answers with the old weights.
      const bool right = is_stored(run(*packaged.model, 3, kColumns), 3);
      CHECK(right);
    });
    writer.join();
    if (packaged.model && lease) CHECK(is_stored(run(*packaged.model, 3, kColumns), 3));
  }
}
