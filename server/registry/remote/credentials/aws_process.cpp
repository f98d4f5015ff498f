// Credentials that a program prints.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "sconce/check.h"
#include "server/registry/remote/credentials/aws_answers.h"
#include "server/registry/remote/credentials/aws_providers.h"
#include "server/support/files/descriptor.h"

extern char** environ;

namespace sconce::server::registry {
namespace {

constexpr size_t kMaxOutput = 64 << 10;

using Clock = std::chrono::steady_clock;

void check_time(Clock::time_point end) { SCONCE_CHECK(Clock::now() < end, kUnavailable, "it does not end in time"); }

// A program and its child processes. They are killed unless the program's end was awaited.
class Child {
 public:
  Child(const std::string& command, int output) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    std::array<std::string, 3> words = {"sh", "-c", command};
    std::array<char*, 4> arguments = {words[0].data(), words[1].data(), words[2].data(), nullptr};
    const int problem = ::posix_spawn(&process_, "/bin/sh", &actions, &attributes, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    SCONCE_CHECK(problem == 0, kUnavailable, "it cannot be started (error ", problem, ")");
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (waited_) return;
    ::kill(-process_, SIGKILL);
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  // The status, as from waitpid(). kUnavailable if the program does not end before `end`.
  int wait_until(Clock::time_point end) {
    for (int status = 0;;) {
      const pid_t ended = ::waitpid(process_, &status, WNOHANG);
      if (ended != 0 && !(ended < 0 && errno == EINTR)) {
        waited_ = true;
        return status;
      }
      check_time(end);
      ::poll(nullptr, 0, 10);
    }
  }

 private:
  pid_t process_ = 0;
  bool waited_ = false;
};

std::string output_of(int pipe, Clock::time_point end) {
  std::string text;
  for (std::array<char, 4096> piece;;) {
    check_time(end);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    pollfd ready{pipe, POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(left.count())) <= 0) continue;
    const ssize_t count = ::read(pipe, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(piece.data(), static_cast<size_t>(count));
    SCONCE_CHECK(text.size() <= kMaxOutput, kUnavailable, "it printed more than ", kMaxOutput, " bytes");
  }
}

}  // namespace

std::optional<IssuedCredentials> AwsProcess::fetch() {
  int ends[2];
  SCONCE_CHECK(::pipe2(ends, O_CLOEXEC) == 0, kUnavailable, "no pipe");
  const Descriptor reading(ends[0]);
  Descriptor writing(ends[1]);
  Child child(command_, writing.get());
  writing = Descriptor();
  const Clock::time_point end = Clock::now() + longest_;
  const std::string text = output_of(reading.get(), end);
  const int status = child.wait_until(end);
  SCONCE_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, kForbidden, "it ended with status ",
               WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  return parse_issued_json(text);
}

}  // namespace sconce::server::registry
