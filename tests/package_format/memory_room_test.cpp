#include "package_format/memory_room.h"

#include <doctest/doctest.h>

#include "tests/package_format/raw_zip.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("memory room: the least of machine and groups, pages of files being free") {
  const TempFolder folder;
  const std::string root = folder.path().string();
  CHECK(memory_room(root) == UINT64_MAX);
  folder.write("proc/meminfo", "MemTotal:       8000 kB\nMemFree:   10 kB\nMemAvailable:   5000 kB\n");
  CHECK(memory_room(root) == 5000 * 1024);
  folder.write("proc/self/cgroup", "0::/pods/one\n");
  folder.write("sys/fs/cgroup/pods/one/memory.max", "4000000\n");
  folder.write("sys/fs/cgroup/pods/one/memory.current", "3000000\n");
  folder.write("sys/fs/cgroup/pods/one/memory.stat", "anon 1\nfile 77\ninactive_file 1000000\nactive_file 500000\n");
  CHECK(memory_room(root) == 2'500'000);
  folder.write("sys/fs/cgroup/pods/memory.max", "max\n");
  folder.write("sys/fs/cgroup/pods/memory.current", "3900000\n");
  CHECK(memory_room(root) == 2'500'000);
  folder.write("sys/fs/cgroup/pods/memory.max", "4000000\n");
  CHECK(memory_room(root) == 100'000);
  folder.write("sys/fs/cgroup/pods/memory.current", "4900000\n");
  CHECK(memory_room(root) == 0);
  // Version 1; the group's path is the host's, what is mounted the container's.
  folder.write("proc/self/cgroup", "9:cpu,memory:/docker/abc\n8:pids:/\n");
  folder.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000\n");
  folder.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "1900000\n");
  folder.write("sys/fs/cgroup/memory/memory.stat", "cache 5\ntotal_inactive_file 300000\ntotal_active_file 0\n");
  CHECK(memory_room(root) == 400'000);
}
