#include "server/weights/validation/shadow_queue.h"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/tensor_values.h"

namespace sconce::server::weights {
namespace {

using enum ShadowCounts::What;

Tensor filled(const std::vector<int64_t>& sizes, float value) {
  Tensor result = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < result.numel(); ++i) result.data_as<float>()[i] = value;
  return result;
}

struct Filled {
  std::shared_ptr<ShadowCounts> counts = std::make_shared<ShadowCounts>();
  std::atomic<int64_t> waiting{0};
  ShadowQueue queue;

  explicit Filled(double share = 1, uint64_t memory = uint64_t{1} << 20)
      : queue(
            1, share, memory, [this] { return waiting.load(); }, counts) {
    queue.open();
  }

  void show(float x, uint64_t weight_version = 1, const std::vector<int64_t>& sizes = {2, 3}) {
    RunInfo info;
    info.weight_version = weight_version;
    const Tensor input = filled(sizes, x), output = filled(sizes, -x);
    queue.saw({{&input, 1}, {&output, 1}, info, {}});
  }
  // The number of the next request that was copied.
  float taken() {
    ShadowQueue::Request* const request = queue.next();
    REQUIRE(request != nullptr);
    const float x = values<float>(request->inputs[0])[0];
    CHECK(values<float>(request->outputs[0]) == std::vector<float>(6, -x));
    queue.done(*request);
    return x;
  }
  uint64_t picked() const { return (*counts)[kFull] + (*counts)[kBusy] + (*counts)[kPlaced]; }
};

}  // namespace

TEST_CASE("shadow queue: requests come out in their order, as copies") {
  Filled f;
  for (int round = 0; round < 3; ++round) {
    for (float x = 1; x <= 4; ++x) f.show(x);
    for (float x = 1; x <= 4; ++x) CHECK(f.taken() == x);
  }
  CHECK(f.counts->skipped() == 0);
}

TEST_CASE("shadow queue: the share is picked evenly") {
  for (const double share : {0.0, 0.1, 0.25, 1.0 / 3, 0.5, 0.9, 1.0}) {
    CAPTURE(share);
    Filled f(share);
    f.waiting = 1;  // each picked one is counted as skipped
    uint64_t before = 0;
    for (int i = 1; i <= 1000; ++i) {
      f.show(1);
      const uint64_t picked = f.picked();
      CHECK(picked - before <= 1);
      CHECK(std::abs(static_cast<double>(picked) - share * i) <= 1);
      before = picked;
    }
    f.queue.set_share(1);
    f.show(1);
    CHECK(f.picked() == before + 1);
  }
}

TEST_CASE("shadow queue: answers of other sets and weight versions are not meant") {
  Filled f;
  f.show(1, 2);
  RunInfo info;
  info.weight_version = 1;
  info.set = std::make_shared<const std::string>("tenant");
  const Tensor input = filled({2, 3}, 2);
  f.queue.saw({{&input, 1}, {&input, 1}, info, {}});
  f.show(3);
  CHECK(f.taken() == 3);
  CHECK(f.counts->skipped() == 0);
}

TEST_CASE("shadow queue: what finds no room is skipped and counted, and the sums have it too") {
  ShadowCounts sums;
  const auto counts = std::make_shared<ShadowCounts>(&sums);
  Filled f;
  for (float x = 1; x <= 7; ++x) f.show(x);
  CHECK((*f.counts)[kFull] == 3);
  CHECK(f.taken() == 1);
  f.show(8);
  CHECK((*f.counts)[kFull] == 3);
  // Inputs and outputs together may have a quarter of the memory, all requests together so the whole.
  Filled large(1, 4 * 800);
  large.show(1, 1, {101});
  CHECK((*large.counts)[kFull] == 1);
  for (float x = 2; x <= 5; ++x) large.show(x, 1, {100});
  CHECK((*large.counts)[kFull] == 1);
  ShadowQueue::Request* const first = large.queue.next();
  REQUIRE(first != nullptr);
  CHECK(values<float>(first->inputs[0]) == std::vector<float>(100, 2));
  large.queue.done(*first);
  Filled none(1, 3);
  none.show(1);
  CHECK((*none.counts)[kFull] == 1);
  counts->raise(kFull);
  counts->raise(kEnded);
  counts->raise(kCompared);
  CHECK(sums.skipped() == 2);
  CHECK(sums[kCompared] == 1);
}

