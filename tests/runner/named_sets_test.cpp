// Named sets: runs choose one, equal values are held once, and sets move to disk.
#include "tests/runner/named_sets.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "sconce/tensor_files.h"
#include "sconce/weights.h"
#include "tests/runner/counted_memory.h"

using namespace sconce;
using namespace sconce::test;

TEST_CASE("named sets: a run uses the set that it names, others the active one") {
  Loaded loaded("fake_model", 2, true, holding(4));
  Model& model = *loaded.model;
  put(model, "a", constants(2, 1), {.label = "seven"});
  put(model, "b", constants(3, 0));
  RunInfo info;
  CHECK(run(model, 3, 4, &info) == stored(3));
  CHECK(info.weight_version == 1);
  CHECK(!info.set);
  CHECK(run_with(model, "a", 3, &info) == all(7));
  CHECK(info.weight_version == 2);
  REQUIRE(info.set);
  CHECK(*info.set == "a");
  CHECK(*info.label == "a");
  CHECK(run_with(model, "b", 3, &info) == all(9));
  CHECK(info.weight_version == 3);
  CHECK(model.weight_version() == 1);
  const auto sets = model.named_sets();
  REQUIRE(sets.size() == 2);
  CHECK(sets[0].name == "a");
  CHECK(sets[0].label == "seven");
  CHECK(sets[0].own_bytes == 32);
  CHECK(!sets[0].on_disk);
  CHECK(model.weight_sets().size() == 1);

  // If a name gets other weights, holders of the earlier set keep it.
  const auto before = model.find_set("a");
  put(model, "a", constants(5, 0));
  CHECK(run_with(model, before.get(), 3, &info) == all(7));
  CHECK(info.weight_version == 2);
  CHECK(run_with(model, "a", 3, &info) == all(15));
  CHECK(info.weight_version == 4);
}

