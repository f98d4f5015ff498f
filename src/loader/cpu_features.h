// Instruction sets: those of the host and those that compiled code needs. Only sets that compilers use by default or
// that torch compiles kernels for are distinguished. A value type. Sources: CPUID as in the vendors' manuals, -march
// names of GCC 15 and Clang 20, ISA names of torch 2.15 (torch/_inductor/cpu_vec_isa.py).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sconce::loader {

class CpuFeatures {
 public:
  constexpr CpuFeatures() = default;
  // The sets that both CPU and kernel support.
  static const CpuFeatures& host();
  // "avx2 fma": GCC's names, separated by blanks. kInvalidArgument names an unknown one.
  static CpuFeatures of(std::string_view names);
  // As above, but ignores unknown names.
  static CpuFeatures known_of(std::string_view names);

  bool has(const CpuFeatures& other) const noexcept { return (bits_ & other.bits_) == other.bits_; }
  bool any_of(const CpuFeatures& other) const noexcept { return (bits_ & other.bits_) != 0; }
  CpuFeatures without(const CpuFeatures& other) const noexcept { return CpuFeatures(bits_ & ~other.bits_); }
  bool empty() const noexcept { return bits_ == 0; }
  friend CpuFeatures operator|(const CpuFeatures& a, const CpuFeatures& b) noexcept {
    return CpuFeatures(a.bits_ | b.bits_);
  }
  friend bool operator==(const CpuFeatures&, const CpuFeatures&) = default;
  std::string names() const;  // "avx2, fma"

 private:
  constexpr explicit CpuFeatures(uint64_t bits) : bits_(bits) {}
  uint64_t bits_ = 0;
};

// The sets that code compiled with -march=NAME may use; nullopt for unknown names and for "native", which depends on
// the machine.
std::optional<CpuFeatures> features_of_march(std::string_view march);
// Parses AOTI_CPU_ISA as packages record it: "AVX2", "AVX512 AVX512_VNNI AMX_TILE"; nullopt if a word is unknown.
std::optional<CpuFeatures> features_of_isa(std::string_view isa);

// Asks the kernel to let this process use AMX tiles. Returns false if it refuses.
bool enable_amx() noexcept;

}  // namespace sconce::loader