TEST_CASE("shadow queue: nothing is picked while requests wait, nor taken") {
  Filled f;
  f.show(1);
  f.waiting = 1;
  f.show(2);
  CHECK((*f.counts)[kBusy] == 1);
  std::atomic<bool> taken{false};
  std::thread thread([&] {
    if (ShadowQueue::Request* const request = f.queue.next()) f.queue.done(*request);
    taken = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  CHECK(!taken);
  f.waiting = 0;
  thread.join();
  CHECK(taken);
}

TEST_CASE("shadow queue: tensors of a device are skipped") {
  Filled f;
  RunInfo info;
  info.weight_version = 1;
  const Tensor here = filled({1}, 1);
  float memory = 0;
  const Tensor there = Tensor::from_blob(&memory, std::vector<int64_t>{1}, std::vector<int64_t>{1}, DType::kFloat32,
                                         Device{DeviceType::kCuda, 0});
  f.queue.saw({{&there, 1}, {&here, 1}, info, {}});
  f.queue.saw({{&here, 1}, {&there, 1}, info, {}});
  CHECK((*f.counts)[kPlaced] == 2);
}

TEST_CASE("shadow queue: inputs keep their strides, outputs become row-major, None stays None") {
  Filled f;
  RunInfo info;
  info.weight_version = 1;
  info.compute = std::chrono::microseconds(7);
  Tensor memory = filled({12}, 0);
  for (int64_t i = 0; i < 12; ++i) memory.data_as<float>()[i] = static_cast<float>(i);
  const std::vector<int64_t> sizes{2, 3}, transposed{1, 2}, stretched{6, 2}, repeated{0, 1};
  const std::vector<Tensor> inputs{memory.as_strided(sizes, transposed, 1), memory.as_strided(sizes, stretched, 1),
                                   memory.as_strided(sizes, repeated, 5),
                                   Tensor::empty(std::vector<int64_t>{0}, DType::kInt8)};
  const std::vector<Tensor> outputs{memory.as_strided(sizes, transposed, 1), Tensor()};
  f.queue.saw({inputs, outputs, info, {}, false});
  ShadowQueue::Request* const request = f.queue.next();
  REQUIRE(request != nullptr);
  CHECK(request->compute == info.compute);
  CHECK(!request->alone);
  for (size_t i = 0; i < inputs.size(); ++i) {
    CHECK(std::ranges::equal(request->inputs[i].strides(), inputs[i].strides()));
    CHECK(std::ranges::equal(request->inputs[i].sizes(), inputs[i].sizes()));
    CHECK(request->inputs[i].dtype() == inputs[i].dtype());
    CHECK((inputs[i].numel() == 0 || request->inputs[i].data() != inputs[i].data()));
  }
  for (size_t i = 0; i < 3; ++i) CHECK(values<float>(request->inputs[i]) == values<float>(inputs[i]));
  CHECK(request->outputs[0].is_contiguous());
  CHECK(values<float>(request->outputs[0]) == values<float>(outputs[0]));
  CHECK(!request->outputs[1].defined());
  f.queue.done(*request);
}

TEST_CASE("shadow queue: before it opens and after it closes nothing is picked") {
  const auto counts = std::make_shared<ShadowCounts>();
  ShadowQueue queue(
      1, 1, 1 << 20, [] { return 0; }, counts);
  RunInfo info;
  info.weight_version = 1;
  queue.saw({{}, {}, info, {}});
  CHECK(counts->skipped() == 0);
  queue.close();
  queue.open();
  CHECK(queue.closed());
  queue.saw({{}, {}, info, {}});
  CHECK(counts->skipped() == 0);
  CHECK(queue.next() == nullptr);
  Filled f;
  for (float x = 1; x <= 3; ++x) f.show(x);
  f.queue.close();
  CHECK(f.queue.next() == nullptr);
  CHECK((*f.counts)[kEnded] == 3);
}

TEST_CASE("shadow queue: every picked request is taken, skipped, or ends with the queue") {
  constexpr int kThreads = 3, kEach = 20000;
  Filled f;
  std::vector<std::thread> threads;
  std::atomic<uint64_t> taken{0};
  std::thread reader([&] {
    while (ShadowQueue::Request* const request = f.queue.next()) {
      CHECK(values<float>(request->inputs[0])[0] == -values<float>(request->outputs[0])[5]);
      f.queue.done(*request);
      ++taken;
    }
  });
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) f.show(static_cast<float>(t * kEach + i));
    });
  for (std::thread& thread : threads) thread.join();
  f.queue.close();
  reader.join();
  CHECK(taken > 0);
  CHECK(taken + f.counts->skipped() == kThreads * kEach);
}

}  // namespace sconce::server::weights
