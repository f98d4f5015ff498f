// Factorisations of real matrices, blocked, over our own matrix products: the implementation of Lapack<float> and
// Lapack<double> for LU, Cholesky, QR and triangular systems. Reference LAPACK spends most of its time in unblocked
// BLAS.
//
// Matrices are column-major and dense as in LAPACK; pivots, reflectors, tau and info are LAPACK's too, so factors of
// one library can be used by the other. Rounding differs. A factorisation of one triangle may overwrite the other one.
// float and double. Runs on the calling thread's team. kOutOfMemory.
#pragma once

#include <cstdint>

namespace sconce::factorise {

// A = P L U; info: the first column from 1 without a pivot, else 0.
template <class T>
void getrf(int m, int n, T* a, int* pivots, int& info);
// op(A) X = B, trans 'N', 'T' or 'C'.
template <class T>
void getrs(char trans, int n, int columns, const T* lu, const int* pivots, T* b, int& info);

// A = L L^T or U^T U; info: the order of the first minor that is not positive.
template <class T>
void potrf(char uplo, int n, T* a, int& info);
template <class T>
void potrs(char uplo, int n, int columns, const T* factor, T* b, int& info);
// The inverse of A from its factor, one triangle. info: the first zero on the diagonal, from 1.
template <class T>
void potri(char uplo, int n, T* a, int& info);

// op(A) X = B or X op(A) = B with a triangle A; diagonal 'U' if it is all ones.
template <class T>
void trsm(char side, char uplo, char diagonal, int m, int n, const T* a, T* b, char trans);

// lwork -1 queries the size of work, which is stored in its first element.
template <class T>
void geqrf(int m, int n, T* a, T* tau, T* work, int lwork, int& info);
// The first n columns of Q, from k reflectors.
template <class T>
void orgqr(int m, int n, int k, T* a, const T* tau, T* work, int lwork, int& info);
// Replaces C [m, n] by Q C, Q^T C, C Q or C Q^T.
template <class T>
void ormqr(char side, char trans, int m, int n, int k, const T* a, int lda, const T* tau, T* c, T* work, int lwork,
           int& info);

// Eigenvalues of a symmetric matrix, ascending, and with job 'V' its eigenvectors in its place. Only the reduction to
// a tridiagonal matrix and back is our own code. False, without any effect, for matrices that LAPACK handles with more
// care: tiny ones, and those with numbers far from 1, infinite or NaN.
template <class T>
bool syevd(char job, char uplo, int n, T* a, T* w, int& info);

}  // namespace sconce::factorise
