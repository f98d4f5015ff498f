#include "src/cpu/matmul/matmul.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <string>

#include "sconce/error.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/matrix_cases.h"

using namespace sconce;
using namespace sconce::matrix_testing;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class T>
constexpr double kEpsilon = std::is_same_v<T, Half>                                       ? 0x1p-10
                            : std::is_same_v<T, BFloat16>                                 ? 0x1p-7
                            : std::is_same_v<T, float> || std::is_same_v<T, ComplexFloat> ? 0x1p-23
                                                                                          : 0x1p-52;

// Checks out = alpha * a @ b + beta * self. Floats may differ by the dtype's rounding and that of a float or double sum
// of k products; integers must be equal.
template <class T>
void check_product(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor* self = nullptr, double beta = 1,
                   double alpha = 1) {
  const int64_t d = out.dim(), batch = d == 3 ? out.size(0) : 1, m = out.size(d - 2), n = out.size(d - 1);
  const int64_t k = a.size(d - 1);
  int64_t wrong = 0;
  std::string first;
  for (int64_t i = 0; i < batch; ++i)
    for (int64_t r = 0; r < m; ++r)
      for (int64_t c = 0; c < n; ++c) {
        const T got = at<T>(out, i, r, c);
        bool right;
        std::string wanted;
        if constexpr (std::is_integral_v<T>) {
          uint64_t sum = 0;
          for (int64_t p = 0; p < k; ++p)
            sum += static_cast<uint64_t>(at<T>(a, i, r, p)) * static_cast<uint64_t>(at<T>(b, i, p, c));
          sum *= static_cast<uint64_t>(static_cast<int64_t>(alpha));
          if (self)
            sum += static_cast<uint64_t>(static_cast<int64_t>(beta)) * static_cast<uint64_t>(at<T>(*self, i, r, c));
          right = got == static_cast<T>(sum);
          wanted = std::to_string(static_cast<T>(sum));
        } else {
          Exact sum = 0;
          double size = 0;
          for (int64_t p = 0; p < k; ++p) {
            const Exact term = exact(at<T>(a, i, r, p)) * exact(at<T>(b, i, p, c));
            sum += term;
            size += std::abs(term);
          }
          sum *= alpha;
          size *= std::abs(alpha);
          if (self && beta != 0) {
            sum += beta * exact(at<T>(*self, i, r, c));
            size += std::abs(beta * exact(at<T>(*self, i, r, c)));
          }
          const double sum_epsilon = kEpsilon<T> < 0x1p-40 ? 0x1p-52 : 0x1p-23;
          const double allowed = kEpsilon<T> * std::abs(sum) + (std::is_same_v<T, Half> ? 0x1p-24 : 0) +
                                 sum_epsilon * (2 + std::sqrt(static_cast<double>(k))) * size;
          right = std::abs(exact(got) - sum) <= allowed;
          wanted = std::to_string(sum.real());
        }
        if (!right && wrong++ == 0) {
          std::ostringstream text;
          text << '[' << i << ',' << r << ',' << c << "] is " << exact(got).real() << ", not " << wanted;
          first = text.str();
        }
      }
  INFO(describe(a), " @ ", describe(b), " -> ", describe(out), " self ", self ? describe(*self) : "none", " beta ",
       beta, " alpha ", alpha);
  CHECK_MESSAGE(wrong == 0, first);
}

template <class T>
Tensor random_matrix(int64_t batch, int64_t rows, int64_t columns, LayoutOf layout, Random& random) {
  Tensor t = make_matrix(kDType<T>, batch, rows, columns, layout);
  fill<T>(t, random);
  return t;
}

template <class F>
void each_dtype(F&& f) {
  f.template operator()<float>();
  f.template operator()<double>();
  f.template operator()<Half>();
  f.template operator()<BFloat16>();
  f.template operator()<ComplexFloat>();
  f.template operator()<ComplexDouble>();
  f.template operator()<uint8_t>();
  f.template operator()<int8_t>();
  f.template operator()<int16_t>();
  f.template operator()<int32_t>();
  f.template operator()<int64_t>();
}

}  // namespace

