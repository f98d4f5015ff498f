// Fourier transforms, linear algebra.
#include "tests/bench/ops/calls.h"

namespace bench {

void add_linalg_cases(Cases& cases) {
  cases.family("Fourier transforms");
  for (const int64_t n : {256, 400, 1000, 1024, 1021, 16384})
    cases.add("_fft_c2c 64x" + std::to_string(n), [=] {
      return call<1>(aoti_torch_cpu__fft_c2c, randn({64, n}, kC64), Ints{1}, 0, true);
    });
  for (const int64_t n : {400, 512, 4096, 65536})
    cases.add("_fft_r2c 64x" + std::to_string(n), [=] {
      return call<1>(aoti_torch_cpu__fft_r2c, randn({n > 10000 ? 4 : 64, n}), Ints{1}, 0, true);
    });
  cases.add("_fft_c2r 64x512", [] { return named<1>("aten::_fft_c2r", "", randn({64, 257}, kC64), Ints{1}, 2, 512); });
  cases.add("_fft_c2c 8x64x64, two dimensions", [] {
    return call<1>(aoti_torch_cpu__fft_c2c, randn({8, 64, 64}, kC64), Ints{1, 2}, 0, true);
  });
  cases.add("_fft_r2c 4x32x64x64, two dimensions", [] {
    return call<1>(aoti_torch_cpu__fft_r2c, randn({4, 32, 64, 64}), Ints{2, 3}, 0, true);
  });

  cases.family("linear algebra");
  for (const int64_t n : {16, 128, 512}) {
    const int64_t batch = n == 16 ? 64 : 1;
    const std::string size = " f32 " + std::to_string(batch) + "x" + std::to_string(n) + "x" + std::to_string(n);
    cases.add("linalg_cholesky_ex" + size,
              [=] { return named<2>("aten::linalg_cholesky_ex", "", spd(batch, n), false, false); });
    cases.add("linalg_inv_ex" + size, [=] { return named<2>("aten::linalg_inv_ex", "", spd(batch, n), false); });
    cases.add("linalg_lu_factor_ex" + size, [=] {
      return named<3>("aten::linalg_lu_factor_ex", "", randn({batch, n, n}), true, false);
    });
    cases.add("_linalg_solve_ex" + size, [=] {
      return named<4>("aten::_linalg_solve_ex", "", spd(batch, n), randn({batch, n, 8}), true, false);
    });
    cases.add("triangular_solve" + size, [=] {
      return call<2>(aoti_torch_cpu_triangular_solve, randn({batch, n, n}), spd(batch, n), true, false, false);
    });
    cases.add("geqrf" + size, [=] { return call<2>(aoti_torch_cpu_geqrf, randn({batch, n, n})); });
    cases.add("cholesky_solve" + size, [=] {
      return call<1>(aoti_torch_cpu_cholesky_solve, randn({batch, n, 8}), spd(batch, n), false);
    });
    if (n == 512) continue;
    cases.add("cholesky_inverse" + size,
              [=] { return call<1>(aoti_torch_cpu_cholesky_inverse, spd(batch, n), false); });
    cases.add("linalg_qr" + size, [=] { return named<2>("aten::linalg_qr", "", randn({batch, n, n}), "reduced"); });
    cases.add("_linalg_eigh" + size, [=] { return named<2>("aten::_linalg_eigh", "", spd(batch, n), "L", true); });
    cases.add("_linalg_svd" + size, [=] {
      return named<3>("aten::_linalg_svd", "", randn({batch, n, n}), false, true, none);
    });
    cases.add("_linalg_det" + size, [=] { return named<3>("aten::_linalg_det", "", randn({batch, n, n})); });
  }
  cases.add("linalg_eig f32 64x64", [] { return named<2>("aten::linalg_eig", "", randn({64, 64})); });
  cases.add("linalg_matrix_exp f32 16x32x32", [] {
    return named<1>("aten::linalg_matrix_exp", "", randn({16, 32, 32}));
  });
  cases.add("lu_unpack f32 8x128x128", [] {
    return call<3>(aoti_torch_cpu_lu_unpack, randn({8, 128, 128}), integers({8, 128}, 128, 129, kI32), true, true);
  });
  cases.add("ormqr f32 128x128", [] {
    return call<1>(aoti_torch_cpu_ormqr, randn({128, 128}), randn({128}), randn({128, 64}), true, false);
  });
}

}  // namespace bench
