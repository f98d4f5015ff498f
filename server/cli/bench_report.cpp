#include "server/cli/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "sconce/check.h"
#include "server/support/html/html_page.h"
#include "server/support/terminal/text.h"

namespace sconce::server::cli {
namespace {

constexpr int kPerOctave = 16;
// The measurements in the page, for a later call. A browser does not execute this element.
constexpr std::string_view kDataBegin = "<script type=\"application/json\" id=\"sconce-bench\">";
constexpr std::string_view kDataEnd = "</script>";
// A smaller change may be noise.
constexpr double kWorthColour = 0.03;

enum class Unit : int8_t { kSeconds, kBytes, kPerSecond };
struct Figure {
  const char *label, *group, *key;  // group: "" for a member of the measurement itself
  Unit unit;
  bool brief = false;  // part of describe_change()
};
constexpr Figure kFigures[] = {
    {"load", "", "load_s", Unit::kSeconds},
    {"first run", "", "first_run_s", Unit::kSeconds},
    {"one caller: p50", "latency_s", "p50", Unit::kSeconds, true},
    {"one caller: p90", "latency_s", "p90", Unit::kSeconds},
    {"one caller: p99", "latency_s", "p99", Unit::kSeconds, true},
    {"all callers: runs/s", "", "runs_per_s", Unit::kPerSecond, true},
    {"all callers: p50", "loaded_latency_s", "p50", Unit::kSeconds},
    {"all callers: p90", "loaded_latency_s", "p90", Unit::kSeconds},
    {"all callers: p99", "loaded_latency_s", "p99", Unit::kSeconds, true},
    {"memory of the process", "", "memory_bytes", Unit::kBytes, true},
    {"memory of the model", "", "model_bytes", Unit::kBytes},
    {"weights", "", "constant_bytes", Unit::kBytes},
};

// A file of unknown origin may contain any JSON.
const OrderedJson* member(const OrderedJson& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto at = object.find(key);
  return at == object.end() ? nullptr : &*at;
}
std::optional<double> number(const OrderedJson& measurement, const Figure& figure) {
  const OrderedJson* const group = *figure.group ? member(measurement, figure.group) : &measurement;
  const OrderedJson* const value = group ? member(*group, figure.key) : nullptr;
  if (!value || !value->is_number()) return std::nullopt;
  return value->get<double>();
}
std::string words(const OrderedJson& object, const char* key) {
  const OrderedJson* const value = member(object, key);
  if (!value || value->is_null()) return "unknown";
  return value->is_string() ? value->get<std::string>() : dump(*value);
}
const OrderedJson& measurements_of(const OrderedJson& document) {
  static const OrderedJson none = OrderedJson::array();
  const OrderedJson* const list = member(document, "measurements");
  return list && list->is_array() ? *list : none;
}

std::string value_text(double value, Unit unit) {
  switch (unit) {
    case Unit::kSeconds:
      return format_seconds(value);
    case Unit::kBytes:
      return format_bytes(value > 0 ? static_cast<uint64_t>(value) : 0);
    case Unit::kPerSecond:
      return fmt::format("{:.1f}", value);
  }
  return {};
}

struct Change {
  std::string text;
  bool good = false, bad = false;
};
Change change_of(double now, double before, Unit unit) {
  if (!(before > 0) || !std::isfinite(now)) return {"-"};
  const double change = now / before - 1;
  if (std::abs(change) < 0.005) return {"the same"};
  Change result{fmt::format("{:.0f} % {}", 100 * std::abs(change), change < 0 ? "less" : "more")};
  const bool better = (unit == Unit::kPerSecond) == (change > 0);
  if (std::abs(change) >= kWorthColour) (better ? result.good : result.bad) = true;
  return result;
}

// Share of all runs, by bin.
std::map<int, double> shares_of(const OrderedJson& measurement, const char* key) {
  std::map<int, double> shares;
  const OrderedJson* const bins = member(measurement, key);
  double all = 0;
  if (bins && bins->is_array())
    for (const OrderedJson& bin : *bins) {
      if (!bin.is_array() || bin.size() != 2 || !bin[0].is_number_integer() || !bin[1].is_number_integer()) continue;
      const int64_t at = bin[0].get<int64_t>();
      const int64_t count = bin[1].get<int64_t>();
      if (count <= 0 || std::abs(at) > 100 * kPerOctave) continue;
      shares[static_cast<int>(at)] += static_cast<double>(count);
      all += static_cast<double>(count);
    }
  for (auto& [bin, share] : shares) share /= all;
  return shares;
}

double begin_of(int bin) { return std::exp2(static_cast<double>(bin) / kPerOctave); }

// The bins from the first to the 99.5th percentile; later runs are drawn in the last bin.
struct Range {
  int first = 0, last = 0;
};
Range range_of(const std::vector<const std::map<int, double>*>& all) {
  Range range{INT_MAX, INT_MIN};
  for (const std::map<int, double>* shares : all) {
    double left = 1;
    for (const auto& [bin, share] : *shares) {
      range.first = std::min(range.first, bin);
      if (left > 0.005) range.last = std::max(range.last, bin);
      left -= share;
    }
  }
  // A minimum number of bins, so that a single bar does not fill the chart.
  constexpr int kLeast = 12;
  if (const int lacking = kLeast - (range.last - range.first + 1); lacking > 0) {
    range.first -= lacking / 2;
    range.last += lacking - lacking / 2;
  }
  return range;
}

constexpr double kWidth = 720, kHeight = 180, kLeft = 8, kTop = 24, kBottom = 24;

class Histogram {
 public:
  Histogram(const OrderedJson& now, const OrderedJson* before, const char* bins, const char* percentiles)
      : now_(shares_of(now, bins)), percentiles_(member(now, percentiles)) {
    if (before) before_ = shares_of(*before, bins);
    std::vector<const std::map<int, double>*> all = {&now_};
    if (!before_.empty()) all.push_back(&before_);
    if (now_.empty()) return;
    range_ = range_of(all);
    for (const std::map<int, double>* shares : all)
      for (const auto& [bin, share] : *shares) most_ = std::max(most_, share_at(*shares, std::min(bin, range_.last)));
  }

