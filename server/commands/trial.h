// `sconce trial`: the child process in which another one of this program tries a model. Not for people.
#pragma once

namespace sconce::server::commands {

// Receives a task, runs it and reports. Errors are thrown; what they say is told to the parent by main.
int run_trial_task();

}  // namespace sconce::server::commands
