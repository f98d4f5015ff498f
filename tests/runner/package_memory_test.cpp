// Models whose package is in memory.
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cstring>

#include "tests/runner/fake_runner.h"

using namespace sconce;
using namespace sconce::test;

namespace {

// A fake package in memory, `shift` bytes after the start of a page. When the last reference goes, it is unmapped, so
// later reads crash.
struct Bytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;

  explicit Bytes(const std::string& model, bool bare = false, size_t shift = 0) {
    const TempFolder folder;
    const auto path = folder / "net.pt2";
    if (bare)
      fake::write_shared_object(path, fake::model(model));
    else
      fake::write_package(path, {{"model", fake::model(model)}});
    const std::string content = content_of(path);
    const size_t size = content.size() + shift;
    void* const pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(pages != MAP_FAILED);
    owner = {pages, [size](const void* at) { munmap(const_cast<void*>(at), size); }};
    std::memcpy(static_cast<std::byte*>(pages) + shift, content.data(), content.size());
    mprotect(pages, size, PROT_READ);  // nothing may write there
    bytes = {static_cast<const std::byte*>(pages) + shift, content.size()};
  }
  bool has(const void* at) const { return at >= bytes.data() && at < bytes.data() + bytes.size(); }
};

LoadOptions two_replicas() {
  LoadOptions options;
  options.replicas = 2;
  return options;
}

}  // namespace

TEST_CASE("package memory: every form of weights runs, aligned or not") {
  for (const char* name : {"fake_model", "fake_folded", "fake_state", "fake_appended", "fake_external"})
    for (const size_t shift : {0, 32, 1}) {
      CAPTURE(name);
      CAPTURE(shift);
      const Bytes package(name, false, shift);
      const auto model = Model::load(Package::open(package.bytes), two_replicas());
      CHECK(run(*model, 3).front() == doctest::Approx(name == std::string("fake_folded") ? 6 : 3));
      if (name != std::string("fake_folded") && name != std::string("fake_state")) CHECK(run(*model, 3) == stored(3));
      CHECK(model->package_fault().empty());
    }
}

TEST_CASE("package memory: a bare library runs") {
  for (const char* name : {"fake_model", "fake_appended"}) {
    const Bytes library(name, true);
    CHECK(run(*Model::load(Package::open(library.bytes, library.owner)), 3) == stored(3));
  }
}

TEST_CASE("package memory: aligned weights are used in place by all replicas, others are copied once") {
  for (const size_t shift : {0, 32}) {
    CAPTURE(shift);
    const Bytes package("fake_large", false, shift);
    const auto model = Model::load(Package::open(package.bytes, package.owner), two_replicas());
    const void* const used = model->extract_constants(WeightState::kActive).at("scale.w").data();
    CHECK(package.has(used) == (shift == 0));
    for (int i = 0; i < 4; ++i) {
      std::vector<Tensor> inputs{filled({1, 2097152}, 1)}, outputs(1);
      model->run(inputs, outputs);
      CHECK(fake::loaded().back()->constants[0] == used);
    }
  }
}

TEST_CASE("package memory: a model keeps the owner, and a weight keeps it after the model") {
  Bytes package("fake_large");
  const std::weak_ptr<const void> watched = package.owner;
  auto model = Model::load(Package::open(package.bytes, std::move(package.owner)));
  REQUIRE(!watched.expired());
  auto constants = model->extract_constants(WeightState::kActive);
  model.reset();
  CHECK(!watched.expired());
  CHECK(constants.at("scale.w").data_as<float>()[1] == 2);
  constants.clear();
  CHECK(watched.expired());
}

TEST_CASE("package memory: weights are replaced and rolled back") {
  const Bytes package("fake_model");
  const auto model = Model::load(Package::open(package.bytes, package.owner), two_replicas());
  const std::string digest = model->weights_digest(WeightState::kActive);
  stage(*model, {{"scale.w", {2, 2, 2, 2}}, {"scale.b", {1, 1, 1, 1}}}, {});
  model->commit_weights();
  CHECK(run(*model, 3) == std::vector<float>(4, 7));
  model->rollback_weights();
  CHECK(run(*model, 3) == stored(3));
  model->release_previous();
  CHECK(model->weights_digest(WeightState::kActive) == digest);
}
