// One test for each CUDA error that driver_faults_test.cpp found to be handled badly.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>

#include "sconce/error.h"
#include "src/cuda/memory/model_memory.h"
#include "src/cuda/memory/pinned_memory.h"
#include "src/cuda/memory/shared_memory.h"
#include "src/cuda/runtime/caching_allocator.h"
#include "src/cuda/runtime/modules.h"
#include "src/cuda/runtime/stream.h"
#include "tests/cuda/fake_runtime.h"

using namespace sconce;
using namespace sconce::test;

namespace {

constexpr Device kFirst{DeviceType::kCuda, 0}, kSecond{DeviceType::kCuda, 1};

// Checks that memory allocated for a device is on it.
void check_memory_of(Device device) {
  const StoragePtr memory = device_backend(device).allocate_lasting(100, device);
  CHECK(device_of_memory(memory->data()) == device.index);
}

}  // namespace

TEST_CASE("cuda errors: a thread whose device CUDA refuses to give back takes no memory of another") {
  {
    const cuda::DeviceScope scope(kSecond);
    fake_runtime().fail({.error = cudaErrorInvalidValue, .call = "cudaSetDevice"});
  }
  CHECK(device_of_thread() == 1);
  check_memory_of(kFirst);
  CHECK(device_of_thread() == 0);
  {
    cuda::Lane lane(kSecond);
    const DeviceStream::Scope scope(&lane);
    fake_runtime().fail({.error = cudaErrorInvalidValue, .call = "cudaSetDevice"});
  }
  CHECK_NOTHROW(check_memory_of(kFirst));
  CHECK(fake_runtime().misuse().empty());
}

TEST_CASE("cuda errors: giving back does not move a thread to the first device where CUDA does not say which it has") {
  cuda::Lane lane(kSecond);
  const DeviceStream::Scope scope(&lane);
  fake_runtime().fail({.error = cudaErrorInvalidValue, .call = "cudaGetDevice"});
  { const cuda::ReleaseScope release(0); }
  CHECK(device_of_thread() == 1);
}

TEST_CASE("cuda errors: a recording is ended though CUDA does not say that there is one") {
  cuda::Lane lane(kFirst);
  const DeviceStream::Scope scope(&lane);
  const int64_t graphs = fake_runtime().live_graphs;
  lane.begin_capture(1);
  fake_runtime().fail({.error = cudaErrorInvalidValue, .call = "cudaStreamIsCapturing", .times = kForGood});
  lane.drop_capture();
  fake_runtime().mend();
  CHECK_NOTHROW(lane.synchronize());
  CHECK(fake_runtime().live_graphs == graphs);
}

TEST_CASE("cuda errors: a recording that cannot load its kernel says so, and not the next call") {
  cuda::Lane lane(kFirst);
  const DeviceStream::Scope scope(&lane);
  fake_runtime().fail({.error = cudaErrorNotSupported, .call = "launch_copies"});
  CHECK_THROWS_AS(lane.begin_capture(0), Error);
  lane.drop_capture();
  CHECK(fake_runtime().misuse().empty());
}

TEST_CASE("cuda errors: a thread's mode of capture is what it was by the next recording") {
  cuda::Lane lane(kFirst);
  const DeviceStream::Scope scope(&lane);
  lane.begin_capture(1);
  // Entering the mode succeeds, leaving it fails.
  fake_runtime().fail({.error = cudaErrorInvalidValue, .call = "cudaThreadExchangeStreamCaptureMode", .at = 2});
  CHECK_THROWS_AS(cuda::current().memory->allocate(100), Error);
  lane.drop_capture();
  lane.begin_capture(1);
  CHECK(fake_runtime().misuse().empty());
  // Entering it fails, so it is not left.
  fake_runtime().fail({.error = cudaErrorInvalidValue, .call = "cudaThreadExchangeStreamCaptureMode"});
  CHECK_THROWS_AS(cuda::current().memory->allocate(100), Error);
  lane.drop_capture();
  CHECK(fake_runtime().misuse().empty());
}

TEST_CASE("cuda errors: pinned memory may be touched after a copy though CUDA does not say that it is pinned") {
  const int64_t sizes[] = {4}, strides[] = {1};
  DeviceBackend& backend = device_backend(kFirst);
  Tensor from(backend.allocate_host(16), DType::kFloat32, sizes, strides);
  for (int i = 0; i < 4; ++i) from.data_as<float>()[i] = 5;
  const std::unique_ptr<DeviceStream> lane = backend.make_lane(kFirst);
  const DeviceStream::Scope scope(lane.get());
  Tensor there = Tensor::empty(sizes, DType::kFloat32, kFirst), back = Tensor::empty(sizes, DType::kFloat32);
  fake_runtime().fail({.error = cudaErrorInvalidValue, .call = "cudaPointerGetAttributes"});
  backend.copy(from, there);
  std::memset(from.data(), 0, 16);
  backend.copy(there, back);
  CHECK(back.data_as<float>()[0] == 5);
}

TEST_CASE("cuda errors: what a model is told is not left for the next launch") {
  void* memory = nullptr;
  fake_runtime().fail({.error = cudaErrorMemoryAllocation, .call = "cudaMalloc"});
  CHECK(cuda::model_malloc(&memory, 100) == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaSuccess);
  int word = 0;
  fake_runtime().fail({.error = cudaErrorInvalidValue, .call = "cudaMemcpy"});
  CHECK(cuda::model_memcpy(&word, &word, sizeof word, cudaMemcpyHostToHost) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("cuda errors: the pool that is not trimmed is no later call's error") {
  fake_runtime().fail({.error = cudaErrorInvalidValue, .call = "cudaMemPoolTrimTo"});
  cuda::CachingAllocator::trim_pool(0);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("cuda errors: a module whose context is refused takes no other context with it") {
  struct NoFiles final : DeviceFiles {
    std::span<const std::byte> find(std::string_view) const override { return {}; }
  } files;
  const int64_t modules = fake_runtime().live_modules;
  {
    const DeviceFiles::Scope scope(&files);
    CUmodule module = nullptr;
    const char image[] = "cubin";
    REQUIRE(cuda::load_module_data(&module, image) == CUDA_SUCCESS);
  }
  fake_runtime().fail({.error = cudaErrorInvalidValue, .call = "cuCtxPushCurrent"});
  cuda::forget_modules(files);
  CHECK(fake_runtime().misuse().empty());
  CHECK(fake_runtime().live_modules == modules);
}

TEST_CASE("cuda errors: pinned memory that is kept goes with its owner") {
  const int64_t pinned = fake_runtime().live_pinned;
  {
    cuda::PinnedMemory all;
    all.allocate(100);
  }
  CHECK(fake_runtime().live_pinned == pinned);
}
