// Models that write their buffers and have no source that says which: a bare .so, or a package without its source.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "sconce/weight_sources.h"
#include "tests/runner/named_sets.h"

using namespace sconce;
using namespace sconce::test;
namespace fs = std::filesystem;

namespace {

constexpr int64_t kWide = 131072;  // columns of fake_state_untyped: its w and b have 512 KiB each

// A fake model as a .so by itself. On tmpfs, where there are leases.
struct Bare {
  TempFolder folder{"/dev/shm"};
  fs::path path = folder.path() / "net.so";
  std::shared_ptr<Model> model;
  FakeKnobs* knobs;
  int64_t columns;

  explicit Bare(const std::string& name, int replicas = 1, LoadOptions options = {}) {
    const fake::Model made = fake::model(name);
    fake::write_shared_object(path, made);
    columns = made.features;
    options.replicas = replicas;
    model = Model::load(Package::open(path), options);
    knobs = fake::loaded().back();
  }
};

// The first element of the answer to zeros, which is how many runs there were before on this state.
float count(Model& model, int64_t columns = 4, uint64_t affinity = 0, const SequenceStep& step = {},
            RunInfo* info = nullptr) {
  const std::vector<Tensor> inputs{filled({1, columns}, 0)};
  std::vector<Tensor> outputs(1);
  const RunInfo got = model.run(inputs, outputs, affinity, nullptr, step);
  if (info) *info = got;
  return outputs[0].data_as<float>()[0];
}

// A key of requests for each of two replicas.
std::vector<uint64_t> keys(Model& model, int64_t columns = 4) {
  std::vector<uint64_t> key(2);
  for (uint64_t k = 1; key[0] == 0 || key[1] == 0; ++k) {
    RunInfo info;
    count(model, columns, k, {}, &info);
    key.at(static_cast<size_t>(info.replica)) = k;
  }
  return key;
}

std::vector<std::string> written(const Model& model) {
  std::vector<std::string> names;
  for (const ConstantSpec& constant : model.constants()) {
    CHECK(constant.assumed == constant.mutated);
    if (constant.mutated) names.push_back(constant.fqn);
  }
  return names;
}

// Bytes of the pages there that are this process's own.
size_t own_bytes(const void* at) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      inside = begin <= reinterpret_cast<uintptr_t>(at) && reinterpret_cast<uintptr_t>(at) < end;
    else if (inside && line.starts_with("Anonymous:"))
      return std::stoul(line.substr(10)) * 1024;
  }
  FAIL("nothing is mapped there");
  return 0;
}

}  // namespace

TEST_CASE("undescribed state: a bare library writes its buffers, wherever its weights are") {
  for (const char* name : {"fake_state", "fake_state_appended", "fake_state_untyped"}) {
    CAPTURE(name);
    Bare bare(name, 2);
    Model& model = *bare.model;
    const std::vector<uint64_t> key = keys(model, bare.columns);
    // Each replica has its own.
    const float first = count(model, bare.columns, key[0]), second = count(model, bare.columns, key[1]);
    for (int i = 1; i < 4; ++i) CHECK(count(model, bare.columns, key[0]) == first + static_cast<float>(i));
    CHECK(count(model, bare.columns, key[1]) == second + 1);
    const bool typed = name != std::string("fake_state_untyped");
    CHECK(written(model) ==
          (typed ? std::vector<std::string>{"steps"} : std::vector<std::string>{"scale.w", "scale.b", "steps"}));
  }
}

TEST_CASE("undescribed state: a package without its source, in files and in memory") {
  for (const char* name : {"fake_state", "fake_state_appended"}) {
    CAPTURE(name);
    Loaded loaded(name, 1, false);
    for (int i = 0; i < 3; ++i) CHECK(count(*loaded.model) == static_cast<float>(i));
    CHECK(written(*loaded.model) == std::vector<std::string>{"steps"});
  }
  for (const char* name : {"fake_state", "fake_state_appended", "fake_state_untyped"}) {
    CAPTURE(name);
    const std::vector<std::byte> bytes = fake::library(fake::model(name));
    const auto model = Model::load(Package::open(bytes));
    const int64_t columns = fake::model(name).features;
    for (int i = 0; i < 3; ++i) CHECK(count(*model, columns) == static_cast<float>(i));
  }
}

TEST_CASE("undescribed state: weights beside the library, which only a source describes, are missing and no more") {
  Bare bare("fake_state_external");
  CHECK(written(*bare.model) == std::vector<std::string>{"steps"});
  CHECK(code_of([&] { count(*bare.model); }) == ErrorCode::kFailedPrecondition);
}

TEST_CASE("undescribed state: what code writes while it folds constants, though runs write none") {
  for (const bool bare : {true, false}) {
    Bare library("fake_folded_state", 2);
    Loaded package("fake_folded_state", 2);  // its source says the same
    Model& model = bare ? *library.model : *package.model;
    for (int i = 0; i < 4; ++i) CHECK(count(model) == 100);
    for (const ConstantSpec& constant : model.constants()) {
      CHECK(constant.mutated == (constant.fqn == "steps"));
      CHECK(constant.assumed == (bare && constant.mutated));
    }
  }
}

