// Runs cases in forked processes, some at a time: a case that crashes or hangs ends only its own process.
// Confined to the main thread of a process that has no other.
#pragma once

#include <chrono>
#include <functional>
#include <span>

#include "tests/conformance/run_case.h"

namespace sconce::conformance {

// Calls `done` with the index of each case as it ends. A case that takes longer than `limit` is killed and fails.
void run_in_processes(std::span<const Case> cases, const Manner& manner, int at_a_time, std::chrono::seconds limit,
                      const std::function<void(size_t, const Outcome&)>& done);

}  // namespace sconce::conformance
