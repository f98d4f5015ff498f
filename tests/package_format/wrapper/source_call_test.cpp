#include "package_format/wrapper/source_call.h"

#include <doctest/doctest.h>

using namespace sconce;

TEST_CASE("source call: arguments are split at their own level") {
  using Parts = std::vector<std::string_view>;
  CHECK(split_arguments("a, f(b, c), {d, e}, x[1, 2]") == Parts{"a", "f(b, c)", "{d, e}", "x[1, 2]"});
  CHECK(split_arguments("2L, s77, ") == Parts{"2L", "s77"});
  CHECK(split_arguments("\"a, (b\", ',', c") == Parts{"\"a, (b\"", "','", "c"});
  CHECK(split_arguments("").empty());
}

TEST_CASE("source call: brackets, also in strings and without partner") {
  std::string_view text = "(a, (b), \")\") rest";
  CHECK(skip_bracketed(text) == "a, (b), \")\"");
  CHECK(text == " rest");
  std::string_view open = "(a, b";
  CHECK(!skip_bracketed(open));
  std::string_view none = "a)";
  CHECK(!skip_bracketed(none));
  std::string_view quote = "(\"no end)";
  CHECK(!skip_bracketed(quote));
  std::string_view empty = "{}";
  CHECK(skip_bracketed(empty) == "");
}

TEST_CASE("source call: C++ types of kernels' pointers") {
  CHECK(cpp_dtype("const float") == DType::kFloat32);
  CHECK(cpp_dtype("at::BFloat16") == DType::kBFloat16);
  CHECK(cpp_dtype("const at::complex<float>") == DType::kComplex64);
  CHECK(cpp_dtype("bfloat16") == DType::kBFloat16);  // torch 2.6
  CHECK(!cpp_dtype("void"));
}
