#include "src/loader/op_library.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "sconce/error.h"
#include "sconce/model.h"
#include "sconce/runnable.h"
#include "src/aoti_abi/guard.h"
#include "tests/errors.h"
#include "tests/files.h"

namespace sconce::custom_ops {
namespace {

using loader::OpLibrary;

Tensor floats(std::vector<int64_t> sizes, std::vector<float> values) {
  Tensor tensor = Tensor::empty(sizes, DType::kFloat32);
  std::copy(values.begin(), values.end(), tensor.data_as<float>());
  return tensor;
}
std::vector<float> values_of(const Tensor& tensor) {
  return {tensor.data_as<float>(), tensor.data_as<float>() + tensor.numel()};
}

std::vector<Value> call(const std::string& name, std::vector<Value> arguments) {
  const auto op = find_operator(name);
  REQUIRE_MESSAGE(op, name);
  arguments.resize(op->schema().arguments.size());
  std::vector<Value> results(op->schema().results.size());
  op->call(arguments, results);
  return results;
}

// The text of the operator's exception, with the first error that caused it.
std::string failure(const std::string& name, std::vector<Value> arguments) {
  aoti_abi::take_error();
  std::string text;
  try {
    call(name, std::move(arguments));
  } catch (const std::exception& error) {
    text = error.what();
  }
  if (const auto cause = aoti_abi::take_error()) text += " | " + cause->text;
  return text;
}

std::string open_failure(const std::filesystem::path& path, ErrorCode code) {
  return error_from(code, [&] { OpLibrary::open(path); });
}

}  // namespace

TEST_CASE("op library: plain C, the example") {
  CHECK(find_operator("geometry::rotate") == nullptr);
  {
    const auto library = OpLibrary::open(SCONCE_GEOMETRY);
    CHECK(library->operators() == 2);
    CHECK(OpLibrary::open(SCONCE_GEOMETRY) == library);
    const Tensor points = floats({2, 2}, {1, 0, 0, 2});
    Value turned = std::move(call("geometry::rotate", {points})[0]);
    const std::vector<float> got = values_of(turned.tensor());
    CHECK(got[0] == doctest::Approx(-1));
    CHECK(got[3] == doctest::Approx(-2));
    Tensor written = floats({2, 2}, {1, 2, 3, 6});
    std::vector<Value> results = call("geometry::centre_", {Value::borrow(written)});
    CHECK(values_of(written) == std::vector<float>{-1, -2, 1, 2});
    CHECK(&results[0].tensor() == &written);
    CHECK(failure("geometry::rotate", {floats({3}, {1, 2, 3})}) == "geometry::rotate: points should be float32 [n, 2]");
    CHECK(failure("geometry::rotate", {Value(int64_t{3})}) ==
          "geometry::rotate: argument 'points' is of type Tensor, got an int");
  }
  CHECK(find_operator("geometry::rotate") == nullptr);  // the operator goes with its library
}

TEST_CASE("op library: a package of PyTorch's that calls it") {
  const auto package = Package::open(source_path("tests/custom_ops/packages/rotate.pt2"));
  CHECK_THROWS_WITH_AS(check_runnable(*package), doctest::Contains("geometry::rotate"), Error);
  const std::filesystem::path libraries[] = {SCONCE_GEOMETRY};
  check_runnable(*package, {}, libraries);
  LoadOptions options;
  options.op_libraries = {SCONCE_GEOMETRY};
  const auto model = Model::load(package, options);
  const Tensor points = floats({3, 2}, {1, 0, 0, 2, -3, 0.5});
  Tensor outputs[2];
  model->run(std::span(&points, 1), outputs);
  // Rotated by 0.5 and back by 0.25, doubled, plus one; and rotated by half a circle.
  const std::vector<float> got = values_of(outputs[0]), half = values_of(outputs[1]), in = values_of(points);
  for (size_t i = 0; i < 6; i += 2) {
    const double x = 2 * in[i], y = 2 * in[i + 1], c = std::cos(0.25), s = std::sin(0.25);
    CHECK(got[i] == doctest::Approx(x * c - y * s + 1));
    CHECK(got[i + 1] == doctest::Approx(x * s + y * c + 1));
    CHECK(half[i] == doctest::Approx(-in[i]));
    CHECK(half[i + 1] == doctest::Approx(-in[i + 1]));
  }
}

TEST_CASE("op library: a package that links to an operator's C function") {
  const auto package = Package::open(source_path("tests/custom_ops/packages/scaled.pt2"));
  CHECK_THROWS_WITH_AS(check_runnable(*package), doctest::Contains("aoti_torch_cpu_scaled"), Error);
  const std::filesystem::path libraries[] = {SCONCE_SHIM_LIBRARY};
  check_runnable(*package, {}, libraries);
  LoadOptions options;
  options.op_libraries = {SCONCE_SHIM_LIBRARY};
  const auto model = Model::load(package, options);
  const Tensor points = floats({3, 2}, {1, 0, 0, 2, -3, 0.5});
  Tensor output;
  model->run(std::span(&points, 1), std::span(&output, 1));
  for (size_t i = 0; i < 6; ++i) CHECK(values_of(output)[i] == doctest::Approx(2.5 * (values_of(points)[i] + 1) - 1));
}

TEST_CASE("op library: what is none is refused with the reason") {
  const std::filesystem::path folder = std::filesystem::path(SCONCE_BINARY_DIR) / "op_library_test";
  std::filesystem::create_directories(folder);
  CHECK(open_failure(folder / "absent.so", ErrorCode::kIo).find("No such file") != std::string::npos);
  CHECK(open_failure(folder, ErrorCode::kIo).find("not a file") != std::string::npos);
  std::ofstream(folder / "text.so") << "this is no library";
  CHECK(!open_failure(folder / "text.so", ErrorCode::kCorruptPackage).empty());
  CHECK(open_failure(SCONCE_EMPTY_LIBRARY, ErrorCode::kIncompatible).find("it registers nothing") != std::string::npos);
  const std::string cpp = open_failure(SCONCE_CPP_LIBRARY, ErrorCode::kIncompatible);
  CHECK_MESSAGE(cpp.find("at::empty_of_torch(long)") != std::string::npos, cpp);
  CHECK_MESSAGE(cpp.find("written against the stable ABI") != std::string::npos, cpp);
  const std::string bad = open_failure(SCONCE_BAD_LIBRARY, ErrorCode::kIncompatible);
  CHECK_MESSAGE(bad.find("expected an argument's name") != std::string::npos, bad);
  CHECK_MESSAGE(bad.find("there is an operator aten::mm already") != std::string::npos, bad);
  CHECK(find_operator("bad::fine") == nullptr);
}

TEST_CASE("op library: the stable ABI, by PyTorch's own headers") {
  const auto library = OpLibrary::open(SCONCE_STABLE_SAMPLE);
  CHECK(library->operators() == 9);
  const Tensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});

  Value scaled = std::move(call("stable_sample::scale", {x, 3.0})[0]);
  CHECK(values_of(scaled.tensor()) == std::vector<float>{3, 6, 9, 12, 15, 18});
  Value by_default = std::move(call("stable_sample::scale", {x})[0]);
  CHECK(values_of(by_default.tensor())[5] == 12);

  Value gram = std::move(call("stable_sample::gram", {x})[0]);
  CHECK(values_of(gram.tensor()) == std::vector<float>{17, 22, 27, 22, 29, 36, 27, 36, 45});

  Tensor cleared = floats({2}, {1, 2});
  call("stable_sample::clear_", {Value::borrow(cleared)});
  CHECK(values_of(cleared) == std::vector<float>{0, 0});

  std::vector<Value> several = call("stable_sample::several", {x});
  CHECK(several[0].tensor().storage() == x.storage());
  CHECK(*several[1].get_if<int64_t>() == 6);
  CHECK(*several[2].get_if<bool>());
  CHECK(*several[3].get_if<double>() == 0.5);
  std::vector<Value> twice = call("stable_sample::twice", {x});
  CHECK(twice[0].get_if<Value::List>()->size() == 2);
  CHECK(call("stable_sample::perhaps", {x, false})[0].is_none());
  CHECK(call("stable_sample::perhaps", {x, true})[0].is_tensor());
}

