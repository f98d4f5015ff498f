// Lanes and their memory over fake_runtime.cpp. Needs no device.
#include <doctest/doctest.h>

#include <memory>
#include <thread>

#include "sconce/error.h"
#include "src/cuda/memory/pinned_memory.h"
#include "src/cuda/runtime/caching_allocator.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "tests/cuda/fake_runtime.h"

using namespace sconce;
using sconce::test::fake_runtime;

namespace {

constexpr Device kFirst{DeviceType::kCuda, 0}, kSecond{DeviceType::kCuda, 1};

// Records on a lane while another thread calls `other`; returns the graph.
template <class F>
std::unique_ptr<DeviceGraph> recorded_while(cuda::Lane& lane, F&& other) {
  const DeviceStream::Scope scope(&lane);
  lane.begin_capture(1);
  std::thread(std::forward<F>(other)).join();
  return lane.end_capture(1);
}

}  // namespace

TEST_CASE("cuda lane: a run that fails beside a recording leaves it whole, and loses no device") {
  cuda::Lane recording(kFirst), failing(kFirst);
  const char* fault = "not asked";
  const auto graph = recorded_while(recording, [&] {
    fake_runtime().fail({.error = cudaErrorInvalidValue, .call = "cudaStreamSynchronize"});
    fault = failing.fault();
  });
  CHECK(graph);
  CHECK(fault == nullptr);
  CHECK(fake_runtime().device_waits == 0);
}

TEST_CASE("cuda lane: only errors that stick are a device that is lost") {
  cuda::Lane lane(kFirst);
  CHECK(lane.fault() == nullptr);
  for (const cudaError_t once : {cudaErrorIllegalAddress, cudaErrorStreamCaptureUnsupported, cudaErrorMemoryAllocation,
                                 cudaErrorNotSupported, cudaErrorStreamCaptureInvalidated}) {
    fake_runtime().fail({.error = once, .call = "cudaStreamSynchronize"});
    CHECK(lane.fault() == nullptr);
  }
  fake_runtime().sticks = cudaErrorStreamCaptureUnsupported;  // another thread is recording, and stays so
  CHECK(lane.fault() == nullptr);
  for (const cudaError_t lost : {cudaErrorIllegalAddress, cudaErrorLaunchFailure, cudaErrorAssert,
                                 cudaErrorECCUncorrectable, cudaErrorMisalignedAddress}) {
    fake_runtime().sticks = lost;
    REQUIRE(lane.fault());
    CHECK(std::string(lane.fault()) == cudaGetErrorString(lost));
  }
  fake_runtime().mend();
}

TEST_CASE("cuda lane: memory that runs short beside a recording is found without ending it") {
  cuda::Lane recording(kFirst), other(kFirst);
  {
    const DeviceStream::Scope scope(&recording);
    cuda::current().memory->allocate(4096);  // goes to the cache when it is freed
  }
  bool alone = false, of_lane = false;
  const auto graph = recorded_while(recording, [&] {
    const DeviceStream::Scope scope(&other);
    fake_runtime().fail({.error = cudaErrorMemoryAllocation, .call = "cudaMallocAsync"});
    of_lane = static_cast<bool>(cuda::current().memory->allocate(1 << 20));
    fake_runtime().fail({.error = cudaErrorMemoryAllocation, .call = "cudaMalloc"});
    alone = static_cast<bool>(cuda::CachingAllocator::allocate_alone(1 << 20, 0));
  });
  CHECK(graph);
  CHECK(of_lane);
  CHECK(alone);
  CHECK(fake_runtime().device_waits == 0);
  // Freed only after the recording is over.
  cuda::CachingAllocator::trim_all(0);
  CHECK(cuda::CachingAllocator::cached(0) == 0);
}

TEST_CASE("cuda lane: everything of a lost device goes without an exception, and errors are counted") {
  const int64_t streams = fake_runtime().live_streams, pinned = fake_runtime().live_pinned,
                memory = fake_runtime().live_device, graphs = fake_runtime().live_graphs;
  const uint64_t noted = cuda::noted_failures();
  {
    auto lane = std::make_unique<cuda::Lane>(kSecond);
    std::unique_ptr<DeviceGraph> graph;
    StoragePtr cached, kept, alone, of_host;
    cuda::PinnedMemory host;
    {
      const DeviceStream::Scope scope(lane.get());
      cached = cuda::current().memory->allocate(1000);
      kept = cuda::current().memory->allocate(2000);
      alone = cuda::CachingAllocator::allocate_alone(3000, 1);
      of_host = host.allocate(1000);
      lane->begin_capture(1);
      cuda::current().memory->allocate(500);
      graph = lane->end_capture(1);
    }
    cached = StoragePtr();
    fake_runtime().sticks = cudaErrorIllegalAddress;
    // From a thread on another device, like the control thread.
    std::thread([&] {
      graph.reset();
      lane.reset();
      kept = alone = of_host = StoragePtr();
      host.trim();
      host.trim();
    }).join();
    CHECK_THROWS_AS(cuda::Lane{kSecond}, Error);
    fake_runtime().mend();
  }
  CHECK(cuda::noted_failures() > noted);
  CHECK(fake_runtime().live_streams == streams);
  CHECK(fake_runtime().live_pinned == pinned);
  CHECK(fake_runtime().live_device == memory);
  CHECK(fake_runtime().live_graphs == graphs);
}

TEST_CASE("cuda lane: one that cannot be made leaves nothing behind") {
  const int64_t streams = fake_runtime().live_streams;
  fake_runtime().fail({.error = cudaErrorMemoryAllocation, .call = "cudaHostAlloc"});  // pinned_word() fails
  CHECK_THROWS_AS(cuda::Lane{kFirst}, Error);
  CHECK(fake_runtime().live_streams == streams);
}

TEST_CASE("pinned memory: what nobody uses goes back to the system when it is trimmed") {
  const int64_t pinned = fake_runtime().live_pinned;
  cuda::PinnedMemory host;
  StoragePtr used = host.allocate(5000);
  for (int i = 0; i < 4; ++i) host.allocate(size_t{1} << (12 + i));
  const int64_t all = fake_runtime().live_pinned;
  CHECK(all > pinned + 1);
  host.trim();  // the word was in use until now
  CHECK(fake_runtime().live_pinned == all);
  host.trim();
  CHECK(fake_runtime().live_pinned == pinned + 1);
  used = StoragePtr();
  host.trim();
  host.trim();
  CHECK(fake_runtime().live_pinned == pinned);
}

TEST_CASE("cuda lane: what kernels of a failed run noted does not fail the next run") {
  cuda::Lane lane(kFirst);
  {
    const DeviceStream::Scope scope(&lane);
    *cuda::noted_by_kernels() = static_cast<int>(cuda::Noted::kIndex);
  }
  // The run failed on the host before it came to synchronize(), so the runner asks for the device's state.
  CHECK(lane.fault() == nullptr);
  lane.synchronize();
  {
    const DeviceStream::Scope scope(&lane);
    *cuda::noted_by_kernels() = static_cast<int>(cuda::Noted::kRegion);
  }
  CHECK_THROWS_WITH_AS(lane.synchronize(), "a region is of an image that the input does not have", Error);
  lane.synchronize();
}
