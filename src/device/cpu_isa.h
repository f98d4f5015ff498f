// The instruction sets that kernels may use. Every build runs on AVX2; wider code is chosen at run time.
//
// SCONCE_CPU_ISA=avx2 in the environment limits all kernels, oneDNN's too, to AVX2 on any host, like
// ATEN_CPU_CAPABILITY for PyTorch. Use it to compare a kernel's variants, or to get equal results on all hosts. A
// package's own code is not affected. Read once; thread-safe.
#pragma once

namespace sconce {

bool has_avx512() noexcept;       // has F, BW, DQ and VL
bool has_avx512_bf16() noexcept;  // also dot products of bfloat16 pairs
bool has_avx512_vnni() noexcept;  // also dot products of four int8
bool has_avx512_fp16() noexcept;  // also arithmetic of float16
bool has_amx_bf16() noexcept;     // also tiles, and products of bfloat16 in them
// Whether the environment limits kernels to AVX2.
bool only_avx2() noexcept;

}  // namespace sconce
