// Touches what a mutex guards in ways that are wrong: thread_safety.py expects clang to refuse each line that says so,
// and no other. Nothing builds this.
#include <chrono>

#include "sconce/mutex.h"

namespace sconce {

class Account {
 public:
  int read_without() const { return balance_; }  // wrong
  void write_without() { balance_ = 1; }         // wrong
  void write_after_unlock() {
    MutexLock lock(mutex_);
    balance_ = 1;
    lock.unlock();
    balance_ = 2;  // wrong
    lock.lock();
    balance_ = 3;
  }
  void call_without() { add(1); }                 // wrong
  void wait_without() { changed_.wait(mutex_); }  // wrong
  void predicate() {
    const MutexLock lock(mutex_);
    const auto rich = [this] { return balance_ > 0; };  // wrong
    while (!rich()) changed_.wait(mutex_);
  }
  void never_unlocked() {
    mutex_.lock();
    balance_ = 1;
  }  // wrong
  void locked_twice() {
    const MutexLock lock(mutex_);
    const MutexLock again(mutex_);  // wrong
  }
  void call_with() {
    const MutexLock lock(mutex_);
    notify_without();  // wrong
  }
  void other_mutex(Account& other) {
    const MutexLock lock(other.mutex_);
    balance_ = other.balance_;  // wrong
  }
  void try_without() {
    mutex_.try_lock();
    balance_ = 1;  // wrong
  }

  void as_it_should_be() {
    const MutexLock lock(mutex_);
    const auto rich = [this] {
      mutex_.assert_held();
      return balance_ > 0;
    };
    while (!rich()) changed_.wait(mutex_);
    while (balance_ > 0 && changed_.wait_for(mutex_, std::chrono::seconds(1)) == std::cv_status::no_timeout) add(-1);
  }
  void if_free() {
    if (!mutex_.try_lock()) return;
    const MutexLock lock(mutex_, std::adopt_lock);
    add(1);
  }

 private:
  void add(int amount) SCONCE_REQUIRES(mutex_) { balance_ += amount; }
  void notify_without() SCONCE_EXCLUDES(mutex_) { changed_.notify_all(); }

  mutable Mutex mutex_;
  ConditionVariable changed_;
  int balance_ SCONCE_GUARDED_BY(mutex_) = 0;
};

}  // namespace sconce