TEST_CASE("mm_out: every dtype, layout and odd size") {
  Random random(1);
  const int64_t shapes[][3] = {{1, 1, 1},   {1, 7, 5},    {5, 3, 1},    {3, 64, 16}, {2, 5, 33},
                               {9, 17, 40}, {16, 20, 31}, {31, 33, 70}, {14, 8, 32}};
  each_dtype([&]<class T>() {
    for (const auto& [m, k, n] : shapes)
      for (const LayoutOf la : kDenseLayouts)
        for (const LayoutOf lb : kDenseLayouts)
          for (const LayoutOf lo : {LayoutOf::kRows, LayoutOf::kColumnGaps, LayoutOf::kGaps}) {
            const Tensor a = random_matrix<T>(-1, m, k, la, random), b = random_matrix<T>(-1, k, n, lb, random);
            Tensor out = random_matrix<T>(-1, m, n, lo, random);
            cpu::mm_out(out, a, b);
            check_product<T>(out, a, b);
          }
  });
}

TEST_CASE("mm_out: operands that repeat themselves") {
  Random random(2);
  each_dtype([&]<class T>() {
    for (const LayoutOf l : {LayoutOf::kBroadcastRow, LayoutOf::kBroadcastColumn, LayoutOf::kScalar}) {
      const Tensor a = random_matrix<T>(-1, 19, 23, l, random), b = random_matrix<T>(-1, 23, 37, l, random);
      Tensor out = random_matrix<T>(-1, 19, 37, LayoutOf::kRows, random);
      cpu::mm_out(out, a, b);
      check_product<T>(out, a, b);
    }
  });
}

TEST_CASE("mm_out: nothing to add up, nothing to write") {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kComplex64,
                            DType::kComplex128, DType::kInt8, DType::kInt64}) {
    Tensor out = Tensor::empty(Ints{3, 40}, dtype);
    std::memset(out.data(), 0x55, out.bytes());
    cpu::mm_out(out, Tensor::empty(Ints{3, 0}, dtype), Tensor::empty(Ints{0, 40}, dtype));
    const Tensor zeros = Tensor::empty(Ints{3, 40}, dtype);
    std::memset(zeros.data(), 0, zeros.bytes());
    CHECK(std::memcmp(out.data(), zeros.data(), out.bytes()) == 0);
    for (const Ints& s : {Ints{0, 3, 4}, Ints{3, 4, 0}, Ints{0, 0, 0}}) {
      Tensor none = Tensor::empty(Ints{s[0], s[2]}, dtype);
      cpu::mm_out(none, Tensor::empty(Ints{s[0], s[1]}, dtype), Tensor::empty(Ints{s[1], s[2]}, dtype));
    }
  }
}

TEST_CASE("mm_out: sizes beyond every block, one to three threads") {
  Random random(3);
  const int before = kernel_threads();
  const int64_t shapes[][3] = {{190, 1100, 150}, {1, 2000, 500}, {500, 2000, 1}, {13, 600, 500}, {400, 70, 300}};
  for (const int threads : {1, 2, 3}) {
    set_kernel_threads(threads);
    for (const auto& [m, k, n] : shapes)
      for (const LayoutOf la : {LayoutOf::kRows, LayoutOf::kColumns})
        for (const LayoutOf lb : {LayoutOf::kRows, LayoutOf::kColumns}) {
          const auto run = [&]<class T>() {
            const Tensor a = random_matrix<T>(-1, m, k, la, random), b = random_matrix<T>(-1, k, n, lb, random);
            Tensor out = random_matrix<T>(-1, m, n, LayoutOf::kRows, random);
            cpu::mm_out(out, a, b);
            // Checking all elements would take seconds, so this checks some rows and columns, edges included.
            for (int64_t r = 0; r < m; r += std::max<int64_t>(1, m / 4 - 1))
              for (int64_t c = 0; c < n; c += std::max<int64_t>(1, n / 7 - 1)) {
                const Tensor one = out.as_strided(Ints{1, 1}, Ints{1, 1}, r * n + c);
                check_product<T>(one, a.as_strided(Ints{1, k}, Ints{1, a.stride(1)}, r * a.stride(0)),
                                 b.as_strided(Ints{k, 1}, Ints{b.stride(0), 1}, c * b.stride(1)));
              }
          };
          run.template operator()<float>();
          run.template operator()<double>();
          run.template operator()<BFloat16>();
          run.template operator()<Half>();
          run.template operator()<ComplexFloat>();
          run.template operator()<int16_t>();
        }
  }
  set_kernel_threads(before);
}

