// Constant operands that products keep packed, and the order in which blocks are multiplied. Random cases lie on both
// sides of each threshold and are compared with sums in double.
#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "src/cpu/matmul/gemm/gemm.h"
#include "src/device/threads.h"
#include "tests/cpu/matrix_cases.h"
#include "tests/cpu/onednn_use.h"

using namespace sconce;
using namespace sconce::matrix_testing;
using sconce::testing::Using;

namespace {

// Stands for a file's bytes, which may be given up because they can be read again. Counts how often that happens.
class Again final : public Storage::Source {
 public:
  explicit Again(size_t bytes) : bytes_(bytes) {}
  void give_up(const void* from, size_t count) noexcept override {
    given_up += from == bytes_.data() && count == bytes_.size();
  }
  StoragePtr storage(bool source) {
    auto storage = StoragePtr::adopt(new Storage(bytes_.data(), bytes_.size(), Device{}, nullptr,
                                                 source ? static_cast<Storage::Source*>(this) : nullptr));
    storage->set_immutable(true);
    if (source) storage->set_source();
    return storage;
  }
  int given_up = 0;

 private:
  std::vector<std::byte> bytes_;
};

// For c = a @ b + self, where self is one row for all rows: how many of `count` random elements differ from sums in
// double.
template <class S>
int wrong(const MatrixProduct& p, int count, Random& random) {
  const auto *a = static_cast<const S*>(p.a.data), *b = static_cast<const S*>(p.b.data);
  const auto *self = static_cast<const S*>(p.self.data), *c = static_cast<const S*>(p.c);
  constexpr double kRounding = std::is_same_v<S, BFloat16> ? 0x1p-8 : sizeof(S) == 2 ? 0x1p-11 : 0;
  int wrong = 0;
  for (int i = 0; i < count; ++i) {
    const auto r = static_cast<int64_t>(random() % static_cast<uint64_t>(p.m));
    const auto j = static_cast<int64_t>(random() % static_cast<uint64_t>(p.n));
    double sum = self ? static_cast<double>(self[j]) : 0, size = std::abs(sum);
    for (int64_t q = 0; q < p.k; ++q) {
      const double term = static_cast<double>(a[r * p.a.row_stride + q * p.a.column_stride]) *
                          static_cast<double>(b[q * p.b.row_stride + j * p.b.column_stride]);
      sum += term;
      size += std::abs(term);
    }
    const double got = static_cast<double>(c[r * p.c_row_stride + j]);
    wrong += !(std::abs(got - sum) <= kRounding * std::abs(sum) + (sizeof(S) == 8 ? 1e-14 : 4e-6) * size);
  }
  return wrong;
}

template <class S>
void check(uint64_t seed) {
  Random random(seed);
  const auto pick = [&](std::initializer_list<int64_t> from) { return from.begin()[random() % from.size()]; };
  const int64_t n = pick({1, 15, 17, 300, 512, 771}), k = pick({31, 255, 513, 1025});
  const bool rows = random() % 2, source = random() % 4 != 0;
  const int64_t gap = pick({0, 0, 3});
  const int64_t b_rs = rows ? n + gap : 1, b_cs = rows ? 1 : k + gap;
  Again bytes(static_cast<size_t>((rows ? k : n) * (rows ? b_rs : b_cs)) * sizeof(S));
  const StoragePtr storage = bytes.storage(source);
  auto* const b = static_cast<S*>(storage->data());
  for (size_t i = 0; i < storage->bytes() / sizeof(S); ++i) b[i] = make_value<S>(random);
  const int threads = kernel_threads();
  set_kernel_threads(static_cast<int>(pick({1, 2})));
  const bool always = random() % 3 == 0;
  const Using library(always ? onednn::Use::kAlways : onednn::Use::kByPolicy);
  for (int call = 0; call < 4; ++call) {
    const int64_t m = pick({1, 2, 8, 9, 16, 63, 64, 65, 168, 169, 256, 257});
    std::vector<S> a(static_cast<size_t>(m * k)), c(static_cast<size_t>(m * n)), self(static_cast<size_t>(n));
    for (S& v : a) v = make_value<S>(random);
    for (S& v : self) v = make_value<S>(random);
    MatrixProduct p{};
    p.dtype = kDType<S>;
    p.m = m;
    p.n = n;
    p.k = k;
    p.a = {a.data(), 0, k, 1};
    p.b = {b, 0, b_rs, b_cs};
    p.self = {self.data(), 0, 0, 1};
    p.c = c.data();
    p.c_row_stride = n;
    p.c_column_stride = 1;
    p.b_constant = storage.get();
    matrix_product("test", p);
    CAPTURE(seed);
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    CAPTURE(rows);
    CHECK(wrong<S>(p, 400, random) == 0);
  }
  CHECK(bytes.given_up <= (source ? always ? 2 : 1 : 0));  // the library leaves products of few rows to our kernels
  set_kernel_threads(threads);
}

using Sizes = std::initializer_list<int64_t>;

// A product of random ones of these sizes.
template <class S>
void check_sizes(uint64_t seed, Sizes ms, Sizes ns, Sizes ks) {
  Random random(seed);
  const auto pick = [&](Sizes from) { return from.begin()[random() % from.size()]; };
  const int64_t m = pick(ms), n = pick(ns), k = pick(ks);
  const bool rows = random() % 2, a_rows = random() % 4;
  std::vector<S> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(n * k)), c(static_cast<size_t>(m * n));
  for (S& v : a) v = make_value<S>(random);
  for (S& v : b) v = make_value<S>(random);
  for (S& v : c) v = make_value<S>(random);
  MatrixProduct p{};
  p.dtype = kDType<S>;
  p.m = m;
  p.n = n;
  p.k = k;
  p.a = {a.data(), 0, a_rows ? k : 1, a_rows ? 1 : m};
  p.b = {b.data(), 0, rows ? n : 1, rows ? 1 : k};
  p.c = c.data();
  p.c_row_stride = n;
  p.c_column_stride = 1;
  const int threads = kernel_threads();
  set_kernel_threads(static_cast<int>(pick({1, 2})));
  matrix_product("test", p);
  set_kernel_threads(threads);
  CAPTURE(seed);
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(k);
  CHECK(wrong<S>(p, 300, random) == 0);
}

