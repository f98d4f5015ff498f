// The rooms of the large folders: which may include which, and how many files each may hold.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "tests/rules/tree.h"

namespace sconce::rules {
namespace {

using Rooms = std::vector<std::string>;

const std::string kRemoteCredentials = "server/remote/credentials/";

// Prefixes of paths. A room may include itself and those before it in its list. A file belongs to its longest prefix.
const Rooms kServer = {
    "server/memory/",        "server/base/",
    "server/process/",       "server/files/",
    "server/json/",          "server/html/",
    "server/terminal/",      "server/triton/",
    "server/http/",          "server/access/",
    "server/client/",        "server/signing/",
    "server/kept/",          "server/signature/",
    "server/pipelines/",     "server/loops/",
    "server/batching/",      "server/judging/",
    "server/repositories/",  "server/remote/transfer/",
    kRemoteCredentials,      "server/remote/",
    "server/trial/",  // of models, in a child process
    "server/demand/",        "server/models/",
    "server/protocols/",     "server/observe/",
    "server/observe/otlp/",  "server/observe/traces/",
    "server/admin/work/",    "server/admin/push/",
    "server/trainers/",      "server/admin/",
    "server/admin/judging/", "server/admin/trainers/",
    "server/console/",       "server/answers/",
    "server/connections/",   "server/grpc/",
    "server/grpc/library/",  "server/server.",
    "server/commands/",      "server/commands/weights/",
    "server/commands/top/",  "server/",
};
const Rooms kOperators = {
    "src/tensor/elements/", "src/tensor/",
    "src/tensor/rows/",     "src/tensor/spatial/",
    "src/tensor/matrices/", "src/tensor/rules/",
    "src/cpu/vector/",      "src/cpu/elementwise/",
    "src/cpu/indexing/",    "src/cpu/movement/",
    "src/cpu/reduction/",   "src/cpu/onednn/",
    "src/cpu/matmul/gemm/", "src/cpu/matmul/",
    "src/cpu/linalg/",      "src/cpu/normalisation/",
    "src/cpu/sorting/",     "src/cpu/random/",
    "src/cpu/pooling/",     "src/cpu/vision/",
    "src/cpu/attention/",   "src/cpu/convolution/direct/",
    "src/cpu/convolution/", "src/cpu/layers/",
};
const Rooms kCuda = {
    "src/cuda/device_code/",
    "src/cuda/runtime/",
    "src/cuda/memory/",
    "src/cuda/cudnn/",
    "src/cuda/tensor/",
    "src/cuda/elementwise/",
    "src/cuda/normalisation/",
    "src/cuda/random/",
    "src/cuda/indexing/",
    "src/cuda/reduction/",
    "src/cuda/matmul/",
    "src/cuda/linalg/",
    "src/cuda/pooling/",
    "src/cuda/attention/flash/",
    "src/cuda/sorting/",
    "src/cuda/vision/",
    "src/cuda/attention/",
    "src/cuda/convolution/",
    "src/cuda/layers/",
    "src/cuda/abi/",
    "src/cuda/",
};

const Rooms kPackages = {
    "package_format/files/",
    "package_format/text/",
    "package_format/sizes/",
    "package_format/archive/",
    "package_format/wrapper/",
    "package_format/wrapper/integers/",
    "package_format/wrapper/accesses/",
    "package_format/wrapper/rows/",
    "package_format/",
};
const Rooms kCustomOps = {"src/custom_ops/operator/", "src/custom_ops/aten/", "src/custom_ops/"};
const Rooms kLoader = {"src/loader/library/", "src/loader/"};
const Rooms kRunner = {"src/runner/constants/", "src/runner/sets/", "src/runner/replicas/", "src/runner/trial/",
                       "src/runner/"};
const std::vector<const Rooms*> kAll = {&kServer, &kOperators, &kCuda, &kPackages, &kCustomOps, &kLoader, &kRunner};

// Rooms of src/cuda that are not families of operators.
const std::set<std::string> kDeviceOnly = {"abi", "cudnn", "device_code", "memory", "runtime"};

const std::vector<std::string> kCode = {".h", ".cpp", ".cu", ".cuh", ".def"};
constexpr long kMostFiles = 30;

// The index of a path's room in a list; -1 if it has none.
long place_of(const std::string& path, const Rooms& rooms) {
  long best = -1;
  size_t length = 0;
  for (size_t i = 0; i < rooms.size(); ++i)
    if (path.starts_with(rooms[i]) && rooms[i].size() > length) {
      best = static_cast<long>(i);
      length = rooms[i].size();
    }
  return best;
}

std::vector<std::string> upward(const SourceFile& file, const Rooms& rooms) {
  static const std::regex include(R"re(^[ \t]*#[ \t]*include[ \t]*"([^"]+)")re", std::regex::multiline);
  std::vector<std::string> bad;
  const long own = place_of(file.path, rooms);
  if (own < 0) return bad;
  for (std::sregex_iterator it(file.text.begin(), file.text.end(), include), end; it != end; ++it)
    if (place_of((*it)[1], rooms) > own)
      bad.push_back(file.path + ":" + std::to_string(line_of(file.text, static_cast<size_t>(it->position(0)))) + ": " +
                    (*it)[1].str());
  return bad;
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

TEST_CASE("rooms: each includes those before it") {
  for (const SourceFile& file : read_tree({"package_format", "src", "server"}, kCode))
    for (const Rooms* rooms : kAll)
      for (const std::string& bad : upward(file, *rooms)) FAIL_CHECK(bad);
}

TEST_CASE("rooms: a violation is seen") {
  CHECK(upward({"server/json/x.cpp", "#include \"server/json/x.h\"\n#include \"server/base/y.h\"\n"}, kServer).empty());
  CHECK(upward({"server/json/x.cpp", "\n#include \"server/http/y.h\"\n"}, kServer) ==
        std::vector<std::string>{"server/json/x.cpp:2: server/http/y.h"});
  CHECK(upward({"server/server.cpp", "#include \"server/commands/y.h\"\n"}, kServer).size() == 1);
  CHECK(upward({"src/tensor/x.cpp", "#include \"src/cpu/vector/y.h\"\n"}, kOperators).size() == 1);
  CHECK(upward({"src/tensor/elements/x.cpp", "#include \"src/tensor/y.h\"\n"}, kOperators).size() == 1);
  CHECK(upward({"src/tensor/rows/x.cpp", "#include \"src/tensor/y.h\"\n"}, kOperators).empty());
  CHECK(upward({"src/model.cpp", "#include \"src/cpu/vector/y.h\"\n"}, kOperators).empty());
}

TEST_CASE("rooms: each folder is in the order, and each of the order is there") {
  const std::vector<std::string> divided = {"package_format", "src/cpu",    "src/cuda",   "src/custom_ops",
                                            "src/loader",     "src/runner", "src/tensor", "server"};
  for (const SourceFile& file : read_tree(divided, kCode)) {
    const std::string folder = folder_of(file.path) + "/";
    bool known = false;
    for (const Rooms* rooms : kAll) known |= std::find(rooms->begin(), rooms->end(), folder) != rooms->end();
    CHECK_MESSAGE(known, file.path << " is in a folder that the order does not have");
  }
  for (const Rooms* rooms : kAll)
    for (const std::string& room : *rooms)
      if (room.ends_with("/")) CHECK_MESSAGE(exists(room), room);
}

TEST_CASE("rooms: no folder is a hall") {
  std::map<std::string, long> files;
  for (const SourceFile& file : read_tree({"include", "package_format", "src", "server", "examples", "tests"}, kCode))
    ++files[folder_of(file.path)];
  for (const auto& [folder, count] : files) {
    CHECK_MESSAGE(count <= kMostFiles, folder << " has " << count << " files; divide it");
  }
}

TEST_CASE("rooms: families of operators have one name on all devices") {
  for (const std::string& room : kCuda) {
    const std::string family = room.substr(std::string("src/cuda/").size());
    if (family.empty() || kDeviceOnly.contains(family.substr(0, family.find('/'))) || family == "attention/flash/")
      continue;
    CHECK_MESSAGE((exists("src/cpu/" + family) || exists("src/" + family)), room << " has no family on the CPU");
  }
}

}  // namespace sconce::rules