TEST_CASE("mm_out: a constant is repacked once and kept, whatever views of it are used") {
  Random random(4);
  each_dtype([&]<class T>() {
    for (const auto& [k, n] : {std::pair<int64_t, int64_t>{64, 128}, {33, 10}, {5, 50}, {300, 120}}) {
      const Tensor weight = random_matrix<T>(-1, n, k, LayoutOf::kRows, random);
      weight.storage()->set_immutable(true);
      const Tensor turned = weight.as_strided(Ints{k, n}, Ints{1, k}, 0);
      const Tensor part = weight.as_strided(Ints{k - 2, n / 2}, Ints{1, k}, k + 1);
      for (int repeat = 0; repeat < 2; ++repeat)
        for (const int64_t m : {1, 20}) {
          const Tensor a = random_matrix<T>(-1, m, k, LayoutOf::kRows, random);
          Tensor out = random_matrix<T>(-1, m, n, LayoutOf::kRows, random);
          cpu::mm_out(out, a, turned);
          check_product<T>(out, a, turned);
          Tensor less = random_matrix<T>(-1, m, n / 2, LayoutOf::kOffset, random);
          const Tensor a_less = a.as_strided(Ints{m, k - 2}, Ints{k, 1}, 0);
          cpu::mm_out(less, a_less, part);
          check_product<T>(less, a_less, part);
          Tensor square = random_matrix<T>(-1, k, k, LayoutOf::kRows, random);
          if (k < 100) {
            cpu::mm_out(square, turned, weight);
            check_product<T>(square, turned, weight);
          }
        }
    }
  });
}

TEST_CASE("addmm_out: self of every shape and layout, alpha and beta") {
  Random random(5);
  each_dtype([&]<class T>() {
    for (const auto& [m, k, n] :
         {std::array<int64_t, 3>{1, 64, 128}, {17, 20, 35}, {40, 9, 10}, {6, 300, 1}, {3, 0, 20}})
      for (const LayoutOf lb : {LayoutOf::kRows, LayoutOf::kColumns})
        for (const LayoutOf lo : {LayoutOf::kRows, LayoutOf::kColumns, LayoutOf::kGaps})
          for (const auto& [beta, alpha] : {std::pair{1.0, 1.0}, {2.0, 1.0}, {1.0, -3.0}, {0.0, 1.0}, {3.0, 2.0}}) {
            if (std::is_unsigned_v<T> && alpha < 0) continue;
            const Tensor a = random_matrix<T>(-1, m, k, LayoutOf::kRows, random);
            const Tensor b = random_matrix<T>(-1, k, n, lb, random);
            for (int form = 0; form < 6; ++form) {
              Tensor out = random_matrix<T>(-1, m, n, lo, random);
              const Tensor base =
                  form == 5 ? out.as_strided(out.sizes(), out.strides(), out.storage_offset())
                            : random_matrix<T>(-1, m, n, form == 1 ? LayoutOf::kColumns : LayoutOf::kOffset, random);
              Tensor self = base, expanded = base;
              if (form == 2)
                self = base.as_strided(Ints{n}, Ints{1}, 0), expanded = base.as_strided(Ints{m, n}, Ints{0, 1}, 0);
              if (form == 3)
                self = base.as_strided(Ints{m, 1}, Ints{1, 1}, 0),
                expanded = base.as_strided(Ints{m, n}, Ints{1, 0}, 0);
              if (form == 4)
                self = base.as_strided(Ints{}, Ints{}, 2), expanded = base.as_strided(Ints{m, n}, Ints{0, 0}, 2);
              if (form == 5) {  // out is self, so its old values are copied first
                expanded = make_matrix(kDType<T>, -1, m, n, lo);
                std::memcpy(expanded.storage()->data(), out.storage()->data(), out.storage()->bytes());
              }
              cpu::addmm_out(out, self, a, b, beta, alpha);
              check_product<T>(out, a, b, &expanded, beta, alpha);
            }
          }
  });
}

