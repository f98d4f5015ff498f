#include "src/cpu/random/random.h"

#include <doctest/doctest.h>

#include <thread>

#include "sconce/error.h"
#include "sconce/random.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using testing::Case;

namespace {

using Results = std::vector<Tensor>;
using OptType = std::optional<DType>;
using OptEnum = std::optional<int32_t>;

OptType dtype_at(const Case& c, size_t i) {
  if (c.args[i].none()) return std::nullopt;
  return dtype_from_number(c.integer(i));
}

// Runs the cases with the default generator, and again with one of the caller's.
void run(std::string_view op, const std::function<Results(Case&)>& call) {
  testing::run_cases("random.cases", op, [&](Case& c) {
    manual_seed(static_cast<uint64_t>(c.integer(0)));
    return call(c);
  });
}
template <class R, class... P>
void run(std::string_view op, R (*kernel)(P...)) {
  run(op, [&](Case& c) { return testing::call_kernel(c, kernel, 1); });
}
void run_generator(std::string_view op, const std::function<Results(Case&, Generator*)>& call) {
  testing::run_cases("random.cases", op, [&](Case& c) {
    Generator generator(static_cast<uint64_t>(c.integer(0)));
    return call(c, &generator);
  });
}
template <class R, class... P>
void run_generator(std::string_view op, R (*kernel)(P...)) {
  run_generator(op, [&](Case& c, Generator* g) { return testing::call_kernel(c, kernel, 1, g); });
}

constexpr int32_t kFormats[] = {-1, 0, 1, 2};
OptEnum format_at(const Case& c, size_t i) {
  const int32_t format = kFormats[c.integer(i)];
  return format < 0 ? OptEnum() : OptEnum(format);
}

}  // namespace

TEST_CASE("rand: as PyTorch's stream") { run("rand", cpu::rand); }
TEST_CASE("rand_generator: as rand with the generator's seed") { run_generator("rand", cpu::rand_generator); }
TEST_CASE("randn: as PyTorch's stream") { run("randn", cpu::randn); }
TEST_CASE("randn_generator: as randn with the generator's seed") { run_generator("randn", cpu::randn_generator); }
TEST_CASE("rand_like: sizes, strides and stream") {
  run("rand_like",
      [](Case& c) { return Results{cpu::rand_like(c.tensor(1), dtype_at(c, 2), 0, Device{}, 0, format_at(c, 3))}; });
}
TEST_CASE("rand_like_generator: as rand_like with the generator's seed") {
  run_generator("rand_like", [](Case& c, Generator* g) {
    return Results{cpu::rand_like_generator(c.tensor(1), g, dtype_at(c, 2), 0, Device{}, 0, format_at(c, 3))};
  });
}
TEST_CASE("randn_like: sizes, strides and stream") {
  run("randn_like",
      [](Case& c) { return Results{cpu::randn_like(c.tensor(1), dtype_at(c, 2), 0, Device{}, 0, format_at(c, 3))}; });
}
TEST_CASE("randn_like_generator: as randn_like with the generator's seed") {
  run_generator("randn_like", [](Case& c, Generator* g) {
    return Results{cpu::randn_like_generator(c.tensor(1), g, dtype_at(c, 2), 0, Device{}, 0, format_at(c, 3))};
  });
}
TEST_CASE("randint: as PyTorch's stream") { run("randint", cpu::randint); }
TEST_CASE("randint_generator: as randint with the generator's seed") {
  run_generator("randint", cpu::randint_generator);
}
TEST_CASE("randint_low: ranges of 32 and 64 bits, bounds that the dtype rounds") {
  run("randint_low", cpu::randint_low);
}
TEST_CASE("randint_low_out: resizes, then fills in the order of the memory") {
  run("randint_low_out", cpu::randint_low_out);
}
TEST_CASE("randint_like: sizes, strides and stream") {
  run("randint_like", [](Case& c) {
    return Results{
        cpu::randint_like(c.tensor(1), c.integer(2), std::nullopt, std::nullopt, std::nullopt, std::nullopt, 1)};
  });
}
TEST_CASE("randint_like_low_dtype: sizes, strides and stream") {
  run("randint_like_low_dtype", cpu::randint_like_low_dtype);
}
TEST_CASE("randperm: as PyTorch's stream") { run("randperm", cpu::randperm); }
TEST_CASE("bernoulli__float: every dtype and layout") {
  run("bernoulli__float", cpu::bernoulli__float);
  run_generator("bernoulli__float", cpu::bernoulli__float);
}
TEST_CASE("bernoulli__Tensor: probabilities that broadcast") { run("bernoulli__Tensor", cpu::bernoulli__Tensor); }
TEST_CASE("uniform: bounds, rounding to the upper one, layouts") { run("uniform", cpu::uniform); }
TEST_CASE("normal_functional: short, long and strided") { run("normal_functional", cpu::normal_functional); }
TEST_CASE("exponential: every float type and layout") { run("exponential", cpu::exponential); }

