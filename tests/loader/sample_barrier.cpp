// Loops as a kernel of several loops has them: each thread adds its number to all elements of its part, waits for the
// others, and reads what its neighbour wrote.
#include <omp.h>

#define SAMPLE_EXPORT extern "C" [[gnu::visibility("default")]]

extern "C" void GOMP_barrier();
extern "C" void GOMP_task(void (*)(void*), void*, void (*)(void*, void*), long, long, bool, unsigned, void**, int,
                          void*);

// How many threads saw all of their neighbour's writes, in `rounds` rounds.
SAMPLE_EXPORT int sample_rounds(int threads, int rounds, int* written) {
  int seen = 0;
#pragma omp parallel num_threads(threads) reduction(+ : seen)
  {
    const int own = omp_get_thread_num(), count = omp_get_num_threads();
    for (int round = 1; round <= rounds; ++round) {
      written[16 * own] = round;
#pragma omp barrier
      seen += written[16 * ((own + 1) % count)] == round;
#pragma omp barrier
    }
  }
  return seen;
}

SAMPLE_EXPORT void* sample_barrier() { return reinterpret_cast<void*>(&GOMP_barrier); }

#ifdef SAMPLE_TASKS
SAMPLE_EXPORT void* sample_task() { return reinterpret_cast<void*>(&GOMP_task); }
#endif
