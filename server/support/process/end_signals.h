// Handling of SIGTERM and SIGINT, from the first instruction on:
//
//   starting --a signal--> the process ends at once, because it does not serve yet
//      |
//      | announce_first_signal(): the server serves
//      v
//   serving --a signal, or end_process_in_order()--> draining --a signal, or the timeout--> the process ends
//
// The signal handler itself ends the process, so it does not depend on a running thread: loads, downloads and
// destructors do not delay it. It also replaces the default action, which the kernel ignores for a container's first
// process.
#pragma once

#include <chrono>

namespace sconce::server {

// Enters the state `starting`. Also unblocks the signals, which a parent process may have blocked.
void end_on_signals() noexcept;
// Enters the state `serving`. Returns a descriptor that becomes readable at the first signal; it stays open. The
// process ends with status 1 when `longest`, rounded up to seconds, has passed since that signal.
int announce_first_signal(std::chrono::milliseconds longest);
// Acts like the first signal; does nothing after it. Any thread.
void end_process_in_order() noexcept;
// From now on the descriptor is not used: any signal ends the process at once.
void end_at_next_signal() noexcept;

}  // namespace sconce::server
