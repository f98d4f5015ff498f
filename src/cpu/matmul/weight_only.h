// Products with weights of 8 or 4 bits that are widened during the product. Matches aten::_weight_int8pack_mm and
// aten::_weight_int4pack_mm_for_cpu and _convert_weight_to_int4pack_for_cpu, torch 2.15. Sums are float32.
#pragma once

#include "sconce/tensor.h"

namespace sconce {

// The order of an int4 weight's columns. PyTorch packs for the instruction set of the compiling machine, which its
// package names; the bytes do not show it.
enum class Int4Packing : int8_t {
  kPairs,      // columns 2i and 2i + 1 share a byte: without vector instructions, and the rest of a wider packing
  kColumns32,  // AVX2: columns i and i + 16 share a byte
  kColumns64   // AVX-512: columns i and i + 32
};

// Sets the packing of the package that this thread runs, for the object's lifetime; without one, this CPU's packing
// applies.
class Int4PackingScope {
 public:
  explicit Int4PackingScope(Int4Packing packing) noexcept;
  ~Int4PackingScope();
  Int4PackingScope(const Int4PackingScope&) = delete;
  Int4PackingScope& operator=(const Int4PackingScope&) = delete;
  static Int4Packing current() noexcept;

 private:
  int8_t previous_;
};

namespace cpu {

// int32 [N, K] of 0 to 15 to that packed uint8 [N, K / 2], in the packing of the package; N a multiple of 16, K even.
Tensor _convert_weight_to_int4pack_for_cpu(const Tensor& self, int64_t innerKTiles);

}  // namespace cpu
}  // namespace sconce
