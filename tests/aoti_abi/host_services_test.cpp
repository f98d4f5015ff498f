#include "src/aoti_abi/host_services.h"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "sconce/check.h"
#include "src/device/cpu_arena.h"
#include "src/device/cpu_isa.h"

using namespace sconce;

namespace {

HostServices& services() { return *sconce_host_services(); }

struct Files final : DeviceFiles {
  std::span<const std::byte> find(std::string_view) const override { return {}; }
};
struct Loading final : DeviceLoading {
  bool note_copy(void*, const void*, size_t) noexcept override { return true; }
};

}  // namespace

TEST_CASE("host services: one object, whoever asks") {
  HostServices* elsewhere = nullptr;
  std::thread([&] { elsewhere = sconce_host_services(); }).join();
  CHECK(elsewhere == sconce_host_services());
}

TEST_CASE("host services: files and loading are the calling thread's") {
  CHECK(services().device_files() == nullptr);
  CHECK(services().device_loading() == nullptr);
  const Files files;
  const DeviceFiles::Scope scope(&files);
  Loading loading;
  CHECK(services().device_files() == &files);
  CHECK(services().device_loading() == &loading);
  std::thread([&] {
    CHECK(services().device_files() == nullptr);
    CHECK(services().device_loading() == nullptr);
  }).join();
}

TEST_CASE("host services: random numbers go on where libsconce's are") {
  PhiloxGenerator& generator = services().philox_generator(3);
  CHECK(&generator == &philox_generator(3));
  generator.set_seed(7);
  CHECK(philox_generator(3).reserve(5).offset == 0);
  const PhiloxGenerator::State state = generator.reserve(1);
  CHECK(state.seed == 7);
  CHECK(state.offset == 8);
}

TEST_CASE("host services: memory comes from the calling thread's arena and its handles") {
  const CpuArena::Ptr arena = CpuArena::create();
  {
    const CpuArena::Scope scope(arena.get());
    const StoragePtr storage = services().allocate_cpu(100);
    CHECK(storage->bytes() >= 100);
    CHECK(reinterpret_cast<uintptr_t>(storage->data()) % 64 == 0);
  }
  void* const memory = services().take_handle_memory();
  services().keep_handle_memory(memory);
#ifndef __SANITIZE_ADDRESS__
  void* const again = aoti_abi::take_handle_memory();
  CHECK(again == memory);
  aoti_abi::keep_handle_memory(again);
#endif
}

TEST_CASE("host services: a failure is kept for the thread") {
  aoti_abi::take_error();
  try {
    SCONCE_FAIL(kUnsupported, "no such kernel");
  } catch (...) {
    CHECK(services().record_failure("aoti_torch_cuda_x") == 1);
  }
  const auto error = services().take_error();
  REQUIRE(error);
  CHECK(error->code == ErrorCode::kUnsupported);
  CHECK(error->text == "aoti_torch_cuda_x: no such kernel");
  CHECK(!aoti_abi::take_error());
}

TEST_CASE("host services: threads and instruction sets are the kernels'") {
  CHECK(services().has_avx512() == has_avx512());
  const int before = kernel_threads();
  set_kernel_threads(3);
  CHECK(services().kernel_threads() == 3);
  std::vector<int> seen(1000);
  int* const counts = seen.data();
  services().parallel_ranges(
      0, 1000, 1,
      [](const void* context, int64_t begin, int64_t end) noexcept {
        int* const* counts = static_cast<int* const*>(context);
        for (int64_t i = begin; i < end; ++i) ++(*counts)[i];
      },
      &counts);
  set_kernel_threads(before);
  CHECK(seen == std::vector<int>(1000, 1));
}

TEST_CASE("host services: a device of no library is refused by name") {
  CHECK_THROWS_AS(services().device_backend(DeviceType::kMeta), Error);
}
