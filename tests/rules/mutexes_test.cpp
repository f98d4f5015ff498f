// Mutexes of the product are those that clang's thread safety analysis knows (sconce/mutex.h).
#include <doctest/doctest.h>

#include <map>
#include <regex>

#include "tests/rules/tree.h"

namespace sconce::rules {
namespace {

// Files, with the names that they may use.
const std::map<std::string, std::regex> kAllowed = {
    {"include/sconce/mutex.h", std::regex("mutex|unique_lock|condition_variable")},
    {"server/support/log.cpp", std::regex("mutex|lock_guard")},     // of spdlog's base class
    {"src/loader/library/thread_locals.cpp", std::regex("mutex")},  // recursive, and known to the analysis there
};

// Names of the standard library that the analysis does not know, as they stand in the code.
std::vector<std::string> unknown_in(const SourceFile& file) {
  static const std::regex name(
      R"(\b(?:std::|pthread_)((?:shared_|recursive_)?(?:timed_)?mutex|(?:lock_guard|unique_lock|scoped_lock|shared_lock|)"
      R"(condition_variable(?:_any)?|cond|rwlock))(?:_\w+)?\b)");
  const std::string code = code_of(file.text);
  const auto allowed = kAllowed.find(file.path);
  std::vector<std::string> found;
  for (std::sregex_iterator it(code.begin(), code.end(), name), end; it != end; ++it)
    if (allowed == kAllowed.end() || !std::regex_match((*it)[1].str(), allowed->second))
      found.push_back(file.path + ":" + std::to_string(line_of(code, static_cast<size_t>(it->position(0)))) + ": " +
                      it->str());
  return found;
}

}  // namespace

TEST_CASE("mutexes: those of sconce/mutex.h alone") {
  for (const SourceFile& file :
       read_tree({"include", "package_format", "src", "server", "examples"}, {".h", ".cpp", ".cu", ".cuh"}))
    for (const std::string& name : unknown_in(file)) FAIL_CHECK(name);
}

TEST_CASE("mutexes: exceptions are needed") {
  for (const auto& [path, names] : kAllowed)
    CHECK_MESSAGE(!unknown_in({path + " without its exception", read_text(path)}).empty(), path);
}

TEST_CASE("mutexes: a violation is seen") {
  const auto count = [](const std::string& path, const std::string& text) { return unknown_in({path, text}).size(); };
  CHECK(unknown_in({"src/x.h", "\n  std::mutex mutex_;"}) == std::vector<std::string>{"src/x.h:2: std::mutex"});
  for (const char* name :
       {"std::recursive_mutex m;", "std::shared_timed_mutex m;", "std::timed_mutex m;",
        "const std::lock_guard lock(m);", "std::unique_lock<Mutex> lock;", "std::scoped_lock l(a, b);",
        "std::shared_lock l(m);", "std::condition_variable c;", "std::condition_variable_any c;", "pthread_mutex_t m;",
        "pthread_rwlock_t m;", "pthread_cond_wait(&c, &m);"})
    CHECK_MESSAGE(count("server/x.cpp", name) == 1, name);
  CHECK(count("include/sconce/mutex.h", "std::mutex m;") == 0);
  CHECK(count("include/sconce/mutex.h", "std::shared_mutex m;") == 1);
  CHECK(count("src/x.cpp", "// std::mutex\nconst MutexLock lock(mutex_, std::adopt_lock); f(\"std::mutex\");") == 0);
  CHECK(count("src/x.cpp", "std::once_flag once; std::cv_status status; pthread_kill(thread, 1);") == 0);
}

}  // namespace sconce::rules
