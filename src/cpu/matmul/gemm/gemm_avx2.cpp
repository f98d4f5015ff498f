// The inner loops for any CPU that Sconce runs on.
#include <immintrin.h>

#include <array>
#include <complex>
#include <cstdint>
#include <utility>

#include "src/cpu/matmul/gemm/gemm_isa.h"
#include "src/cpu/matmul/gemm/gemm_kernels.h"
#include "src/cpu/vector/gemm_vectors.h"
// After gemm_vectors.h.
#include "src/cpu/matmul/gemm/gemm_finish.h"
#include "src/cpu/vector/transpose_blocks.h"
// After these.
#include "src/cpu/matmul/gemm/gemm_tiles.h"

namespace sconce {

const GemmKernelSet kGemmAvx2 = {
    make_kernels<float>(),    make_kernels<double>(),       make_kernels<Half>(),
    make_kernels<BFloat16>(), make_kernels<ComplexFloat>(), make_kernels<ComplexDouble>(),
};

}  // namespace sconce
