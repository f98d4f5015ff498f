#include "server/telemetry/otlp/otlp_exporter.h"

#include <algorithm>
#include <random>
#include <utility>

#include "sconce/check.h"
#include "server/support/failure.h"
#include "server/support/log.h"
#include "server/telemetry/otlp/otlp_json.h"

namespace sconce::server::telemetry {
namespace {

// Limits of queued data; the batch that is being pushed is in addition.
constexpr size_t kMaxSpans = 4096, kMaxBytes = size_t{8} << 20;
// Limits of one push.
constexpr size_t kBatchSpans = 512, kBatchBytes = size_t{2} << 20;
// With delays of 1, 2, 4, 8, 16 and 30 seconds, a collector may be unreachable for one minute.
constexpr int kMaxSendTries = 7;
constexpr std::chrono::seconds kLastPushes{5}, kNoteEach{10};

size_t bytes_of(const TraceRecord& record) {
  // Bytes of a span as JSON, without texts of its client.
  constexpr size_t kSpan = 256;
  size_t bytes = kSpan + record.method_and_path.size() + record.request_id.size();
  for (const codecs::TraceTensor& tensor : record.tensors) bytes += kSpan + tensor.data.size() + tensor.name.size();
  return bytes;
}

double random_share() {
  static thread_local std::minstd_rand engine{std::random_device{}()};
  return std::uniform_real_distribution<double>(0, 1)(engine);
}

}  // namespace

std::unique_ptr<OtlpExporter> OtlpExporter::of(const ServerConfig& config) {
  return is_on(config) ? std::make_unique<OtlpExporter>(config) : nullptr;
}

OtlpExporter::OtlpExporter(const ServerConfig& config)
    : traces_(config.otlp_traces),
      with_metrics_(config.otlp_metrics),
      delay_(config.otlp_delay),
      interval_(config.otlp_interval),
      resource_(otlp_resource(config)),
      endpoint_(config) {
  SCONCE_CHECK(!with_metrics_ || interval_.count() > 0, kInvalidArgument, "setting otlp_interval: must be above 0");
}

void OtlpExporter::start(std::function<void(MetricSink&)> metrics) {
  metrics_ = std::move(metrics);
  metrics_due_ = with_metrics_ ? Clock::now() + interval_ : Clock::time_point::max();
  thread_ = std::thread([this] { run(); });
}

void OtlpExporter::stop() noexcept {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    end_ = Clock::now() + kLastPushes;
  }
  wake_.notify_one();
  thread_.join();
}

void OtlpExporter::add(std::shared_ptr<const TraceRecord> record) {
  if (!traces_) return;
  Item item;
  item.spans = count_spans(*record);
  item.bytes = bytes_of(*record);
  item.record = std::move(record);
  enqueue(std::move(item));
}

void OtlpExporter::add(const UpdateRecord& record) {
  if (!traces_ || (record.parent && !record.parent->sampled)) return;
  Item item;
  item.spans = count_spans(record);
  item.text = otlp_spans(record, epoch_);
  item.bytes = item.text.size();
  enqueue(std::move(item));
}

void OtlpExporter::enqueue(Item item) {
  bool tell = false;
  {
    const MutexLock lock(mutex_);
    if (waiting_spans_ + item.spans > kMaxSpans || waiting_bytes_ + item.bytes > kMaxBytes)
      return counters_.count(OtlpCounters::kDropped, item.spans);
    const bool was_full = waiting_spans_ >= kBatchSpans;
    waiting_.push_back(std::move(item));
    waiting_spans_ += waiting_.back().spans;
    waiting_bytes_ += waiting_.back().bytes;
    if (waiting_.size() == 1) first_ = Clock::now();
    tell = waiting_.size() == 1 || (!was_full && waiting_spans_ >= kBatchSpans);
  }
  if (tell) wake_.notify_one();
}

// When the thread has work.
OtlpExporter::Clock::time_point OtlpExporter::due() const {
  Clock::time_point spans = Clock::time_point::max();
  if (!spans_out_.body.empty()) {
    spans = spans_out_.next;
  } else if (!waiting_.empty()) {
    spans = waiting_spans_ >= kBatchSpans ? first_ : first_ + delay_;
  }
  const Clock::time_point metrics =
      metrics_out_.body.empty() ? metrics_due_ : std::min(metrics_out_.next, metrics_due_);
  return std::min(spans, metrics);
}

