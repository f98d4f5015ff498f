// A trial: a child process runs a model on inputs that nobody sent, before this process does. A crash or an endless
// loop of the model's code then ends the child and nothing else.
//
//   TrialProcess  --package, request-->  receive_trial()      in the child: `program trial`
//                 <--lines------------   report_trial()
//                 <--------------------   end_trial()
//
// The child is an exec of a program, never a fork of a process with threads. It gets the package's bytes as
// descriptors, maps them, and so shares the pages of weights with this process. What it reports is untrusted: bounded
// here, and checked by the reader of the lines.
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
  // What the child may take. The time gets 4 seconds more for each GiB of the package, which may have to be read.
  std::chrono::nanoseconds time = std::chrono::seconds(10);
  // Bytes of the child's own memory, mapped files not counted. 0: half of what this process may have.
  uint64_t memory = 0;
  // Whether the child gives way to other processes: false where this one has nothing to do but wait for it.
  bool gives_way = true;
};

inline constexpr const char* kTrialCommand = "trial";

struct TrialEnd {
  std::vector<std::string> lines;  // of the report, each without its line feed; those that came before a problem too
  // Why the child neither said that all is reported nor ended by itself with status 0: "ended by SIGABRT after 12 ms:
  // ..." with the last line that it wrote to its standard error. Empty: it did.
  std::string problem;
  bool stopped = false;  // the caller ended it
};

// One child. Used by one thread at a time. The kernel ends the child when the thread ends that started it.
class TrialProcess {
 public:
  // Starts a child that waits for its task, without limits until then. A child that is started ahead costs its task no
  // time. kIo if it cannot be started.
  explicit TrialProcess(std::filesystem::path program);
  // Starts the child and gives it its task.
  TrialProcess(const TrialSettings& settings, const Package& package, std::string_view request);
  TrialProcess(const TrialProcess&) = delete;
  ~TrialProcess();  // ends the child and its process group

  // Gives the child its task, once; the request is a text for it. Its time begins now. The settings' program is not
  // looked at. kOutOfMemory; kUnsupported if the package's bytes are in memory and larger than 64 MiB.
  void give(const TrialSettings& settings, const Package& package, std::string_view request);

  // After give(). Waits until the child has reported all or has ended, or ends it at a limit. A child that has reported
  // all may take a moment more to end: the destructor waits for that. stop: a descriptor that becomes readable when the
  // caller wants the wait to end at once; -1: none.
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
// kInvalidArgument if nobody sends one.
TrialTask receive_trial();
// Sends a line, without a line feed in it, at once.
void report_trial(std::string_view line);
// Says that all is reported, and ends the process with status 0 at once: its parent waits for no destructor.
[[noreturn]] void end_trial();

}  // namespace sconce
