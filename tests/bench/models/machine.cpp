// What the machine can do with THREADS threads: float multiply-adds from registers, and reading of memory that no cache
// holds. Answers each line on stdin with a JSON line, so that it takes turns with the programs it is compared with.
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr int kSums = 12;  // independent ones: as many as two units of five steps keep busy, and two more
constexpr int64_t kSteps = 2'000'000, kMemory = int64_t{256} << 20;
volatile int sink;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// clang-format off
// In assembly, because compilers keep such sums in memory. The registers hold zeros.
#define SCONCE_SUM(r, sum) "vfmadd231ps %%" r "12, %%" r "13, %%" r sum "\n"
#define SCONCE_STEP(r)                                                                                              \
  SCONCE_SUM(r, "0")                                                                                                \
  SCONCE_SUM(r, "1")                                                                                                \
  SCONCE_SUM(r, "2") SCONCE_SUM(r, "3") SCONCE_SUM(r, "4") SCONCE_SUM(r, "5") SCONCE_SUM(r, "6") SCONCE_SUM(r, "7") \
      SCONCE_SUM(r, "8") SCONCE_SUM(r, "9") SCONCE_SUM(r, "10") SCONCE_SUM(r, "11")
// clang-format on
#define SCONCE_CLOBBERED \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13"

void narrow() {
  asm volatile("vzeroall" ::: SCONCE_CLOBBERED, "xmm14", "xmm15");
  for (int64_t i = 0; i < kSteps; ++i) asm volatile(SCONCE_STEP("ymm")::: SCONCE_CLOBBERED);
  asm volatile("vzeroupper" ::: SCONCE_CLOBBERED, "xmm14", "xmm15");
}

void wide() {
  asm volatile("vzeroall" ::: SCONCE_CLOBBERED, "xmm14", "xmm15");
  for (int64_t i = 0; i < kSteps; ++i) asm volatile(SCONCE_STEP("zmm")::: SCONCE_CLOBBERED);
  asm volatile("vzeroupper" ::: SCONCE_CLOBBERED, "xmm14", "xmm15");
}

// Four streams with prefetching: as fast as this thread can read.
[[gnu::target("avx2")]] uint64_t read(const uint64_t* from, int64_t count) {
  typedef uint64_t V __attribute__((vector_size(32)));
  constexpr int64_t kStreams = 4, kAhead = 64;  // vectors
  V sums[2 * kStreams] = {};
  const auto* at = reinterpret_cast<const V*>(from);
  const int64_t stream = count / 4 / kStreams / 2 * 2;
  for (int64_t i = 0; i < stream; i += 2)
    for (int64_t s = 0; s < kStreams; ++s) {
      const V* line = at + s * stream + i;
      __builtin_prefetch(line + kAhead);
      sums[2 * s] += line[0];
      sums[2 * s + 1] += line[1];
    }
  uint64_t total = 0;
  for (const V& sum : sums)
    for (int j = 0; j < 4; ++j) total += sum[j];
  return total;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int threads = std::atoi(argv[1]);
  omp_set_num_threads(threads);
  const bool has_wide = __builtin_cpu_supports("avx512f");
  const int64_t words = kMemory / 8, share = words / threads;
  auto* const memory = static_cast<uint64_t*>(std::aligned_alloc(64, kMemory));
  if (!memory) return 1;
  std::fill(memory, memory + words, 1);
  for (int c; (c = std::getchar()) != EOF;) {
    if (c != '\n') continue;
    const double start = seconds();
#pragma omp parallel
    has_wide ? wide() : narrow();
    const double middle = seconds();
#pragma omp parallel
    if (read(memory + share * omp_get_thread_num(), share) == 42) sink = 1;
    const double end = seconds();
    const double flops = 2.0 * kSums * kSteps * (has_wide ? 16 : 8) * threads;
    std::printf("{\"gflops\": %.2f, \"gbytes\": %.2f, \"lanes\": %d}\n", flops / (middle - start) / 1e9,
                static_cast<double>(share * threads * 8) / (end - middle) / 1e9, has_wide ? 16 : 8);
    std::fflush(stdout);
  }
}
