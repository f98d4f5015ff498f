#include "server/telemetry/traces/trace_ring.h"

#include <utility>

#include "server/support/json_document.h"

namespace sconce::server::telemetry {
namespace {

OrderedJson ring_document_of(const TraceRecord& record, std::chrono::nanoseconds epoch) {
  const auto micros = [](std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e3; };
  const std::chrono::microseconds begin =
      std::chrono::duration_cast<std::chrono::microseconds>(record.start.time_since_epoch() + epoch);
  OrderedJson spans = OrderedJson::array();
  for (const TraceSpan& span : spans_of(record)) {
    spans.push_back({{"name", span.name},
                     {"start_us", micros(span.start - record.start)},
                     {"duration_us", micros(span.end - span.start)}});
    if (!span.model.empty()) spans.back()["model"] = span.model;
  }
  return {{"id", record.trace_id},           {"span", record.span_id},
          {"request_id", record.request_id}, {"model", record.model},
          {"version", record.version},       {"name", record.method_and_path},
          {"status", record.status},         {"start", static_cast<double>(begin.count()) / 1e6},
          {"spans", std::move(spans)}};
}

}  // namespace

void TraceRing::add(std::shared_ptr<const TraceRecord> record) noexcept {
  // The oldest record is freed after the lock is released.
  const MutexLock lock(mutex_);
  records_[next_].swap(record);
  next_ = (next_ + 1) % kMost;
}

std::string TraceRing::document(std::string_view model, size_t limit, std::chrono::nanoseconds epoch) const {
  std::vector<std::shared_ptr<const TraceRecord>> found;
  {
    const MutexLock lock(mutex_);
    for (size_t i = 0; i < kMost; ++i) {
      const auto& record = records_[(next_ + i) % kMost];
      if (record && (model.empty() || record->model == model)) found.push_back(record);
    }
  }
  OrderedJson list = OrderedJson::array();
  for (size_t i = found.size() - std::min(limit, found.size()); i < found.size(); ++i)
    list.push_back(ring_document_of(*found[i], epoch));
  return dump(list);
}

}  // namespace sconce::server::telemetry