TEST_CASE("named sets: names and limits") {
  Loaded loaded("fake_model", 1, true, holding(2));
  Model& model = *loaded.model;
  for (const char* name : {"../x", "a/b", ".a", "a b", "\xc3\xa9", "", "active", "a\n", "a:b", "a@b"}) {
    CAPTURE(name);
    if (*name) CHECK(code_of([&] { put(model, name, constants(1, 1)); }) == ErrorCode::kInvalidArgument);
  }
  CHECK(code_of([&] { put(model, std::string(65, 'a'), constants(1, 1)); }) == ErrorCode::kInvalidArgument);
  put(model, std::string(64, 'a'), constants(1, 1));
  put(model, "A.b_-9", constants(1, 1));
  CHECK(code_of([&] { put(model, "c", constants(1, 1)); }) == ErrorCode::kOutOfMemory);
  put(model, "A.b_-9", constants(2, 1));  // replaces the set of that name, so there is room
  CHECK(code_of([&] { (void)model.find_set("c"); }) == ErrorCode::kNotFound);
  CHECK(code_of([&] { model.remove_set("c"); }) == ErrorCode::kNotFound);
  CHECK(code_of([&] { model.promote_set("c"); }) == ErrorCode::kNotFound);
  model.remove_set("A.b_-9");
  put(model, "c", constants(1, 1));
  // If its values are refused, a set does not exist.
  model.remove_set("c");
  CHECK(code_of([&] { put(model, "c", {{"scale.w", all(1)}}); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([&] { (void)model.find_set("c"); }) == ErrorCode::kNotFound);

  Loaded none("fake_model");
  CHECK(code_of([&] { put(*none.model, "a", constants(1, 1)); }) == ErrorCode::kNotFound);
  CHECK(code_of([&] { (void)none.model->find_set("a"); }) == ErrorCode::kNotFound);
  // A set belongs to its model.
  const auto other = model.find_set(std::string(64, 'a'));
  CHECK(code_of([&] { run_with(*none.model, other.get(), 1); }) == ErrorCode::kInvalidArgument);
}

TEST_CASE("named sets: equal tensors are held once") {
  Loaded loaded("fake_model", 1, true, holding(8));
  Model& model = *loaded.model;
  const std::vector<float> w{1, 2, 3, 4}, b{0, 10, 20, 30};  // the values in the package
  put(model, "as-package", {{"scale.w", w}, {"scale.b", b}});
  CHECK(model.named_sets_memory().bytes == 0);
  put(model, "b-differs", {{"scale.w", w}, {"scale.b", all(5)}});
  CHECK(model.named_sets_memory().bytes == 16);
  CHECK(info_of(model, "b-differs").own_bytes == 16);
  put(model, "same-again", {{"scale.w", w}, {"scale.b", all(5)}});
  CHECK(model.named_sets_memory().bytes == 16);
  CHECK(info_of(model, "b-differs").own_bytes == 0);  // another set has the same value
  put(model, "partial", {{"scale.w", all(7)}}, {.full = false, .base = "b-differs"});
  CHECK(model.named_sets_memory().bytes == 32);
  CHECK(run_with(model, "partial", 2) == all(19));
  CHECK(run_with(model, "same-again", 2) == std::vector<float>{7, 9, 11, 13});
  CHECK(run_with(model, "as-package", 2) == stored(2));
  model.remove_set("b-differs");
  model.remove_set("same-again");
  CHECK(model.named_sets_memory().bytes == 32);
  model.remove_set("partial");
  CHECK(model.named_sets_memory().bytes == 0);
  CHECK(model.named_sets_memory().in_memory == 1);

  // Values of the active set cost nothing until another set becomes active.
  stage(model, constants(2, 1), {});
  model.commit_weights();
  put(model, "as-active", {{"scale.w", all(2)}}, {.full = false});
  CHECK(model.named_sets_memory().bytes == 0);
  model.rollback_weights();
  CHECK(model.named_sets_memory().bytes == 32);
  CHECK(run_with(model, "as-active", 3) == all(7));
  CHECK(run(model, 3) == stored(3));
}

TEST_CASE("named sets: a replica keeps a bounded number of containers, the last used ones") {
  LoadOptions options = holding(8);
  options.sets_instances = 2;
  Loaded loaded("fake_model", 1, true, options);
  Model& model = *loaded.model;
  const int64_t before = loaded.knobs->live_containers;
  for (int i = 0; i < 4; ++i) put(model, name_of(i), constants(static_cast<float>(i), 0));
  CHECK(loaded.knobs->live_containers == before);  // none is made before a run needs it
  run_with(model, "s0", 1);
  CHECK(model.find_set("s0")->replicas() == 1);
  run_with(model, "s1", 1);
  const int64_t made = loaded.knobs->creates;
  CHECK(run_with(model, "s0", 1) == all(0));
  CHECK(loaded.knobs->creates == made);
  CHECK(run_with(model, "s2", 1) == all(2));  // in the place of s1
  CHECK(loaded.knobs->live_containers == before + 2);
  CHECK(model.find_set("s0")->replicas() == 1);
  CHECK(model.find_set("s1")->replicas() == 0);
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < 4; ++i) CHECK(run_with(model, name_of(i), 2) == all(static_cast<float>(2 * i)));
  CHECK(loaded.knobs->live_containers == before + 2);
  for (int i = 0; i < 4; ++i) model.remove_set(name_of(i));
  CHECK(loaded.knobs->live_containers == before);
  CHECK(run(model, 3) == stored(3));
}

TEST_CASE("named sets: folded constants are each set's own, and a set that cannot be folded is refused") {
  Loaded loaded("fake_folded", 2, true, holding(4));
  Model& model = *loaded.model;
  put(model, "a", constants(2, 1));
  put(model, "b", constants(3, 1));
  for (int i = 0; i < 2; ++i) {
    CHECK(run_with(model, "a", 1) == all(5));  // 2 w x + b
    CHECK(run_with(model, "b", 1) == all(7));
    CHECK(run(model, 1).front() == doctest::Approx(2));
  }
  loaded.knobs->fail_in_folds = 1;
  CHECK(code_of([&] { put(model, "c", constants(1, 1)); }) == ErrorCode::kModelFailed);
  CHECK(code_of([&] { (void)model.find_set("c"); }) == ErrorCode::kNotFound);
  CHECK(run_with(model, "a", 1) == all(5));
  // A container that cannot be made fails the run that needs it, and no other.
  put(model, "d", constants(4, 1));
  loaded.knobs->fail_in_folds = 1;
  CHECK(code_of([&] { run_with(model, "d", 1); }) == ErrorCode::kModelFailed);
  CHECK(run_with(model, "d", 1) == all(9));
}

TEST_CASE("named sets: buffers that the model writes are the replica's, whatever set it runs") {
  Loaded loaded("fake_state", 1, true, holding(4));
  Model& model = *loaded.model;
  const float first = run(model, 0).front();
  put(model, "a", {{"scale.w", all(0)}, {"scale.b", all(0)}, {"steps", {100}}});
  CHECK(run_with(model, "a", 0).front() == first + 1);
  CHECK(run(model, 0).front() == first + 2);
  CHECK(run_with(model, "a", 0).front() == first + 3);
  // Buffers that an update sets are shared with named sets, too.
  stage(model, {{"steps", {50}}}, {.full = false});
  model.commit_weights();
  CHECK(run(model, 0).front() == first + 50);
  CHECK(run_with(model, "a", 0).front() == first + 51);
  CHECK(run(model, 0).front() == first + 52);
  CHECK(model.named_sets_memory().bytes == 32);  // without the buffer
}

TEST_CASE("named sets: of idle replicas, one that has a container of the set runs it") {
  Loaded loaded("fake_model", 3, true, holding(4));
  Model& model = *loaded.model;
  put(model, "a", constants(2, 1));
  const std::shared_ptr<const WeightSet> set = model.bring_set("a");
  const std::vector<Tensor> quick{filled({2, 4}, 1)}, slow{filled({2, 4}, kFakeSleepInput)};
  struct Submitted : SetRun {
    std::vector<Tensor> results = std::vector<Tensor>(1);
    Submitted(Model& model, const std::vector<Tensor>& from, const WeightSet* with) {
      inputs = from;
      outputs = results;
      weights = with;
      model.submit(*this);
    }
    int replica() {
      done.wait(false);
      return info.replica;
    }
  };
  int bound = -1;
  {
    // While the others are busy, the last replica makes a container.
    Submitted one(model, slow, nullptr), two(model, slow, nullptr), last(model, quick, set.get());
    bound = last.replica();
    CHECK(one.replica() != bound);
    CHECK(two.replica() != bound);
  }
  CHECK(set->replicas() == 1);
  for (int i = 0; i < 20; ++i) {
    Submitted run(model, quick, set.get());
    CHECK(run.replica() == bound);
    CHECK(run.results[0].data_as<float>()[0] == 3);
  }
  CHECK(set->replicas() == 1);
  // If it is busy, another one runs the set.
  Submitted first(model, slow, set.get()), second(model, slow, set.get());
  CHECK(first.replica() == bound);
  CHECK(second.replica() != bound);
}

TEST_CASE("named sets: one becomes active and can be rolled back") {
  Loaded loaded("fake_model", 2, true, holding(4));
  Model& model = *loaded.model;
  put(model, "a", constants(2, 1), {.label = "v7"});
  CHECK(model.promote_set("a") == 3);
  RunInfo info;
  CHECK(run(model, 3, 4, &info) == all(7));
  CHECK(info.weight_version == 3);
  CHECK(*info.label == "v7");
  CHECK(!info.set);
  CHECK(model.named_sets_memory().bytes == 0);
  CHECK(run_with(model, "a", 3, &info) == all(7));
  CHECK(info.weight_version == 2);
  CHECK(model.rollback_weights() == 4);
  CHECK(run(model, 3) == stored(3));
  stage(model, constants(9, 9), {.label = "waits"});
  put(model, "b", constants(1, 1));  // a staged set is no obstacle to a named one
  CHECK(code_of([&] { model.promote_set("a"); }) == ErrorCode::kBusy);
  model.abort_weights();
}

TEST_CASE("named sets: without a folder, what exceeds the memory is refused") {
  Loaded loaded("fake_model", 1, true, holding(8, 64));
  Model& model = *loaded.model;
  put(model, "a", constants(2, 1));
  put(model, "b", constants(3, 1));  // shares b with a
  CHECK(model.named_sets_memory().bytes == 48);
  CHECK(code_of([&] { put(model, "c", constants(4, 4)); }) == ErrorCode::kOutOfMemory);
  CHECK_THROWS_WITH_AS(put(model, "c", constants(4, 4)), doctest::Contains("sets_folder"), Error);
  CHECK(model.named_sets_memory().bytes == 48);
  CHECK(run_with(model, "a", 1) == all(3));
  put(model, "b", constants(5, 1));  // takes the place of its namesake
  CHECK(model.named_sets_memory().bytes == 48);
  model.remove_set("a");
  put(model, "c", constants(4, 4));
  CHECK(run_with(model, "c", 1) == all(8));
}

TEST_CASE("named sets: the least recently used leave for the disk and come back") {
  TempFolder folder;
  Loaded loaded("fake_model", 2, true, holding(100, 96, folder.path() / "sets"));  // room for three
  Model& model = *loaded.model;
  for (int i = 0; i < 5; ++i) put(model, name_of(i), constants(static_cast<float>(i), static_cast<float>(10 * i)));
  const auto on_disk = [&] {
    std::string names;
    for (const NamedSetInfo& info : model.named_sets()) names += info.on_disk ? info.name.back() : '.';
    return names;
  };
  CHECK(on_disk() == "01...");
  CHECK(model.named_sets_memory().bytes == 96);
  CHECK(model.named_sets_memory().on_disk == 2);
  CHECK(!model.find_set("s0"));
  RunInfo info;
  CHECK(run_with(model, "s3", 1) == all(33));
  CHECK(run_with(model, "s0", 1, &info) == all(0));
  CHECK(info.weight_version == 2);  // as when it was made
  CHECK(on_disk() == ".12..");
  CHECK(model.named_sets_memory().bytes <= 96);
  CHECK(run_with(model, "s4", 1) == all(44));
  CHECK(run_with(model, "s1", 1) == all(11));
  CHECK(on_disk() == "..23.");

  // Eviction while a run has the set: the run ends with it, and its memory goes then.
  const auto kept = model.bring_set("s2");
  loaded.knobs->sleep_us = 20000;
  SetRun slow;
  const std::vector<Tensor> inputs{filled({2, 4}, 1)};
  std::vector<Tensor> outputs(1);
  slow.begin(loaded, *kept, inputs, outputs);
  loaded.knobs->sleep_us = 0;
  for (const char* name : {"s0", "s1", "s3"}) run_with(model, name, 1);
  CHECK(!model.find_set("s2"));
  slow.done.wait(false);
  CHECK(!slow.error);
  CHECK(outputs[0].data_as<float>()[0] == 22);
  CHECK(kept->replicas() == 0);

  // Removing a set removes its file.
  CHECK(std::filesystem::exists(folder.path() / "sets/s2.safetensors"));
  model.remove_set("s2");
  CHECK(!std::filesystem::exists(folder.path() / "sets/s2.safetensors"));
  CHECK(code_of([&] { model.bring_set("s2"); }) == ErrorCode::kNotFound);
}

TEST_CASE("named sets: those in the folder are there after a restart") {
  TempFolder folder;
  const auto options = [&] { return holding(4, 0, folder.path()); };
  {
    Loaded loaded("fake_model", 1, true, options());
    put(*loaded.model, "a", {{"scale.w", {1, 2, 3, 4}}, {"scale.b", all(5)}}, {.label = "first"});
    put(*loaded.model, "b", constants(2, 1));
  }
  // Only what differs from the package is in the file.
  const auto stored_tensors = read_safetensors(folder.path() / "a.safetensors");
  REQUIRE(stored_tensors.size() == 1);
  CHECK(stored_tensors[0].name == "scale.b");
  std::ofstream(folder.path() / "notes.txt") << "not a set";
  std::ofstream(folder.path() / ".b.new.1-1") << "left by a process that was killed";
  std::ofstream(folder.path() / "torn.safetensors") << "torn";
  {
    Loaded loaded("fake_model", 1, true, options());
    Model& model = *loaded.model;
    CHECK(model.named_sets().size() == 3);
    CHECK(info_of(model, "a").on_disk);
    CHECK(run_with(model, "a", 2) == std::vector<float>{7, 9, 11, 13});
    CHECK(info_of(model, "a").label == "first");
    CHECK(info_of(model, "a").own_bytes == 16);
    CHECK(run_with(model, "b", 3) == all(7));
    CHECK(code_of([&] { model.bring_set("torn"); }) == ErrorCode::kCorruptPackage);
    CHECK(run(model, 3) == stored(3));
    CHECK(std::filesystem::exists(folder.path() / "notes.txt"));
    CHECK(!std::filesystem::exists(folder.path() / ".b.new.1-1"));
    model.remove_set("torn");
  }
  // Reading a set notices one changed byte.
  {
    std::fstream file(folder.path() / "b.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('\x55');
  }
  Loaded loaded("fake_model", 1, true, options());
  CHECK(code_of([&] { loaded.model->bring_set("b"); }) == ErrorCode::kCorruptPackage);
  CHECK(run_with(*loaded.model, "a", 2) == std::vector<float>{7, 9, 11, 13});
  // The file holds differences from its own package, so a model of another package refuses it.
  Loaded other("fake_large", 1, true, options());
  CHECK(code_of([&] { other.model->bring_set("a"); }) == ErrorCode::kFailedPrecondition);
}

TEST_CASE("named sets: many threads use, replace, remove and bring them") {
  TempFolder folder;
  LoadOptions options = holding(16, 96, folder.path());
  options.sets_instances = 2;
  Loaded loaded("fake_model", 2, true, options);
  Model& model = *loaded.model;
  constexpr int kSets = 6;
  for (int i = 0; i < kSets; ++i) put(model, name_of(i), constants(static_cast<float>(i), 0));
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0}, runs{0}, missing{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int n = t; !stop; ++n) {
        const int i = n % kSets;
        std::shared_ptr<const WeightSet> set;
        if (i == 0 && code_of([&] { set = model.bring_set(name_of(i)); }) == ErrorCode::kNotFound) {
          ++missing;  // another thread removes it now and then
          continue;
        }
        if (!set) set = model.bring_set(name_of(i));
        const float value = run_with(model, set.get(), 1).front();
        // Set 1 changes between two values; each run must see one of them.
        const bool good = i == 1 ? value == 1 || value == 100 : value == static_cast<float>(i);
        if (!good) ++wrong;
        ++runs;
      }
    });
  for (int round = 0; round < 40; ++round) {
    put(model, name_of(1), constants(round % 2 ? 1.0F : 100.0F, 0));
    model.remove_set(name_of(0));
    put(model, name_of(0), constants(0, 0));
    if (round % 8 == 0) {
      stage(model, constants(static_cast<float>(round), 1), {});
      model.commit_weights();
    }
  }
  while (runs < 200) std::this_thread::yield();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  for (int i = 0; i < kSets; ++i) model.remove_set(name_of(i));
  CHECK(model.named_sets_memory().bytes == 0);
  model.release_previous();
  CHECK(loaded.knobs->live_containers == 2);
}