  std::string svg(const std::string& title) const {
    if (now_.empty()) return {};
    std::string out = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"><title>{}</title>\n",
                                  kWidth, kHeight + kTop + kBottom, escape_html(title), escape_html(title));
    for (int bin = range_.first; bin <= range_.last; ++bin)
      if (const double share = share_at(now_, bin); share > 0)
        out += fmt::format(
            "<rect class=\"bar\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"><title>from "
            "{}: {:.2f} % of the runs</title></rect>\n",
            x_of(bin), y_of(share), std::max(width() - 1, 0.5), kTop + kHeight - y_of(share),
            format_seconds(begin_of(bin)), 100 * share);
    if (!before_.empty()) out += outline();
    out += axis();
    for (const char* const name : {"p50", "p90", "p99"}) out += mark(name);
    return out + "</svg>\n";
  }

 private:
  double width() const { return (kWidth - 2 * kLeft) / (range_.last - range_.first + 1); }
  double x_of(int bin) const { return kLeft + width() * (bin - range_.first); }
  double y_of(double share) const { return kTop + kHeight * (1 - share / most_); }
  double share_at(const std::map<int, double>& shares, int bin) const {
    const auto at = shares.find(bin);
    double share = at == shares.end() ? 0 : at->second;
    if (bin == range_.last)
      for (auto later = shares.upper_bound(bin); later != shares.end(); ++later) share += later->second;
    return share;
  }

