#include "src/loader/cpu_features.h"

#include <sys/platform/x86.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iterator>

#include "sconce/check.h"

namespace sconce::loader {
namespace {

enum Register { kEax, kEbx, kEcx, kEdx };
// Register state that the kernel must save: bits of XCR0.
enum State : uint64_t { kNone = 0, kAvx = 0x6, kAvx512 = 0xe6, kAmx = 0x60000 };

// Leaves of CPUID.
enum Leaf : unsigned {
  kLeaf1 = CPUID_INDEX_1,
  kLeaf7 = CPUID_INDEX_7,
  kLeaf7Sub1 = CPUID_INDEX_7_ECX_1,
  kLeaf80000001 = CPUID_INDEX_80000001
};

struct Feature {
  std::string_view name;
  Leaf leaf;
  Register where;
  int bit;
  State state;
};

constexpr Feature kFeatures[] = {
    {"sse3", kLeaf1, kEcx, 0, kNone},
    {"ssse3", kLeaf1, kEcx, 9, kNone},
    {"cx16", kLeaf1, kEcx, 13, kNone},
    {"sse4.1", kLeaf1, kEcx, 19, kNone},
    {"sse4.2", kLeaf1, kEcx, 20, kNone},
    {"movbe", kLeaf1, kEcx, 22, kNone},
    {"popcnt", kLeaf1, kEcx, 23, kNone},
    {"avx", kLeaf1, kEcx, 28, kAvx},
    {"f16c", kLeaf1, kEcx, 29, kAvx},
    {"fma", kLeaf1, kEcx, 12, kAvx},
    {"bmi", kLeaf7, kEbx, 3, kNone},
    {"avx2", kLeaf7, kEbx, 5, kAvx},
    {"bmi2", kLeaf7, kEbx, 8, kNone},
    {"avx512f", kLeaf7, kEbx, 16, kAvx512},
    {"avx512dq", kLeaf7, kEbx, 17, kAvx512},
    {"avx512ifma", kLeaf7, kEbx, 21, kAvx512},
    {"avx512cd", kLeaf7, kEbx, 28, kAvx512},
    {"avx512bw", kLeaf7, kEbx, 30, kAvx512},
    {"avx512vl", kLeaf7, kEbx, 31, kAvx512},
    {"avx512vbmi", kLeaf7, kEcx, 1, kAvx512},
    {"avx512vbmi2", kLeaf7, kEcx, 6, kAvx512},
    {"gfni", kLeaf7, kEcx, 8, kNone},
    {"avx512vnni", kLeaf7, kEcx, 11, kAvx512},
    {"avx512bitalg", kLeaf7, kEcx, 12, kAvx512},
    {"avx512vpopcntdq", kLeaf7, kEcx, 14, kAvx512},
    {"amx-bf16", kLeaf7, kEdx, 22, kAmx},
    {"avx512fp16", kLeaf7, kEdx, 23, kAvx512},
    {"amx-tile", kLeaf7, kEdx, 24, kAmx},
    {"amx-int8", kLeaf7, kEdx, 25, kAmx},
    {"avxvnni", kLeaf7Sub1, kEax, 4, kAvx},
    {"avx512bf16", kLeaf7Sub1, kEax, 5, kAvx512},
    {"amx-fp16", kLeaf7Sub1, kEax, 21, kAmx},
    {"avxifma", kLeaf7Sub1, kEax, 23, kAvx},
    {"avxvnniint8", kLeaf7Sub1, kEdx, 4, kAvx},
    {"avxneconvert", kLeaf7Sub1, kEdx, 5, kAvx},
    {"sahf", kLeaf80000001, kEcx, 0, kNone},
    {"lzcnt", kLeaf80000001, kEcx, 5, kNone},
    {"sse4a", kLeaf80000001, kEcx, 6, kNone},
    {"xop", kLeaf80000001, kEcx, 11, kAvx},
    {"fma4", kLeaf80000001, kEcx, 16, kAvx},
    {"tbm", kLeaf80000001, kEcx, 21, kNone},
};
static_assert(std::size(kFeatures) <= 64);

// CPUID as the dynamic linker read it when the process started: on a virtual machine, each CPUID instruction is an
// exit to the hypervisor of several microseconds.
unsigned cpuid(Leaf leaf, Register where) { return __x86_get_cpuid_feature_leaf(leaf)->cpuid_array[where]; }

uint64_t saved_state() {
  constexpr unsigned kOsxsave = 1U << 27;
  if (!(cpuid(kLeaf1, kEcx) & kOsxsave)) return 0;
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

uint64_t read_host() {
  const uint64_t state = saved_state();
  uint64_t bits = 0;
  for (size_t i = 0; i < std::size(kFeatures); ++i) {
    const Feature& feature = kFeatures[i];
    const bool present = (cpuid(feature.leaf, feature.where) >> feature.bit) & 1;
    if (present && (state & feature.state) == feature.state) bits |= uint64_t{1} << i;
  }
  return bits;
}

// A name stands for its base plus further sets.
struct Architecture {
  std::string_view name, base, features;
};

constexpr Architecture kArchitectures[] = {
    {"x86-64", "", ""},
    {"x86-64-v2", "x86-64", "sse3 ssse3 sse4.1 sse4.2 popcnt cx16 sahf"},
    {"x86-64-v3", "x86-64-v2", "avx avx2 bmi bmi2 f16c fma lzcnt movbe"},
    {"x86-64-v4", "x86-64-v3", "avx512f avx512bw avx512cd avx512dq avx512vl"},
    // Intel
    {"nocona", "x86-64", "sse3 cx16"},
    {"core2", "nocona", "ssse3 sahf"},
    {"penryn", "core2", "sse4.1"},
    {"nehalem", "x86-64-v2", ""},
    {"corei7", "nehalem", ""},
    {"westmere", "nehalem", ""},
    {"sandybridge", "westmere", "avx"},
    {"corei7-avx", "sandybridge", ""},
    {"ivybridge", "sandybridge", "f16c"},
    {"core-avx-i", "ivybridge", ""},
    {"haswell", "x86-64-v3", ""},
    {"core-avx2", "haswell", ""},
    {"broadwell", "haswell", ""},
    {"skylake", "broadwell", ""},
    {"skylake-avx512", "x86-64-v4", ""},
    {"skx", "skylake-avx512", ""},
    {"cascadelake", "skylake-avx512", "avx512vnni"},
    {"cooperlake", "cascadelake", "avx512bf16"},
    {"cannonlake", "skylake-avx512", "avx512vbmi avx512ifma"},
    {"icelake-client", "cannonlake", "avx512vbmi2 avx512vnni avx512bitalg avx512vpopcntdq gfni"},
    {"icelake-server", "icelake-client", ""},
    {"rocketlake", "icelake-client", ""},
    {"tigerlake", "icelake-client", ""},
    {"sapphirerapids", "icelake-server", "avxvnni avx512fp16 avx512bf16 amx-tile amx-bf16 amx-int8"},
    {"emeraldrapids", "sapphirerapids", ""},
    {"graniterapids", "sapphirerapids", "amx-fp16"},
    {"graniterapids-d", "graniterapids", ""},
    {"alderlake", "skylake", "avxvnni gfni"},
    {"raptorlake", "alderlake", ""},
    {"meteorlake", "alderlake", ""},
    {"gracemont", "alderlake", ""},
    {"sierraforest", "alderlake", "avxifma avxvnniint8 avxneconvert"},
    {"grandridge", "sierraforest", ""},
    {"arrowlake", "sierraforest", ""},
    {"arrowlake-s", "arrowlake", ""},
    {"lunarlake", "arrowlake-s", ""},
    {"silvermont", "nehalem", "movbe"},
    {"slm", "silvermont", ""},
    {"goldmont", "silvermont", ""},
    {"goldmont-plus", "goldmont", ""},
    {"tremont", "goldmont-plus", "gfni"},
    // AMD
    {"k8", "x86-64", ""},
    {"opteron", "k8", ""},
    {"athlon64", "k8", ""},
    {"amdfam10", "k8", "sse3 sse4a cx16 popcnt lzcnt sahf"},
    {"barcelona", "amdfam10", ""},
    {"btver1", "amdfam10", "ssse3"},
    {"btver2", "x86-64-v2", "avx f16c bmi lzcnt movbe sse4a"},
    {"bdver1", "x86-64-v2", "avx fma4 xop lzcnt sse4a"},
    {"bdver2", "bdver1", "bmi tbm f16c fma"},
    {"bdver3", "bdver2", ""},
    {"bdver4", "bdver3", "avx2 bmi2 movbe"},
    {"znver1", "x86-64-v3", "sse4a"},
    {"znver2", "znver1", ""},
    {"znver3", "znver2", ""},
    {"znver4", "znver3",
     "avx512f avx512bw avx512cd avx512dq avx512vl avx512ifma avx512vbmi avx512vbmi2 avx512vnni avx512bitalg "
     "avx512vpopcntdq avx512bf16 gfni"},
    {"znver5", "znver4", "avxvnni"},
};

constexpr Architecture kTorchIsas[] = {
    {"INVALID_VEC_ISA", "", ""},  // torch records this if it found nothing to vectorise for
    {"AVX2", "", "avx2 fma f16c"},     {"AVX512", "", "avx512f avx512dq avx512vl avx512bw fma"},
    {"AVX512_VNNI", "", "avx512vnni"}, {"AMX_TILE", "", "amx-tile amx-bf16 amx-int8"},
};

// Calls `use` for each word until it returns false.
template <class F>
bool for_each_word(std::string_view text, F&& use) {
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) return true;
    const std::string_view word = text.substr(0, text.find(' '));
    if (!use(word)) return false;
    text.remove_prefix(word.size());
  }
}

// 0 if the name is unknown.
uint64_t bit_of(std::string_view name) {
  for (size_t i = 0; i < std::size(kFeatures); ++i)
    if (kFeatures[i].name == name) return uint64_t{1} << i;
  return 0;
}

template <size_t N>
const Architecture* find(const Architecture (&table)[N], std::string_view name) {
  for (const Architecture& entry : table)
    if (entry.name == name) return &entry;
  return nullptr;
}

}  // namespace

