// Special functions and orthogonal polynomials, element by element, computed in double: floats of every width; integers
// and bool give float32. Any strides, operands broadcast. Match aten's of the same names (torch 2.15) but for the last
// digits.
#pragma once

#include "src/tensor/scalar.h"

namespace sconce::cpu {

Tensor digamma(const Tensor& self);
Tensor polygamma(int64_t n, const Tensor& self);
Tensor igamma(const Tensor& self, const Tensor& other);   // the lower incomplete gamma function, regularised
Tensor igammac(const Tensor& self, const Tensor& other);  // the upper one
Tensor special_i0e(const Tensor& self);
Tensor special_i1e(const Tensor& self);
Tensor i0(const Tensor& self);
Tensor special_i1(const Tensor& self);
Tensor erfinv(const Tensor& self);
Tensor special_erfcx(const Tensor& self);
Tensor special_bessel_j0(const Tensor& self);
Tensor special_bessel_j1(const Tensor& self);
Tensor special_bessel_y0(const Tensor& self);
Tensor special_bessel_y1(const Tensor& self);
Tensor special_entr(const Tensor& self);
Tensor special_log_ndtr(const Tensor& self);
Tensor special_zeta(const Tensor& self, const Tensor& other);
Tensor special_ndtri(const Tensor& self);
Tensor special_airy_ai(const Tensor& self);
Tensor special_modified_bessel_k0(const Tensor& x);
Tensor special_modified_bessel_k1(const Tensor& x);
Tensor special_scaled_modified_bessel_k0(const Tensor& x);
Tensor special_scaled_modified_bessel_k1(const Tensor& x);
Tensor special_spherical_bessel_j0(const Tensor& x);

// Polynomials of degree n, cut to a whole number; 0 for negative degrees.
Tensor special_chebyshev_polynomial_t(const Tensor& x, const Tensor& n);
Tensor special_chebyshev_polynomial_u(const Tensor& x, const Tensor& n);
Tensor special_chebyshev_polynomial_v(const Tensor& x, const Tensor& n);
Tensor special_chebyshev_polynomial_w(const Tensor& x, const Tensor& n);
// Of 2 x - 1.
Tensor special_shifted_chebyshev_polynomial_t(const Tensor& x, const Tensor& n);
Tensor special_shifted_chebyshev_polynomial_u(const Tensor& x, const Tensor& n);
Tensor special_shifted_chebyshev_polynomial_v(const Tensor& x, const Tensor& n);
Tensor special_shifted_chebyshev_polynomial_w(const Tensor& x, const Tensor& n);
Tensor special_hermite_polynomial_h(const Tensor& x, const Tensor& n);
Tensor special_hermite_polynomial_he(const Tensor& x, const Tensor& n);
Tensor special_laguerre_polynomial_l(const Tensor& x, const Tensor& n);
Tensor special_legendre_polynomial_p(const Tensor& x, const Tensor& n);

}  // namespace sconce::cpu
