// The host functions of at::parallel_for, which torch's headers compile into a model. Matches
// aten/src/ATen/ParallelOpenMP.cpp and c10/util/ParallelGuard.h, torch 2.15.
#include <omp.h>

#include "src/device/compiled_threads.h"

namespace at {
namespace {

thread_local int thread_number = 0;

}  // namespace

// Called once per thread that reaches an at::parallel_for.
void init_num_threads() { omp_set_num_threads(sconce::template_threads()); }
int get_num_threads() { return sconce::template_threads(); }
int get_thread_num() { return thread_number; }
bool in_parallel_region() { return omp_in_parallel() != 0; }

namespace internal {

void lazy_init_num_threads() {}
void set_thread_num(int number) { thread_number = number; }

}  // namespace internal
}  // namespace at

namespace c10 {

class ParallelGuard {
 public:
  explicit ParallelGuard(bool state);
  ~ParallelGuard();
  static bool is_enabled();

 private:
  bool previous_;
};

namespace {

thread_local bool in_guarded_region = false;

}  // namespace

ParallelGuard::ParallelGuard(bool state) : previous_(in_guarded_region) { in_guarded_region = state; }
ParallelGuard::~ParallelGuard() { in_guarded_region = previous_; }
bool ParallelGuard::is_enabled() { return in_guarded_region; }

}  // namespace c10
