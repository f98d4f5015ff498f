// Matrix products that torch.compile's template kernels (flex attention, max-autotuned products) call by their C++
// names. Matches ATen/native/CPUBlas.h, torch 2.6 to 2.15.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <type_traits>

#include "sconce/check.h"
#include "src/cpu/matmul/gemm/block_product.h"

// Declared only because mangled names contain these types. Pointers to them point to Sconce's element types.
namespace c10 {

struct Half;
struct BFloat16;
struct Float8_e4m3fn;
struct Float8_e5m2;
enum class ScalarType : int8_t { Half = 5, BFloat16 = 15 };

}  // namespace c10

namespace at {
namespace native::cpublas {
namespace {

template <class S, class A, class B, class C>
void product(int64_t m, int64_t n, int64_t k, int64_t ld_a, int64_t ld_b, int64_t ld_c, bool add, const A* a,
             const B* b, C* c, bool interleaved) {
  const sconce::BlockProduct block{m, n, k, ld_a, ld_b, ld_c, add, interleaved};
  if constexpr (std::is_same_v<C, float>)
    sconce::block_product(block, reinterpret_cast<const S*>(a), reinterpret_cast<const S*>(b), c);
  else
    sconce::block_product(block, a, b, c);
}

}  // namespace

#define SCONCE_BRGEMM(A, B, C, Ours)                                                                           \
  void brgemm(int64_t m, int64_t n, int64_t k, int64_t ld_a, int64_t ld_b, int64_t ld_c, bool add, const A* a, \
              const B* b, C* c, bool interleaved) {                                                            \
    product<Ours>(m, n, k, ld_a, ld_b, ld_c, add, a, b, c, interleaved);                                       \
  }
SCONCE_BRGEMM(c10::Half, c10::Half, float, sconce::Half)
SCONCE_BRGEMM(c10::BFloat16, c10::BFloat16, float, sconce::BFloat16)
SCONCE_BRGEMM(c10::Float8_e4m3fn, c10::Float8_e4m3fn, float, sconce::Float8E4M3FN)
SCONCE_BRGEMM(c10::Float8_e5m2, c10::Float8_e5m2, float, sconce::Float8E5M2)
SCONCE_BRGEMM(float, float, float, float)
SCONCE_BRGEMM(unsigned char, unsigned char, int32_t, unsigned char)
SCONCE_BRGEMM(unsigned char, signed char, int32_t, unsigned char)
SCONCE_BRGEMM(signed char, signed char, int32_t, signed char)
#undef SCONCE_BRGEMM

// Should release the thread's tile registers; Sconce's brgemm does not use them.
void brgemm_release(bool) {}

// Whether interleaving elements is worthwhile. It is only for products in the CPU's tile registers, which Sconce does
// not use.
bool could_pack(c10::ScalarType) { return false; }

void pack(int64_t k, int64_t n, int64_t ld_in, int64_t ld_out, c10::ScalarType in_type, c10::ScalarType out_type,
          const void* in, void* out) {
  SCONCE_CHECK(in_type == out_type && (in_type == c10::ScalarType::Half || in_type == c10::ScalarType::BFloat16),
               kUnsupported, "pack: only half and bfloat16 are packed, not dtype ", static_cast<int>(in_type), " as ",
               static_cast<int>(out_type));
  sconce::interleave_pairs(k, n, static_cast<const uint16_t*>(in), ld_in, static_cast<uint16_t*>(out), ld_out);
}

}  // namespace native::cpublas

namespace cpu {

// Asks the kernel to let this process use the CPU's tile registers. Code compiled for them asks before the first use.
bool init_amx() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace cpu
}  // namespace at
