// Mutex, MutexLock, ConditionVariable: wrappers of the standard classes with annotations for clang's thread safety
// analysis.
//
// A field names the mutex that guards it; a function names the mutex that its caller must hold. `./dev lint` runs
// `clang++ -Wthread-safety`, which refuses code that breaks these rules. Other compilers ignore the annotations. The
// wrappers add no cost.
//
// The analysis looks at one function at a time. It does not check constructors and destructors, and it does not follow
// a lock into a lambda: a lambda that runs while its caller holds the lock calls Mutex::assert_held().
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define SCONCE_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define SCONCE_THREAD_SAFETY(attribute)
#endif

// On a field or a global variable: code reads and writes it only while it holds the mutex.
#define SCONCE_GUARDED_BY(mutex) SCONCE_THREAD_SAFETY(guarded_by(mutex))
// On a function: its caller must hold the mutex; its caller must not hold it.
#define SCONCE_REQUIRES(...) SCONCE_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define SCONCE_EXCLUDES(...) SCONCE_THREAD_SAFETY(locks_excluded(__VA_ARGS__))
// On functions that lock the mutex, may lock it, or unlock it.
#define SCONCE_ACQUIRE(...) SCONCE_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define SCONCE_TRY_ACQUIRE(...) SCONCE_THREAD_SAFETY(try_acquire_capability(__VA_ARGS__))
#define SCONCE_RELEASE(...) SCONCE_THREAD_SAFETY(release_capability(__VA_ARGS__))
// On a function that returns a reference to the mutex.
#define SCONCE_RETURN_CAPABILITY(mutex) SCONCE_THREAD_SAFETY(lock_returned(mutex))
// On a function that the analysis cannot follow. A comment there proves that the function is correct.
#define SCONCE_NO_THREAD_SAFETY_ANALYSIS SCONCE_THREAD_SAFETY(no_thread_safety_analysis)

namespace sconce {

class SCONCE_THREAD_SAFETY(capability("mutex")) Mutex {
 public:
  constexpr Mutex() noexcept = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() SCONCE_ACQUIRE() { mutex_.lock(); }
  bool try_lock() noexcept SCONCE_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() noexcept SCONCE_RELEASE() { mutex_.unlock(); }
  // Tells the analysis that the calling code holds the mutex. Does nothing at run time.
  void assert_held() const noexcept SCONCE_THREAD_SAFETY(assert_capability(this)) {}

 private:
  friend class ConditionVariable;
  std::mutex mutex_;
};

// Holds a mutex for a scope, or until unlock().
class SCONCE_THREAD_SAFETY(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) SCONCE_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  // Adopts a mutex that the caller has locked with Mutex::try_lock().
  MutexLock(Mutex& mutex, std::adopt_lock_t) noexcept SCONCE_REQUIRES(mutex) : mutex_(mutex) {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  ~MutexLock() SCONCE_RELEASE() {
    if (held_) mutex_.unlock();
  }

  void lock() SCONCE_ACQUIRE() {
    mutex_.lock();
    held_ = true;
  }
  void unlock() noexcept SCONCE_RELEASE() {
    held_ = false;
    mutex_.unlock();
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

// wait() takes no predicate, because the analysis does not follow a lock into it. Wait in a loop, under the mutex:
// `while (!ready_) wake_.wait(mutex_);`.
class ConditionVariable {
 public:
  ConditionVariable() = default;
  ConditionVariable(const ConditionVariable&) = delete;
  ConditionVariable& operator=(const ConditionVariable&) = delete;

  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }

  void wait(Mutex& mutex) SCONCE_REQUIRES(mutex) {
    Adopted adopted(mutex);
    condition_.wait(adopted.lock);
  }
  template <class Rep, class Period>
  std::cv_status wait_for(Mutex& mutex, const std::chrono::duration<Rep, Period>& at_most) SCONCE_REQUIRES(mutex) {
    Adopted adopted(mutex);
    return condition_.wait_for(adopted.lock, at_most);
  }
  // time: a copy, because it is read again after the wait, when the caller's may be gone.
  template <class Clock, class Duration>
  std::cv_status wait_until(Mutex& mutex, std::chrono::time_point<Clock, Duration> time) SCONCE_REQUIRES(mutex) {
    Adopted adopted(mutex);
    return condition_.wait_until(adopted.lock, time);
  }

 private:
  // Lends the locked mutex to std::condition_variable; the caller still owns the lock afterwards.
  struct Adopted {
    explicit Adopted(Mutex& mutex) noexcept : lock(mutex.mutex_, std::adopt_lock) {}
    ~Adopted() { lock.release(); }
    std::unique_lock<std::mutex> lock;
  };

  std::condition_variable condition_;
};

}  // namespace sconce