TEST_CASE("addmm_out: several blocks of k add to self once") {
  Random random(6);
  for (const int64_t m : {4, 30, 200}) {
    const Tensor a = random_matrix<float>(-1, m, 1300, LayoutOf::kRows, random);
    const Tensor b = random_matrix<float>(-1, 1300, 70, LayoutOf::kColumns, random);
    Tensor out = random_matrix<float>(-1, m, 70, LayoutOf::kRows, random);
    const Tensor bias = random_matrix<float>(-1, 1, 70, LayoutOf::kRows, random);
    cpu::addmm_out(out, bias, a, b, 2, 0.5);
    const Tensor expanded = bias.as_strided(Ints{m, 70}, Ints{0, 1}, 0);
    check_product<float>(out, a, b, &expanded, 2, 0.5);
    const Tensor before = make_matrix(DType::kFloat32, -1, m, 70, LayoutOf::kRows);
    std::memcpy(before.data(), out.data(), out.bytes());
    cpu::addmm_out(out, out, a, b, 0.5, 2);
    check_product<float>(out, a, b, &before, 0.5, 2);
  }
}

TEST_CASE("addmm_out: what beta 0 and alpha 0 do not look at") {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16}) {
    const auto set = [&](const Tensor& t, double v) {
      for (int64_t i = 0; i < t.numel(); ++i) {
        if (dtype == DType::kFloat32) t.data_as<float>()[i] = static_cast<float>(v);
        if (dtype == DType::kFloat64) t.data_as<double>()[i] = v;
        if (dtype == DType::kBFloat16) t.data_as<BFloat16>()[i] = BFloat16(static_cast<float>(v));
        if (dtype == DType::kFloat16) t.data_as<Half>()[i] = Half(static_cast<float>(v));
      }
    };
    const auto get = [&](const Tensor& t) {
      if (dtype == DType::kFloat32) return static_cast<double>(*t.data_as<float>());
      if (dtype == DType::kFloat64) return *t.data_as<double>();
      if (dtype == DType::kBFloat16) return static_cast<double>(static_cast<float>(*t.data_as<BFloat16>()));
      return static_cast<double>(static_cast<float>(*t.data_as<Half>()));
    };
    const Tensor nan = Tensor::empty(Ints{2, 2}, dtype), one = Tensor::empty(Ints{2, 2}, dtype);
    set(nan, kNaN);
    set(one, 1);
    Tensor out = Tensor::empty(Ints{2, 2}, dtype);
    set(out, kNaN);
    cpu::addmm_out(out, nan, one, one, 0, 1);
    CHECK(get(out) == 2);
    cpu::addmm_out(out, out, one, one, 2, 1);
    CHECK(get(out) == 6);
    cpu::addmm_out(out, one, nan, one, 1, 0);
    // PyTorch multiplies half types without BLAS, which skips products if alpha is 0.
    if (dtype == DType::kFloat32 || dtype == DType::kFloat64)
      CHECK(get(out) == 1);
    else
      CHECK(std::isnan(get(out)));
    cpu::addmm_out(out, nan, one, one, 1, 1);
    CHECK(std::isnan(get(out)));
    const Tensor nan3 = nan.as_strided(Ints{1, 2, 2}, Ints{4, 2, 1}, 0),
                 one3 = one.as_strided(Ints{1, 2, 2}, Ints{4, 2, 1}, 0);
    Tensor out3 = out.as_strided(Ints{1, 2, 2}, Ints{4, 2, 1}, 0);
    cpu::baddbmm_out(out3, one3, nan3, one3, 1, 0);
    CHECK(std::isnan(get(out)));
    cpu::baddbmm_out(out3, nan3, one3, one3, 0, 1);
    CHECK(get(out) == 2);
  }
}

