
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "src/device/dummy_run.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

namespace {
template <class F>
void run(std::string_view op, F bag) {
  run_cases("embedding.cases", op, [&](Case& c) {
    return listed(bag(c.tensor(0), c.tensor(1), c.tensor(2), false, c.integer(3), false, c.args[4].optional_tensor(),
                      c.boolean(5), c.integer(6)));
  });
}
}  // namespace

TEST_CASE("_embedding_bag: modes, dtypes, padding, weights, offsets") { run("_embedding_bag", cpu::_embedding_bag); }
TEST_CASE("_embedding_bag_forward_only: sizes of what a sum leaves out") {
  run("_embedding_bag_forward_only", cpu::_embedding_bag_forward_only);
}

TEST_CASE("_embedding_bag: a made-up run maps a cached table, other runs only what they read") {
  constexpr size_t kBytes = size_t{8} << 20;
  char path[] = "/tmp/sconce_table_XXXXXX";
  const int file = ::mkstemp(path);
  REQUIRE(file >= 0);
  ::unlink(path);
  const std::vector<std::byte> zeros(kBytes);
  REQUIRE(::write(file, zeros.data(), kBytes) == static_cast<ssize_t>(kBytes));
  const auto mapped_pages = [&](bool dummy, bool constant) {
    void* const data = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, file, 0);
    REQUIRE(data != MAP_FAILED);
    ::madvise(data, kBytes, MADV_RANDOM);
    int64_t count = 0;
    {
      const auto storage = StoragePtr::adopt(new Storage(
          data, kBytes, Device{}, [](void*, size_t, void*) noexcept {}, nullptr));
      storage->set_immutable(constant);
      const std::vector<int64_t> sizes{int64_t{kBytes} / 64, 16}, strides{16, 1};
      const Tensor table(storage, DType::kFloat32, sizes, strides);
      const std::vector<int64_t> one{1};
      Tensor zero = Tensor::empty(one, DType::kInt64);
      *zero.data_as<int64_t>() = 0;
      std::optional<DummyRun> run;
      if (dummy) run.emplace();
      cpu::_embedding_bag(table, zero, zero, false, 0, false, nullptr, false, -1);
    }
    const int map = ::open("/proc/self/pagemap", O_RDONLY);
    REQUIRE(map >= 0);
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    for (size_t at = 0; at < kBytes; at += page) {
      uint64_t entry = 0;
      const auto where = (reinterpret_cast<uintptr_t>(data) + at) / page * sizeof entry;
      REQUIRE(::pread(map, &entry, sizeof entry, static_cast<off_t>(where)) == sizeof entry);
      count += static_cast<int64_t>(entry >> 63);
    }
    ::close(map);
    ::munmap(data, kBytes);
    return count * static_cast<int64_t>(page);
  };
  CHECK(mapped_pages(false, true) < int64_t{kBytes} / 2);
  CHECK(mapped_pages(true, false) < int64_t{kBytes} / 2);
  const int64_t all = mapped_pages(true, true);
  const bool old_kernel = ::madvise(nullptr, 0, MADV_POPULATE_READ) != 0;
  if (!old_kernel) CHECK(all == int64_t{kBytes});
  ::close(file);
}
