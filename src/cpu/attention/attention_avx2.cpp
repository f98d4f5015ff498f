// The softmax of flash attention for any CPU that Sconce runs on.
#include <immintrin.h>

#include <iterator>
#include <limits>

#include "sconce/float_types.h"
#include "src/cpu/attention/attention_softmax.h"
#include "src/cpu/vector/gemm_vectors.h"
// After gemm_vectors.h.
#include "src/cpu/attention/attention_rows.h"

namespace sconce {

const SoftmaxKernels<float> kSoftmaxF32Avx2 = {&softmax_block<ExpF32, float>, &scale_row<ExpF32, float>};
const SoftmaxKernels<double> kSoftmaxF64Avx2 = {&softmax_block<ExpF64, double>, &scale_row<ExpF64, double>};
const FewRowsKernels<Half> kFewRowsF16Avx2 = {&score_few<Half>, &weigh_few<Half>};
const FewRowsKernels<BFloat16> kFewRowsBf16Avx2 = {&score_few<BFloat16>, &weigh_few<BFloat16>};

}  // namespace sconce