TEST_CASE("undescribed state: a library whose runs write nothing shares all, and nothing counts as written") {
  Bare bare("fake_large", 2);
  CHECK(written(*bare.model).empty());
  const void* const shared = bare.model->extract_constants(WeightState::kActive).at("scale.w").data();
  for (int i = 0; i < 4; ++i) {
    count(*bare.model, bare.columns);
    CHECK(bare.knobs->constants[0] == shared);
  }
  CHECK(own_bytes(shared) == 0);
}

TEST_CASE("undescribed state: what may be written but is not is copied once, for all replicas and sequences") {
  LoadOptions options;
  options.sequences = 2;
  Bare bare("fake_state_untyped", 2, options);
  Model& model = *bare.model;
  const std::vector<uint64_t> key = keys(model, kWide);
  std::vector<const void*> weights;
  const auto look = [&] {
    const void* const used = bare.knobs->constants[0];
    CHECK(own_bytes(used) == 0);
    weights.push_back(used);
  };
  for (const uint64_t k : key) count(model, kWide, k), look();
  const auto a = model.make_sequence(), b = model.make_sequence();
  for (const auto& sequence : {a, b, a}) {
    CHECK(count(model, kWide, 0, {.sequence = sequence.get(), .begins = true}) == 0);
    look();
    CHECK(count(model, kWide, 0, {.sequence = sequence.get()}) == 1);
  }
  CHECK(weights[4] == weights[2]);  // a's again, which got its initial values back
  weights.pop_back();
  std::sort(weights.begin(), weights.end());
  CHECK(std::unique(weights.begin(), weights.end()) == weights.end());
}

TEST_CASE("undescribed state: it goes on when the library is overwritten, on old weights") {
  Bare bare("fake_state_untyped", 2);
  Model& model = *bare.model;
  const std::vector<uint64_t> key = keys(model, kWide);
  const float first = count(model, kWide, key[0]), second = count(model, kWide, key[1]);
  {
    std::fstream file(bare.path, std::ios::binary | std::ios::in | std::ios::out);
    const std::string other(fs::file_size(bare.path), 'x');
    file.write(other.data(), static_cast<std::streamsize>(other.size()));
  }
  for (int i = 1; i < 3; ++i) {
    CHECK(count(model, kWide, key[0]) == first + static_cast<float>(i));
    CHECK(count(model, kWide, key[1]) == second + static_cast<float>(i));
  }
  const std::vector<float> row = run(model, 3, kWide);
  for (size_t i = 1; i < row.size(); ++i)
    REQUIRE(row[i] - row[0] == fake::expected(3, static_cast<int64_t>(i)) - fake::expected(3, 0));
  CHECK(model.package_fault().empty());
}

TEST_CASE("undescribed state: sequences and updates of weights") {
  LoadOptions options;
  options.sequences = 4;
  Bare bare("fake_state_appended", 1, options);
  Model& model = *bare.model;
  CHECK(model.sequence_bytes() == 4);
  const auto a = model.make_sequence(), b = model.make_sequence();
  const auto step = [&](const auto& sequence, bool begins) {
    return count(model, 4, 0, {.sequence = sequence.get(), .begins = begins});
  };
  CHECK(step(a, true) == 0);
  CHECK(step(b, true) == 0);
  CHECK(step(a, false) == 1);
  CHECK(count(model) == 0);
  CHECK(count(model) == 1);
  // What an update does not name stays, and a rollback brings back no state.
  stage(model, {{"scale.b", {7, 7, 7, 7}}}, {.full = false});
  model.commit_weights();
  CHECK(count(model) == 7 + 2);
  CHECK(step(a, false) == 2);
  model.rollback_weights();
  CHECK(count(model) == 3);
  stage(model, {{"steps", {50}}}, {.full = false});
  model.commit_weights();
  CHECK(count(model) == 50);
}

TEST_CASE("undescribed state: what may be a weight is never left behind without a word") {
  Bare bare("fake_state", 1, holding(4));
  Model& model = *bare.model;
  CHECK(count(model) == 0);
  CHECK(count(model) == 1);
  // A blob brings the buffers' values.
  const TempFolder folder;
  std::string blob;
  for (const float value : {2.F, 5.F, 30.F})
    for (int i = 0; i < 16; ++i) blob.append(reinterpret_cast<const char*>(&value), sizeof value);
  const fs::path path = folder.write("weights.blob", blob);
  const auto update = model.begin_update({});
  FileOptions options;
  options.constants = model.constants();
  stage_file(*update, path, options);
  update->finish();
  model.commit_weights();
  CHECK(count(model) == 35);
  // A named set runs on the replica's buffers, so it cannot bring others.
  put(model, "same", {{"scale.w", all(1)}, {"scale.b", all(0)}, {"steps", {30}}});
  CHECK(run_with(model, "same", 0).front() == 31);
  const std::string why = error_from(ErrorCode::kFailedPrecondition, [&] {
    put(model, "other", {{"scale.w", all(1)}, {"scale.b", all(0)}, {"steps", {31}}});
  });
  CHECK(contains(why, "'steps'"));
  CHECK(model.named_sets().size() == 1);
}
