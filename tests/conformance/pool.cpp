#include "tests/conformance/pool.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace sconce::conformance {
namespace {

using Clock = std::chrono::steady_clock;

struct Running {
  size_t index = 0;
  pid_t process = -1;
  int answer = -1;  // read end of the pipe that brings the outcome
  int output = -1;  // what the process printed
  Clock::time_point started, deadline;
  std::string text;
  bool killed = false;
};

void write_all(int fd, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n <= 0 && errno != EINTR) return;
    if (n > 0) done += static_cast<size_t>(n);
  }
}

[[noreturn]] void be_child(const Case& c, const Manner& manner, int answer, int output) {
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  const Outcome outcome = run_case(c, manner);
  write_all(answer, std::string(1, static_cast<char>('0' + static_cast<int>(outcome.status))) + outcome.reason);
  ::_exit(0);
}

Running start(const Case& c, const Manner& manner, size_t index, std::chrono::seconds limit) {
  int ends[2];
  const int output = ::memfd_create("case-output", MFD_CLOEXEC);
  if (output < 0 || ::pipe(ends) != 0)
    throw std::runtime_error(std::string("cannot start a case: ") + std::strerror(errno));
  const pid_t process = ::fork();
  if (process < 0) throw std::runtime_error(std::string("cannot fork: ") + std::strerror(errno));
  if (process == 0) {
    ::close(ends[0]);
    be_child(c, manner, ends[1], output);
  }
  ::close(ends[1]);
  const auto now = Clock::now();
  return {index, process, ends[0], output, now, now + limit, "", false};
}

// The last lines that the process printed, on one line.
std::string last_words(int output) {
  constexpr off_t kLength = 400;
  const off_t size = ::lseek(output, 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - kLength);
  std::string text(static_cast<size_t>(size - from), '\0');
  if (::pread(output, text.data(), text.size(), from) < 0) text.clear();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.empty() ? "" : "; it printed: " + text;
}

Outcome finish(Running& running, std::chrono::seconds limit) {
  int status = 0;
  while (::waitpid(running.process, &status, 0) < 0 && errno == EINTR) {
  }
  Outcome outcome;
  const bool answered = WIFEXITED(status) && WEXITSTATUS(status) == 0 && !running.text.empty();
  if (answered) {
    outcome.status = static_cast<Outcome::Status>(running.text[0] - '0');
    outcome.reason = running.text.substr(1);
  } else {
    outcome.status = Outcome::Status::kFailed;
    if (running.killed)
      outcome.reason = "took longer than " + std::to_string(limit.count()) + " s";
    else if (WIFSIGNALED(status))
      outcome.reason = std::string("crashed: ") + ::strsignal(WTERMSIG(status));
    else
      outcome.reason = "the process ended with status " + std::to_string(WEXITSTATUS(status));
    outcome.reason += last_words(running.output);
  }
  outcome.seconds = std::chrono::duration<double>(Clock::now() - running.started).count();
  ::close(running.answer);
  ::close(running.output);
  return outcome;
}

// Reads what has come; false at the end.
bool read_answer(Running& running) {
  char buffer[4096];
  const ssize_t n = ::read(running.answer, buffer, sizeof buffer);
  if (n > 0) running.text.append(buffer, static_cast<size_t>(n));
  return n > 0 || (n < 0 && errno == EINTR);
}

}  // namespace

void run_in_processes(std::span<const Case> cases, const Manner& manner, int at_a_time, std::chrono::seconds limit,
                      const std::function<void(size_t, const Outcome&)>& done) {
  std::vector<Running> running;
  size_t next = 0;
  while (next < cases.size() || !running.empty()) {
    while (next < cases.size() && running.size() < static_cast<size_t>(at_a_time)) {
      running.push_back(start(cases[next], manner, next, limit));
      ++next;
    }
    std::vector<pollfd> waits;
    for (const Running& r : running) waits.push_back({r.answer, POLLIN, 0});
    ::poll(waits.data(), waits.size(), 500);
    for (size_t i = waits.size(); i-- > 0;) {
      if (Clock::now() > running[i].deadline && !running[i].killed) {
        running[i].killed = true;
        ::kill(running[i].process, SIGKILL);
      }
      if (waits[i].revents == 0 || read_answer(running[i])) continue;
      done(running[i].index, finish(running[i], limit));
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

}  // namespace sconce::conformance
