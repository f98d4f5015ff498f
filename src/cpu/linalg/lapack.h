// LAPACK by element type: Lapack<T>::getrf(...) for float, double and their complex types; for real matrices, LU,
// Cholesky, QR and triangular systems use our own code (factorise.h). Matrices are column-major; sizes are C ints;
// info as LAPACK returns it. The library is opened at the first require_lapack() (kUnavailable names the package).
// Thread-safe.
#pragma once

#include <complex>
#include <cstddef>

#include "src/cpu/linalg/factorise.h"
#include "src/device/lazy_library.h"

SCONCE_LAZY_LIBRARY(LAPACK);

namespace sconce {

class Mutex;

inline void require_lapack() { require_library(sconce_lazy_LAPACK); }

// Held during a call of the library. OpenBLAS built without threads (Debian's libopenblas0-serial 0.3.21) gives the
// same work space to two threads that request it at the same time, and both get wrong results: its calls are
// serialised. Other libraries need no lock.
class LapackLock {
 public:
  LapackLock();
  LapackLock(const LapackLock&) = delete;
  LapackLock& operator=(const LapackLock&) = delete;
  ~LapackLock();

 private:
  Mutex* mutex_ = nullptr;  // null: this library needs no lock
};

template <class T>
struct Lapack;

// Fortran passes everything by pointer and the lengths of character arguments last.
// clang-format off
#define SCONCE_LAPACK_COMMON(p, T)                                                                                     \
  extern "C" {                                                                                                         \
  void p##sytrf_(const char*, const int*, T*, const int*, int*, T*, const int*, int*, size_t);                         \
  void p##sytrs_(const char*, const int*, const int*, const T*, const int*, const int*, T*, const int*, int*, size_t); \
  }
#define SCONCE_LAPACK_COMPLEX_COMMON(p, T)                                                                             \
  extern "C" {                                                                                                         \
  void p##getrf_(const int*, const int*, T*, const int*, int*, int*);                                                  \
  void p##getrs_(const char*, const int*, const int*, const T*, const int*, const int*, T*, const int*, int*, size_t); \
  void p##potrf_(const char*, const int*, T*, const int*, int*, size_t);                                               \
  void p##potrs_(const char*, const int*, const int*, const T*, const int*, T*, const int*, int*, size_t);             \
  void p##potri_(const char*, const int*, T*, const int*, int*, size_t);                                               \
  void p##geqrf_(const int*, const int*, T*, const int*, T*, T*, const int*, int*);                                    \
  void p##trsm_(const char*, const char*, const char*, const char*, const int*, const int*, const T*, const T*,        \
                const int*, T*, const int*, size_t, size_t, size_t, size_t);                                           \
  }
#define SCONCE_LAPACK_REAL(p, T)                                                                                       \
  extern "C" {                                                                                                         \
  void p##stedc_(const char*, const int*, T*, T*, T*, const int*, T*, const int*, int*, const int*, int*, size_t);     \
  void p##syevd_(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, int*, const int*, int*,     \
                 size_t, size_t);                                                                                      \
  void p##gesdd_(const char*, const int*, const int*, T*, const int*, T*, T*, const int*, T*, const int*, T*,          \
                 const int*, int*, int*, size_t);                                                                      \
  void p##geev_(const char*, const char*, const int*, T*, const int*, T*, T*, T*, const int*, T*, const int*, T*,      \
                const int*, int*, size_t, size_t);                                                                     \
  }
#define SCONCE_LAPACK_COMPLEX(p, T, R)                                                                                 \
  extern "C" {                                                                                                         \
  void p##ungqr_(const int*, const int*, const int*, T*, const int*, const T*, T*, const int*, int*);                  \
  void p##unmqr_(const char*, const char*, const int*, const int*, const int*, const T*, const int*, const T*, T*,     \
                 const int*, T*, const int*, int*, size_t, size_t);                                                    \
  void p##heevd_(const char*, const char*, const int*, T*, const int*, R*, T*, const int*, R*, const int*, int*,       \
                 const int*, int*, size_t, size_t);                                                                    \
  void p##gesdd_(const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*, const int*, T*,          \
                 const int*, R*, int*, int*, size_t);                                                                  \
  void p##geev_(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, T*, const int*, T*,          \
                const int*, R*, int*, size_t, size_t);                                                                 \
  void p##hetrf_(const char*, const int*, T*, const int*, int*, T*, const int*, int*, size_t);                         \
  void p##hetrs_(const char*, const int*, const int*, const T*, const int*, const int*, T*, const int*, int*, size_t); \
  }
