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

// Prefixes of paths. A room may include itself and those before it in its list. A file belongs to its longest prefix.
const Rooms kServer = {
    "server/support/memory/",
    "server/support/",
    "server/support/process/",
    "server/support/files/",
    "server/support/json/",
    "server/support/html/",
    "server/support/terminal/",
    "server/http/",
    "server/http/access/",
    "server/http/client/",
    "server/http/connections/",
    "server/signing/",
    "server/scheduling/triton/",
    "server/scheduling/signature/",
    "server/scheduling/pipelines/",
    "server/scheduling/batching/",
    "server/scheduling/",
    "server/scheduling/decoding/",
    "server/weights/store/",
    "server/weights/validation/",
    "server/registry/repositories/",
    "server/registry/remote/transfer/",
    "server/registry/remote/credentials/",
    "server/registry/remote/",
    "server/registry/trial/",  // of models, in a child process
    "server/registry/lazy_load/",
    "server/registry/",
    "server/codecs/",
    "server/telemetry/",
    "server/telemetry/otlp/",
    "server/telemetry/traces/",
    "server/telemetry/telemetry.",  // has one of each
    "server/rollout/work/",
    "server/rollout/push/",
    "server/rollout/trainer_tensors/",
    "server/rollout/",
    "server/rollout/watch/",
    "server/rollout/trainers/",
    "server/console/",
    "server/api/",
    "server/grpc/",
    "server/grpc/library/",
    "server/server.",
    "server/cli/",
    "server/cli/weights/",
    "server/cli/top/",
    "server/",
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
  CHECK(upward({"server/support/json/x.cpp", "#include \"server/support/json/x.h\"\n#include \"server/support/y.h\"\n"},
               kServer)
            .empty());
  CHECK(upward({"server/support/json/x.cpp", "\n#include \"server/http/y.h\"\n"}, kServer) ==
        std::vector<std::string>{"server/support/json/x.cpp:2: server/http/y.h"});
  CHECK(upward({"server/server.cpp", "#include \"server/cli/y.h\"\n"}, kServer).size() == 1);
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

// "http" of "server/http/connections/x.h"; "server" of "server/server.h".
std::string server_room(const std::string& path) {
  const std::string rest = path.substr(std::string("server/").size());
  const size_t slash = rest.find('/');
  return slash == std::string::npos ? "server" : rest.substr(0, slash);
}

TEST_CASE("rooms: server/README.md has each, in order, with all that it includes") {
  static const std::regex include(R"re(^[ \t]*#[ \t]*include[ \t]*"(server/[^"]+)")re", std::regex::multiline);
  std::map<std::string, std::set<std::string>> included;
  for (const SourceFile& file : read_tree({"server"}, kCode)) {
    std::set<std::string>& of = included[server_room(file.path)];
    for (std::sregex_iterator it(file.text.begin(), file.text.end(), include), end; it != end; ++it)
      if (const std::string room = server_room((*it)[1]); room != server_room(file.path)) of.insert(room);
  }
  static const std::regex row(R"re(^\| `(\w+)` \|[^|]*\|([^|]*)\|)re", std::regex::multiline);
  static const std::regex word(R"(\w+)");
  const std::string text = read_text("server/README.md");
  std::set<std::string> above;
  for (std::sregex_iterator it(text.begin(), text.end(), row), end; it != end; ++it) {
    const std::string room = (*it)[1], cell = (*it)[2];
    const std::set<std::string> said(std::sregex_token_iterator(cell.begin(), cell.end(), word), {});
    CHECK_MESSAGE(said == included[room], room);
    for (const std::string& one : said) CHECK_MESSAGE(above.contains(one), room << " includes " << one << ", below it");
    above.insert(room);
  }
  for (const auto& [room, of] : included) CHECK_MESSAGE(above.contains(room), room << " has no row");
}

// The namespace of a room of the server. The base of all has no own, and a namespace grpc would hide ::grpc.
std::string namespace_of(const std::string& room) {
  if (room == "server" || room == "support") return "sconce::server";
  return "sconce::server::" + (room == "grpc" ? "rpc" : room);
}

// Where a file of the server opens a namespace that is not its room's. A block may declare another room's classes.
std::vector<std::string> foreign_namespaces(const SourceFile& file) {
  static const std::regex opened(R"re(^namespace (sconce\b[\w:]*) \{\n((?:(?:class|struct) \w+;\n)+\})?)re",
                                 std::regex::multiline);
  std::vector<std::string> bad;
  const std::string own = namespace_of(server_room(file.path));
  const bool base = own == "sconce::server";
  for (std::sregex_iterator it(file.text.begin(), file.text.end(), opened), end; it != end; ++it)
    if (const std::string name = (*it)[1]; name != own && (base || !name.starts_with(own + "::")) && !(*it)[2].matched)
      bad.push_back(file.path + ":" + std::to_string(line_of(file.text, static_cast<size_t>(it->position(0)))) + ": " +
                    name);
  return bad;
}

TEST_CASE("rooms: a file of the server declares names in its room's namespace") {
  for (const SourceFile& file : read_tree({"server"}, kCode))
    for (const std::string& bad : foreign_namespaces(file)) FAIL_CHECK(bad);
}

TEST_CASE("rooms: a foreign namespace is seen") {
  const auto bad = [](const std::string& path, const std::string& text) {
    return foreign_namespaces({path, text}).size();
  };
  CHECK(bad("server/http/x.h", "namespace sconce::server::http {\n\nclass X;\n") == 0);
  CHECK(bad("server/http/client/x.h", "namespace sconce::server::http {\n") == 0);
  CHECK(bad("server/rollout/x.h", "namespace sconce::server::rollout::admin {\n") == 0);
  CHECK(bad("server/grpc/library/x.h", "namespace sconce::server::rpc {\n") == 0);
  CHECK(bad("server/support/x.h", "namespace sconce::server {\n") == 0);
  CHECK(bad("server/server.cpp", "namespace sconce::server {\n") == 0);
  CHECK(bad("server/http/x.h", "namespace sconce::server::api {\nclass X;\nstruct Y;\n}\n") == 0);
  CHECK(bad("server/http/x.h", "namespace sconce::server::api {\nclass X;\nvoid f();\n}\n") == 1);
  CHECK(foreign_namespaces({"server/http/x.h", "\nnamespace sconce::server {\n"}) ==
        std::vector<std::string>{"server/http/x.h:2: sconce::server"});
  CHECK(bad("server/http/x.h", "namespace sconce::server::https {\n") == 1);
  CHECK(bad("server/support/x.h", "namespace sconce::server::http {\n") == 1);
  CHECK(bad("server/server.h", "namespace sconce::server::api {\n") == 1);
  CHECK(bad("server/cli/x.h", "namespace sconce {\n") == 1);
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
