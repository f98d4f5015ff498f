#include "src/faults/parallel_region.h"

#include <omp.h>
#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <utility>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#include "sconce/error.h"
#include "src/faults/code_entry.h"
#include "src/faults/frames.h"
#include "src/faults/taken_memory.h"

// libgomp's.
extern "C" void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
extern "C" void GOMP_barrier();

namespace sconce::faults {
namespace {

enum class Progress : uint32_t { kInside, kFinished, kLeft };

// One thread of a team, written only by this thread. On a cache line of its own.
struct alignas(64) Member {
  std::atomic<uint32_t> barriers{0};  // announced
  std::atomic<Progress> progress{Progress::kInside};
};

struct Region {
  void (*body)(void*);
  void* data;
  Member* members;
  uintptr_t entered_from;
  const char* model;  // the model whose code it runs
  std::atomic<bool> broken{false}, claimed{false};
  std::exception_ptr* error;  // receives the first exception

  // For threads other than the first: see CodeThread.
  std::atomic<int64_t> taken{0};
  std::atomic<uintptr_t> left_at{0};
  TeamArrays* arrays;
};

// The region that the thread is in: its CodeThread's team. On the stack of enter().
struct Inside {
  Region* region;
  Member* self;
  unsigned team;
  uint32_t barriers;  // announced, and passed unless the thread is waiting at one
};

Inside* inside() noexcept { return static_cast<Inside*>(code_thread.team); }

// libgomp's barriers order the team's memory, but ThreadSanitizer does not see them.
void hand_over([[maybe_unused]] Region& region) noexcept {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(&region);
#endif
}
void take_over([[maybe_unused]] Region& region) noexcept {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(&region);
#endif
}

// The wait of a thread that leaves: see the header.
void await_others(const Inside& me) noexcept {
  me.self->progress.store(Progress::kLeft, std::memory_order_release);
  for (bool all_left = false; !all_left; sched_yield()) {
    all_left = true;
    for (unsigned i = 0; i < me.team; ++i) {
      const Member& other = me.region->members[i];
      if (other.barriers.load(std::memory_order_acquire) > me.barriers) return GOMP_barrier();
      const Progress progress = other.progress.load(std::memory_order_acquire);
      if (progress == Progress::kFinished) return;
      all_left = all_left && progress == Progress::kLeft;
    }
  }
}

void leave_region(Inside& me, std::exception_ptr error) noexcept {
  if (error && !me.region->claimed.exchange(true)) *me.region->error = std::move(error);
  me.region->broken.store(true, std::memory_order_release);
  await_others(me);
}

// Adds the thread's counts in the region to the run that entered it.
void hand_in(Region& region, CodeThread& thread, int64_t taken_before) noexcept {
  if (const int64_t taken = thread.taken - taken_before; taken != 0)
    region.taken.fetch_add(taken, std::memory_order_relaxed);
  thread.taken = taken_before;
  if (thread.left_at) region.left_at.store(std::exchange(thread.left_at, 0), std::memory_order_relaxed);
}

// Executed by each thread of the team.
void enter(void* shared) noexcept {
  Region& region = *static_cast<Region*>(shared);
  take_over(region);
  const int number = omp_get_thread_num();
  Inside me{&region, &region.members[number], static_cast<unsigned>(omp_get_num_threads()), 0};
  CodeThread& thread = code_thread;
  void* const outer = std::exchange(thread.team, &me);
  const int64_t taken_before = thread.taken;
  thread.model = region.model;
  if (!thread.ready) [[unlikely]]
    make_thread_ready();
  try {
    region.body(region.data);
    me.self->progress.store(Progress::kFinished, std::memory_order_release);
  } catch (const LeaveRegion&) {
    leave_region(me, nullptr);
  } catch (...) {
    leave_region(me, std::current_exception());
  }
  if (thread.arrays > 0) [[unlikely]]
    region.arrays->add(&me);
  thread.team = outer;
  if (number > 0) {
    thread.model = nullptr;
    hand_in(region, thread, taken_before);
  }
  hand_over(region);
}

// Room for the members of a team: on the stack for teams of usual sizes.
class Members {
 public:
  explicit Members(unsigned count) : count_(count) {
    if (count > kOnStack) members_ = static_cast<Member*>(::operator new(count * sizeof(Member), kLine));
    for (unsigned i = 0; i < count; ++i) new (&members_[i]) Member;
  }
  ~Members() {
    if (count_ > kOnStack) ::operator delete(members_, kLine);
  }
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;
  Member* get() noexcept { return members_; }

 private:
  static constexpr unsigned kOnStack = 16;
  static constexpr std::align_val_t kLine{alignof(Member)};
  unsigned count_;
  alignas(Member) std::byte stack_[kOnStack * sizeof(Member)];
  Member* members_ = reinterpret_cast<Member*>(stack_);
};

// Returns the region's exception instead of throwing it, so that abandoning its callers loses nothing.
std::exception_ptr run(void (*body)(void*), void* data, unsigned threads, unsigned flags, uintptr_t from,
                       TeamArrays& arrays) {
  std::exception_ptr error;
  Members members(threads ? threads : static_cast<unsigned>(omp_get_max_threads()));
  Region region{.body = body,
                .data = data,
                .members = members.get(),
                .entered_from = from,
                .model = code_thread.model,
                .error = &error,
                .arrays = &arrays};
  hand_over(region);
  GOMP_parallel(&enter, &region, threads, flags);
  take_over(region);
  code_thread.taken += region.taken.load(std::memory_order_relaxed);
  if (const uintptr_t left = region.left_at.load(std::memory_order_relaxed)) code_thread.left_at = left;
  return error;
}

// Waits for the team at its barrier. Returns whether to leave the region.
bool meet(Inside& me) noexcept {
  me.self->barriers.store(++me.barriers, std::memory_order_release);
  GOMP_barrier();
  return me.region->broken.load(std::memory_order_acquire);
}

}  // namespace

SCONCE_LEAVABLE void run_region(void (*body)(void*), void* data, unsigned threads, unsigned flags) {
  TeamArrays arrays;
  std::exception_ptr error =
      run(body, data, threads, flags, reinterpret_cast<uintptr_t>(__builtin_return_address(0)), arrays);
  if (error) [[unlikely]]
    leave(std::move(error), &arrays);
  arrays.forget();
}

uintptr_t region_entered_from() noexcept { return inside() ? inside()->region->entered_from : 0; }

SCONCE_LEAVABLE void region_barrier() {
  Inside* const me = inside();
  if (!me) {  // a team that other code made
    if (omp_get_num_threads() > 1) GOMP_barrier();
    return;
  }
  if (me->team > 1 && meet(*me)) [[unlikely]]
    leave(std::make_exception_ptr(LeaveRegion{}));
}

}  // namespace sconce::faults
