#include "sconce/trial/trial_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <optional>
#include <system_error>
#include <thread>

#include "package_format/archive/archive_reader.h"
#include "package_format/files/host_memory.h"
#include "package_format/text/json_value.h"
#include "sconce/check.h"
#include "src/runner/trial/trial_channel.h"
#include "src/support/excerpt.h"

extern char** environ;

namespace sconce {
namespace {

using namespace runner;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kMaxCopied = uint64_t{64} << 20;  // of a package in memory
constexpr size_t kMaxReport = size_t{1} << 20;
constexpr size_t kMaxWords = 4096;  // of what the child writes to its standard output and error: the last ones
constexpr std::chrono::seconds kPerGigabyte{4};
constexpr int kNice = 10;
constexpr int kLookWithoutPidfd = 5;  // milliseconds between two looks, on kernels before 5.3

void check_started(int error, const std::filesystem::path& program) {
  SCONCE_CHECK(error == 0, kIo, "cannot start a trial by ", program.native(), ": ", std::strerror(error));
}

void limit(pid_t child, __rlimit_resource resource, uint64_t value) noexcept {
  const rlimit both{value, value};
  ::prlimit(child, resource, &both, nullptr);
}

[[maybe_unused]] uint64_t memory_of(const TrialSettings& settings) noexcept {
  return settings.memory > 0 ? settings.memory : std::max<uint64_t>(host_memory().limit / 2, uint64_t{1} << 30);
}

std::string signal_name(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return name ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

// The last line that has something to say. Sanitizers and the C++ runtime end with several; what src/faults reports of
// the end has no more than the signal, which is known.
std::string last_words(std::string_view words) {
  constexpr std::string_view kWhat = "what():", kReport = "sconce: SIG";
  if (const size_t at = words.rfind(kReport); at != std::string_view::npos) words = words.substr(0, at);
  if (const size_t at = words.rfind(kWhat); at != std::string_view::npos)
    words = words.substr(at + kWhat.size(), words.find('\n', at) - at - kWhat.size());
  while (!words.empty() && static_cast<unsigned char>(words.back()) <= ' ') words.remove_suffix(1);
  words = words.substr(words.rfind('\n') == std::string_view::npos ? 0 : words.rfind('\n') + 1);
  while (!words.empty() && words.front() == ' ') words.remove_prefix(1);
  return words.empty() ? std::string() : ": " + excerpt(words);
}

}  // namespace

struct TrialProcess::Child {
  class Fd {
   public:
    explicit Fd(int fd = -1) noexcept : fd_(fd) {}
    Fd(const Fd&) = delete;
    ~Fd() { close(); }
    int get() const noexcept { return fd_; }
    void close() noexcept {
      if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    }
    void set(int fd) noexcept {
      close();
      fd_ = fd;
    }

   private:
    int fd_;
  };

  // A part of what the child is to receive.
  struct Piece {
    std::string bytes;
    std::vector<int> descriptors;  // sent with the first byte
  };

  std::filesystem::path program;
  Clock::time_point start, end;  // of the task
  std::chrono::nanoseconds time{};
  pid_t process = -1;
  bool reaped = false;
  int status = 0;
  Fd channel, words_pipe, handle;  // handle: a pidfd
  std::vector<SharedFile> files;   // until they are sent
  std::vector<Piece> pieces;       // that are to be sent, the first one last
  std::string report, words;

