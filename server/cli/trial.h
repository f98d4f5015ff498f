// `sconce trial`: the child process in which another process of this program tries a model. Not for users.
#pragma once

namespace sconce::server::cli {

// Receives a task, runs it, reports and exits. Errors are thrown; main passes their message to the parent.
[[noreturn]] void run_trial_task();

}  // namespace sconce::server::cli
