// Special functions and orthogonal polynomials, element by element, computed in double: floats of every width;
// integers and bool give float32. Any strides, operands broadcast. Match aten's of the same names (torch 2.15) except
// for the last digits.
#pragma once

#include "src/cpu/elementwise/functions.h"

namespace sconce::cpu {

Function digamma;
Tensor polygamma(int64_t n, const Tensor& self);
Tensor igamma(const Tensor& self, const Tensor& other);   // the regularised lower incomplete gamma function
Tensor igammac(const Tensor& self, const Tensor& other);  // the upper one
Function i0, special_i0e, special_i1, special_i1e;
Function erfinv, special_erfcx, special_log_ndtr, special_ndtri, special_entr;
Function special_bessel_j0, special_bessel_j1, special_bessel_y0, special_bessel_y1, special_spherical_bessel_j0;
Function special_modified_bessel_k0, special_modified_bessel_k1;
Function special_scaled_modified_bessel_k0, special_scaled_modified_bessel_k1;
Function special_airy_ai;
Tensor special_zeta(const Tensor& self, const Tensor& other);

// The polynomial of degree n, truncated to an integer, at x; 0 for negative degrees.
using Polynomials = Tensor(const Tensor& x, const Tensor& n);
Polynomials special_chebyshev_polynomial_t, special_chebyshev_polynomial_u;
Polynomials special_chebyshev_polynomial_v, special_chebyshev_polynomial_w;
// The same polynomials at 2 x - 1.
Polynomials special_shifted_chebyshev_polynomial_t, special_shifted_chebyshev_polynomial_u;
Polynomials special_shifted_chebyshev_polynomial_v, special_shifted_chebyshev_polynomial_w;
Polynomials special_hermite_polynomial_h, special_hermite_polynomial_he;
Polynomials special_laguerre_polynomial_l, special_legendre_polynomial_p;

}  // namespace sconce::cpu
