#include "server/registry/remote/download.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "sconce/check.h"
#include "sconce/mutex.h"
#include "server/registry/remote/file_digest.h"
#include "server/registry/remote/range_journal.h"
#include "server/support/failure.h"
#include "server/support/files/descriptor.h"
#include "server/weights/store/durable_file.h"
#include "src/support/parse_number.h"
#include "src/support/sha256.h"

namespace sconce::server::registry {
namespace {

constexpr uint64_t kSegment = uint64_t{8} << 20;
// Sizes of reservations if the total size is unknown.
constexpr uint64_t kMinRoom = uint64_t{1} << 20, kMaxRoom = uint64_t{64} << 20;
constexpr int kMaxTries = 6;
constexpr int kMaxRestarts = 3;
constexpr size_t kDigestPiece = size_t{256} << 10;

bool is_strong(const std::string& etag) noexcept { return etag.size() > 2 && etag.starts_with('"'); }

// Makes the request conditional on a change of the file. A hub's validator is compared at the redirect instead
// (Transfer::Follow).
void add_condition(const std::string& known, std::vector<std::string>& fields) {
  if (known.starts_with('"') || known.starts_with("W/")) {
    fields.push_back("If-None-Match: " + known);
  } else if (known.find(' ') != std::string::npos) {
    fields.push_back("If-Modified-Since: " + known);
  }
}

std::string validator_of(const RemoteAnswer& answer) {
  if (!answer.linked.empty()) return answer.linked;
  const std::string etag = answer.field("etag");
  return etag.empty() ? answer.field("last-modified") : etag;
}

std::string range_field(uint64_t begin, uint64_t end) {
  return "Range: bytes=" + std::to_string(begin) + "-" + std::to_string(end - 1);
}

// One try to download a whole file.
class Download {
 public:
  enum class Outcome { kDone, kUnchanged, kChanged };

