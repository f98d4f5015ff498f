// Includes point one way: a room includes itself and the rooms below it, nothing else.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "tests/rules/tree.h"

namespace sconce::rules {
namespace {

// For each room, prefixes that it may include by "...". Files in no listed room fail the test.
const std::vector<std::pair<std::string, std::vector<std::string>>> kRooms = {
    {"include/sconce/", {"sconce/"}},
    {"src/support/", {"sconce/", "src/support/"}},
    {"include/sconce.h", {}},
    {"package_format/", {"sconce/", "src/support/", "package_format/"}},
    {"src/types/", {"sconce/", "src/support/", "src/types/"}},
    {"src/faults/", {"sconce/", "src/support/", "src/faults/"}},
    {"src/device/", {"sconce/", "src/support/", "src/types/", "src/device/"}},
    {"src/operators/", {"sconce/", "src/support/", "src/operators/"}},
    {"src/tensor/", {"sconce/", "src/support/", "src/types/", "src/device/", "src/operators/", "src/tensor/"}},
    {"src/cpu/", {"sconce/", "src/support/", "src/types/", "src/device/", "src/operators/", "src/tensor/", "src/cpu/"}},
    {"src/aoti_abi/",
     {"sconce/", "src/support/", "src/types/", "src/faults/", "src/device/", "src/operators/", "src/tensor/",
      "src/cpu/", "src/aoti_abi/"}},
    {"src/cuda/",
     {"sconce/", "src/support/", "src/types/", "src/device/", "src/operators/", "src/tensor/", "src/aoti_abi/",
      "src/custom_ops/operator/", "src/cuda/"}},
    {"src/custom_ops/",
     {"sconce/", "src/support/", "package_format/", "src/types/", "src/device/", "src/operators/", "src/tensor/",
      "src/cpu/", "src/aoti_abi/", "src/custom_ops/"}},
    {"src/loader/",
     {"sconce/", "src/support/", "package_format/", "src/types/", "src/faults/", "src/device/", "src/operators/",
      "src/tensor/", "src/cpu/", "src/aoti_abi/", "src/custom_ops/", "src/loader/"}},
    {"src/runner/",
     {"sconce/", "src/support/", "package_format/", "src/types/", "src/faults/", "src/device/", "src/operators/",
      "src/tensor/", "src/cpu/", "src/aoti_abi/", "src/custom_ops/", "src/loader/", "src/runner/"}},
    {"src/tensor_files/", {"sconce/", "src/support/", "src/types/", "src/tensor_files/"}},
    {"src/weights/",
     {"sconce/", "src/support/", "package_format/", "src/types/", "src/device/", "src/tensor_files/", "src/weights/"}},
    {"src/c_api/",
     {"sconce.h", "sconce/", "src/support/", "package_format/text/", "package_format/description.h", "src/c_api/"}},
    {"src/", {"sconce/", "package_format/", "src/"}},  // model.cpp and similar files: above all rooms
    {"server/",
     {"sconce/", "src/support/", "server/", "package_format/description.h", "package_format/text/json_value.h",
      "package_format/files/directory.h", "package_format/files/host_memory.h",
      "package_format/files/local_file_system.h", "src/runner/dummy_inputs.h"}},
    {"examples/", {"sconce/", "sconce.h"}},
};

// Libraries that only the program may use; kernels may also use Boost.Math, which is header-only functions.
const std::string kMath = "boost/math/";
const std::set<std::string> kServerOnly = {"boost", "fmt", "spdlog", "CLI"};

struct Include {
  std::string target;
  bool quoted;
  size_t line;
};

std::vector<Include> includes_of(const SourceFile& file) {
  static const std::regex pattern(R"(^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">])", std::regex::multiline);
  std::vector<Include> found;
  for (std::sregex_iterator it(file.text.begin(), file.text.end(), pattern), end; it != end; ++it)
    found.push_back({(*it)[2], (*it)[1] == "\"", line_of(file.text, static_cast<size_t>(it->position(0)))});
  return found;
}

const std::vector<std::string>* allowed_in(const std::string& path) {
  for (const auto& [room, allowed] : kRooms)
    if (path.starts_with(room) && !(room == "src/" && path.find('/', room.size()) != std::string::npos))
      return &allowed;
  return nullptr;
}

std::vector<std::string> violations(const SourceFile& file) {
  std::vector<std::string> bad;
  const std::vector<std::string>* allowed = allowed_in(file.path);
  if (!allowed) return {file.path + ": in no room that the rules know"};
  for (const Include& include : includes_of(file)) {
    const std::string where = file.path + ":" + std::to_string(include.line) + ": " + include.target;
    const std::string library = include.target.substr(0, include.target.find('/'));
    if (include.quoted) {
      if (std::none_of(allowed->begin(), allowed->end(),
                       [&](const std::string& prefix) { return include.target.starts_with(prefix); }))
        bad.push_back(where);
    } else if (file.path.starts_with("include/sconce") && include.target.find_first_of("./") != std::string::npos &&
               include.target != "stddef.h" && include.target != "stdint.h") {
      bad.push_back(where + " (public headers include the standard library only)");
    } else if (kServerOnly.contains(library) && include.target.find('/') != std::string::npos &&
               !file.path.starts_with("server/") &&
               !(file.path.starts_with("src/cpu/") && include.target.starts_with(kMath))) {
      bad.push_back(where + " (for server/ only)");
    }
  }
  return bad;
}

}  // namespace

TEST_CASE("layering: includes point one way") {
  const auto files =
      read_tree({"include", "package_format", "src", "server", "examples"}, {".h", ".cpp", ".cu", ".cuh", ".def"});
  CHECK(files.size() > 30);
  for (const SourceFile& file : files)
    for (const std::string& bad : violations(file)) FAIL_CHECK(bad);
}

TEST_CASE("layering: a violation is seen") {
  CHECK(violations({"src/cpu/x.cpp", "#include \"src/cpu/x.h\"\n#include <vector>\n"}).empty());
  CHECK(violations({"src/cpu/x.cpp", "#include \"src/aoti_abi/y.h\"\n"}) ==
        std::vector<std::string>{"src/cpu/x.cpp:1: src/aoti_abi/y.h"});
  CHECK(violations({"src/cpu/x.cpp", "#include \"y.h\"\n"}).size() == 1);
  CHECK(violations({"src/cpu/x.cpp", "\n  #  include <boost/asio.hpp>\n"}).size() == 1);
  CHECK(violations({"src/cpu/x.cpp", "#include <boost/math/special_functions/gamma.hpp>\n"}).empty());
  CHECK(violations({"src/loader/x.cpp", "#include <boost/math/special_functions/gamma.hpp>\n"}).size() == 1);
  CHECK(violations({"server/x.cpp", "#include <boost/asio.hpp>\n#include \"src/loader/y.h\"\n"}).size() == 1);
  CHECK(violations({"include/sconce/x.h", "#include <nlohmann/json.hpp>\n#include <map>\n"}).size() == 1);
  CHECK(violations({"src/cuda/x.cpp", "#include \"src/tensor/x.h\"\n#include \"src/aoti_abi/y.h\"\n"}).empty());
  CHECK(violations({"src/cuda/x.cpp", "#include \"src/cpu/x.h\"\n"}).size() == 1);
  CHECK(violations({"src/model.cpp", "#include \"src/runner/runner.h\"\n"}).empty());
  CHECK(violations({"src/elsewhere/x.cpp", ""}).size() == 1);
}

}  // namespace sconce::rules
