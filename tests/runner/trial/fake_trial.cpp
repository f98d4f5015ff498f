// A child for tests of trials: does what the request says. JSON is the request of a load's warm-up run.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "sconce/model.h"
#include "sconce/trial/trial_process.h"

namespace {

using namespace sconce;

[[noreturn]] void wait_for_ever() {
  for (;;) ::pause();
}

// Every page of it, until there is no more.
void take_memory() {
  std::vector<std::vector<char>> pieces;
  for (;;) pieces.emplace_back(size_t{16} << 20, 'x');
}

int perform(const TrialTask& task) {
  const std::string& request = task.request;
  if (request == "say") {
    for (const ModelSpec& spec : task.package->models()) report_trial(spec.name);
    report_trial(task.package->path().native());
    for (size_t i = 0; i < task.package->members().size(); ++i) {
      const auto content = task.package->content(i);
      report_trial(task.package->members()[i].name + " " + std::to_string(content.size()));
    }
  } else if (request == "descriptors") {
    for (int fd = 0; fd < 1024; ++fd)
      if (::fcntl(fd, F_GETFD) >= 0) report_trial(std::to_string(fd));
  } else if (request == "nice") {
    report_trial(std::to_string(::getpriority(PRIO_PROCESS, 0)));
  } else if (request == "abort") {
    report_trial("before");
    throw std::runtime_error("told to end");  // nobody catches it
  } else if (request == "crash") {
    ::raise(SIGSEGV);
  } else if (request == "status") {
    std::cerr << "the last but one\nthe last words\n\n";
    return 3;
  } else if (request == "hang") {
    report_trial("before");
    wait_for_ever();
  } else if (request == "stubborn") {  // a grandchild has the ends of all pipes
    if (::fork() == 0) wait_for_ever();
    ::signal(SIGTERM, SIG_IGN);
    wait_for_ever();
  } else if (request == "flood") {
    for (const std::string line(1000, 'x');;) report_trial(line);
  } else if (request == "words") {
    for (int i = 0; i < 100000; ++i) std::printf("a line of output that nobody reads to the end\n");
    report_trial("after");
  } else if (request == "complete" || request == "complete and hang") {
    report_trial("a line that says end");
    if (request == "complete") end_trial();
    report_trial("end");
    wait_for_ever();
  } else if (request == "half an end") {
    report_trial("extend");
    [[maybe_unused]] const ssize_t n = ::write(3, "end", 3);
    return 3;
  } else if (request == "half") {
    report_trial("whole");
    [[maybe_unused]] const ssize_t n = ::write(3, "half", 4);
  } else if (request == "memory") {
    take_memory();
  } else if (request == "data limit") {
    rlimit limit{};
    ::getrlimit(RLIMIT_DATA, &limit);
    report_trial(R"({"rows":{"found":"differs","reason":")" + std::to_string(limit.rlim_cur) + "\"}}");
  } else if (request.starts_with("report ")) {
    report_trial(request.substr(7));
  } else if (request == "nonsense") {
    report_trial("\xff{[");
    report_trial(std::string(10000, '['));
    report_trial(R"({"warm_up":7})");
    report_trial(R"({"warm_up":{"inputs":"a lot"}})");
  } else if (request.starts_with("{")) {
    LoadOptions options;
    options.warm_up = false;
    const WarmUp run = Model::load(task.package, options)->warm_up();
    report_trial(R"({"warm_up":{"inputs":")" + std::to_string(run.inputs) + R"(","problem":")" + run.problem + "\"}}");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || std::strcmp(argv[1], kTrialCommand) != 0) return 2;
  const char* const instead = std::getenv("FAKE_TRIAL");
  TrialTask task = receive_trial();
  if (instead) task.request = instead;
  return perform(task);
}
