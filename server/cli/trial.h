// `sconce trial`: the child process in which another one of this program tries a model. Not for people.
#pragma once

namespace sconce::server::commands {

// Receives a task, runs it, reports and ends the process. Errors are thrown; what they say is told to the parent by
// main.
[[noreturn]] void run_trial_task();

}  // namespace sconce::server::commands
