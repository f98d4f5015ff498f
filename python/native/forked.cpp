#include "python/native/forked.h"

#include <pthread.h>

#include <atomic>

#include "python/native/completions.h"

namespace sconce::python {
namespace {

std::atomic<uint64_t> forks{0};

}  // namespace

void watch_forks() {
  pthread_atfork(nullptr, nullptr, [] {
    forks.fetch_add(1, std::memory_order_relaxed);
    forget_completions();
  });
}

uint64_t forks_so_far() noexcept { return forks.load(std::memory_order_relaxed); }

}  // namespace sconce::python