  Download(const RemoteRequest& request, const std::string& part, const std::string& what,
           const DownloadOptions& options)
      : original_(request), part_(part), what_(what), options_(options), journal_(part + ".journal") {
    file_ = Descriptor(::open(part.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    SCONCE_CHECK(file_.get() >= 0, kIo, "cannot write ", part, ": ", weights::system_reason());
  }
  ~Download() { end_threads(); }
  Download(const Download&) = delete;
  Download& operator=(const Download&) = delete;

  Outcome run(Downloaded& result);

 private:
  struct Span {
    uint64_t segment, begin, end;
  };

  Outcome in_ranges(Transfer& transfer, Downloaded& result);
  Outcome in_one_stream(Transfer& transfer, Downloaded& result);
  bool begin(const RemoteAnswer& answer, const Span& asked);
  void check_content(const RemoteAnswer& answer) const;
  void check_size(uint64_t bytes) const;
  void take_room(uint64_t bytes);
  void write(std::span<const std::byte> bytes, uint64_t at);
  Span span_of(uint64_t segment) const noexcept;
  std::optional<Span> next_segment();
  void work(Transfer& transfer, bool shows);
  // at: the end of the downloaded part of the segment. False: the remote file has changed.
  bool fetch(Transfer& transfer, const Span& span, uint64_t& at, bool shows);
  void finish(const Span& span);
  void digest_segments();
  void fail(std::exception_ptr problem);
  void start_threads();
  void end_threads() noexcept;
  void show() const {
    if (options_.progress) options_.progress(here_.load(), terms_.bytes);
  }
  TransferSettings transfer_settings() const {
    TransferSettings settings = options_.transfer;
    settings.stop = &stopping_;
    return settings;
  }
  bool is_cancelled() const { return options_.transfer.stop && options_.transfer.stop->load(); }

  const RemoteRequest original_;
  const std::string part_, what_;
  const DownloadOptions& options_;
  RangeJournal journal_;
  Descriptor file_;
  DownloadTerms terms_;
  std::string validator_;
  std::atomic<uint64_t> here_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> changed_{false};
  bool begun_ = false, streams_ = false;
  std::vector<std::thread> threads_;
  Sha256Digest digest_{};  // from digest_segments(), after its thread has ended

  Mutex mutex_;
  ConditionVariable wake_;
  RemoteRequest request_ SCONCE_GUARDED_BY(mutex_);  // the request after redirects
  std::vector<bool> taken_ SCONCE_GUARDED_BY(mutex_), finished_ SCONCE_GUARDED_BY(mutex_);
  uint64_t left_ SCONCE_GUARDED_BY(mutex_) = 0;  // unfinished segments
  std::exception_ptr problem_ SCONCE_GUARDED_BY(mutex_);
};

Download::Outcome Download::run(Downloaded& result) {
  Transfer transfer(options_.transfer);
  const Outcome outcome = in_ranges(transfer, result);
  return streams_ ? in_one_stream(transfer, result) : outcome;
}

void Download::check_content(const RemoteAnswer& answer) const {
  const std::string encoding = answer.field("content-encoding");
  SCONCE_CHECK(encoding.empty() || encoding == "identity", kUnavailable, what_, ": the server encoded it as ",
               encoding.substr(0, 20), ", which was not asked for");
}

void Download::check_size(uint64_t bytes) const {
  SCONCE_CHECK(bytes <= kMaxSegments * kSegment, kTooLarge, what_, " has ", bytes, " bytes, as its server says");
  SCONCE_CHECK(bytes <= options_.most_bytes, kTooLarge, what_, " has ", bytes, " bytes, and there may be ",
               options_.most_bytes, " at most");
}

// Handles the first bytes of the first answer. False: stop reading it.
bool Download::begin(const RemoteAnswer& answer, const Span& asked) {
  check_content(answer);
  const std::string etag = answer.field("etag");
  const auto range = answer.status == 206 ? http::parse_content_range(answer.field("content-range")) : std::nullopt;
  if (!range || (!is_strong(etag) && range->end - range->begin < range->total)) {
    streams_ = true;
    return false;
  }
  SCONCE_CHECK(range->begin == asked.begin && range->end == std::min(asked.end, range->total), kUnavailable, what_,
               ": the server answers with bytes ", range->begin, " to ", range->end, ", and was asked for ",
               asked.begin, " to ", asked.end);
  check_size(range->total);
  const DownloadTerms terms{etag, answer.linked, range->total, kSegment};
  if (terms_.bytes > 0 && terms_ != terms) {
    changed_ = true;
    return false;
  }
  const bool anew = terms_.bytes == 0;
  terms_ = terms;
  validator_ = validator_of(answer);
  if (anew) take_room(terms.bytes);
  journal_.open(terms, anew);
  {
    const MutexLock lock(mutex_);
    request_ = answer.request;
    finished_.resize(terms.segments());
    taken_ = finished_;
    left_ = static_cast<uint64_t>(std::count(finished_.begin(), finished_.end(), false));
    for (uint64_t i = 0; i < finished_.size(); ++i)
      if (finished_[i]) here_ += span_of(i).end - span_of(i).begin;
    if (taken_[asked.segment]) {
      begun_ = true;
    } else {
      taken_[asked.segment] = true;
    }
  }
  const bool wanted = !begun_;
  begun_ = true;
  start_threads();
  return wanted;
}

Download::Outcome Download::in_ranges(Transfer& transfer, Downloaded& result) {
  Span asked{0, 0, kSegment};
  if (std::optional<JournalState> left = journal_.read(); left && left->terms.segment == kSegment) {
    struct stat status {};
    if (::fstat(file_.get(), &status) == 0 && static_cast<uint64_t>(status.st_size) == left->terms.bytes) {
      terms_ = left->terms;
      const MutexLock lock(mutex_);
      finished_ = std::move(left->finished);
      const auto missing = std::find(finished_.begin(), finished_.end(), false);
      asked = span_of(missing == finished_.end() ? 0 : static_cast<uint64_t>(missing - finished_.begin()));
    }
  }
  uint64_t at = asked.begin;
  for (int tries = 1; !begun_; ++tries) {
    std::vector<std::string> fields = {range_field(asked.begin, asked.end)};
    add_condition(options_.known, fields);
    bool unchanged = false;
    const RemoteAnswer answer = transfer.get(
        original_, fields,
        [&](const RemoteAnswer& coming, std::span<const std::byte> bytes) {
          if (!begun_ && !begin(coming, asked)) return false;
          if (bytes.size() > std::min(asked.end, terms_.bytes) - at) return false;
          write(bytes, at);
          at += bytes.size();
          show();
          return !stopping_;
        },
        [&](const RemoteAnswer& coming) {
          const std::string linked = coming.field("x-linked-etag");
          unchanged = !options_.known.empty() && linked == '"' + options_.known + '"';
          return !unchanged;
        });
    if (unchanged || answer.status == 304) return Outcome::kUnchanged;
    if (changed_) return Outcome::kChanged;
    if (streams_) return Outcome::kChanged;
    if (begun_) break;
    // An empty file has no ranges, and a shortened file does not have this one.
    if (answer.status == 416 || (answer.has_content() && answer.field("content-length") == "0")) {
      streams_ = true;
      return Outcome::kChanged;
    }
    if (!answer.temporary || tries == kMaxTries) fail_for(answer, what_);
    back_off(tries, options_.transfer.stop);
  }
  const Span whole = span_of(asked.segment);
  fail(exception_of([&] {
    bool is_finished = false;
    {
      const MutexLock lock(mutex_);
      is_finished = finished_[asked.segment];
    }
    if (!is_finished && (at == whole.end || fetch(transfer, whole, at, true))) finish(whole);
    work(transfer, true);
  }));
  std::exception_ptr problem;
  {
    const MutexLock lock(mutex_);
    while (left_ > 0 && !problem_ && !changed_ && !is_cancelled()) {
      wake_.wait_until(mutex_, std::chrono::steady_clock::now() + std::chrono::milliseconds(100));
      show();
    }
    problem = problem_;
  }
  if (!problem && !changed_ && !is_cancelled()) {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    const MutexLock lock(mutex_);
    problem = problem_;
  }
  end_threads();
  if (changed_) return Outcome::kChanged;
  SCONCE_CHECK(!is_cancelled(), kCancelled, what_, ": cancelled");
  if (problem) std::rethrow_exception(problem);
  show();
  result.bytes = terms_.bytes;
  result.digest = digest_;
  result.validator = validator_;
  return Outcome::kDone;
}

Download::Outcome Download::in_one_stream(Transfer& transfer, Downloaded& result) {
  journal_.remove();
  for (int tries = 1;; ++tries) {
    uint64_t at = 0, total = 0, room = 0;
    SCONCE_CHECK(::ftruncate(file_.get(), 0) == 0, kIo, "cannot write ", part_, ": ", weights::system_reason());
    std::vector<std::string> fields;
    add_condition(options_.known, fields);
    const RemoteAnswer answer =
        transfer.get(original_, fields, [&](const RemoteAnswer& coming, std::span<const std::byte> bytes) {
          if (at == 0) {
            check_content(coming);
            total = parse_number<uint64_t>(coming.field("content-length")).value_or(0);
            check_size(total);
            if (total > 0) take_room(total);
          }
          check_size(at + bytes.size());
          if (total == 0 && options_.make_room && at + bytes.size() > room) {
            const uint64_t more = std::min(std::clamp(at, kMinRoom, kMaxRoom), options_.most_bytes - at);
            options_.make_room(more);
            room = at + more;
          }
          write(bytes, at);
          at += bytes.size();
          if (options_.progress) options_.progress(at, total);
          return true;
        });
    if (answer.status == 304) return Outcome::kUnchanged;
    if (answer.has_content() && answer.status == 200) {
      check_content(answer);
      SCONCE_CHECK(::ftruncate(file_.get(), static_cast<off_t>(at)) == 0, kIo, "cannot write ", part_, ": ",
                   weights::system_reason());
      result.bytes = at;
      result.digest = digest_of_file(file_.get(), part_);
      result.validator = validator_of(answer);
      return Outcome::kDone;
    }
    if (!answer.temporary || tries == kMaxTries) fail_for(answer, what_);
    back_off(tries, options_.transfer.stop);
  }
}

void Download::take_room(uint64_t bytes) {
  // Data of an earlier file count as used.
  SCONCE_CHECK(::ftruncate(file_.get(), 0) == 0, kIo, "cannot write ", part_, ": ", weights::system_reason());
  if (options_.make_room) options_.make_room(bytes);
  if (bytes == 0) return;
  int done = ::fallocate(file_.get(), 0, 0, static_cast<off_t>(bytes));
  if (done != 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) done = ::ftruncate(file_.get(), static_cast<off_t>(bytes));
  SCONCE_CHECK(done == 0, kIo, "no room for ", bytes, " bytes in ", part_, ": ", weights::system_reason());
}

void Download::write(std::span<const std::byte> bytes, uint64_t at) {
  if (options_.fetched) options_.fetched(bytes.size());
  here_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    SCONCE_CHECK(written > 0, kIo, "cannot write ", part_, ": ", weights::system_reason());
    bytes = bytes.subspan(static_cast<size_t>(written));
    at += static_cast<uint64_t>(written);
  }
}

Download::Span Download::span_of(uint64_t segment) const noexcept {
  const uint64_t begin = segment * kSegment;
  return {segment, begin, std::min(begin + kSegment, terms_.bytes)};
}

std::optional<Download::Span> Download::next_segment() {
  const MutexLock lock(mutex_);
  if (problem_ || stopping_ || changed_) return std::nullopt;
  const auto next = std::find(taken_.begin(), taken_.end(), false);
  if (next == taken_.end()) return std::nullopt;
  *next = true;
  return span_of(static_cast<uint64_t>(next - taken_.begin()));
}

void Download::work(Transfer& transfer, bool shows) {
  while (const std::optional<Span> span = next_segment()) {
    uint64_t at = span->begin;
    if (!fetch(transfer, *span, at, shows)) return;
    finish(*span);
  }
}

bool Download::fetch(Transfer& transfer, const Span& span, uint64_t& at, bool shows) {
  RemoteRequest request;
  {
    const MutexLock lock(mutex_);
    request = request_;
  }
  for (int tries = 1;;) {
    const uint64_t began = at;
    bool wrong = false;
    std::vector<std::string> fields = {range_field(at, span.end)};
    if (is_strong(terms_.etag)) fields.push_back("If-Match: " + terms_.etag);
    const RemoteAnswer answer =
        transfer.get(request, fields, [&](const RemoteAnswer& coming, std::span<const std::byte> bytes) {
          if (at == began) {
            const auto range = http::parse_content_range(coming.field("content-range"));
            if (coming.field("etag") != terms_.etag || (range && range->total != terms_.bytes)) changed_ = true;
            wrong = coming.status != 206 || !range || range->begin != began || range->end != span.end;
            if (changed_ || wrong) return false;
          }
          wrong = bytes.size() > span.end - at;
          if (wrong) return false;
          write(bytes, at);
          at += bytes.size();
          if (shows) show();
          return !changed_ && !stopping_;
        });
    if (answer.status == 412) changed_ = true;
    if (changed_) {
      wake_.notify_all();
      return false;
    }
    // The target of a redirect from the first address is used for the next segments, too.
    if (at > began && answer.request.url != request.url) {
      request = answer.request;
      const MutexLock lock(mutex_);
      request_ = request;
    }
    if (answer.has_content() && at == span.end) return true;
    // The target of a redirect may expire.
    const bool expired = answer.status == 401 || answer.status == 403 || answer.status == 404 || answer.status == 410;
    if (expired && request.url != original_.url) {
      request = original_;
      continue;
    }
    SCONCE_CHECK(!wrong || tries < kMaxTries, kUnavailable, what_, ": the server answers with other bytes than ", began,
                 " to ", span.end, ", which it was asked for");
    const bool again = wrong || answer.temporary || answer.has_content();
    if (at > began) tries = 1;
    if (!again || tries == kMaxTries) fail_for(answer, what_);
    back_off(tries++, &stopping_);
    SCONCE_CHECK(!stopping_, kCancelled, what_, ": cancelled");
  }
}

void Download::finish(const Span& span) {
  journal_.finish(span.segment);
  {
    const MutexLock lock(mutex_);
    finished_[span.segment] = true;
    --left_;
  }
  wake_.notify_all();
}

void Download::digest_segments() {
  Sha256 digest;
  std::vector<std::byte> piece(kDigestPiece);
  for (uint64_t segment = 0; segment < terms_.segments(); ++segment) {
    {
      const MutexLock lock(mutex_);
      while (!finished_[segment] && !stopping_ && !problem_) wake_.wait(mutex_);
      if (!finished_[segment]) return;
    }
    const Span span = span_of(segment);
    for (uint64_t at = span.begin; at < span.end;) {
      const size_t wanted = std::min<uint64_t>(piece.size(), span.end - at);
      const ssize_t count = ::pread(file_.get(), piece.data(), wanted, static_cast<off_t>(at));
      if (count < 0 && errno == EINTR) continue;
      SCONCE_CHECK(count > 0, kIo, "cannot read ", part_, ": ",
                   count < 0 ? weights::system_reason() : "it became shorter");
      digest.update(std::span(piece).first(static_cast<size_t>(count)));
      at += static_cast<uint64_t>(count);
    }
  }
  digest_ = digest.finish();
}

void Download::fail(std::exception_ptr problem) {
  if (!problem) return;
  {
    const MutexLock lock(mutex_);
    if (!problem_) problem_ = std::move(problem);
  }
  stopping_ = true;
  wake_.notify_all();
}

void Download::start_threads() {
  threads_.emplace_back([this] { fail(exception_of([this] { digest_segments(); })); });
  uint64_t left = 0;
  {
    const MutexLock lock(mutex_);
    left = left_;
  }
  const uint64_t more = std::min<uint64_t>(left, static_cast<uint64_t>(std::max(1, options_.connections)));
  for (uint64_t i = 1; i < more; ++i)
    threads_.emplace_back([this] {
      fail(exception_of([this] {
        Transfer transfer(transfer_settings());
        work(transfer, false);
      }));
    });
}

void Download::end_threads() noexcept {
  stopping_ = true;
  {
    const MutexLock lock(mutex_);  // the digest's thread has seen it, or waits
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace

Downloaded download(const RemoteRequest& request, const std::string& part, const std::string& what,
                    const DownloadOptions& options) {
  for (int restarts = 0; restarts <= kMaxRestarts; ++restarts) {
    Downloaded result;
    const Download::Outcome outcome = Download(request, part, what, options).run(result);
    if (outcome == Download::Outcome::kUnchanged) result.unchanged = true;
    if (outcome != Download::Outcome::kChanged) return result;
    RangeJournal(part + ".journal").remove();
  }
  SCONCE_FAIL(kUnavailable, what, " changes while it is downloaded");
}

}  // namespace sconce::server::registry
