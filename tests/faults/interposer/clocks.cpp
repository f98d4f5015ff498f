// Makes clocks jump. Waits with a deadline get it converted to the kernel's time.
#include <pthread.h>
#include <sys/time.h>
#include <time.h>

#include "tests/faults/interposer/control.h"
#include "tests/faults/interposer/original.h"

namespace {

using sconce::faults::Control;

constexpr int64_t kSecond = 1'000'000'000;

int64_t ahead(clockid_t clock) noexcept {
  Control* const shared = sconce::faults::control();
  if (shared == nullptr) return 0;
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
      return shared->realtime;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
      return shared->monotonic;
    default:
      return 0;
  }
}

timespec moved(const timespec& time, int64_t by) noexcept {
  const int64_t part = time.tv_nsec + by % kSecond;
  const int64_t carry = part < 0 ? -1 : part / kSecond;
  return {time.tv_sec + by / kSecond + carry, part - carry * kSecond};
}

SCONCE_ORIGINAL(clock_gettime, int(clockid_t, timespec*))
SCONCE_ORIGINAL(pthread_cond_timedwait, int(pthread_cond_t*, pthread_mutex_t*, const timespec*))
SCONCE_ORIGINAL(pthread_cond_clockwait, int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*))

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = real_clock_gettime.find()(clock, time);
  if (const int64_t by = result == 0 ? ahead(clock) : 0) *time = moved(*time, by);
  return result;
}

time_t time(time_t* to) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (to != nullptr) *to = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  const timespec time = moved(*until, -ahead(CLOCK_REALTIME));
  return real_pthread_cond_timedwait.find()(condition, mutex, &time);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  const timespec time = moved(*until, -ahead(clock));
  return real_pthread_cond_clockwait.find()(condition, mutex, clock, &time);
}
}
