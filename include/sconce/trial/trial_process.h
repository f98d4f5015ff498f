// A trial: a child process runs a model on dummy inputs before this process does. A crash or an endless loop of the
// model's code then ends only the child.
//
//   TrialProcess  --package, request-->  receive_trial()      in the child: `program trial`
//                 <--lines------------   report_trial()
//                 <--------------------   end_trial()
//
// The child is an exec of a program, never a fork of a process with threads. It receives the package's bytes as
// descriptors and maps them, so it shares the pages of weights with this process. Its report is untrusted: the size is
// limited here, and the reader of the lines checks their content.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/package.h"

namespace sconce {

struct TrialSettings {
  // The program that runs as the child, with the one argument kTrialCommand: `sconce`. Empty: there are no trials.
  std::filesystem::path program;
  // Limits of the child. The time limit grows by 4 seconds for each GiB of the package, which may have to be read.
  std::chrono::nanoseconds time = std::chrono::seconds(10);
  // Bytes of the child's own memory, without mapped files. 0: half of this process's memory limit.
  uint64_t memory = 0;
  // Whether the child runs at lower priority: false if this process only waits for it.
  bool gives_way = true;
};

inline constexpr const char* kTrialCommand = "trial";

struct TrialEnd {
  std::vector<std::string> lines;  // of the report, each without its line feed; also those before a problem
  // Why the child neither reported the end nor exited with status 0: "ended by SIGABRT after 12 ms: ..." with the last
  // line of its standard error. Empty: it succeeded.
  std::string problem;
  bool stopped = false;  // the caller ended it
};

// One child. Used by one thread at a time. The kernel kills the child when the thread that started it ends.
class TrialProcess {
 public:
  // Starts a child that waits for its task; limits apply from the task on. A child started in advance saves the task
  // its start-up time. kIo if it cannot be started.
  explicit TrialProcess(std::filesystem::path program);
  // Starts the child and gives it its task.
  TrialProcess(const TrialSettings& settings, const Package& package, std::string_view request);
  TrialProcess(const TrialProcess&) = delete;
  ~TrialProcess();  // ends the child and its process group

  // Gives the child its task, once, with a request text. The time limit starts now. The settings' program is ignored.
  // kOutOfMemory; kUnsupported if the package's bytes are in memory and larger than 64 MiB.
  void give(const TrialSettings& settings, const Package& package, std::string_view request);

  // Call after give(). Waits until the child has reported the end or has exited, or kills it at a limit. After the
  // report, the child may need a moment to exit: the destructor waits for that. stop: a descriptor that becomes
  // readable when the caller wants to stop waiting; -1: none.
  TrialEnd wait(int stop = -1);

 private:
  struct Child;
  std::unique_ptr<Child> child_;
};

// The child's side.
struct TrialTask {
  std::shared_ptr<const Package> package;
  std::string request;
};
// Receives the task that TrialProcess sends on descriptor 3. From then on this process ends with its parent.
// kInvalidArgument if no task arrives.
TrialTask receive_trial();
// Sends a line, without a line feed in it, immediately.
void report_trial(std::string_view line);
// Reports the end and exits with status 0 at once, without destructors.
[[noreturn]] void end_trial();

}  // namespace sconce
