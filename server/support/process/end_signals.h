// SIGTERM and SIGINT, from the first instruction on:
//
//   starting --a signal--> the process ends at once: nothing serves yet
//      |
//      | announce_first_signal(): the server serves
//      v
//   serving --a signal, or end_process_in_order()--> draining --a signal, or the time is over--> the process ends
//
// The handler itself does that, so that it needs no thread that runs: loads, downloads and destructors do not delay it.
// It also takes the place of the default action, which the kernel ignores for a container's first process.
#pragma once

#include <chrono>

namespace sconce::server {

// The state `starting`. Also unblocks the signals, which a parent may have blocked.
void end_on_signals() noexcept;
// The state `serving`. Returns a descriptor that becomes readable at the first signal; it stays open. The process ends
// with status 1 when `longest`, rounded up to seconds, has passed since that signal.
int announce_first_signal(std::chrono::milliseconds longest);
// As the first signal does; nothing after that. On any thread.
void end_process_in_order() noexcept;
// From now on nobody waits for the descriptor: any signal ends the process at once.
void end_at_next_signal() noexcept;

}  // namespace sconce::server
