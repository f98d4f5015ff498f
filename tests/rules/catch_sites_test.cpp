// Exceptions are caught only where a thread or an outside call ends: the shim's guard, a package's parallel region, the
// C API, the lane loop, the control thread, administration's threads, the HTTP session and the threads that it uses,
// trial runs, main. The Python module also catches where Python's exceptions and ours meet, or where an error gets the
// name that Python's caller knows.
#include <doctest/doctest.h>

#include <regex>
#include <set>

#include "tests/rules/tree.h"

namespace sconce::rules {
namespace {

const std::set<std::string> kCatchSites = {
    "src/faults/parallel_region.cpp",  // a thread's part of a parallel region
    "src/aoti_abi/guard.h",
    "src/aoti_abi/guard.cpp",
    "src/c_api/boundary.h",
    "src/c_api/boundary.cpp",
    "src/runner/replicas/replica_thread.cpp",
    "server/registry/model_loader.cpp",
    "server/http/connections/http_connection.cpp",
    "server/support/failure.cpp",
    "server/grpc/library/server.cpp",   // where libsconce_grpc is entered
    "server/grpc/library/no_memory.h",  // on its threads
    "server/cli/main.cpp",
    "server/scheduling/signature/batch_invariance_check.cpp",
    "python/native/errors.cpp",          // each becomes one of the module's exceptions
    "python/native/completions.cpp",     // the thread that ends futures
    "python/native/module.cpp",          // the slot of calls; why check() says no
    "python/native/loaded_model.cpp",    // "input 0 (arg0_1)" becomes "args[0]['image']"
    "python/native/call_plan.cpp",       // the result whose dtype NumPy lacks
    "python/native/weight_updates.cpp",  // a constant whose dtype NumPy lacks
    "python/native/arguments.cpp",       // what another library's __dlpack__ raised
    "python/native/host_arrays.cpp",     // whether ml_dtypes can be imported
};

size_t catches_in(const std::string& source) {
  static const std::regex pattern(R"(\bcatch\s*\()");
  const std::string code = code_of(source);
  return static_cast<size_t>(
      std::distance(std::sregex_iterator(code.begin(), code.end(), pattern), std::sregex_iterator()));
}

}  // namespace

TEST_CASE("catch sites: no others than those") {
  std::set<std::string> unused = kCatchSites;
  for (const SourceFile& file :
       read_tree({"include", "package_format", "python/native", "src", "server"}, {".h", ".cpp", ".cu", ".cuh"})) {
    if (!kCatchSites.contains(file.path)) CHECK_MESSAGE(catches_in(file.text) == 0, file.path);
    if (catches_in(file.text) > 0) unused.erase(file.path);
  }
  for (const std::string& path : unused) CHECK_MESSAGE(false, path << " catches nothing: take it off the list");
}

TEST_CASE("catch sites: seen in code, not in comments and strings") {
  CHECK(catches_in("try { f(); } catch (const Error&) {}") == 1);
  CHECK(catches_in("try {} catch(...) {} // catch (x)\n") == 1);
  CHECK(catches_in("/* catch (x) */ f(\"catch (x)\", '\"', 1'000, R\"(catch (x))\");") == 0);
}

}  // namespace sconce::rules
