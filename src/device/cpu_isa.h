// Which instruction sets kernels may choose. Every build runs on AVX2; wider code is chosen at run time.
//
// SCONCE_CPU_ISA=avx2 in the environment keeps all kernels, oneDNN's among them, to AVX2 on any host, as
// ATEN_CPU_CAPABILITY does for PyTorch: for comparing the ways that a kernel has, and for answers that are the same on
// all hosts. Code that a package brings is not affected. Read once; thread-safe.
#pragma once

namespace sconce {

bool has_avx512() noexcept;       // F, BW, DQ and VL
bool has_avx512_bf16() noexcept;  // and products of pairs of bfloat16
bool has_avx512_vnni() noexcept;  // and products of four int8
bool has_avx512_fp16() noexcept;  // and arithmetic of float16
// Whether the environment keeps kernels to AVX2.
bool only_avx2() noexcept;

}  // namespace sconce