  void spawn();
  void prepare(const TrialSettings& settings, const Package& package, std::string_view request);
  void begin(const TrialSettings& settings);
  void enqueue(const Package& package, std::string_view request);
  void send();
  bool read_report();
  bool reported_all() const noexcept;
  void read_words();
  bool ended() noexcept;
  void kill() noexcept;
  std::string why_ended() const;
  std::string after() const {
    return " after " +
           std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count()) + " ms";
  }
};

void TrialProcess::Child::spawn() {
  int sockets[2], pipes[2];
  SCONCE_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0, kIo,
               "cannot start a trial: no socket: ", std::strerror(errno));
  channel.set(sockets[0]);
  const Fd theirs(sockets[1]);
  SCONCE_CHECK(::pipe2(pipes, O_CLOEXEC) == 0, kIo, "cannot start a trial: no pipe: ", std::strerror(errno));
  words_pipe.set(pipes[0]);
  const Fd their_words(pipes[1]);
  ::fcntl(channel.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(words_pipe.get(), F_SETFL, O_NONBLOCK);

  // The child's 0 to 3, in an order in which none takes the place of a later one.
  const Fd above(::fcntl(theirs.get(), F_DUPFD_CLOEXEC, 16)),
      words_above(::fcntl(their_words.get(), F_DUPFD_CLOEXEC, 16));
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  check_started(posix_spawn_file_actions_init(&actions), program);
  posix_spawnattr_init(&attributes);
  struct Free {
    posix_spawn_file_actions_t* actions;
    posix_spawnattr_t* attributes;
    ~Free() {
      posix_spawn_file_actions_destroy(actions);
      posix_spawnattr_destroy(attributes);
    }
  } free{&actions, &attributes};
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, words_above.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, words_above.get(), 2);
  posix_spawn_file_actions_adddup2(&actions, above.get(), kTrialSocket);
  posix_spawn_file_actions_addclosefrom_np(&actions, kTrialSocket + 1);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string path = program.native(), command = kTrialCommand;
  char* const arguments[] = {path.data(), command.data(), nullptr};
  check_started(::posix_spawn(&process, path.c_str(), &actions, &attributes, arguments, environ), program);
  handle.set(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
}

void TrialProcess::Child::prepare(const TrialSettings& settings, const Package& package, std::string_view request) {
  start = Clock::now();
  enqueue(package, request);
  uint64_t bytes = 0;
  for (const SharedFile& file : files) bytes += file.bytes();
  time = settings.time +
         std::chrono::duration_cast<std::chrono::nanoseconds>(kPerGigabyte * (static_cast<double>(bytes) / (1 << 30)));
  end = start + time;
}

void TrialProcess::Child::begin(const TrialSettings& settings) {
  // Before the child gets anything to run: it waits for its task.
  limit(process, RLIMIT_CORE, 0);
  const auto seconds = static_cast<uint64_t>(std::ceil(std::chrono::duration<double>(time).count())) + 1;
  limit(process, RLIMIT_CPU, seconds * std::max(1U, std::thread::hardware_concurrency()));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their shadow memory is larger than any limit
  limit(process, RLIMIT_DATA, memory_of(settings));
#endif
  if (settings.gives_way) ::setpriority(PRIO_PROCESS, static_cast<id_t>(process), kNice);
  send();
}

void TrialProcess::Child::enqueue(const Package& package, std::string_view request) {
  files = package.archive().share(kMaxCopied);
  SCONCE_CHECK(files.size() <= kMaxTrialFiles, kUnsupported,
               "the package has too many files for a trial: ", files.size());
  SortedJson list = SortedJson::array();
  for (const SharedFile& file : files) list.push_back({{"path", file.path().native()}, {"bytes", file.bytes()}});
  const SortedJson document{{"name", package.path().native()}, {"files", std::move(list)}, {"request", request}};
  std::string text = document.dump(-1, ' ', true, SortedJson::error_handler_t::replace);
  TrialHead head;
  head.parent = static_cast<uint64_t>(::getpid());
  head.files = files.size();
  head.directory = package.archive().kind() == ArchiveReader::Kind::kDirectory ? 1 : 0;
  head.text = text.size();
  pieces.emplace_back().bytes.assign(reinterpret_cast<const char*>(&head), sizeof head);
  for (size_t i = 0; i < files.size(); i += kFilesPerMessage) {
    Piece& piece = pieces.emplace_back(Piece{"F", {}});
    for (size_t k = i; k < std::min(i + kFilesPerMessage, files.size()); ++k)
      piece.descriptors.push_back(files[k].descriptor());
  }
  pieces.push_back({std::move(text), {}});
  std::reverse(pieces.begin(), pieces.end());
}

// Sends what the socket takes now.
void TrialProcess::Child::send() {
  while (!pieces.empty()) {
    Piece& piece = pieces.back();
    iovec bytes{piece.bytes.data(), piece.bytes.size()};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kFilesPerMessage * sizeof(int))> control{};
    if (!piece.descriptors.empty()) {
      const size_t size = piece.descriptors.size() * sizeof(int);
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(size);
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(size);
      std::memcpy(CMSG_DATA(header), piece.descriptors.data(), size);
    }
    const ssize_t sent = ::sendmsg(channel.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == ETOOMANYREFS)) return;
    if (sent < 0) return pieces.clear();  // it has gone; the wait tells why
    piece.descriptors.clear();
    piece.bytes.erase(0, static_cast<size_t>(sent));
    if (piece.bytes.empty()) pieces.pop_back();
  }
  files.clear();
}

