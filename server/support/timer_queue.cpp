#include "server/support/timer_queue.h"

#include <utility>

namespace sconce::server {

TimerQueue::Alarm::Alarm(TimerQueue& clock) : clock_(clock), now_(clock.now_) {
  const MutexLock lock(clock_.mutex_);
  if (clock_.heap_.capacity() <= clock_.alarms_) clock_.heap_.reserve(2 * clock_.alarms_ + 1);
  ++clock_.alarms_;
}

TimerQueue::Alarm::~Alarm() = default;

void TimerQueue::Alarm::set(Clock::time_point time) noexcept {
  const MutexLock lock(clock_.mutex_);
  if (time >= time_) return;
  time_ = time;
  if (place_ == kNowhere) {
    clock_.heap_.push_back(this);  // capacity was reserved
    place_ = clock_.heap_.size() - 1;
  }
  clock_.sift_up(*this, place_);
  if (place_ == 0) clock_.changed_.notify_one();
}

void TimerQueue::Alarm::stop() noexcept {
  const MutexLock lock(clock_.mutex_);
  clock_.remove(*this);
  while (clock_.ringing_ == this) clock_.rung_.wait(clock_.mutex_);
  clock_.remove(*this);  // it may have set itself again
  if (std::exchange(counted_, false)) --clock_.alarms_;
}

void TimerQueue::place(Alarm& alarm, size_t at) noexcept {
  heap_[at] = &alarm;
  place_of(alarm) = at;
}

void TimerQueue::sift_up(Alarm& alarm, size_t at) noexcept {
  for (size_t above = (at - 1) / 2; at > 0 && time_of(alarm) < time_of(*heap_[above]); above = (at - 1) / 2) {
    place(*heap_[above], at);
    at = above;
  }
  place(alarm, at);
}

void TimerQueue::sift_down(Alarm& alarm, size_t at) noexcept {
  for (size_t below = 2 * at + 1; below < heap_.size(); below = 2 * at + 1) {
    if (below + 1 < heap_.size() && time_of(*heap_[below + 1]) < time_of(*heap_[below])) ++below;
    if (time_of(alarm) <= time_of(*heap_[below])) break;
    place(*heap_[below], at);
    at = below;
  }
  place(alarm, at);
}

void TimerQueue::remove(Alarm& alarm) noexcept {
  time_of(alarm) = kNever;
  const size_t at = std::exchange(place_of(alarm), kNowhere);
  if (at == kNowhere) return;
  Alarm& last = *heap_.back();
  heap_.pop_back();
  if (&last == &alarm) return;
  sift_down(last, at);
  sift_up(last, place_of(last));
}

TimerQueue::~TimerQueue() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

TimerQueue::Alarm* TimerQueue::take_due() noexcept {
  if (heap_.empty() || now() < time_of(*heap_.front())) return nullptr;
  Alarm* const due = heap_.front();
  remove(*due);
  ringing_ = due;
  return due;
}

void TimerQueue::rang() noexcept {
  ringing_ = nullptr;
  rung_.notify_all();
}

void TimerQueue::poll() noexcept {
  MutexLock lock(mutex_);
  while (Alarm* const due = take_due()) {
    lock.unlock();
    due->ring();
    lock.lock();
    rang();
  }
}

void TimerQueue::loop() noexcept {
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (Alarm* const due = take_due()) {
      lock.unlock();
      due->ring();
      lock.lock();
      rang();
    } else if (heap_.empty()) {
      changed_.wait(mutex_);
    } else {
      changed_.wait_until(mutex_, time_of(*heap_.front()));
    }
  }
}

}  // namespace sconce::server
