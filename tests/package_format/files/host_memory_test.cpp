#include "package_format/files/host_memory.h"

#include <doctest/doctest.h>

#include "tests/files.h"

using namespace sconce;

TEST_CASE("host memory: the limit is the least of the control groups and the machine") {
  const TempFolder root;
  root.write("proc/meminfo", "MemFree: 1 kB\nMemTotal:       8000000 kB\nMemAvailable: 5 kB\n");
  CHECK(host_memory(root.path().native()).limit == 8'000'000ULL * 1024);
  root.write("proc/self/cgroup", "0::/pods/one\n");
  CHECK(host_memory(root.path().native()).limit == 8'000'000ULL * 1024);
  root.write("sys/fs/cgroup/pods/one/memory.max", "max\n");
  CHECK(host_memory(root.path().native()).limit == 8'000'000ULL * 1024);
  root.write("sys/fs/cgroup/pods/memory.max", "2147483648\n");
  CHECK(host_memory(root.path().native()).limit == 2147483648ULL);
  root.write("sys/fs/cgroup/pods/one/memory.max", "1073741824\n");
  CHECK(host_memory(root.path().native()).limit == 1073741824ULL);
  // In a container: the path is the host's, what is mounted is its own.
  root.write("proc/self/cgroup", "0::/elsewhere/two\n");
  root.write("sys/fs/cgroup/memory.max", "536870912\n");
  CHECK(host_memory(root.path().native()).limit == 536870912ULL);
  // Version 1, which writes a number near 2^63 for none.
  root.write("proc/self/cgroup", "9:cpu,memory:/docker/x\n0::/\n");
  root.write("sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(host_memory(root.path().native()).limit == 536870912ULL);
  root.write("sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "268435456\n");
  CHECK(host_memory(root.path().native()).limit == 268435456ULL);
}

TEST_CASE("host memory: files in memory are left, what processes have is not") {
  const TempFolder root;
  CHECK(host_memory(root.path().native()).left == UINT64_MAX);
  root.write("proc/meminfo", "MemTotal: 8000 kB\nMemAvailable: 4000 kB\nSwapFree: 500 kB\n");
  CHECK(host_memory(root.path().native()).left == 4500 * 1024);
  root.write("proc/self/cgroup", "0::/pods/one\n");
  root.write("sys/fs/cgroup/pods/one/memory.max", "1000000\n");
  root.write("sys/fs/cgroup/pods/one/memory.current", "900000\n");
  CHECK(host_memory(root.path().native()).left == 100000);
  root.write("sys/fs/cgroup/pods/one/memory.stat", "anon 1\nfile 900000\ninactive_file 200000\nactive_file 50000\n");
  CHECK(host_memory(root.path().native()).left == 350000);
  root.write("sys/fs/cgroup/pods/memory.max", "2000000\n");
  root.write("sys/fs/cgroup/pods/memory.current", "1990000\n");
  CHECK(host_memory(root.path().native()).left == 10000);
  root.write("sys/fs/cgroup/pods/memory.current", "3000000\n");  // over it, for a moment
  CHECK(host_memory(root.path().native()).left == 0);
  root.write("proc/self/cgroup", "9:cpu,memory:/docker/x\n");
  root.write("sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "1000000\n");
  root.write("sys/fs/cgroup/memory/docker/x/memory.usage_in_bytes", "600000\n");
  root.write("sys/fs/cgroup/memory/docker/x/memory.stat", "cache 5\ntotal_inactive_file 100000\ntotal_active_file 1\n");
  CHECK(host_memory(root.path().native()).left == 500001);
}

TEST_CASE("host memory: without swap, the least of machine and groups") {
  const TempFolder folder;
  const std::string root = folder.path().native();
  CHECK(host_memory(root).left_without_swap == UINT64_MAX);
  folder.write("proc/meminfo", "MemTotal:       8000 kB\nMemFree:   10 kB\nMemAvailable:   5000 kB\n");
  CHECK(host_memory(root).left_without_swap == 5000 * 1024);
  folder.write("proc/self/cgroup", "0::/pods/one\n");
  folder.write("sys/fs/cgroup/pods/one/memory.max", "4000000\n");
  folder.write("sys/fs/cgroup/pods/one/memory.current", "3000000\n");
  folder.write("sys/fs/cgroup/pods/one/memory.stat", "anon 1\nfile 77\ninactive_file 1000000\nactive_file 500000\n");
  CHECK(host_memory(root).left_without_swap == 2'500'000);
  folder.write("sys/fs/cgroup/pods/memory.max", "max\n");
  folder.write("sys/fs/cgroup/pods/memory.current", "3900000\n");
  CHECK(host_memory(root).left_without_swap == 2'500'000);
  folder.write("sys/fs/cgroup/pods/memory.max", "4000000\n");
  CHECK(host_memory(root).left_without_swap == 100'000);
  folder.write("sys/fs/cgroup/pods/memory.current", "4900000\n");
  CHECK(host_memory(root).left_without_swap == 0);
  // Version 1; the group's path is the host's, what is mounted the container's.
  folder.write("proc/self/cgroup", "9:cpu,memory:/docker/abc\n8:pids:/\n");
  folder.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000\n");
  folder.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "1900000\n");
  folder.write("sys/fs/cgroup/memory/memory.stat", "cache 5\ntotal_inactive_file 300000\ntotal_active_file 0\n");
  CHECK(host_memory(root).left_without_swap == 400'000);
}
