// The inner loops for CPUs with AVX-512 (F, BW, DQ, VL).
// GCC 12 takes its own intrinsics for uses of uninitialised variables (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <array>
#include <complex>
#include <cstdint>
#include <utility>

#include "src/cpu/matmul/gemm/gemm_isa.h"
#include "src/cpu/matmul/gemm/gemm_kernels.h"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#define SCONCE_GEMM_AVX512
#include "src/cpu/vector/gemm_vectors.h"
// After gemm_vectors.h.
#include "src/cpu/matmul/gemm/gemm_finish.h"
#include "src/cpu/vector/transpose_blocks.h"
// After these.
#include "src/cpu/matmul/gemm/gemm_tiles.h"

namespace sconce {

const GemmKernelSet kGemmAvx512 = {
    make_kernels<float>(),    make_kernels<double>(),       make_kernels<Half>(),
    make_kernels<BFloat16>(), make_kernels<ComplexFloat>(), make_kernels<ComplexDouble>(),
};

}  // namespace sconce
#pragma GCC pop_options
