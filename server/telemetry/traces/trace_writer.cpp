#include "server/telemetry/traces/trace_writer.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "sconce/check.h"
#include "server/support/failure.h"
#include "server/support/log.h"
#include "server/telemetry/otlp/otlp_json.h"
#include "server/telemetry/otlp/otlp_spans.h"
#include "server/telemetry/traces/chrome_trace.h"

namespace sconce::server::telemetry {
namespace {

// Maximum number of queued records.
constexpr size_t kMaxWaiting = 65536;
// Maximum bytes of the queued records' tensors.
constexpr size_t kMaxWaitingBytes = 64 * 1024 * 1024;
constexpr std::chrono::seconds kNoteAgain{10};

}  // namespace

TraceWriter::TraceWriter(const std::string& path, TraceFormat format, std::string resource)
    : path_(path), format_(format), resource_(std::move(resource)) {
  SCONCE_CHECK(file_.open(path_), kIo, "cannot write setting trace_file: ", path_, ": ", std::strerror(errno));
  thread_ = std::thread([this] { run(); });
}

TraceWriter::~TraceWriter() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void TraceWriter::number_files(uint64_t records_each) {
  const MutexLock lock(mutex_);
  records_each_ = records_each;
}

void TraceWriter::add(std::shared_ptr<const TraceRecord> record) {
  size_t bytes = 0;
  for (const codecs::TraceTensor& tensor : record->tensors) bytes += tensor.data.size();
  {
    const MutexLock lock(mutex_);
    if (waiting_.size() >= kMaxWaiting || (bytes > 0 && waiting_bytes_ + bytes > kMaxWaitingBytes)) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    waiting_.push_back(std::move(record));
    waiting_bytes_ += bytes;
    if (waiting_.size() > 1) return;  // the thread was already notified
  }
  wake_.notify_one();
}

void TraceWriter::run() noexcept {
  std::vector<std::shared_ptr<const TraceRecord>> records;
  for (bool last = false; !last;) {
    uint64_t records_each = 0;
    {
      const MutexLock lock(mutex_);
      while (!stopping_ && waiting_.empty()) wake_.wait(mutex_);
      last = stopping_;
      records_each = records_each_;
      records.swap(waiting_);
      waiting_bytes_ = 0;
    }
    for (const auto& record : records) {
      bool written = false;
      errno = ENOMEM;
      succeeds([&] { written = choose_file(records_each) && write(*record); });
      succeeds([&] { note(written); });
      if (written && next_file_ != 0 && in_file_ == records_each) end_file();
    }
    records.clear();
  }
  end_file();
}

bool TraceWriter::choose_file(uint64_t records_each) {
  const bool numbered = next_file_ != 0;
  if (file_.is_open() && (records_each == 0 || (numbered && in_file_ < records_each))) return true;
  end_file();
  if (!file_.open(fmt::format("{}.{}", path_, next_file_))) return false;
  ++next_file_;
  return true;
}

void TraceWriter::end_file() {
  // Tools also read the file without the closing bracket.
  if (file_.is_open() && format_ == TraceFormat::kChrome) (void)file_.write(in_file_ == 0 ? "[]\n" : "\n]\n");
  file_.close();
  in_file_ = 0;
}

bool TraceWriter::write(const TraceRecord& record) {
  text_.clear();
  if (format_ == TraceFormat::kChrome) {
    append_chrome(text_, record, epoch_, in_file_ == 0, row_);
  } else {
    text_.append(spans_request(resource_, otlp_spans(record, epoch_))).append("\n");
  }
  if (!file_.write(text_)) return false;
  ++in_file_;
  ++row_;
  return true;
}

// Logs that records are lost, and that no more are lost; limits the rate of these lines.
void TraceWriter::note(bool written) {
  const int why = errno;
  if (!written) failed_.fetch_add(1, std::memory_order_relaxed);
  if (written != failing_) return;
  const TraceRecord::Clock::time_point now = TraceRecord::Clock::now();
  if (!written && now < note_again_) return;
  failing_ = !written;
  if (failing_) {
    note_again_ = now + kNoteAgain;
    log_error("trace records cannot be written to {}: {}", path_, std::strerror(why));
  } else {
    const uint64_t failed = failed_.load(std::memory_order_relaxed);
    log_info("trace records are written again; {} were lost", failed - std::exchange(noted_, failed));
  }
}

}  // namespace sconce::server::telemetry
