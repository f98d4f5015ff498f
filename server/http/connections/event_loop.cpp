#include "server/http/connections/event_loop.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <iterator>
#include <utility>

#include "sconce/check.h"

namespace sconce::server::http {
namespace {

// Rounded up, so that `time` has passed when the wait ends.
int milliseconds_until(EventLoop::Clock::time_point time, EventLoop::Clock::time_point now) noexcept {
  if (time == EventLoop::Clock::time_point::max()) return -1;
  if (time <= now) return 0;
  return static_cast<int>(std::min<int64_t>(std::chrono::ceil<std::chrono::milliseconds>(time - now).count(), INT_MAX));
}

}  // namespace

EventLoop::EventLoop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wakes_(::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)) {
  SCONCE_CHECK(epoll_.get() >= 0 && wakes_.get() >= 0, kUnavailable, "epoll: ", std::strerror(errno));
  add(EPOLL_CTL_ADD, wakes_.get(), EPOLLET, nullptr);
}

void EventLoop::add(int operation, int descriptor, uint32_t events, Watcher* watcher) {
  epoll_event event{events, {.ptr = watcher}};
  SCONCE_CHECK(::epoll_ctl(epoll_.get(), operation, descriptor, &event) == 0, kUnavailable,
               "epoll: ", std::strerror(errno));
}

void EventLoop::watch(int descriptor, Watcher& watcher) {
  add(EPOLL_CTL_ADD, descriptor, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, &watcher);
}

void EventLoop::forget(int descriptor) noexcept { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr); }

void EventLoop::watch_once(int descriptor, Watcher& watcher) {
  constexpr uint32_t kOnce = EPOLLIN | EPOLLONESHOT;
  epoll_event event{kOnce, {.ptr = &watcher}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event) == 0) return;
  add(EPOLL_CTL_ADD, descriptor, kOnce, &watcher);
}

std::span<const EventLoop::Event> EventLoop::wait(Clock::time_point time, Clock::time_point now) noexcept {
  epoll_event happened[kMaxEvents];
  int most = milliseconds_until(time, now);
  // A caller before this point is seen here; a caller after it sees that the thread sleeps.
  if (int awake = kAwake; most != 0 && !state_.compare_exchange_strong(awake, kAsleep)) most = 0;
  const int count = ::epoll_wait(epoll_.get(), happened, kMaxEvents, most);
  // Writes before wake() are visible after this.
  if (state_.load(std::memory_order_relaxed) != kAwake) state_.exchange(kAwake);
  size_t told = 0;
  for (int i = 0; i < count; ++i)
    if (happened[i].data.ptr != nullptr)
      events_[told++] = {static_cast<Watcher*>(happened[i].data.ptr), happened[i].events};
  return {events_.data(), told};
}

// The descriptor is always readable and edge-triggered: modifying its registration reports it once more. That allocates
// no memory, so it cannot fail, and the descriptor need not be read.
void EventLoop::wake() noexcept {
  if (state_.exchange(kCalled) != kAsleep) return;
  epoll_event event{EPOLLIN | EPOLLET, {.ptr = nullptr}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, wakes_.get(), &event);
}

void EventLoop::call(std::function<void()> work) {
  {
    const MutexLock lock(mutex_);
    work_.push_back(std::move(work));
  }
  has_work_.store(true, std::memory_order_release);
  wake();
}

void EventLoop::do_work() {
  if (begun_.empty()) {
    if (!has_work_.exchange(false, std::memory_order_acquire)) return;
    const MutexLock lock(mutex_);
    begun_.swap(work_);
    std::reverse(begun_.begin(), begun_.end());
  }
  while (!begun_.empty()) {
    const std::function<void()> work = std::move(begun_.back());
    begun_.pop_back();
    work();
  }
}

void EventLoop::drop_work() noexcept {
  std::vector<std::function<void()>> dropped;
  {
    const MutexLock lock(mutex_);
    dropped.swap(work_);
  }
  dropped.clear();  // without the mutex: a destructor may call this loop
  begun_.clear();
}

}  // namespace sconce::server::http