TEST_CASE("bmm_out: every dtype and layout, and one matrix for the whole batch") {
  Random random(7);
  each_dtype([&]<class T>() {
    for (const auto& [m, k, n] : {std::array<int64_t, 3>{1, 8, 1}, {7, 8, 9}, {17, 5, 40}, {3, 65, 16}})
      for (const int64_t batch : {1, 4})
        for (const LayoutOf la : kDenseLayouts)
          for (const LayoutOf lb : kDenseLayouts)
            for (const LayoutOf lo : {LayoutOf::kRows, LayoutOf::kColumns, LayoutOf::kGaps}) {
              const Tensor a = random_matrix<T>(batch, m, k, la, random), b = random_matrix<T>(batch, k, n, lb, random);
              Tensor out = random_matrix<T>(batch, m, n, lo, random);
              cpu::bmm_out(out, a, b);
              check_product<T>(out, a, b);
              const Tensor a1 = a.as_strided(a.sizes(), Ints{0, a.stride(1), a.stride(2)}, a.storage_offset());
              const Tensor b1 = b.as_strided(b.sizes(), Ints{0, b.stride(1), b.stride(2)}, b.storage_offset());
              cpu::bmm_out(out, a, b1);
              check_product<T>(out, a, b1);
              cpu::bmm_out(out, a1, b);
              check_product<T>(out, a1, b);
              const Tensor packed =
                  a.storage()->bytes() ? random_matrix<T>(-1, batch * m, k, LayoutOf::kRows, random) : a;
              const Tensor rows = packed.as_strided(Ints{batch, m, k}, Ints{m * k, k, 1}, 0);
              cpu::bmm_out(out, rows, b1);
              check_product<T>(out, rows, b1);
            }
  });
  Tensor none = Tensor::empty(Ints{0, 2, 3}, DType::kFloat32);
  cpu::bmm_out(none, Tensor::empty(Ints{0, 2, 4}, DType::kFloat32), Tensor::empty(Ints{0, 4, 3}, DType::kFloat32));
}

TEST_CASE("bmm_out: constant batches, several threads") {
  Random random(8);
  const int before = kernel_threads();
  for (const int threads : {1, 3}) {
    set_kernel_threads(threads);
    const Tensor a = random_matrix<float>(5, 60, 50, LayoutOf::kRows, random);
    const Tensor b = random_matrix<float>(5, 50, 70, LayoutOf::kRows, random);
    b.storage()->set_immutable(true);
    for (int repeat = 0; repeat < 2; ++repeat) {
      Tensor out = random_matrix<float>(5, 60, 70, LayoutOf::kRows, random);
      cpu::bmm_out(out, a, b);
      check_product<float>(out, a, b);
    }
  }
  set_kernel_threads(before);
}

TEST_CASE("baddbmm_out: self broadcast over batch, rows and columns") {
  Random random(9);
  each_dtype([&]<class T>() {
    const int64_t batch = 3, m = 9, k = 12, n = 37;
    for (const LayoutOf lo : {LayoutOf::kRows, LayoutOf::kColumns, LayoutOf::kGaps}) {
      const Tensor a = random_matrix<T>(batch, m, k, LayoutOf::kRows, random);
      const Tensor b = random_matrix<T>(batch, k, n, LayoutOf::kColumns, random);
      const Tensor base = random_matrix<T>(batch, m, n, LayoutOf::kOffset, random);
      const struct {
        Ints sizes, strides, expanded;
      } forms[] = {{{batch, m, n}, {m * n, n, 1}, {m * n, n, 1}},
                   {{batch, 1, n}, {n, 7, 1}, {n, 0, 1}},
                   {{m, n}, {1, m}, {0, 1, m}},
                   {{n}, {2}, {0, 0, 2}},
                   {{batch, m, 1}, {m, 1, 3}, {m, 1, 0}},
                   {{}, {}, {0, 0, 0}}};
      for (const auto& form : forms) {
        const Tensor self = base.as_strided(form.sizes, form.strides, 1);
        const Tensor expanded = base.as_strided(Ints{batch, m, n}, form.expanded, 1);
        Tensor out = random_matrix<T>(batch, m, n, lo, random);
        cpu::baddbmm_out(out, self, a, b, 2, 3);
        check_product<T>(out, a, b, &expanded, 2, 3);
      }
    }
  });
}

