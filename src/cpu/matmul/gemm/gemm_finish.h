// Shared by all inner loops: from finished sums to c. Included once per instruction set, after gemm_vectors.h;
// everything is internal to that translation unit.

namespace sconce {
namespace {

// Bytes of a column to prefetch while others are multiplied by a single row.
constexpr int64_t kDotAhead = 2048;

template <class S>
using Real = decltype(std::real(Sum<S>()));

// One finished row that the fast paths do not cover.
template <class S>
void finish_row(const Sum<S>* sums, int64_t columns, const GemmEpilogue<S>& e, const S* self, S* c) {
  const auto alpha = static_cast<Real<S>>(e.alpha), beta = static_cast<Real<S>>(e.beta);
  for (int64_t j = 0; j < columns; ++j) {
    Sum<S> v = alpha * sums[j];
    if (self) v += beta * static_cast<Sum<S>>(self[j * e.self_cs]);
    c[j] = static_cast<S>(v);
  }
}

// Finished rows of sums, rows from `row` on.
template <class V, class S>
[[gnu::noinline]] void finish_rows(const typename V::T* sums, int64_t rows, int64_t sums_rs, int64_t columns,
                                   const GemmEpilogue<S>& e, int64_t row, S* c, int64_t c_rs) {
  const S* self = e.self ? e.self + row * e.self_rs : nullptr;
  if (self && e.self_cs != 1) {
    for (int64_t i = 0; i < rows; ++i)
      finish_row<S>(sums + i * sums_rs, columns, e, self + i * e.self_rs, c + i * c_rs);
    return;
  }
  const auto alpha = V::broadcast(static_cast<typename V::T>(e.alpha));
  const auto beta = V::broadcast(static_cast<typename V::T>(e.beta));
  for (int64_t i = 0; i < rows; ++i, sums += sums_rs, c += c_rs) {
    for (int64_t j = 0; j < columns; j += V::W) {
      const int64_t n = columns - j;
      typename V::R v = V::load(sums + j), s = V::zero();
      if (self) s = n >= V::W ? V::load(self + j) : V::load_n(self + j, n);
      v = V::fma(v, alpha, V::fma(s, beta, V::zero()));
      if (n >= V::W)
        V::store(c + j, v);
      else
        V::store_n(c + j, v, n);
    }
    if (self) self += e.self_rs;
  }
}

// Dot products by tiles of four columns and up to DotRows rows: kByRows[rows - 1](k, a, a_rs, b, b_cs, sums). The four
// columns are a quarter of b apart, so that memory is read as four long streams. Reading a weight of 32,000 x 1,024
// floats, one row, one thread (Zen 5): 34 GB/s with neighbouring columns, 43 GB/s with columns a quarter apart.
template <class S, class Factor, int DotRows, class Tiles>
void dot_by_rows(const Tiles& by_rows, int64_t m, int64_t n, int64_t k, const Factor* a, int64_t a_rs, const S* b,
                 int64_t b_cs, const GemmEpilogue<S>& e, S* c, int64_t c_rs) {
  const auto finish = [&](const Sum<S>* sums, int64_t columns, int64_t row, int64_t j) {
    finish_row<S>(sums, columns, e, e.self ? e.self + row * e.self_rs + j * e.self_cs : nullptr, c + row * c_rs + j);
  };
  const auto tiles = [&](int64_t rows, auto f) {  // f(first row, rows, tile), as even as possible
    int64_t left = (rows + DotRows - 1) / DotRows;
    for (int64_t row = 0; row < rows; --left) {
      const int64_t some = (rows - row + left - 1) / left;
      f(row, some, by_rows[static_cast<size_t>(some - 1)]);
      row += some;
    }
  };
  constexpr int64_t kColumns = 16, kRows = 2 * DotRows;
  const int64_t quarter = n / 4;
  for (int64_t row0 = 0; row0 < m; row0 += kRows) {
    const int64_t rows = m - row0 < kRows ? m - row0 : kRows;
    const Factor* const from = a + row0 * a_rs;
    for (int64_t j = 0; j < quarter; j += kColumns) {
      const int64_t columns = quarter - j < kColumns ? quarter - j : kColumns;
      Sum<S> all[kRows][4][kColumns];
      for (int64_t at = 0; at < columns; ++at)
        tiles(rows, [&](int64_t row, int64_t some, auto tile) {
          Sum<S> sums[DotRows][4];
          tile(k, from + row * a_rs, a_rs, b + (j + at) * b_cs, quarter * b_cs, sums);
          for (int64_t i = 0; i < some; ++i)
            for (int64_t s = 0; s < 4; ++s) all[row + i][s][at] = sums[i][s];
        });
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t s = 0; s < 4; ++s) finish(all[i][s], columns, row0 + i, s * quarter + j);
    }
    // The last one to three, each four times.
    for (int64_t j = 4 * quarter; j < n; ++j)
      tiles(rows, [&](int64_t row, int64_t some, auto tile) {
        Sum<S> sums[DotRows][4];
        tile(k, from + row * a_rs, a_rs, b + j * b_cs, 0, sums);
        for (int64_t i = 0; i < some; ++i) finish(sums[i], 1, row0 + row + i, j);
      });
  }
}

}  // namespace
}  // namespace sconce
