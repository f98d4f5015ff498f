// What all inner loops share: from finished sums to c. Included once per instruction set, after gemm_vectors.h;
// everything is internal to that translation unit.

namespace sconce {
namespace {

template <class S>
using Real = decltype(std::real(Sum<S>()));

// One finished row that the fast ways do not cover.
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

// Dot products by tiles of four columns and up to DotRows rows: kByRows[rows - 1](k, a, a_rs, b, b_cs, sums).
template <class S, class Factor, int DotRows, class Tiles>
void dot_by_rows(const Tiles& by_rows, int64_t m, int64_t n, int64_t k, const Factor* a, int64_t a_rs, const S* b,
                 int64_t b_cs, const GemmEpilogue<S>& e, S* c, int64_t c_rs) {
  for (int64_t j = 0; j < n; j += 4) {
    // Where fewer than four columns are left, the last four are computed, or one column four times.
    const int64_t columns = n - j < 4 ? n - j : 4, skip = n >= 4 ? 4 - columns : 0;
    const S* const at = b + (j - skip) * b_cs;
    int64_t left = (m + DotRows - 1) / DotRows;
    for (int64_t row = 0; row < m; --left) {
      const int64_t rows = (m - row + left - 1) / left;
      const auto tile = by_rows[static_cast<size_t>(rows - 1)];
      Sum<S> sums[DotRows][4];
      if (n >= 4) {
        tile(k, a + row * a_rs, a_rs, at, b_cs, sums);
      } else {
        for (int64_t column = 0; column < columns; ++column) {
          Sum<S> same[DotRows][4];
          tile(k, a + row * a_rs, a_rs, at + column * b_cs, 0, same);
          for (int64_t i = 0; i < rows; ++i) sums[i][column] = same[i][0];
        }
      }
      for (int64_t i = 0; i < rows; ++i)
        finish_row<S>(sums[i] + skip, columns, e, e.self ? e.self + (row + i) * e.self_rs + j * e.self_cs : nullptr,
                      c + (row + i) * c_rs + j);
      row += rows;
    }
  }
}

}  // namespace
}  // namespace sconce
