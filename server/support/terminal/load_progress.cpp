#include "server/support/terminal/load_progress.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>

#include "server/support/log.h"
#include "server/support/terminal/progress.h"

namespace sconce::server {
namespace {

// Smaller packages, in total, are loaded before a line could be read.
constexpr uint64_t kLarge = uint64_t{64} << 20;

// Bytes of memory that this process uses, as a measure of the bytes read or copied from a package.
uint64_t memory_in_use() noexcept {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/statm", "re"), &std::fclose);
  unsigned long all = 0, resident = 0;
  if (!file || std::fscanf(file.get(), "%lu %lu", &all, &resident) != 2) return 0;
  return uint64_t{resident} * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

uint64_t bytes_of(const std::vector<LoadProgress::Part>& parts) {
  uint64_t bytes = 0;
  for (const LoadProgress::Part& part : parts) bytes += part.bytes;
  return bytes;
}

}  // namespace

struct LoadProgress::State {
  const std::vector<Part> parts;
  const uint64_t total;
  const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  std::atomic<size_t> begun{0};              // number of started parts
  std::atomic<uint64_t> resident_before{0};  // when the last part started

  explicit State(std::vector<Part> all) : parts(std::move(all)), total(bytes_of(parts)) {}

  std::string line() const {
    const size_t count = begun.load();
    uint64_t done = 0;
    for (size_t i = 0; i + 1 < count; ++i) done += parts[i].bytes;
    const uint64_t resident = memory_in_use(), before = resident_before.load();
    done += std::min(parts[count - 1].bytes, resident > before ? resident - before : 0);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const std::string label = "load " + printable(parts[count - 1].name) + " (" + std::to_string(count) + " of " +
                              std::to_string(parts.size()) + ")";
    return progress_line(label, done, total, seconds, error_columns());
  }
};

LoadProgress::LoadProgress(std::vector<Part> parts)
    : state_(errors_are_drawn_on() && bytes_of(parts) >= kLarge ? std::make_shared<State>(std::move(parts)) : nullptr) {
}

LoadProgress::~LoadProgress() {
  if (state_) show_status({});
}

void LoadProgress::next() {
  if (!state_ || state_->begun >= state_->parts.size()) return;
  state_->resident_before = memory_in_use();
  ++state_->begun;
  show_status([state = state_] { return state->line(); });
}

}  // namespace sconce::server