const CpuFeatures& CpuFeatures::host() {
  static const CpuFeatures features(read_host());
  return features;
}

CpuFeatures CpuFeatures::of(std::string_view names) {
  for_each_word(names, [](std::string_view word) {
    SCONCE_CHECK(bit_of(word) != 0, kInvalidArgument, "unknown CPU feature: ", word);
    return true;
  });
  return known_of(names);
}

CpuFeatures CpuFeatures::known_of(std::string_view names) {
  CpuFeatures result;
  for_each_word(names, [&](std::string_view word) {
    result.bits_ |= bit_of(word);
    return true;
  });
  return result;
}

std::string CpuFeatures::names() const {
  std::string result;
  for (size_t i = 0; i < std::size(kFeatures); ++i)
    if ((bits_ >> i) & 1) result += (result.empty() ? "" : ", ") + std::string(kFeatures[i].name);
  return result;
}

std::optional<CpuFeatures> features_of_march(std::string_view march) {
  const Architecture* entry = find(kArchitectures, march);
  if (!entry) return std::nullopt;
  CpuFeatures result;
  for (; entry; entry = find(kArchitectures, entry->base)) result = result | CpuFeatures::of(entry->features);
  return result;
}

std::optional<CpuFeatures> features_of_isa(std::string_view isa) {
  CpuFeatures result;
  const bool known = for_each_word(isa, [&](std::string_view word) {
    const Architecture* entry = find(kTorchIsas, word);
    if (entry) result = result | CpuFeatures::of(entry->features);
    return entry != nullptr;
  });
  return known ? std::optional(result) : std::nullopt;
}

bool enable_amx() noexcept {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace sconce::loader