TEST_CASE("random stream: operators of all kinds draw from one generator, cached normals among them") {
  run("stream", [](Case&) {
    const auto sized = [](int64_t n) { return std::vector<int64_t>{n}; };
    const auto zeros = [&](int64_t n) { return Tensor::empty(sized(n), DType::kFloat32); };
    const auto rand = [&](int64_t n, DType t) { return cpu::rand(sized(n), t, {}, {}, {}); };
    const auto randn = [&](int64_t n) { return cpu::randn(sized(n), DType::kFloat32, {}, {}, {}); };
    Results r{rand(3, DType::kFloat32), randn(5), cpu::randint(9, sized(4), DType::kInt64, {}, {}, {}), randn(7),
              rand(2, DType::kFloat64)};
    r.push_back(randn(700));
    r.push_back(randn(3));
    const Tensor twenty = randn(20);
    Tensor every_second = zeros(10);
    for (int i = 0; i < 10; ++i) every_second.data_as<float>()[i] = twenty.data_as<float>()[2 * i];
    r.push_back(every_second);
    r.push_back(cpu::exponential(zeros(4), 2.0, nullptr));
    r.push_back(cpu::randperm(9, {}, {}, {}, {}));
    Tensor coins = zeros(9);
    cpu::bernoulli__float(coins, 0.4, nullptr);
    r.push_back(coins);
    r.push_back(randn(1));
    r.push_back(rand(1, DType::kFloat32));
    return r;
  });
}

TEST_CASE("random: large permutations draw 64 bits each") {
  // The switch is at hundreds of millions of elements, so this test checks the generator's 64-bit draws instead.
  Generator a(7), b(7);
  const uint64_t high = a.random();
  CHECK(b.random64() == (high << 32 | a.random()));
  uint32_t words[1500];
  Generator c(7), d(7);
  c.draw(words, 1500);
  for (const uint32_t word : words) REQUIRE(word == d.random());
}

TEST_CASE("random: options that the CPU cannot serve are refused by name") {
  const std::vector<int64_t> two{2};
  CHECK_THROWS_WITH_AS(cpu::rand(two, {}, 1, {}, {}), doctest::Contains("rand: only the strided layout"), Error);
  CHECK_THROWS_WITH_AS(cpu::randn(two, {}, 0, Device{DeviceType::kCuda, 0}, {}), doctest::Contains("cuda:0"), Error);
  CHECK_THROWS_WITH_AS(cpu::randperm(2, {}, 0, Device{}, 1), doctest::Contains("pinned"), Error);
  CHECK_THROWS_WITH_AS(cpu::rand_like(cpu::rand(two, {}, {}, {}, {}), {}, {}, {}, {}, 7),
                       doctest::Contains("memory format number 7"), Error);
}

TEST_CASE("random: an operator's draws are not interleaved with another thread's") {
  // Each thread's thousand samples must be a run of the one stream.
  constexpr int64_t kCount = 1000;
  manual_seed(11);
  const std::vector<int64_t> size{kCount};
  Tensor a, b;
  std::thread first([&] { a = cpu::rand(size, {}, {}, {}, {}); });
  std::thread second([&] { b = cpu::rand(size, {}, {}, {}, {}); });
  first.join();
  second.join();
  manual_seed(11);
  Tensor one = cpu::rand(size, {}, {}, {}, {}), two = cpu::rand(size, {}, {}, {}, {});
  const auto equal = [](const Tensor& x, const Tensor& y) {
    return std::equal(x.data_as<float>(), x.data_as<float>() + kCount, y.data_as<float>());
  };
  CHECK(((equal(a, one) && equal(b, two)) || (equal(a, two) && equal(b, one))));
}
