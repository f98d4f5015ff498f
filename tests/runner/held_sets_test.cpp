// Named sets that wait for their name, the way back from one, and the memory that kernels keep of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <new>
#include <string>
#include <vector>

#include "sconce/weights.h"
#include "tests/runner/counted_memory.h"
#include "tests/runner/named_sets.h"

using namespace sconce;
using namespace sconce::test;

namespace {

void hold(Model& model, const std::string& name, const std::vector<Values>& values, const std::string& note = {}) {
  UpdateOptions options;
  options.hold = true;
  options.note = note;
  put(model, name, values, std::move(options));
}

// What is in the folder, without the files' suffix.
std::vector<std::string> names_below(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::string name = file.path().filename().string();
    if (name.ends_with(".safetensors")) name.resize(name.size() - std::string(".safetensors").size());
    names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("named sets: one waits for its name, takes it, and what it replaced comes back") {
  TempFolder folder;
  for (const bool on_disk : {false, true}) {
    CAPTURE(on_disk);
    const std::filesystem::path sets = on_disk ? folder.path() / "sets" : std::filesystem::path();
    Loaded loaded("fake_model", 2, true, holding(3, 0, sets));
    Model& model = *loaded.model;
    const auto code = [&](auto&& work) { return code_of(work); };
    CHECK(code([&] { model.commit_set("a"); }) == ErrorCode::kFailedPrecondition);
    CHECK(code([&] { model.abort_set("a"); }) == ErrorCode::kFailedPrecondition);
    CHECK(code([&] { model.restore_set("a"); }) == ErrorCode::kFailedPrecondition);

    // A new name. Nobody sees it before the commit.
    hold(model, "a", constants(2, 1), "first");
    CHECK(code([&] { model.find_set("a"); }) == ErrorCode::kNotFound);
    CHECK(model.named_sets().empty());
    CHECK(model.named_sets_memory().bytes == 32);
    CHECK(code([&] { hold(model, "a", constants(3, 3)); }) == ErrorCode::kBusy);
    CHECK(code([&] { put(model, "a", constants(3, 3)); }) == ErrorCode::kBusy);
    const uint64_t first = model.commit_set("a");
    RunInfo info;
    CHECK(run_with(model, "a", 1, &info) == all(3));
    CHECK(info.weight_version == first);
    CHECK(model.named_set("a").note == "first");
    CHECK(code([&] { model.commit_set("a"); }) == ErrorCode::kFailedPrecondition);

    // In place of another, which requests get until then.
    hold(model, "a", constants(5, 1), "second");
    CHECK(run_with(model, "a", 1) == all(3));
    const std::string before = model.set_digest("a");
    const uint64_t second = model.commit_set("a");
    CHECK(second > first);
    CHECK(run_with(model, "a", 1, &info) == all(6));
    CHECK(info.weight_version == second);
    CHECK(model.set_digest("a") != before);
    const uint64_t third = model.restore_set("a");
    CHECK(third > second);
    CHECK(run_with(model, "a", 1, &info) == all(3));
    CHECK(info.weight_version == third);
    CHECK(model.named_set("a").note == "first");
    CHECK(model.set_digest("a") == before);
    CHECK(code([&] { model.restore_set("a"); }) == ErrorCode::kFailedPrecondition);

    // A name that was new goes.
    hold(model, "b", constants(7, 1));
    model.commit_set("b");
    model.restore_set("b");
    CHECK(code([&] { model.find_set("b"); }) == ErrorCode::kNotFound);

    // What is aborted leaves nothing.
    hold(model, "a", constants(9, 1));
    model.abort_set("a");
    CHECK(run_with(model, "a", 1) == all(3));
    CHECK(model.named_sets_memory().bytes == 32);

    // Whatever else gives the name another set, or takes it away, ends the way back.
    hold(model, "a", constants(5, 1));
    model.commit_set("a");
    put(model, "a", constants(6, 1));
    CHECK(code([&] { model.restore_set("a"); }) == ErrorCode::kFailedPrecondition);
    hold(model, "a", constants(5, 1));
    model.commit_set("a");
    model.remove_set("a");
    CHECK(code([&] { model.restore_set("a"); }) == ErrorCode::kFailedPrecondition);
    CHECK(model.named_sets_memory().bytes == 0);
    if (on_disk) CHECK(names_below(sets).empty());
    CHECK(loaded.knobs->live_containers == 2);

    // Names that wait count.
    for (const char* name : {"a", "b", "c"}) hold(model, name, constants(1, 1));
    CHECK(code([&] { hold(model, "d", constants(1, 1)); }) == ErrorCode::kOutOfMemory);
    for (const char* name : {"a", "b", "c"}) model.abort_set(name);
  }
  Loaded loaded("fake_model", 1, true, holding(1));
  CHECK(code_of([&] { stage(*loaded.model, constants(1, 1), {.hold = true}); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([&] { stage(*loaded.model, constants(1, 1), {.note = "x"}); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([&] { hold(*loaded.model, "a", constants(1, 1), std::string(65537, 'x')); }) ==
        ErrorCode::kInvalidArgument);
}

TEST_CASE("named sets: memory of one that waits, and of one that may be restored") {
  TempFolder folder;
  {
    Loaded loaded("fake_model", 1, true, holding(4, 64));  // room for two, and no folder
    Model& model = *loaded.model;
    put(model, "a", constants(2, 1));
    hold(model, "a", constants(30, 20));
    CHECK(code_of([&] { put(model, "b", constants(50, 40)); }) == ErrorCode::kOutOfMemory);
    model.commit_set("a");
    CHECK(model.named_sets_memory().bytes == 64);
    // What may be restored goes when its memory is needed.
    put(model, "b", constants(50, 40));
    CHECK(model.named_sets_memory().bytes == 64);
    CHECK(code_of([&] { model.restore_set("a"); }) == ErrorCode::kFailedPrecondition);
    CHECK(run_with(model, "a", 1) == all(50));
  }
  Loaded loaded("fake_model", 1, true, holding(4, 32, folder.path()));  // room for one, others are on disk
  Model& model = *loaded.model;
  put(model, "a", constants(2, 1));
  hold(model, "a", constants(3, 1));
  CHECK(info_of(model, "a").on_disk);
  CHECK(code_of([&] { model.bring_set("a"); }) == ErrorCode::kOutOfMemory);  // the one that waits keeps its memory
  model.commit_set("a");
  CHECK(run_with(model, "a", 1) == all(4));
  CHECK(model.named_sets_memory().bytes == 32);
  model.restore_set("a");
  CHECK(info_of(model, "a").on_disk);
  CHECK(run_with(model, "a", 1) == all(3));
}

namespace {

// Keeps a value of 64 bytes with the active set's weight, as kernels keep weights in an order of their own.
void pack(Model& model) {
  static const char kind = 0;
  const Tensor w = model.extract_constants(WeightState::kActive).at("scale.w");
  w.storage()->derived({&kind, {}}, [] {
    return [](Storage&) -> Storage::Value { return {std::make_shared<std::vector<char>>(64), 64}; };
  });
}

}  // namespace

TEST_CASE("named sets: what kernels keep of their constants counts") {
  TempFolder folder;
  Loaded loaded("fake_model", 1, true, holding(8, 200, folder.path()));  // room for two with 32 + 64 bytes each
  Model& model = *loaded.model;
  put(model, "cold", constants(1, 1));
  CHECK(model.named_sets_memory().packed_bytes == 0);
  model.remove_set("cold");
  pack(model);
  put(model, "a", constants(2, 10));
  CHECK(info_of(model, "a").own_bytes == 32);
  CHECK(info_of(model, "a").packed_bytes == 64);
  CHECK(model.named_sets_memory().bytes == 96);
  CHECK(model.named_sets_memory().packed_bytes == 64);
  put(model, "b", constants(3, 20));
  CHECK(!info_of(model, "a").on_disk);
  put(model, "c", constants(4, 30));
  CHECK(info_of(model, "a").on_disk);
  CHECK(info_of(model, "a").packed_bytes == 0);
  CHECK(model.named_sets_memory().bytes == 192);
  CHECK(run_with(model, "a", 1) == all(12));
  CHECK(info_of(model, "a").packed_bytes == 64);
  CHECK(info_of(model, "b").on_disk);
  CHECK(model.named_sets_memory().bytes == 192);

  // Without a folder it is refused by the whole sum.
  Loaded other("fake_model", 1, true, holding(8, 95));
  pack(*other.model);
  CHECK(code_of([&] { put(*other.model, "a", constants(2, 1)); }) == ErrorCode::kOutOfMemory);
}

TEST_CASE("named sets: a run that packs a set's constants makes others leave") {
  TempFolder folder;
  Loaded loaded("fake_model", 1, true, holding(8, 64, folder.path()));
  Model& model = *loaded.model;
  put(model, "a", constants(2, 1));
  put(model, "b", constants(3, 1));
  const auto set = model.bring_set("a");
  CHECK(!info_of(model, "b").on_disk);
  model.promote_set("a");
  const Tensor w = model.extract_constants(WeightState::kActive).at("scale.w");
  model.promote_set("b");
  loaded.knobs->sleep_us = 20000;
  SetRun run;
  const std::vector<Tensor> inputs{filled({2, 4}, 1)};
  std::vector<Tensor> outputs(1);
  run.begin(loaded, *set, inputs, outputs);
  static const char kind = 0;
  w.storage()->derived({&kind, {}}, [] {
    return [](Storage&) -> Storage::Value { return {std::make_shared<std::vector<char>>(64), 64}; };
  });
  loaded.knobs->sleep_us = 0;
  run.done.wait(false);
  CHECK(!run.error);
  CHECK(outputs[0].data_as<float>()[0] == 3);
  CHECK(info_of(model, "a").on_disk);
  CHECK(model.named_sets_memory().bytes <= 64);
}

TEST_CASE("named sets: a restart finds committed sets with their notes, and nothing that waited") {
  TempFolder folder;
  {
    Loaded loaded("fake_model", 1, true, holding(4, 0, folder.path()));
    hold(*loaded.model, "a", constants(2, 1), "of push one");
    loaded.model->commit_set("a");
    hold(*loaded.model, "a", constants(3, 1), "of push two");
    hold(*loaded.model, "b", constants(4, 1), "of push three");
    hold(*loaded.model, "c", constants(5, 1), "of push four");
    loaded.model->commit_set("c");
    hold(*loaded.model, "c", constants(6, 1), "of push five");
    loaded.model->commit_set("c");
    CHECK(names_below(folder.path()) == std::vector<std::string>{".a.waiting", ".b.waiting", ".c.replaced", "a", "c"});
  }
  Loaded loaded("fake_model", 1, true, holding(4, 0, folder.path()));
  Model& model = *loaded.model;
  CHECK(names_below(folder.path()) == std::vector<std::string>{"a", "c"});
  CHECK(info_of(model, "a").note == "of push one");
  CHECK(info_of(model, "c").note == "of push five");
  CHECK(run_with(model, "a", 1) == all(3));
  CHECK(run_with(model, "c", 1) == all(7));
  CHECK(code_of([&] { model.restore_set("c"); }) == ErrorCode::kFailedPrecondition);
}

TEST_CASE("named sets: no memory at any step of holding, committing, restoring one") {
  TempFolder folder;
  for (const bool on_disk : {false, true}) {
    Loaded loaded("fake_model", 1, true, holding(4, 0, on_disk ? folder.path() : std::filesystem::path()));
    Model& model = *loaded.model;
    put(model, "a", constants(2, 1));
    // body: throws and changes nothing, or does all of it.
    const auto each_step = [&](const char* what, auto&& body, float before, float after) {
      CAPTURE(what);
      for (int64_t steps = 1; steps < 5000; ++steps) {
        bool threw = true, failed = false;
        {
          const FailingMemory failing(steps);
          try {
            body();
            threw = false;
          } catch (const Error& e) {
            CHECK(e.code() == ErrorCode::kOutOfMemory);
          } catch (const std::bad_alloc&) {
            // as above
          }
          failed = failing.failed();
        }
        CHECK(run_with(model, "a", 1) == all(threw ? before : after));
        if (!threw) return;
        CHECK(failed);
      }
      FAIL("it never succeeds");
    };
    each_step(
        "hold", [&] { hold(model, "a", constants(4, 1)); }, 3, 3);
    each_step(
        "commit", [&] { model.commit_set("a"); }, 3, 5);
    each_step(
        "restore", [&] { model.restore_set("a"); }, 5, 3);
    model.remove_set("a");
    CHECK(model.named_sets_memory().bytes == 0);
  }
}

TEST_CASE("named sets: one gets a larger number, and keeps it over a restart") {
  TempFolder folder;
  for (const bool on_disk : {false, true}) {
    CAPTURE(on_disk);
    const std::filesystem::path sets = on_disk ? folder.path() / "sets" : std::filesystem::path();
    {
      Loaded loaded("fake_model", 2, true, holding(3, 0, sets));
      Model& model = *loaded.model;
      put(model, "a", constants(2, 1), {.label = "v2"});
      const uint64_t before = info_of(model, "a").weight_version;
      const auto code = [&](std::string_view name, uint64_t from, uint64_t to) {
        return code_of([&] { model.set_weight_version(name, from, to); });
      };
      CHECK(code("none", 2, 9) == ErrorCode::kNotFound);
      CHECK(code("a", before + 1, 9) == ErrorCode::kBusy);  // it is another one by now
      CHECK(code("a", before, before) == ErrorCode::kInvalidArgument);
      hold(model, "a", constants(3, 1));
      CHECK(code("a", before, 9) == ErrorCode::kBusy);  // the number of the set that waits is smaller
      model.abort_set("a");
      const std::shared_ptr<const WeightSet> held = model.find_set("a");
      model.set_weight_version("a", before, 9);
      CHECK(info_of(model, "a").weight_version == 9);
      CHECK(info_of(model, "a").label == "v2");
      CHECK(model.named_sets_memory().bytes == 32);
      RunInfo info;
      CHECK(run_with(model, "a", 5, &info) == all(11));
      CHECK(info.weight_version == 9);
      CHECK(run_with(model, held.get(), 5, &info) == all(11));  // a request that had it before
      CHECK(info.weight_version == before);
      // What comes next has the next number, and so has what comes back.
      put(model, "b", constants(4, 1));
      CHECK(info_of(model, "b").weight_version == 10);
      hold(model, "a", constants(5, 1));
      CHECK(model.commit_set("a") == 11);
      CHECK(model.restore_set("a") == 12);
      CHECK(run_with(model, "a", 5, &info) == all(11));
      CHECK(info.weight_version == 12);
    }
    if (!on_disk) continue;
    Loaded loaded("fake_model", 2, true, holding(3, 0, sets));
    Model& model = *loaded.model;
    CHECK(model.weight_version() == 1);
    CHECK(info_of(model, "a").weight_version == 12);
    CHECK(info_of(model, "b").weight_version == 10);
    RunInfo info;
    CHECK(run_with(model, "a", 5, &info) == all(11));
    CHECK(info.weight_version == 12);
    put(model, "b", constants(6, 1));
    CHECK(info_of(model, "b").weight_version == 13);
    // One that is on the disk is read for it.
    Loaded again("fake_model", 2, true, holding(3, 0, sets));
    again.model->set_weight_version("a", 12, 20);
    CHECK(run_with(*again.model, "a", 5, &info) == all(11));
    CHECK(info.weight_version == 20);
  }
}