TEST_CASE("op library: every kind of argument through the stable ABI") {
  const auto library = OpLibrary::open(SCONCE_STABLE_SAMPLE);
  const Tensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto tell = [&](Value maybe, Value m) {
    return *call("stable_sample::tell", {x, std::move(maybe), Value::List{x, x}, int64_t{-7}, std::move(m),
                                         Value::Reals{0.5, 2}, Value::Ints{4, 5}, true, std::string("text"),
                                         int64_t{15}, Device{}, Value::List{std::string("a"), std::string("b")}})[0]
                .get_if<std::string>();
  };
  CHECK(tell({}, {}) == "2 none 2 -7 -1 0.5 2 4 5 yes text 15 cpu a b");
  CHECK(tell(x, int64_t{9}) == "2 some 2 -7 9 0.5 2 4 5 yes text 15 cpu a b");
}

TEST_CASE("op library: failures of every kind reach the caller, and the library stays usable") {
  const auto library = OpLibrary::open(SCONCE_STABLE_SAMPLE);
  const Tensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(failure("stable_sample::fails", {x, int64_t{0}}).find("the sample fails on purpose") != std::string::npos);
  CHECK(failure("stable_sample::fails", {x, int64_t{1}}).find("a plain exception") != std::string::npos);
  CHECK(failure("stable_sample::fails", {x, int64_t{2}}).find("shapes cannot be multiplied") != std::string::npos);
  CHECK(failure("stable_sample::fails", {x, int64_t{3}}).find("inside of a loop") != std::string::npos);
  CHECK(failure("stable_sample::cuda_only", {x}).find("its library has no kernel for the CPU") != std::string::npos);
  CHECK(call("stable_sample::several", {x}).size() == 4);
}

}  // namespace sconce::custom_ops
