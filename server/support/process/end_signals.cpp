#include "server/support/process/end_signals.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "sconce/check.h"
#include "server/support/log.h"

namespace sconce::server {
namespace {

enum class EndPhase { kStarting, kServing, kDraining };

// State for the signal handler: lock-free, never destroyed.
std::atomic<EndPhase> end_phase{EndPhase::kStarting};
std::atomic<int> end_descriptor{-1};
std::atomic<unsigned> end_seconds{0};
static_assert(std::atomic<EndPhase>::is_always_lock_free && std::atomic<unsigned>::is_always_lock_free);

bool begin_end() noexcept {
  EndPhase expected = EndPhase::kServing;
  if (!end_phase.compare_exchange_strong(expected, EndPhase::kDraining)) return false;
  ::alarm(end_seconds.load());
  const uint64_t one = 1;
  (void)!::write(end_descriptor.load(), &one, sizeof one);
  return true;
}

void on_end_signal(int signal) {
  const int kept = errno;
  if (signal == SIGALRM) {
    log_from_signal("the server has not ended in drain_grace and drain_timeout: cut off");
    ::_exit(1);
  }
  const EndPhase before = end_phase.load();
  if (!begin_end()) {
    log_from_signal(before == EndPhase::kStarting ? "a signal ends the start" : "second signal: ending at once");
    ::_exit(128 + signal);
  }
  errno = kept;
}

}  // namespace

void end_on_signals() noexcept {
  struct sigaction action {};
  action.sa_handler = on_end_signal;
  action.sa_flags = SA_RESTART;
  sigfillset(&action.sa_mask);
  sigset_t ours;
  sigemptyset(&ours);
  for (const int signal : {SIGTERM, SIGINT, SIGALRM}) {
    sigaddset(&ours, signal);
    ::sigaction(signal, &action, nullptr);
  }
  ::pthread_sigmask(SIG_UNBLOCK, &ours, nullptr);
}

int announce_first_signal(std::chrono::milliseconds longest) {
  if (end_descriptor.load() < 0) {
    const int made = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    SCONCE_CHECK(made >= 0, kIo, "cannot watch for signals: ", std::strerror(errno));
    end_descriptor = made;
  }
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(longest).count();
  end_seconds = static_cast<unsigned>(std::clamp<int64_t>(seconds, 1, INT32_MAX));
  end_phase = EndPhase::kServing;
  return end_descriptor;
}

void end_process_in_order() noexcept { begin_end(); }

void end_at_next_signal() noexcept { end_phase = EndPhase::kDraining; }

}  // namespace sconce::server
