// What torch generates for a kernel of several loops: a function that only enters a parallel region, whose body has a
// barrier after each loop and checks that may fail. Compiled with SAMPLE_TOGETHER, the calling function sees that the
// kernel throws nothing, as in packages of torch 2.6 and 2.7; without, it is in another file.
#include "sample_regions.h"

#include <omp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#define SAMPLE_EXPORT extern "C" [[gnu::visibility("default")]]

extern "C" void aoti_torch_check(bool condition, const char* function, const char* file, uint32_t line,
                                 const char* message);

namespace {

volatile int zero = 0, sink = 0;
int* volatile null = nullptr;

// A page that nobody may touch. An address that is nowhere may be in a sanitizer's shadow memory.
int* forbidden() { return static_cast<int*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)); }

// A page of a file that ends before it.
int* unreadable() {
  const int file = memfd_create("sample", 0);
  void* const page = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  return static_cast<int*>(page);
}

[[gnu::noinline]] int recurse(volatile int* caller) {
  volatile int own[8];
  own[0] = *caller + 1;
  return own[0] < 0 ? 0 : recurse(own) + own[0];
}

// Touches each page, as functions do that a compiler has given probes: without, it might pass over the stack's end.
[[gnu::noinline]] void fill_array() {
  constexpr int kPage = 4096, kSize = 64 << 20;
  volatile char array[kSize];
  for (int i = kSize - 1; i >= 0; i -= kPage) array[i] = 1;
  sink = array[0];
}

[[gnu::noinline]] void raise(SampleFault kind) {
  static int *const beyond = unreadable(), *const wild = forbidden();
  switch (kind) {
    case SampleFault::kDivision:
      sink = 7 / zero;
      break;
    case SampleFault::kNull:
      *null = 1;
      break;
    case SampleFault::kWild:
      sink = *static_cast<volatile int*>(wild);
      break;
    case SampleFault::kIllegal:
      __builtin_trap();
    case SampleFault::kUnreadable:
      sink = *static_cast<volatile int*>(beyond);
      break;
    case SampleFault::kRecursion:
      sink = recurse(&zero);
      break;
    case SampleFault::kArray:
      fill_array();
      break;
    case SampleFault::kCheck:
      break;
  }
}

void check(const SampleWork& work, int place) {
  const bool fails = work.failure.place == place && (work.failure.threads >> omp_get_thread_num() & 1U);
  if (fails) raise(work.failure.kind);
  aoti_torch_check(!fails, "kernel", "kernel.cpp", static_cast<uint32_t>(place), "index out of bounds");
}

}  // namespace

SAMPLE_EXPORT void sample_kernel(const SampleWork& work) {
#pragma omp parallel num_threads(work.threads)
  {
    check(work, 0);
#pragma omp for
    for (int i = 0; i < work.count; ++i) work.out[i] = static_cast<float>(i);
    check(work, 1);
#pragma omp for
    for (int i = 0; i < work.count; ++i) work.out[work.count - 1 - i] *= 3;
    check(work, 2);
#pragma omp single
    {
      for (int i = 0; i < work.count; ++i) work.out[i] += 1;
    }
    check(work, 3);
  }
}

// Without a region: all is done by the calling thread.
SAMPLE_EXPORT void sample_serial_kernel(const SampleWork& work) {
  check(work, 0);
  for (int i = 0; i < work.count; ++i) work.out[i] = static_cast<float>(3 * i + 1);
}

// As a product of matrices whose inner dimension is divided: each thread has an array of its own, and gives one to all.
SAMPLE_EXPORT void sample_scratch_kernel(const SampleWork& work) {
  const auto shared = std::make_unique<std::unique_ptr<float[]>[]>(static_cast<size_t>(work.threads));
#pragma omp parallel num_threads(work.threads)
  {
    const auto thread = static_cast<size_t>(omp_get_thread_num()),
               next = (thread + 1) % static_cast<size_t>(work.threads);
    const auto own = std::make_unique<float[]>(work.scratch);
    shared[thread] = std::make_unique<float[]>(work.scratch);
    own[0] = shared[thread][0] = 1;
    check(work, 0);
#pragma omp barrier
    for (size_t i = 0; i < work.scratch; ++i) shared[next][i] += own[i];
    check(work, 1);
#pragma omp barrier
    check(work, 2);
    sink = static_cast<int>(shared[thread][0] + own[0]);
    check(work, 3);
  }
  for (int i = 0; i < work.count; ++i) work.out[i] = static_cast<float>(3 * i + 1);
}
SAMPLE_EXPORT void sample_serial_scratch_kernel(const SampleWork& work) {
  const auto own = std::make_unique<float[]>(work.scratch);
  own[work.scratch - 1] = 1;
  check(work, 0);
  for (int i = 0; i < work.count; ++i) work.out[i] = static_cast<float>(3 * i + 1);
  sink = static_cast<int>(own[work.scratch - 1]);
}
// As a template of attention.
SAMPLE_EXPORT void sample_vector_kernel(const SampleWork& work) {
#pragma omp parallel num_threads(work.threads)
  {
    std::vector<float> own(work.scratch);
    own.back() = 1;
    check(work, 0);
#pragma omp barrier
    sink = static_cast<int>(own.back());
  }
  for (int i = 0; i < work.count; ++i) work.out[i] = static_cast<float>(3 * i + 1);
}

// As at::parallel_for: the body catches what its function throws, and the caller throws it again.
SAMPLE_EXPORT void sample_catching_kernel(const SampleWork& work) {
  int caught = 0;
#pragma omp parallel num_threads(work.threads) reduction(+ : caught)
  {
    try {
      check(work, 0);
    } catch (const std::exception&) {
      ++caught;
    }
  }
  if (caught > 0) throw std::runtime_error("the body caught " + std::to_string(caught));
}

// A region in each thread of a region. The inner one fails in each inner thread of the outer threads that fail.
SAMPLE_EXPORT void sample_nested_kernel(const SampleWork& work) {
#pragma omp parallel num_threads(work.threads)
  {
    SampleWork inner = work;
    inner.failure.threads = work.failure.threads >> omp_get_thread_num() & 1U ? ~0U : 0;
#pragma omp parallel num_threads(2)
    {
      check(inner, 0);
#pragma omp barrier
      check(inner, 1);
    }
#pragma omp barrier
  }
}

#ifdef SAMPLE_TOGETHER
#include "sample_caller.cpp"
#endif
