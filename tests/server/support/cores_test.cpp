#include "server/support/cores.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <unistd.h>

#include <fstream>

#include "sconce/error.h"
#include "tests/errors.h"
#include "tests/files.h"

using namespace sconce;
using namespace sconce::server;

namespace {

// A folder such as /sys/devices/system/node.
struct Nodes {
  void add(int node, const std::string& list) const {
    folder.write("node" + std::to_string(node) + "/cpulist", list + "\n");
  }
  std::vector<int> find(std::vector<std::string> parts) const { return find_cores(parts, folder.path()); }
  std::string error(std::vector<std::string> parts, ErrorCode code = ErrorCode::kInvalidArgument) const {
    return error_from(code, [&] { find(std::move(parts)); });
  }
  const TempFolder folder;
};

std::vector<int> usable() {
  cpu_set_t set;
  REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
  std::vector<int> cores;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) cores.push_back(i);
  return cores;
}

}  // namespace

TEST_CASE("cores: numbers and ranges, each once") {
  const Nodes nodes;
  CHECK(nodes.find({"0-3", "8"}) == std::vector<int>{0, 1, 2, 3, 8});
  CHECK(nodes.find({"5", "4-6", "5"}) == std::vector<int>{5, 4, 6});
  CHECK(nodes.find({}).empty());
  CHECK(find_cores("0-1, 7") == std::vector<int>{0, 1, 7});
}

TEST_CASE("cores: those of a NUMA node that this process may use") {
  const Nodes nodes;
  const std::vector<int> own = usable();
  const int first = own.front(), last = own.back();
  nodes.add(0, "0-65535");
  nodes.add(1, std::to_string(first));
  nodes.add(2, std::to_string(last) + "," + std::to_string(first) + "-" + std::to_string(first));
  nodes.add(3, "65000-65535");
  nodes.add(4, "");  // memory without cores
  nodes.add(5, "oops");
  CHECK(nodes.find({"numa:0"}) == own);
  CHECK(nodes.find({"numa:1"}) == std::vector<int>{first});
  CHECK(nodes.find({"numa:2", "numa:1"}) == (first == last ? std::vector<int>{first} : std::vector<int>{last, first}));
  CHECK(nodes.find({"60000", "numa:1"}) == std::vector<int>{60000, first});
  CHECK(nodes.error({"numa:3"}) == "this process may use no core of NUMA node 3");
  CHECK(nodes.error({"numa:4"}) == "this process may use no core of NUMA node 4");
  CHECK(nodes.error({"numa:5"}, ErrorCode::kIo).find("not a list of cores") == 0);
  CHECK(nodes.error({"numa:6"}).find("this machine has no NUMA node 6") == 0);
}

TEST_CASE("cores: what is neither is refused before anything is read") {
  const Nodes nodes;
  for (const char* bad : {"", "x", "-1", "3-1", "1-", "65536", "numa:", "numa:../1", "numa:-1", "numa: 1", "NUMA:0"}) {
    CAPTURE(bad);
    CHECK(nodes.error({bad}).find("expected cores such as 0-3,8 or numa:0") != std::string::npos);
  }
}