TEST_CASE("mm_plus_mm: two products") {
  Random random(10);
  each_dtype([&]<class T>() {
    for (const LayoutOf lo : {LayoutOf::kRows, LayoutOf::kColumns, LayoutOf::kGaps}) {
      const Tensor a = random_matrix<T>(-1, 9, 12, LayoutOf::kRows, random),
                   b = random_matrix<T>(-1, 12, 20, LayoutOf::kColumns, random);
      const Tensor c = random_matrix<T>(-1, 9, 5, LayoutOf::kGaps, random),
                   d = random_matrix<T>(-1, 5, 20, LayoutOf::kRows, random);
      Tensor first = random_matrix<T>(-1, 9, 20, LayoutOf::kRows, random),
             out = random_matrix<T>(-1, 9, 20, lo, random);
      cpu::mm_out(first, a, b);
      cpu::mm_plus_mm_out(out, a, b, c, d);
      check_product<T>(out, c, d, &first);
    }
  });
}

TEST_CASE("addmv: a matrix and a vector") {
  Random random(11);
  each_dtype([&]<class T>() {
    for (const auto& [m, k] : {std::pair<int64_t, int64_t>{1, 1}, {20, 33}, {300, 7}, {4, 0}, {0, 4}})
      for (const LayoutOf l : kDenseLayouts)
        for (const int64_t step : {1, 3}) {
          const Tensor mat = random_matrix<T>(-1, m, k, l, random);
          const Tensor vec =
              random_matrix<T>(-1, 1, 3 * k + 1, LayoutOf::kRows, random).as_strided(Ints{k}, Ints{step}, 0);
          const Tensor self =
              random_matrix<T>(-1, 1, 3 * m + 1, LayoutOf::kRows, random).as_strided(Ints{m}, Ints{step}, 0);
          const Tensor out = cpu::addmv(self, mat, vec, 2, 3);
          REQUIRE(out.dim() == 1);
          CHECK(out.stride(0) == 1);
          const Tensor column = self.as_strided(Ints{m, 1}, Ints{step, 1}, 0);
          check_product<T>(out.as_strided(Ints{m, 1}, Ints{1, 1}, 0), mat, vec.as_strided(Ints{k, 1}, Ints{step, 1}, 0),
                           &column, 2, 3);
          const Tensor scalar = cpu::addmv(self.as_strided(Ints{}, Ints{}, 0), mat, vec, 1, 1);
          const Tensor repeated = self.as_strided(Ints{m, 1}, Ints{0, 1}, 0);
          check_product<T>(scalar.as_strided(Ints{m, 1}, Ints{1, 1}, 0), mat,
                           vec.as_strided(Ints{k, 1}, Ints{step, 1}, 0), &repeated);
        }
  });
}

