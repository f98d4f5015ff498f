// One set of inner loops per instruction set.
#pragma once

#include <tuple>

#include "src/cpu/matmul/gemm/gemm_kernels.h"
#include "src/device/cpu_isa.h"

namespace sconce {

using GemmKernelSet = std::tuple<GemmKernels<float>, GemmKernels<double>, GemmKernels<Half>, GemmKernels<BFloat16>,
                                 GemmKernels<ComplexFloat>, GemmKernels<ComplexDouble>>;

extern const GemmKernelSet kGemmAvx2;
extern const GemmKernelSet kGemmAvx512;
extern const GemmKernels<BFloat16, BFloat16> kGemmAvx512Bf16;

}  // namespace sconce
