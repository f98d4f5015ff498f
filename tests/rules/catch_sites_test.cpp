// Exceptions are caught only where a thread or an outside call ends: the shim's guard, the C API, the lane loop, the
// control thread, administration's threads, the HTTP session and the threads that it uses, trial runs, main.
#include <doctest/doctest.h>

#include <regex>
#include <set>

#include "tests/rules/tree.h"

namespace sconce::rules {
namespace {

const std::set<std::string> kCatchSites = {
    "src/shim/guard.h",
    "src/shim/guard.cpp",
    "src/c_api/boundary.h",
    "src/c_api/boundary.cpp",
    "src/runner/replicas/lane.cpp",
    "server/models/control.cpp",
    "server/connections/session.cpp",
    "server/base/failure.cpp",
    "server/main.cpp",
    "server/signature/row_trial.cpp",
};

size_t catches_in(const std::string& source) {
  static const std::regex pattern(R"(\bcatch\s*\()");
  const std::string code = code_of(source);
  return static_cast<size_t>(
      std::distance(std::sregex_iterator(code.begin(), code.end(), pattern), std::sregex_iterator()));
}

}  // namespace

TEST_CASE("catch sites: no others than those") {
  for (const SourceFile& file :
       read_tree({"include", "package_format", "src", "server"}, {".h", ".cpp", ".cu", ".cuh"}))
    if (!kCatchSites.contains(file.path)) CHECK_MESSAGE(catches_in(file.text) == 0, file.path);
}

TEST_CASE("catch sites: seen in code, not in comments and strings") {
  CHECK(catches_in("try { f(); } catch (const Error&) {}") == 1);
  CHECK(catches_in("try {} catch(...) {} // catch (x)\n") == 1);
  CHECK(catches_in("/* catch (x) */ f(\"catch (x)\", '\"', 1'000, R\"(catch (x))\");") == 0);
}

}  // namespace sconce::rules
