#include "package_format/files/file_lease.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <vector>

#include "package_format/files/local_file_system.h"
#include "sconce/mutex.h"

namespace sconce {
namespace {

// Only this thread blocks it and waits for it, regardless of the other threads' masks.
constexpr int kSignal = SIGIO;

class Leases {
 public:
  int take(int fd, std::shared_ptr<LeaseHolder> holder) {
    const MutexLock control(control_);
    {
      const MutexLock lock(holders_mutex_);
      holders_.reserve(holders_.size() + 1);
    }
    if (!running_)
      if (const int error = start()) return error;
    const f_owner_ex owner{F_OWNER_TID, thread_id_.load()};
    // Sets the owner first, because taking a lease without one makes the process the owner.
    int error = ::fcntl(fd, F_SETOWN_EX, &owner) != 0 || ::fcntl(fd, F_SETSIG, kSignal) != 0 ? errno : 0;
    if (error == 0) {
      const MutexLock lock(holders_mutex_);
      holders_.push_back(std::move(holder));
    }
    if (error == 0 && ::fcntl(fd, F_SETLEASE, F_RDLCK) != 0) {
      error = errno;
      const MutexLock lock(holders_mutex_);
      holders_.pop_back();
    }
    if (error != 0) stop_if_idle();
    return error;
  }

  void look() noexcept {
    const MutexLock control(control_);
    if (running_) pthread_kill(thread_, kSignal);
  }

  void forget(const LeaseHolder& holder) noexcept {
    const MutexLock control(control_);
    {
      const MutexLock lock(holders_mutex_);
      std::erase_if(holders_, [&](const auto& each) { return each.get() == &holder; });
    }
    stop_if_idle();
  }

 private:
  int start() noexcept SCONCE_REQUIRES(control_) {
    stopping_ = false;
    thread_id_ = 0;
    sigset_t all, before;
    sigfillset(&all);
    // The thread inherits the mask, so it handles none of the process's signals.
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const auto run = [](void* self) -> void* {
      static_cast<Leases*>(self)->run();
      return nullptr;
    };
    const int error = pthread_create(&thread_, nullptr, run, this);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (error != 0) return ENOMEM;
    thread_id_.wait(0);
    running_ = true;
    return 0;
  }

  void stop_if_idle() noexcept SCONCE_REQUIRES(control_) SCONCE_EXCLUDES(holders_mutex_) {
    {
      const MutexLock lock(holders_mutex_);
      if (!holders_.empty()) return;
    }
    if (!running_) return;
    stopping_ = true;
    pthread_kill(thread_, kSignal);
    pthread_join(thread_, nullptr);
    running_ = false;
  }

  void run() noexcept {
    pthread_setname_np(pthread_self(), "sconce-leases");
    thread_id_ = static_cast<pid_t>(::syscall(SYS_gettid));
    thread_id_.notify_all();
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, kSignal);
    while (!stopping_) {
      siginfo_t info;
      ::sigwaitinfo(&ours, &info);
      give_way();
    }
  }

  // Pending signals of one kind are merged, so check every lease. Allocates nothing.
  void give_way() noexcept {
    {
      const MutexLock lock(holders_mutex_);
      for (const auto& holder : holders_) holder->asked();
    }
    while (const std::shared_ptr<LeaseHolder> holder = next_asked()) holder->give_way();
  }

  std::shared_ptr<LeaseHolder> next_asked() noexcept {
    const MutexLock lock(holders_mutex_);
    const auto next = std::find_if(holders_.begin(), holders_.end(), [](const auto& each) { return each->asked(); });
    return next == holders_.end() ? nullptr : *next;
  }

  Mutex control_;        // held while the thread is started or stopped
  Mutex holders_mutex_;  // locked second
  std::vector<std::shared_ptr<LeaseHolder>> holders_ SCONCE_GUARDED_BY(holders_mutex_);
  pthread_t thread_ SCONCE_GUARDED_BY(control_){};
  bool running_ SCONCE_GUARDED_BY(control_) = false;
  std::atomic<bool> stopping_{false};
  std::atomic<pid_t> thread_id_{0};
};

Leases& leases() noexcept {
  static Leases& all = *new Leases;  // never destroyed: files may be closed after main ends
  return all;
}

}  // namespace

int take_lease(int fd, std::shared_ptr<LeaseHolder> holder) {
  return is_local(fd) ? leases().take(fd, std::move(holder)) : EINVAL;
}

bool is_open_for_writing(int fd) noexcept {
  // Takes a lease for a moment: the kernel grants none beside a writer. If a writer arrives in that moment, the kernel
  // sends a signal that is ignored by default, where SIGIO would end the process.
  const f_owner_ex owner{F_OWNER_TID, static_cast<pid_t>(::syscall(SYS_gettid))};
  if (!is_local(fd) || ::fcntl(fd, F_SETOWN_EX, &owner) != 0 || ::fcntl(fd, F_SETSIG, SIGURG) != 0) return false;
  if (::fcntl(fd, F_SETLEASE, F_RDLCK) != 0) return errno == EAGAIN;
  ::fcntl(fd, F_SETLEASE, F_UNLCK);
  return false;
}

void look_at_leases() noexcept { leases().look(); }

void forget_lease(const LeaseHolder& holder) noexcept { leases().forget(holder); }

}  // namespace sconce