std::vector<OtlpExporter::Item> OtlpExporter::wait(bool& stopping) {
  std::vector<Item> batch;
  const MutexLock lock(mutex_);
  for (;;) {
    stopping = stopping_;
    const Clock::time_point now = Clock::now(), when = due();
    if (stopping || when <= now) {
      const bool batch_due = stopping || waiting_spans_ >= kBatchSpans || first_ + delay_ <= now;
      if (!spans_out_.body.empty() || waiting_.empty() || !batch_due) return batch;
      break;
    }
    if (when == Clock::time_point::max()) {
      wake_.wait(mutex_);
    } else {
      wake_.wait_until(mutex_, when);
    }
  }
  size_t count = 0, spans = 0, bytes = 0;
  while (count < waiting_.size() && spans < kBatchSpans && bytes < kBatchBytes) {
    spans += waiting_[count].spans;
    bytes += waiting_[count++].bytes;
  }
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(count);
  batch.assign(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
  waiting_spans_ -= spans;
  waiting_bytes_ -= bytes;
  // The others arrived later, at an unknown time.
  first_ = Clock::now();
  return batch;
}

void OtlpExporter::make_body(const std::vector<Item>& items) {
  uint64_t spans = 0;
  for (const Item& item : items) spans += item.spans;
  std::string body;
  const bool made = succeeds([&] {
    std::string list;
    for (const Item& item : items)
      list.append(list.empty() ? "" : ",").append(item.record ? otlp_spans(*item.record, epoch_) : item.text);
    body = spans_request(resource_, list);
  });
  if (!made) return counters_.count(OtlpCounters::kLost, spans);  // no memory
  spans_out_.body = std::move(body);
  spans_out_.spans = spans;
  spans_out_.tries = 0;
  spans_out_.next = Clock::now();
}

void OtlpExporter::make_metrics() {
  std::string body;
  if (!succeeds([&] {
        body = metrics_request(resource_, metrics_memory_.document(metrics_, epoch_ + Clock::now().time_since_epoch()));
      }))
    return;
  metrics_out_.body = std::move(body);
  metrics_out_.tries = 0;
  metrics_out_.next = Clock::now();
}

// Aborts a push in progress when the time for the last pushes has passed.
void OtlpExporter::check_end() {
  const MutexLock lock(mutex_);
  SCONCE_CHECK(!stopping_ || Clock::now() < end_, kCancelled, "the server ends");
}

void OtlpExporter::push(Outgoing& outgoing, bool last) {
  const OtlpPush result = endpoint_.push(outgoing.path, outgoing.body, [this] { check_end(); });
  ++outgoing.tries;
  const bool again = result.result == OtlpPush::Result::kAgain && !last && outgoing.tries < kMaxSendTries;
  if (again) {
    counters_.count(outgoing.signal, OtlpCounters::kAgain);
    outgoing.next = Clock::now() + otlp_pause(outgoing.tries, result.retry_after, random_share());
  } else {
    const bool taken = result.result == OtlpPush::Result::kTaken;
    counters_.count(outgoing.signal, taken ? OtlpCounters::kTaken : OtlpCounters::kRefused);
    const uint64_t rejected = outgoing.spans == 0 ? 0 : std::min(result.rejected, outgoing.spans);
    counters_.count(OtlpCounters::kRejected, rejected);
    counters_.count(taken ? OtlpCounters::kSent : OtlpCounters::kLost, outgoing.spans - rejected);
    outgoing.body.clear();
  }
  succeeds([&] { note(outgoing, result); });
}

// Logs that pushes fail, and that they succeed again; limits the rate of these lines.
void OtlpExporter::note(Outgoing& outgoing, const OtlpPush& result) {
  const Clock::time_point now = Clock::now();
  if (result.result == OtlpPush::Result::kTaken) {
    if (std::exchange(outgoing.failing, false)) log_info("{} are taken by {} again", outgoing.what, endpoint_.url());
    if ((result.rejected == 0 && result.problem.empty()) || now < outgoing.note_again) return;
    outgoing.note_again = now + kNoteEach;
    if (result.rejected == 0)
      log_warn("{} took all {}, and says: {}", endpoint_.url(), outgoing.what, printable(result.problem));
    else
      log_warn("{} took {} in part: {} were rejected: {}", endpoint_.url(), outgoing.what, result.rejected,
               printable(result.problem));
  } else if (!outgoing.failing && now >= outgoing.note_again) {
    outgoing.failing = true;
    outgoing.note_again = now + kNoteEach;
    log_warn("{} cannot be pushed to {}: {}", outgoing.what, endpoint_.url(), printable(result.problem));
  }
}

void OtlpExporter::run() noexcept {
  for (bool stopping = false;;) {
    std::vector<Item> items;
    // If memory for a batch is short, the spans stay queued.
    if (!succeeds([&] { items = wait(stopping); })) std::this_thread::sleep_for(std::chrono::seconds(1));
    if (!items.empty()) make_body(items);
    items.clear();
    const Clock::time_point now = Clock::now();
    if (metrics_due_ <= now || (stopping && with_metrics_ && metrics_due_ != Clock::time_point::max())) {
      metrics_due_ = stopping ? Clock::time_point::max() : now + interval_;
      make_metrics();
    }
    if (!spans_out_.body.empty() && (stopping || spans_out_.next <= now)) push(spans_out_, stopping);
    if (!metrics_out_.body.empty() && (stopping || metrics_out_.next <= now)) push(metrics_out_, stopping);
    if (!stopping) continue;
    const MutexLock lock(mutex_);
    if (waiting_.empty() || Clock::now() >= end_) break;
  }
  const MutexLock lock(mutex_);
  counters_.count(OtlpCounters::kLost, waiting_spans_);
}

}  // namespace sconce::server::telemetry