// clang-format on
SCONCE_LAPACK_COMMON(s, float)
SCONCE_LAPACK_COMMON(d, double)
SCONCE_LAPACK_COMMON(c, std::complex<float>)
SCONCE_LAPACK_COMMON(z, std::complex<double>)
SCONCE_LAPACK_COMPLEX_COMMON(c, std::complex<float>)
SCONCE_LAPACK_COMPLEX_COMMON(z, std::complex<double>)
SCONCE_LAPACK_REAL(s, float)
SCONCE_LAPACK_REAL(d, double)
SCONCE_LAPACK_COMPLEX(c, std::complex<float>, float)
SCONCE_LAPACK_COMPLEX(z, std::complex<double>, double)

#define SCONCE_LAPACK_SHARED(p, T)                                                        \
  static void sytrf(int n, T* a, int* pivots, T* work, int lwork, int& info) {            \
    const int lda = n > 1 ? n : 1;                                                        \
    const LapackLock lock;                                                                \
    p##sytrf_("L", &n, a, &lda, pivots, work, &lwork, &info, 1);                          \
  }                                                                                       \
  static void sytrs(int n, int columns, const T* a, const int* pivots, T* b, int& info) { \
    const int ld = n > 1 ? n : 1;                                                         \
    const LapackLock lock;                                                                \
    p##sytrs_("L", &n, &columns, a, &ld, pivots, b, &ld, &info, 1);                       \
  }
#define SCONCE_LAPACK_COMPLEX_SHARED(p, T)                                                                  \
  static void getrf(int m, int n, T* a, int* pivots, int& info) {                                           \
    const int lda = m > 1 ? m : 1;                                                                          \
    const LapackLock lock;                                                                                  \
    p##getrf_(&m, &n, a, &lda, pivots, &info);                                                              \
  }                                                                                                         \
  static void getrs(char trans, int n, int columns, const T* lu, const int* pivots, T* b, int& info) {      \
    const int ld = n > 1 ? n : 1;                                                                           \
    const LapackLock lock;                                                                                  \
    p##getrs_(&trans, &n, &columns, lu, &ld, pivots, b, &ld, &info, 1);                                     \
  }                                                                                                         \
  static void potrf(char uplo, int n, T* a, int& info) {                                                    \
    const int lda = n > 1 ? n : 1;                                                                          \
    const LapackLock lock;                                                                                  \
    p##potrf_(&uplo, &n, a, &lda, &info, 1);                                                                \
  }                                                                                                         \
  static void potrs(char uplo, int n, int columns, const T* factor, T* b, int& info) {                      \
    const int ld = n > 1 ? n : 1;                                                                           \
    const LapackLock lock;                                                                                  \
    p##potrs_(&uplo, &n, &columns, factor, &ld, b, &ld, &info, 1);                                          \
  }                                                                                                         \
  static void potri(char uplo, int n, T* a, int& info) {                                                    \
    const int lda = n > 1 ? n : 1;                                                                          \
    const LapackLock lock;                                                                                  \
    p##potri_(&uplo, &n, a, &lda, &info, 1);                                                                \
  }                                                                                                         \
  static void geqrf(int m, int n, T* a, T* tau, T* work, int lwork, int& info) {                            \
    const int lda = m > 1 ? m : 1;                                                                          \
    const LapackLock lock;                                                                                  \
    p##geqrf_(&m, &n, a, &lda, tau, work, &lwork, &info);                                                   \
  }                                                                                                         \
  static void trsm(char side, char uplo, char diagonal, int m, int n, const T* a, T* b, char trans = 'N') { \
    const int size = side == 'L' ? m : n, lda = size > 1 ? size : 1, ldb = m > 1 ? m : 1;                   \
    const T one = 1;                                                                                        \
    const LapackLock lock;                                                                                  \
    p##trsm_(&side, &uplo, &trans, &diagonal, &m, &n, &one, a, &lda, b, &ldb, 1, 1, 1, 1);                  \
  }