TEST_CASE("named sets: no memory at any step of making, reading, publishing one") {
  TempFolder folder;
  Loaded loaded("fake_folded", 1, true, holding(4, 32, folder.path()));  // room for one
  Model& model = *loaded.model;
  put(model, "a", constants(2, 1));
  const auto each_step = [&](auto&& body) {
    bool failed = true;
    int64_t steps = 0;
    while (failed && ++steps < 5000) {
      ErrorCode code{};
      bool threw = false;
      {
        const FailingMemory failing(steps);
        try {
          body(static_cast<float>(steps % 100));
        } catch (const Error& e) {
          code = e.code();
          threw = true;
        } catch (const std::bad_alloc&) {
          // an allocation of the test itself failed
        }
        failed = failing.failed();
      }
      // Failures after the work is done are no errors.
      if (threw) CHECK_MESSAGE((code == ErrorCode::kOutOfMemory || code == ErrorCode::kModelFailed), wire_name(code));
      CHECK(model.named_sets_memory().bytes <= 32);
      CHECK(run_with(model, "a", 1) == all(5));
    }
    CHECK(!failed);
    CHECK(steps > 20);
  };
  each_step([&](float value) { put(model, "b", constants(value + 3, 1)); });
  put(model, "b", constants(7, 1));
  model.bring_set("a");  // which moves the other one to disk
  each_step([&](float) { model.bring_set("b"); });
  each_step([&](float) { model.promote_set("b"); });
  CHECK(run(model, 1) == all(15));
  model.remove_set("a");
  model.remove_set("b");
  CHECK(model.named_sets_memory().bytes == 0);
}

