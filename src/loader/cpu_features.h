// Instruction sets: what the host has and what compiled code needs. Only those are told apart that a compiler uses
// unasked or that torch compiles kernels for.
//
// A value. Sources: CPUID as in the vendors' manuals, -march names of GCC 15 and Clang 20, ISA names of torch 2.15
// (torch/_inductor/cpu_vec_isa.py).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sconce::loader {

class CpuFeatures {
 public:
  constexpr CpuFeatures() = default;
  // What CPU and kernel offer together.
  static const CpuFeatures& host();
  // "avx2 fma": GCC's names, blanks between. kInvalidArgument names an unknown one.
  static CpuFeatures of(std::string_view names);
  // The same without those that are not known here.
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

// What code compiled with -march=NAME may use; nullopt if the name is unknown. "native" is unknown: it depends on the
// machine it was compiled on.
std::optional<CpuFeatures> features_of_march(std::string_view march);
// AOTI_CPU_ISA as packages record it: "AVX2", "AVX512 AVX512_VNNI AMX_TILE"; nullopt if a word is unknown.
std::optional<CpuFeatures> features_of_isa(std::string_view isa);

// Asks the kernel to let the threads of this process use AMX tiles. False if it refuses.
bool enable_amx() noexcept;

}  // namespace sconce::loader
