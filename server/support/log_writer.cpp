#include "server/support/log_writer.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "sconce/mutex.h"
#include "server/support/failure.h"

namespace sconce::server {
namespace {

// Returns false if the descriptor will never accept the text.
bool write_all(int descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t done = ::write(descriptor, text.data(), text.size());
    if (done >= 0) {
      text.remove_prefix(static_cast<size_t>(done));
    } else if (errno == EAGAIN) {
      pollfd one{descriptor, POLLOUT, 0};
      (void)::poll(&one, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

constexpr std::chrono::milliseconds kRedraw{200};
constexpr std::string_view kErase = "\r\x1b[K";

bool draw(int descriptor, const std::function<std::string()>& status) noexcept {
  std::string line;
  return succeeds([&] { line = status(); }) && !line.empty() && write_all(descriptor, line);
}

uint64_t lines_of(std::string_view text) noexcept {
  uint64_t lines = 0;
  for (const char c : text) lines += c == '\n';
  return lines;
}

}  // namespace

struct LogWriter::State {
  const int descriptor;
  const size_t room;
  const std::function<std::string(uint64_t)> notice;

  Mutex mutex;
  ConditionVariable wake, written;
  std::string waiting SCONCE_GUARDED_BY(mutex);
  std::shared_ptr<const std::function<std::string()>> status SCONCE_GUARDED_BY(mutex);  // null: no status
  bool status_changed SCONCE_GUARDED_BY(mutex) = false;
  bool writing SCONCE_GUARDED_BY(mutex) = false, stopping SCONCE_GUARDED_BY(mutex) = false;
  // told: number of lost lines that were reported
  uint64_t lost SCONCE_GUARDED_BY(mutex) = 0, told SCONCE_GUARDED_BY(mutex) = 0;

  void count_lost(uint64_t lines) noexcept SCONCE_REQUIRES(mutex) { lost += lines; }
  // Reports lost lines by a line in their place. Returns false if the queue has no room for it.
  bool tell() SCONCE_REQUIRES(mutex) {
    if (lost == told) return true;
    const std::string line = notice(lost - told);
    if (waiting.size() + line.size() > room) return false;
    waiting += line;
    told = lost;
    return true;
  }
};

LogWriter::LogWriter(int descriptor, size_t room, std::function<std::string(uint64_t)> notice)
    : state_(new State{descriptor, room, std::move(notice), {}, {}, {}, {}, {}}) {
  std::thread([state = state_] { run(state); }).detach();
}

LogWriter::~LogWriter() {
  const MutexLock lock(state_->mutex);
  state_->stopping = true;
  state_->wake.notify_one();
}

void LogWriter::put(std::string_view line) noexcept {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  const bool kept = succeeds([&] {
    state.mutex.assert_held();
    // A line longer than the queue is always lost. After a loss, lines are dropped until the loss is reported, so that
    // the report is at the right position.
    if (state.waiting.size() + line.size() > state.room || !state.tell() ||
        state.waiting.size() + line.size() > state.room) {
      return state.count_lost(1);
    }
    state.waiting += line;
  });
  if (!kept) state.count_lost(1);
  state.wake.notify_one();
}

void LogWriter::status(std::function<std::string()> line) noexcept {
  State& state = *state_;
  std::shared_ptr<const std::function<std::string()>> next;
  if (line && !succeeds([&] { next = std::make_shared<const std::function<std::string()>>(std::move(line)); })) return;
  const MutexLock lock(state.mutex);
  std::swap(state.status, next);
  state.status_changed = true;
  state.wake.notify_one();
}

void LogWriter::lose() noexcept {
  const MutexLock lock(state_->mutex);
  state_->count_lost(1);
  state_->wake.notify_one();
}

bool LogWriter::flush(std::chrono::milliseconds at_most) noexcept {
  State& state = *state_;
  const auto until = std::chrono::steady_clock::now() + at_most;
  const MutexLock lock(state.mutex);
  while (!state.waiting.empty() || state.writing || state.status_changed)
    if (state.written.wait_until(state.mutex, until) == std::cv_status::timeout)
      return state.waiting.empty() && !state.writing;
  return true;
}

uint64_t LogWriter::lost() const noexcept {
  const MutexLock lock(state_->mutex);
  return state_->lost;
}

void LogWriter::run(const std::shared_ptr<State>& kept) noexcept {
  State& state = *kept;
  std::string text;
  const auto tell = [&] {
    state.mutex.assert_held();
    state.tell();
  };
  bool drawn = false;  // a status is shown below the lines
  MutexLock lock(state.mutex);
  for (;;) {
    const auto redraw = std::chrono::steady_clock::now() + kRedraw;
    while (state.waiting.empty() && state.lost == state.told && !state.stopping && !state.status_changed) {
      if (!state.status) {
        state.wake.wait(state.mutex);
      } else if (state.wake.wait_until(state.mutex, redraw) == std::cv_status::timeout) {
        break;
      }
    }
    // If memory for the report is short, the next line reports the loss.
    if (!succeeds(tell) && state.waiting.empty()) {
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      lock.lock();
    }
    if (state.waiting.empty() && state.stopping) return;
    text.clear();
    text.swap(state.waiting);
    const std::shared_ptr<const std::function<std::string()>> status = state.status;
    state.status_changed = false;
    state.writing = true;
    lock.unlock();
    if (drawn) write_all(state.descriptor, kErase);
    const bool taken = write_all(state.descriptor, text);
    drawn = status && draw(state.descriptor, *status);
    lock.lock();
    state.writing = false;
    if (!taken) state.told = state.lost += lines_of(text);  // a report would be lost too
    if (state.waiting.empty()) state.written.notify_all();
  }
}

}  // namespace sconce::server