TEST_CASE("named sets: a replica that comes later runs them, one that goes lets go of them") {
  Loaded loaded("fake_model", 1, true, holding(4));
  Model& model = *loaded.model;
  put(model, "a", constants(2, 1));
  const auto set = model.find_set("a");
  run_with(model, set.get(), 1);
  const int added = model.add_replica(Device{});
  SetRun request;
  const std::vector<Tensor> inputs{filled({2, 4}, 1)};
  std::vector<Tensor> outputs(1);
  for (uint64_t key = 1; set->replicas() < 2; ++key) {
    REQUIRE(key < 100);
    SetRun one;
    one.inputs = inputs;
    one.outputs = outputs;
    one.affinity = key;
    one.weights = set.get();
    model.submit(one);
    one.done.wait(false);
    REQUIRE(!one.error);
    CHECK(outputs[0].data_as<float>()[0] == 3);
  }
  model.remove_replica(added);
  CHECK(set->replicas() == 1);
}

TEST_CASE("named sets: a model that holds some runs without them as before, and with a bound one without memory") {
  Loaded loaded("fake_model", 1, true, holding(4));
  Model& model = *loaded.model;
  put(model, "a", constants(2, 1));
  const auto set = model.find_set("a");
  const std::vector<Tensor> inputs{filled({2, 4}, 1)};
  std::vector<Tensor> outputs(1);
  const auto counted = [&](Model& of, const WeightSet* weights) {
    for (int i = 0; i < 10; ++i) of.run(inputs, outputs, 0, weights);
    const Counts before = counts();
    for (int i = 0; i < 100; ++i) of.run(inputs, outputs, 0, weights);
    const Counts after = counts();
    return std::vector<int64_t>{after.allocations - before.allocations, after.mappings - before.mappings,
                                after.locks - before.locks};
  };
  Loaded plain("fake_model");
  const auto without = counted(*plain.model, nullptr);
  CHECK(counted(model, nullptr) == without);
  CHECK(counted(model, set.get()) == without);
}