  std::string outline() const {
    std::string path = fmt::format("M{:.1f} {:.1f}", x_of(range_.first), kTop + kHeight);
    for (int bin = range_.first; bin <= range_.last; ++bin)
      path += fmt::format("V{:.1f}H{:.1f}", y_of(share_at(before_, bin)), x_of(bin + 1));
    return fmt::format("<path class=\"was\" d=\"{}V{:.1f}\"><title>earlier</title></path>\n", path, kTop + kHeight);
  }

  std::string axis() const {
    std::string out = fmt::format("<line class=\"axis\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", kLeft,
                                  kTop + kHeight, kWidth - kLeft, kTop + kHeight);
    constexpr int kTicks = 5;
    const int step = std::max((range_.last - range_.first) / kTicks, 1);
    for (int bin = range_.first; bin <= range_.last - step / 2; bin += step)
      out += fmt::format("<text x=\"{:.1f}\" y=\"{}\">{}</text>\n", x_of(bin), kTop + kHeight + 16,
                         format_seconds(begin_of(bin)));
    return out;
  }

  std::string mark(const char* name) const {
    const OrderedJson* const value = percentiles_ ? member(*percentiles_, name) : nullptr;
    if (!value || !value->is_number() || !(value->get<double>() > 0)) return {};
    const double bin = std::log2(value->get<double>()) * kPerOctave;
    const double x = std::clamp(kLeft + width() * (bin - range_.first), kLeft, kWidth - kLeft);
    const int row = name[1] == '5' ? 0 : name[1] == '9' && name[2] == '0' ? 1 : 2;
    return fmt::format(
        "<line class=\"mark\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/><text class=\"name\" x=\"{3:.1f}\" "
        "y=\"{4}\"{5}>{6}</text>\n",
        x, kTop - 4, kTop + kHeight, x > kWidth * 0.8 ? x - 4 : x + 4, kTop + 8 + 14 * row,
        x > kWidth * 0.8 ? " text-anchor=\"end\"" : "", name);
  }

