// Every operator that a package may call by name exists or is refused with a reason.
#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <string>

#include "src/custom_ops/aten/refusals.h"
#include "src/custom_ops/registry.h"
#include "tests/files.h"

namespace {

using sconce::custom_ops::find_operator;
using sconce::custom_ops::refusal_of_operator;

// The first column of a list.
std::set<std::string> names(const std::string& list) {
  std::ifstream file(sconce::source_path("tests/custom_ops/" + list));
  REQUIRE(file);
  std::set<std::string> found;
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && !line.starts_with('#')) found.insert(line.substr(0, line.find('\t')));
  return found;
}

void check_all(const std::set<std::string>& listed) {
  for (const std::string& name : listed) {
    CAPTURE(name);
    const bool here = find_operator(name) != nullptr, refused = !refusal_of_operator(name).empty();
    CHECK_MESSAGE(!(here && refused), "refused, and there all the same");
    CHECK_MESSAGE((here || refused), "neither there nor refused in src/custom_ops/aten/refusals.cpp");
  }
}

}  // namespace

TEST_CASE("by name: every operator of by_name.tsv is there or refused") {
  const std::set<std::string> listed = names("by_name.tsv");
  CHECK(listed.size() > 400);
  check_all(listed);
}

TEST_CASE("by name: and what only earlier versions of PyTorch call so") {
  const std::set<std::string> listed = names("by_name_earlier.tsv");
  CHECK(listed.contains("aten::hann_window"));
  check_all(listed);
}

TEST_CASE("by name: what is refused says why") {
  CHECK(refusal_of_operator("aten::_sparse_sum.dim").find("sparse") != std::string_view::npos);
  CHECK(refusal_of_operator("aten::_ctc_loss").find("torch.export cannot record") != std::string_view::npos);
  CHECK(refusal_of_operator("aten::mm").empty());
}
