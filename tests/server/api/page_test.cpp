#include "server/api/page.h"

#include <doctest/doctest.h>

namespace sconce::server::api {

TEST_CASE("page: the URL that the client can use") {
  CHECK(url_for("http://127.0.0.1:8000", "localhost:9000", true) == "http://localhost:9000");
  CHECK(url_for("https://0.0.0.0:8000", "serving.example", true) == "https://serving.example");
  CHECK(url_for("http://0.0.0.0:8003", "serving.example:8000", false) == "http://serving.example:8003");
  CHECK(url_for("http://[::]:8003", "[2001:db8::1]:8000", false) == "http://[2001:db8::1]:8003");
  CHECK(url_for("http://[::]:8003", "[2001:db8::1]", false) == "http://[2001:db8::1]:8003");
  CHECK(url_for("0.0.0.0:8001", "serving.example:8000", false) == "serving.example:8001");
  CHECK(url_for("http://127.0.0.1:8003", "serving.example:8000", false) == "http://127.0.0.1:8003");
  CHECK(url_for("", "serving.example", true).empty());
}

TEST_CASE("page: a Host that would not be safe in a command is not used") {
  for (const char* const host : {"a$(reboot)", "a;b", "a'b", "a b", "", "<b>"})
    CHECK(url_for("http://127.0.0.1:8000", host, true) == "http://127.0.0.1:8000");
  CHECK(url_for("http://127.0.0.1:8000", std::string(256, 'a'), true) == "http://127.0.0.1:8000");
}

namespace {

scheduling::ModelSignature model_of(std::vector<TensorSpec> inputs) {
  ModelSpec spec;
  spec.inputs = std::move(inputs);
  return {"m", 1, std::move(spec)};
}

TensorSpec input(std::vector<Dim> dims) {
  TensorSpec spec;
  spec.dtype = DType::kFloat32;
  spec.has_shape = true;
  spec.dims = std::move(dims);
  return spec;
}

using Sizes = std::vector<std::vector<int64_t>>;

}  // namespace

TEST_CASE("examples: sizes are within the package's ranges") {
  CHECK(*example_sizes(model_of({input({{2, 64, "s0"}, {3, 3, ""}, {2, INT64_MAX, "s1"}, {1, 4, "s2"}})})) ==
        Sizes{{1, 3, 16, 4}});
  CHECK(*example_sizes(model_of({input({{20, 64, "s0"}, {100, 200, "s1"}})})) == Sizes{{20, 100}});
  CHECK(*example_sizes(model_of({input({})})) == Sizes{{}});
}

TEST_CASE("examples: equal symbols have equal sizes, and those of a first dimension stay small") {
  CHECK(*example_sizes(model_of({input({{4, 4, ""}, {1, 64, "s0"}}), input({{1, 64, "s0"}, {1, 64, "s1"}})})) ==
        Sizes{{4, 1}, {1, 16}});
}

TEST_CASE("examples: none where the package does not describe an input, or sizes are absurd") {
  TensorSpec unknown;
  CHECK(!example_sizes(model_of({unknown})));
  TensorSpec untyped = input({{1, 1, ""}});
  untyped.dtype.reset();
  CHECK(!example_sizes(model_of({untyped})));
  CHECK(!example_sizes(model_of({input({{INT64_MAX, INT64_MAX, ""}, {4, 4, ""}})})));
}

}  // namespace sconce::server::api