  std::map<int, double> now_, before_;
  const OrderedJson* percentiles_;
  Range range_;
  double most_ = 0;
};

std::string figures_table(const OrderedJson& now, const OrderedJson* before) {
  std::string out = "<table><thead><tr><th scope=\"col\">figure</th><th scope=\"col\" class=\"number\">now</th>";
  if (before) out += "<th scope=\"col\" class=\"number\">earlier</th><th scope=\"col\" class=\"number\">change</th>";
  out += "</tr></thead><tbody>\n";
  for (const Figure& figure : kFigures) {
    const std::optional<double> value = number(now, figure);
    if (!value) continue;
    out += fmt::format("<tr><th scope=\"row\">{}</th><td class=\"number\">{}</td>", figure.label,
                       value_text(*value, figure.unit));
    if (before) {
      const std::optional<double> was = number(*before, figure);
      const Change change = was ? change_of(*value, *was, figure.unit) : Change{"-"};
      out += fmt::format("<td class=\"number\">{}</td><td class=\"number {}\">{}</td>",
                         was ? value_text(*was, figure.unit) : "-",
                         change.good  ? "good"
                         : change.bad ? "bad"
                                      : "soft",
                         change.text);
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table>\n";
}

std::string heading_of(const OrderedJson& measurement) {
  const std::string threads = words(measurement, "threads");
  return fmt::format("replicas: {}, threads: {}, callers: {}", words(measurement, "replicas"),
                     threads == "0" ? "as compiled" : threads, words(measurement, "callers"));
}

std::string made_by(const OrderedJson& document) {
  return fmt::format("Sconce {} on {}, {} cores, device {}, {}", words(document, "sconce"), words(document, "cpu"),
                     words(document, "cores"), words(document, "device"), words(document, "time"));
}

}  // namespace

OrderedJson time_bins(std::span<const float> seconds) {
  std::map<int, int64_t> counts;
  for (const float time : seconds) {
    // If the clock does not advance between two runs, the time counts as its smallest step.
    const double time_s = std::max(static_cast<double>(time), 1e-9);
    ++counts[static_cast<int>(std::floor(std::log2(time_s) * kPerOctave))];
  }
  OrderedJson bins = OrderedJson::array();
  for (const auto& [bin, count] : counts) bins.push_back(OrderedJson::array({bin, count}));
  return bins;
}

OrderedJson read_bench(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  SCONCE_CHECK(file, kIo, "cannot open file: ", path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (const size_t begin = text.find(kDataBegin); begin != std::string::npos) {
    const size_t end = text.find(kDataEnd, begin);
    text = text.substr(begin + kDataBegin.size(), end == std::string::npos ? end : end - begin - kDataBegin.size());
  }
  OrderedJson document = OrderedJson::parse(text, nullptr, false);
  SCONCE_CHECK(document.is_object() && !measurements_of(document).empty(), kInvalidArgument,
               "not a page of sconce bench --html, nor what --json prints: ", path);
  return document;
}

const OrderedJson* same_measurement(const OrderedJson& document, const OrderedJson& measurement) {
  for (const OrderedJson& other : measurements_of(document)) {
    bool same = true;
    for (const char* const key : {"replicas", "threads", "callers"})
      same = same && words(other, key) == words(measurement, key);
    if (same) return &other;
  }
  return nullptr;
}

std::string describe_change(const OrderedJson& now, const OrderedJson& before) {
  std::string text;
  for (const Figure& figure : kFigures) {
    const std::optional<double> value = number(now, figure), was = number(before, figure);
    if (!figure.brief || !value || !was) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", figure.label, change_of(*value, *was, figure.unit).text);
  }
  return text;
}

std::string bench_page(const OrderedJson& document, const OrderedJson* earlier) {
  const std::string package = words(document, "package");
  std::string body = fmt::format("<h1>{}</h1>\n<p>{}</p>\n", escape_html(package), escape_html(made_by(document)));
  if (earlier)
    body += fmt::format("<p>Compared with {}: {}</p>\n", escape_html(words(*earlier, "package")),
                        escape_html(made_by(*earlier)));
  for (const OrderedJson& now : measurements_of(document)) {
    const OrderedJson* const before = earlier ? same_measurement(*earlier, now) : nullptr;
    body += fmt::format("<section>\n<h2>{}</h2>\n", escape_html(heading_of(now)));
    if (earlier && !before) body += "<p class=\"soft\">The earlier file has no such measurement.</p>\n";
    body += figures_table(now, before);
    const std::string was =
        std::string(" The last bar has all later ones, too.") + (before ? " The line is the earlier measurement." : "");
    for (const auto& [bins, percentiles, title] :
         {std::tuple("latency_bins", "latency_s", "Times of runs, one caller."),
          std::tuple("loaded_latency_bins", "loaded_latency_s", "Times of runs, all callers at once.")}) {
      const std::string svg = Histogram(now, before, bins, percentiles).svg(title + was);
      if (!svg.empty()) body += fmt::format("<figure><figcaption>{}{}</figcaption>\n{}</figure>\n", title, was, svg);
    }
    body += "</section>\n";
  }
  // "</script>" must not occur in it.
  std::string data = dump(document);
  for (size_t at = 0; (at = data.find('<', at)) != std::string::npos;) data.replace(at, 1, "\\u003c");
  body += std::string(kDataBegin) + data + std::string(kDataEnd) + "\n";
  return html_file(
      "sconce bench: " + package,
      "svg{width:100%;height:auto;font:11px ui-monospace,monospace;fill:var(--soft)}\n"
      ".bar{fill:var(--bar)}.was{fill:none;stroke:var(--was);stroke-width:1.5}.axis{stroke:var(--line)}\n"
      ".mark{stroke:var(--ink);stroke-dasharray:3 3}.name{fill:var(--ink)}\n"
      "figure{margin:1rem 0}figcaption{color:var(--soft)}th[scope=row]{font-weight:400;color:var(--ink)}\n",
      body);
}

}  // namespace sconce::server::cli