// Sizes at which all rows fit one block or not, k takes one step or several, and A is small enough to be copied whole
// or not.
template <class S>
void check_blocks(uint64_t seed) {
  check_sizes<S>(seed, {9, 100, 167, 168, 169, 340}, {17, 64, 65, 130, 300},
                 {191, 192, 193, 384, 385, 769, 3100, 6200, 6300});
}

// Sizes at which b is read where it lies or not, by quarters of its columns or rows with and without a rest, in one
// block of columns or several.
template <class S>
void check_few_rows(uint64_t seed) {
  check_sizes<S>(seed, {1, 1, 1, 2, 4, 6, 7, 8, 12, 13, 24, 25}, {1, 3, 4, 7, 63, 64, 67, 68, 131, 4096, 4097},
                 {1, 2, 3, 4, 5, 31, 32, 33, 64, 130, 515});
}

// How often a product of m rows with a constant of 520 x 520 floats makes it give up its plain form.
int given_up(int64_t m, bool rows, bool source) {
  constexpr int64_t kSize = 520;
  Again bytes(kSize * kSize * sizeof(float));
  const StoragePtr storage = bytes.storage(source);
  std::vector<float> a(static_cast<size_t>(m * kSize)), c(a.size());
  MatrixProduct p{};
  p.dtype = DType::kFloat32;
  p.m = m;
  p.n = p.k = kSize;
  p.a = {a.data(), 0, kSize, 1};
  p.b = {storage->data(), 0, rows ? kSize : 1, rows ? 1 : kSize};
  p.c = c.data();
  p.c_row_stride = kSize;
  p.c_column_stride = 1;
  p.b_constant = storage.get();
  for (int i = 0; i < 3; ++i) matrix_product("test", p);
  return bytes.given_up;
}

}  // namespace

TEST_CASE("gemm: constants whose plain form may be given up, random shapes") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    check<float>(seed);
    if (seed % 4 == 0) check<double>(seed);
    if (seed % 4 == 1) check<BFloat16>(seed);
    if (seed % 4 == 2) check<Half>(seed);
  }
}

TEST_CASE("gemm: blocks of rows, of columns and of steps, random shapes") {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    check_blocks<float>(seed);
    if (seed % 3 == 0) check_blocks<double>(seed);
    if (seed % 6 == 1) check_blocks<BFloat16>(seed);
  }
}

TEST_CASE("gemm: few rows, random shapes") {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    check_few_rows<float>(seed);
    if (seed % 3 == 0) check_few_rows<double>(seed);
    if (seed % 3 == 1) check_few_rows<BFloat16>(seed);
    if (seed % 3 == 2) check_few_rows<Half>(seed);
  }
}

TEST_CASE("gemm: large constants are repacked once, for few rows, and where they are not held twice") {
  {
    const Using ours(onednn::Use::kNever);
    CHECK(given_up(8, true, true) == 0);
    CHECK(given_up(9, true, true) == 1);
    CHECK(given_up(256, true, true) == 1);
    CHECK(given_up(257, true, true) == 0);
    CHECK(given_up(9, false, true) == 1);
    CHECK(given_up(64, false, true) == 1);
    CHECK(given_up(65, false, true) == 0);
    CHECK(given_up(64, true, false) == 0);
  }
  if (!onednn::suits(DType::kFloat32) || !onednn::available()) return;
  {
    const Using policy(onednn::Use::kByPolicy);  // more rows are the library's
    for (const bool rows : {true, false}) {
      CHECK(given_up(64, rows, true) == 1);
      CHECK(given_up(65, rows, true) == 0);
    }
  }
  const Using library(onednn::Use::kAlways);  // in its own order, as on AMX
  CHECK(given_up(16, false, true) == 1);
  CHECK(given_up(257, false, true) == 1);
  CHECK(given_up(257, false, false) == 0);
}