TEST_CASE("addbmm: the batch is added up") {
  Random random(12);
  each_dtype([&]<class T>() {
    for (const int64_t batch : {0, 1, 3}) {
      const int64_t m = 6, k = 11, n = 35;
      const Tensor a = random_matrix<T>(batch, m, k, LayoutOf::kColumns, random),
                   b = random_matrix<T>(batch, k, n, LayoutOf::kRows, random);
      const Tensor self = random_matrix<T>(-1, 1, n, LayoutOf::kRows, random);
      const Tensor out = cpu::addbmm(self, a, b, 2, 3);
      CHECK(out.is_contiguous());
      // Each batch is added to a rounded sum of those before it: `before`, to which check_product() adds the last one.
      Tensor before = random_matrix<T>(-1, m, n, LayoutOf::kRows, random);
      const Tensor expanded = self.as_strided(Ints{m, n}, Ints{0, 1}, 0);
      if (batch == 0) {
        const Tensor nothing = random_matrix<T>(-1, m, 0, LayoutOf::kRows, random),
                     none = random_matrix<T>(-1, 0, n, LayoutOf::kRows, random);
        check_product<T>(out, nothing, none, &expanded, 2, 3);
        continue;
      }
      const auto slice = [](const Tensor& t, int64_t i) {
        return t.as_strided(t.sizes().subspan(1), t.strides().subspan(1), t.storage_offset() + i * t.stride(0));
      };
      cpu::addmm_out(before, self, slice(a, 0), slice(b, 0), 2, 3);
      if (batch == 1) check_product<T>(out, slice(a, 0), slice(b, 0), &expanded, 2, 3);
      for (int64_t i = 1; i + 1 < batch; ++i) cpu::addmm_out(before, before, slice(a, i), slice(b, i), 1, 3);
      if (batch > 1) check_product<T>(out, slice(a, batch - 1), slice(b, batch - 1), &before, 1, 3);
    }
  });
}

TEST_CASE("_addmm_activation: relu and gelu") {
  Random random(13);
  each_dtype([&]<class T>() {
    if constexpr (kIsComplex<T>) {
      const Tensor t = random_matrix<T>(-1, 2, 2, LayoutOf::kRows, random);
      CHECK_THROWS_AS(cpu::_addmm_activation(t, t, t, 1, 1, false), Error);
    } else {
      const Tensor a = random_matrix<T>(-1, 5, 6, LayoutOf::kRows, random),
                   b = random_matrix<T>(-1, 6, 40, LayoutOf::kColumns, random);
      const Tensor bias = random_matrix<T>(-1, 1, 40, LayoutOf::kRows, random);
      Tensor sum = Tensor::empty(Ints{5, 40}, kDType<T>);
      cpu::addmm_out(sum, bias, a, b, 1, 1);
      const Tensor relu = cpu::_addmm_activation(bias, a, b, 1, 1, false);
      for (int64_t i = 0; i < 200; ++i) {
        const double v = exact(sum.data_as<T>()[i]).real();
        CHECK(exact(relu.data_as<T>()[i]).real() == std::max(v, 0.0));
      }
      if constexpr (std::is_integral_v<T>) {
        CHECK_THROWS_AS(cpu::_addmm_activation(bias, a, b, 1, 1, true), Error);
      } else {
        const Tensor gelu = cpu::_addmm_activation(bias, a, b, 1, 1, true);
        for (int64_t i = 0; i < 200; ++i) {
          const double v = exact(sum.data_as<T>()[i]).real();
          const double wanted = v * 0.5 * (1 + std::erf(v / std::sqrt(2.0)));
          CHECK(exact(gelu.data_as<T>()[i]).real() == doctest::Approx(wanted).epsilon(4 * kEpsilon<T> + 1e-6));
        }
      }
    }
  });
  const Tensor nan = Tensor::empty(Ints{1, 1}, DType::kFloat32);
  *nan.data_as<float>() = static_cast<float>(kNaN);
  CHECK(std::isnan(*cpu::_addmm_activation(nan, nan, nan, 1, 1, false).data_as<float>()));
}

