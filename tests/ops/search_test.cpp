#include "src/ops/search.h"

#include <doctest/doctest.h>

#include "tests/ops/case_file.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

constexpr const char* kFile = "sorting.cases";

std::optional<std::string_view> side_of(const Value& v) {
  return v.none() ? std::nullopt : std::optional<std::string_view>(v.text());
}

}  // namespace

TEST_CASE("searchsorted_Tensor: as PyTorch") {
  run_cases(kFile, "searchsorted_Tensor", [](Case& c) {
    return std::vector{cpu::searchsorted_Tensor(c.tensor(0), c.tensor(1), c.boolean(2), c.boolean(3),
                                                side_of(c.args[4]), c.args[5].optional_tensor())};
  });
}

TEST_CASE("searchsorted_Scalar: as PyTorch") {
  run_cases(kFile, "searchsorted_Scalar", [](Case& c) {
    return std::vector{cpu::searchsorted_Scalar(c.tensor(0), c.real(1), c.boolean(2), c.boolean(3), side_of(c.args[4]),
                                                c.args[5].optional_tensor())};
  });
}

TEST_CASE("bucketize_Tensor: as PyTorch") {
  run_cases(kFile, "bucketize_Tensor", [](Case& c) {
    return std::vector{cpu::bucketize_Tensor(c.tensor(0), c.tensor(1), c.boolean(2), c.boolean(3))};
  });
}