#define SCONCE_LAPACK_OWN(p, T)                                                                                   \
  static void getrf(int m, int n, T* a, int* pivots, int& info) { factorise::getrf(m, n, a, pivots, info); }      \
  static void getrs(char trans, int n, int columns, const T* lu, const int* pivots, T* b, int& info) {            \
    factorise::getrs(trans, n, columns, lu, pivots, b, info);                                                     \
  }                                                                                                               \
  static void potrf(char uplo, int n, T* a, int& info) { factorise::potrf(uplo, n, a, info); }                    \
  static void potrs(char uplo, int n, int columns, const T* factor, T* b, int& info) {                            \
    factorise::potrs(uplo, n, columns, factor, b, info);                                                          \
  }                                                                                                               \
  static void potri(char uplo, int n, T* a, int& info) { factorise::potri(uplo, n, a, info); }                    \
  static void geqrf(int m, int n, T* a, T* tau, T* work, int lwork, int& info) {                                  \
    factorise::geqrf(m, n, a, tau, work, lwork, info);                                                            \
  }                                                                                                               \
  static void trsm(char side, char uplo, char diagonal, int m, int n, const T* a, T* b, char trans = 'N') {       \
    factorise::trsm(side, uplo, diagonal, m, n, a, b, trans);                                                     \
  }                                                                                                               \
  static void orgqr(int m, int n, int k, T* a, const T* tau, T* work, int lwork, int& info) {                     \
    factorise::orgqr(m, n, k, a, tau, work, lwork, info);                                                         \
  }                                                                                                               \
  static void ormqr(char side, char trans, int m, int n, int k, const T* a, int lda, const T* tau, T* c, T* work, \
                    int lwork, int& info) {                                                                       \
    factorise::ormqr(side, trans, m, n, k, a, lda, tau, c, work, lwork, info);                                    \
  }
#define SCONCE_LAPACK_REAL_STRUCT(p, T)                                                                              \
  template <>                                                                                                        \
  struct Lapack<T> {                                                                                                 \
    using Real = T;                                                                                                  \
    SCONCE_LAPACK_SHARED(p, T)                                                                                       \
    SCONCE_LAPACK_OWN(p, T)                                                                                          \
    static void stedc(char job, int n, T* d, T* e, T* z, T* work, int lwork, int* iwork, int liwork, int& info) {    \
      const LapackLock lock;                                                                                         \
      p##stedc_(&job, &n, d, e, z, &n, work, &lwork, iwork, &liwork, &info, 1);                                      \
    }                                                                                                                \
    static void heevd(char job, char uplo, int n, T* a, T* w, T* work, int lwork, T*, int, int* iwork, int liwork,   \
                      int& info) {                                                                                   \
      const int lda = n > 1 ? n : 1;                                                                                 \
      if (lwork != -1 && factorise::syevd(job, uplo, n, a, w, info)) return;                                         \
      const LapackLock lock;                                                                                         \
      p##syevd_(&job, &uplo, &n, a, &lda, w, work, &lwork, iwork, &liwork, &info, 1, 1);                             \
    }                                                                                                                \
    static void gesdd(char job, int m, int n, T* a, T* s, T* u, T* vt, int ldvt, T* work, int lwork, T*, int* iwork, \
                      int& info) {                                                                                   \
      const int lda = m > 1 ? m : 1;                                                                                 \
      const LapackLock lock;                                                                                         \
      p##gesdd_(&job, &m, &n, a, &lda, s, u, &lda, vt, &ldvt, work, &lwork, iwork, &info, 1);                        \
    }                                                                                                                \
    static void geev(char job, int n, T* a, T* real, T* imaginary, T* vectors, T* work, int lwork, int& info) {      \
      const int ld = n > 1 ? n : 1;                                                                                  \
      const LapackLock lock;                                                                                         \
      p##geev_("N", &job, &n, a, &ld, real, imaginary, nullptr, &ld, vectors, &ld, work, &lwork, &info, 1, 1);       \
    }                                                                                                                \
  };