TEST_CASE("_int_mm_out: bytes into int32") {
  Random random(14);
  for (const auto& [m, k, n] : {std::array<int64_t, 3>{1, 1, 1}, {20, 16, 24}, {3, 300, 270}, {5, 0, 3}, {0, 2, 3}})
    for (const LayoutOf la : kDenseLayouts)
      for (const LayoutOf lb : kDenseLayouts)
        for (const LayoutOf lo : {LayoutOf::kRows, LayoutOf::kColumns})
          for (const bool is_signed : {true, false}) {
            const Tensor a =
                is_signed ? random_matrix<int8_t>(-1, m, k, la, random) : random_matrix<uint8_t>(-1, m, k, la, random);
            const Tensor b = random_matrix<int8_t>(-1, k, n, lb, random);
            Tensor out = random_matrix<int32_t>(-1, m, n, lo, random);
            cpu::_int_mm_out(out, a, b);
            int64_t wrong = 0;
            for (int64_t r = 0; r < m; ++r)
              for (int64_t c = 0; c < n; ++c) {
                int32_t sum = 0;
                for (int64_t p = 0; p < k; ++p)
                  sum += (is_signed ? at<int8_t>(a, 0, r, p) : at<uint8_t>(a, 0, r, p)) * at<int8_t>(b, 0, p, c);
                wrong += sum != at<int32_t>(out, 0, r, c);
              }
            CHECK(wrong == 0);
          }
}

TEST_CASE("matrix products: what ATen refuses is refused") {
  const auto make = [](Ints sizes, DType dtype = DType::kFloat32) {
    Tensor t = Tensor::empty(sizes, dtype);
    if (t.data()) std::memset(t.data(), 0, t.bytes());
    return t;
  };
  Tensor out = make({2, 2}), out3 = make({1, 2, 2}), wide = make({2, 3}), ints = make({2, 2}, DType::kInt32);
  const Tensor m = make({2, 2}), t = make({1, 2, 2}), d = make({2, 2}, DType::kFloat64), v = make({2});
  CHECK_THROWS_AS(cpu::mm_out(out, m, d), Error);
  CHECK_THROWS_AS(cpu::mm_out(out, v, m), Error);
  CHECK_THROWS_AS(cpu::mm_out(out, m, make({3, 2})), Error);
  CHECK_THROWS_AS(cpu::mm_out(wide, m, m), Error);
  CHECK_THROWS_AS(cpu::mm_out(ints, m, m), Error);
  Tensor same = out.as_strided(Ints{2, 2}, Ints{0, 1}, 0);
  CHECK_THROWS_AS(cpu::mm_out(same, m, m), Error);
  CHECK_THROWS_AS(cpu::addmm_out(out, d, m, m, 1, 1), Error);
  CHECK_THROWS_AS(cpu::addmm_out(out, make({3}), m, m, 1, 1), Error);
  CHECK_THROWS_AS(cpu::addmm_out(out, t, m, m, 1, 1), Error);
  CHECK_THROWS_AS(cpu::bmm_out(out3, t, make({2, 2, 2})), Error);
  CHECK_THROWS_AS(cpu::bmm_out(out3, t, m), Error);
  CHECK_THROWS_AS(cpu::baddbmm_out(out3, make({3}), t, t, 1, 1), Error);
  CHECK_THROWS_AS(cpu::addmv(make({3}), m, v, 1, 1), Error);
  CHECK_THROWS_AS(cpu::addmv(m, m, v, 1, 1), Error);
  CHECK_THROWS_AS(cpu::addmv(v, m, make({3}), 1, 1), Error);
  CHECK_THROWS_AS(cpu::addbmm(make({3}), t, t, 1, 1), Error);
  CHECK_THROWS_AS(cpu::addbmm(v, t, make({2, 2, 2}), 1, 1), Error);
  CHECK_THROWS_AS(cpu::_int_mm_out(ints, m, m), Error);
  CHECK_THROWS_AS(cpu::_int_mm_out(out, make({2, 2}, DType::kInt8), make({2, 2}, DType::kInt8)), Error);
  Tensor bytes = make({2, 2}, DType::kInt8);
  CHECK_THROWS_AS(cpu::addmm_out(bytes, bytes, bytes, bytes, 1, 300), Error);
  CHECK_THROWS_AS(cpu::addmm_out(bytes, bytes, bytes, bytes, kNaN, 1), Error);
  for (const DType dtype : {DType::kBool, DType::kUInt16, DType::kComplex32}) {
    Tensor x = make({2, 2}, dtype);
    const auto call = [&] { cpu::mm_out(x, x, x); };
    CHECK_THROWS_WITH_AS(call(), doctest::Contains("not implemented for"), Error);
  }
}
