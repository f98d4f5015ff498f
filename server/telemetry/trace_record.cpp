#include "server/telemetry/trace_record.h"

#include <algorithm>
#include <cstring>

#include "src/support/hex.h"

namespace sconce::server::telemetry {
namespace {

bool is_hex(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool all_zero(std::string_view text) noexcept { return text.find_first_not_of('0') == std::string_view::npos; }

}  // namespace

std::optional<TraceParent> TraceParent::parse(std::string_view field) noexcept {
  // version-traceid-parentid-flags; later versions may append more.
  if (field.size() < 55 || field[2] != '-' || field[35] != '-' || field[52] != '-') return std::nullopt;
  const std::string_view version = field.substr(0, 2), trace = field.substr(3, 32), span = field.substr(36, 16),
                         flags = field.substr(53, 2);
  if (!is_hex(version) || !is_hex(trace) || !is_hex(span) || !is_hex(flags) || version == "ff" || all_zero(trace) ||
      all_zero(span) || (version == "00" && field.size() != 55) || (field.size() > 55 && field[55] != '-')) {
    return std::nullopt;
  }
  TraceParent parent;
  std::copy(trace.begin(), trace.end(), parent.trace_id.begin());
  std::copy(span.begin(), span.end(), parent.span_id.begin());
  parent.sampled = (hex_digit(flags[1]) & 1) != 0;
  return parent;
}

std::vector<TraceSpan> spans_of(const TraceRecord& r) {
  constexpr TraceRecord::Clock::time_point kNever{};
  std::vector<TraceSpan> list{{"request", r.start, r.sent}};
  if (r.decoded == kNever || !r.levels.timestamps) return list;
  list.push_back({"decode", r.start, r.decoded});
  for (const TraceRecord::Step& step : r.steps) list.push_back({"step", step.start, step.end, step.model});
  if (r.run_done != kNever) {
    const TraceRecord::Clock::time_point begun = r.run_done - r.compute;
    if (r.steps.empty()) {
      list.push_back({"queue", r.decoded, r.decoded + r.queue});
      if (r.gather.count() > 0) list.push_back({"batch", std::max(r.decoded, begun - r.gather), begun});
      list.push_back({"compute", begun, r.run_done});
    }
    list.push_back({"encode", r.run_done, r.encoded});
  }
  list.push_back({"send", r.encoded, r.sent});
  return list;
}

TraceRecord::Clock::time_point time_of(const TraceRecord& record, const codecs::TraceTensor& tensor) noexcept {
  return std::strcmp(tensor.activity, codecs::kQueueInput) == 0 ? record.decoded : record.run_done;
}

std::chrono::nanoseconds steady_epoch() noexcept {
  using std::chrono::nanoseconds;
  return std::chrono::duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch()) -
         std::chrono::duration_cast<nanoseconds>(TraceRecord::Clock::now().time_since_epoch());
}

}  // namespace sconce::server::telemetry