#define SCONCE_LAPACK_COMPLEX_STRUCT(p, T, R)                                                                       \
  template <>                                                                                                       \
  struct Lapack<T> {                                                                                                \
    using Real = R;                                                                                                 \
    SCONCE_LAPACK_SHARED(p, T)                                                                                      \
    SCONCE_LAPACK_COMPLEX_SHARED(p, T)                                                                              \
    static void orgqr(int m, int n, int k, T* a, const T* tau, T* work, int lwork, int& info) {                     \
      const int lda = m > 1 ? m : 1;                                                                                \
      const LapackLock lock;                                                                                        \
      p##ungqr_(&m, &n, &k, a, &lda, tau, work, &lwork, &info);                                                     \
    }                                                                                                               \
    static void ormqr(char side, char trans, int m, int n, int k, const T* a, int lda, const T* tau, T* c, T* work, \
                      int lwork, int& info) {                                                                       \
      const int ldc = m > 1 ? m : 1;                                                                                \
      const LapackLock lock;                                                                                        \
      p##unmqr_(&side, &trans, &m, &n, &k, a, &lda, tau, c, &ldc, work, &lwork, &info, 1, 1);                       \
    }                                                                                                               \
    static void heevd(char job, char uplo, int n, T* a, R* w, T* work, int lwork, R* rwork, int lrwork, int* iwork, \
                      int liwork, int& info) {                                                                      \
      const int lda = n > 1 ? n : 1;                                                                                \
      const LapackLock lock;                                                                                        \
      p##heevd_(&job, &uplo, &n, a, &lda, w, work, &lwork, rwork, &lrwork, iwork, &liwork, &info, 1, 1);            \
    }                                                                                                               \
    static void gesdd(char job, int m, int n, T* a, R* s, T* u, T* vt, int ldvt, T* work, int lwork, R* rwork,      \
                      int* iwork, int& info) {                                                                      \
      const int lda = m > 1 ? m : 1;                                                                                \
      const LapackLock lock;                                                                                        \
      p##gesdd_(&job, &m, &n, a, &lda, s, u, &lda, vt, &ldvt, work, &lwork, rwork, iwork, &info, 1);                \
    }                                                                                                               \
    static void geev(char job, int n, T* a, T* w, T* vectors, T* work, int lwork, R* rwork, int& info) {            \
      const int ld = n > 1 ? n : 1;                                                                                 \
      const LapackLock lock;                                                                                        \
      p##geev_("N", &job, &n, a, &ld, w, nullptr, &ld, vectors, &ld, work, &lwork, rwork, &info, 1, 1);             \
    }                                                                                                               \
    static void hetrf(int n, T* a, int* pivots, T* work, int lwork, int& info) {                                    \
      const int lda = n > 1 ? n : 1;                                                                                \
      const LapackLock lock;                                                                                        \
      p##hetrf_("L", &n, a, &lda, pivots, work, &lwork, &info, 1);                                                  \
    }                                                                                                               \
    static void hetrs(int n, int columns, const T* a, const int* pivots, T* b, int& info) {                         \
      const int ld = n > 1 ? n : 1;                                                                                 \
      const LapackLock lock;                                                                                        \
      p##hetrs_("L", &n, &columns, a, &ld, pivots, b, &ld, &info, 1);                                               \
    }                                                                                                               \
  };
SCONCE_LAPACK_REAL_STRUCT(s, float)
SCONCE_LAPACK_REAL_STRUCT(d, double)
SCONCE_LAPACK_COMPLEX_STRUCT(c, std::complex<float>, float)
SCONCE_LAPACK_COMPLEX_STRUCT(z, std::complex<double>, double)
#undef SCONCE_LAPACK_COMMON
#undef SCONCE_LAPACK_REAL
#undef SCONCE_LAPACK_COMPLEX
#undef SCONCE_LAPACK_SHARED
#undef SCONCE_LAPACK_COMPLEX_COMMON
#undef SCONCE_LAPACK_COMPLEX_SHARED
#undef SCONCE_LAPACK_OWN
#undef SCONCE_LAPACK_REAL_STRUCT
#undef SCONCE_LAPACK_COMPLEX_STRUCT

}  // namespace sconce
