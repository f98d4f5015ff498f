// Every row of the operator table has a test named after it.
#include <doctest/doctest.h>

#include <regex>
#include <set>

#include "tests/rules/tree.h"

namespace sconce::rules {
namespace {

std::set<std::string> all_matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern, std::regex::multiline);
  std::set<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) found.insert((*it)[1]);
  return found;
}

}  // namespace

TEST_CASE("operators: each row of the CPU has a TEST_CASE that starts with its name") {
  const std::set<std::string> rows =
      all_matches(read_text("src/operators/op_table.def"), R"(^SCONCE_(?:CPU_)?OP\((\w+))");
  std::set<std::string> tested;
  for (const SourceFile& file : read_tree({"tests/tensor", "tests/cpu"}, {".cpp"}))
    tested.merge(all_matches(file.text, R"(\bTEST_CASE(?:_TEMPLATE)?\(\s*"(\w+):)"));
  for (const std::string& row : rows)
    CHECK_MESSAGE(tested.contains(row), "no test in tests/tensor or tests/cpu for " << row);
}

// These need a device; a machine without one checks at least that they exist.
TEST_CASE("operators: each row of CUDA is called by a test in tests/cuda") {
  const std::set<std::string> rows =
      all_matches(read_text("src/operators/op_table.def"), R"(^SCONCE_(?:CUDA_)?OP\((\w+))");
  CHECK(rows.size() > 80);
  std::set<std::string> called;
  for (const SourceFile& file : read_tree({"tests/cuda"}, {"_test.cpp"}))
    called.merge(all_matches(file.text, R"(\b(\w+)\()"));
  for (const SourceFile& file : read_tree({"tests/cuda"}, {".py"}))
    called.merge(all_matches(file.text, R"re("(\w+)")re"));
  for (const std::string& row : rows) CHECK_MESSAGE(called.contains(row), "no test in tests/cuda for " << row);
}

}  // namespace sconce::rules