// Returns false at the end of the report, or when it has too much.
bool TrialProcess::Child::read_report() {
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t n = ::recv(channel.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) return false;
    report.append(buffer.data(), static_cast<size_t>(n));
    if (report.size() > kMaxReport) return false;
  }
}

bool TrialProcess::Child::reported_all() const noexcept {
  std::string_view text = report;
  if (!text.ends_with('\n')) return false;
  text.remove_suffix(1);
  return text == kTrialEnd || (text.ends_with(kTrialEnd) && text[text.size() - kTrialEnd.size() - 1] == '\n');
}

void TrialProcess::Child::read_words() {
  std::array<char, 4096> buffer;
  // A child that never stops to write is left for the next look.
  for (int i = 0; i < 64; ++i) {
    const ssize_t n = ::read(words_pipe.get(), buffer.data(), buffer.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (n <= 0) return words_pipe.close();
    words.append(buffer.data(), static_cast<size_t>(n));
    if (words.size() > kMaxWords) words.erase(0, words.size() - kMaxWords);
  }
}

bool TrialProcess::Child::ended() noexcept {
  if (reaped) return true;
  pid_t got = 0;
  do got = ::waitpid(process, &status, WNOHANG);
  while (got < 0 && errno == EINTR);
  // Where the host process ignores SIGCHLD, there is no status to wait for.
  if (got < 0) status = 0;
  reaped = got != 0;
  return reaped;
}

void TrialProcess::Child::kill() noexcept {
  if (process <= 0 || reaped) return;
  ::kill(-process, SIGKILL);
  ::kill(process, SIGKILL);
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  reaped = true;
}

std::string TrialProcess::Child::why_ended() const {
  if (WIFSIGNALED(status)) return "ended by " + signal_name(WTERMSIG(status)) + after() + last_words(words);
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
    return "ended with status " + std::to_string(WEXITSTATUS(status)) + after() + last_words(words);
  return {};
}

TrialProcess::TrialProcess(std::filesystem::path program) : child_(std::make_unique<Child>()) {
  child_->program = std::move(program);
  child_->spawn();
}

TrialProcess::TrialProcess(const TrialSettings& settings, const Package& package, std::string_view request)
    : child_(std::make_unique<Child>()) {
  child_->program = settings.program;
  child_->prepare(settings, package, request);
  child_->spawn();
  child_->begin(settings);
}

void TrialProcess::give(const TrialSettings& settings, const Package& package, std::string_view request) {
  child_->prepare(settings, package, request);
  child_->begin(settings);
}

TrialProcess::~TrialProcess() { child_->kill(); }

TrialEnd TrialProcess::wait(int stop) {
  Child& child = *child_;
  TrialEnd end;
  bool reports = true;
  while (!child.reported_all() && !child.ended()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(child.end - Clock::now()).count();
    if (left <= 0) {
      child.kill();
      child.read_words();
      end.problem = "was ended at its limit" + child.after() + last_words(child.words);
      break;
    }
    pollfd events[] = {
        {stop, POLLIN, 0},
        {child.handle.get(), POLLIN, 0},
        {reports ? child.channel.get() : -1, static_cast<short>(child.pieces.empty() ? POLLIN : POLLIN | POLLOUT), 0},
        {child.words_pipe.get(), POLLIN, 0}};
    const int64_t longest = child.handle.get() >= 0 ? 60'000 : kLookWithoutPidfd;
    ::poll(events, std::size(events), static_cast<int>(std::min<int64_t>(left, longest)));
    if (stop >= 0 && events[0].revents != 0) {
      child.kill();
      end.stopped = true;
      end.problem = "was stopped";
      break;
    }
    if (events[2].revents & POLLOUT) child.send();
    if (events[2].revents & (POLLIN | POLLHUP | POLLERR)) reports = child.read_report();
    if (child.report.size() > kMaxReport) {
      child.kill();
      end.problem = "was ended, because it reports without end";
      break;
    }
    if (events[3].revents != 0) child.read_words();
  }
  if (child.reported_all()) {
    ::kill(-child.process, SIGKILL);  // it has nothing more to do
  } else if (end.problem.empty()) {
    child.read_report();
    child.read_words();
    if (!child.reported_all()) end.problem = child.why_ended();
  }
  for (size_t at = 0, line = child.report.find('\n'); line != std::string::npos; line = child.report.find('\n', at)) {
    end.lines.push_back(child.report.substr(at, line - at));
    at = line + 1;
  }
  if (!end.lines.empty() && end.lines.back() == kTrialEnd) end.lines.pop_back();
  return end;
}

}  // namespace sconce
