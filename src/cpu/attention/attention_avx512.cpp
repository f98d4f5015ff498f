// The softmax of flash attention for CPUs with AVX-512 (F, BW, DQ, VL).
// GCC 12 takes its own intrinsics for uses of uninitialised variables (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <iterator>
#include <limits>

#include "sconce/float_types.h"
#include "src/cpu/attention/attention_softmax.h"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#define SCONCE_GEMM_AVX512
#include "src/cpu/vector/gemm_vectors.h"
// After gemm_vectors.h.
#include "src/cpu/attention/attention_rows.h"

namespace sconce {

const SoftmaxKernels<float> kSoftmaxF32Avx512 = {&softmax_block<ExpF32, float>, &scale_row<ExpF32, float>};
const SoftmaxKernels<double> kSoftmaxF64Avx512 = {&softmax_block<ExpF64, double>, &scale_row<ExpF64, double>};
const FewRowsKernels<Half> kFewRowsF16Avx512 = {&score_few<Half>, &weigh_few<Half>};
const FewRowsKernels<BFloat16> kFewRowsBf16Avx512 = {&score_few<BFloat16>, &weigh_few<BFloat16>};

}  // namespace sconce
#pragma GCC pop_options
