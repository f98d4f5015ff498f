#include "server/support/config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <sstream>

#include "sconce/check.h"
#include "server/support/cores.h"
#include "server/support/trim.h"
#include "src/support/excerpt.h"
#include "src/support/parse_number.h"

namespace sconce::server {
namespace {

// The source of a value, for errors.
struct Source {
  std::string_view key, value, origin;
  [[noreturn]] void fail(std::string_view expected) const {
    SCONCE_FAIL(kInvalidArgument, "setting ", key, ": expected ", expected, ", got '", value, "' (", origin, ")");
  }
};

constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kDurations = "a duration such as 200us, 250ms, 10s or 2m, a year at most";

// Splits a text into a number and a unit.
std::optional<std::pair<int64_t, std::string_view>> number_and_unit(std::string_view text) {
  int64_t number = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (ec != std::errc() || number < 0) return std::nullopt;
  return std::pair(number, trim(text.substr(static_cast<size_t>(end - text.data())), kBlanks));
}

using Units = std::span<const std::pair<std::string_view, int64_t>>;

// The number times the factor of its unit.
std::optional<int64_t> scaled(std::string_view text, Units units) {
  const auto parsed = number_and_unit(text);
  if (!parsed) return std::nullopt;
  const auto unit = std::find_if(units.begin(), units.end(), [&](const auto& u) { return u.first == parsed->second; });
  int64_t result = 0;
  if (unit == units.end() || __builtin_mul_overflow(parsed->first, unit->second, &result)) return std::nullopt;
  return result;
}

std::optional<std::chrono::microseconds> parsed_duration(std::string_view text) {
  constexpr std::pair<std::string_view, int64_t> kUnits[] = {
      {"us", 1}, {"ms", 1000}, {"s", 1'000'000}, {"m", 60'000'000}};
  if (text == "0") return std::chrono::microseconds(0);
  const std::optional<int64_t> value = scaled(text, kUnits);
  if (!value || std::chrono::microseconds(*value) > std::chrono::hours(24 * 365)) return std::nullopt;
  return std::chrono::microseconds(*value);
}

std::optional<double> number_of_0_or_more(std::string_view text) {
  const auto value = parse_number<double>(text);
  return value && std::isfinite(*value) && *value >= 0 ? value : std::nullopt;
}

// One function per type of setting.
namespace read {

std::string Text(const Source& source) { return std::string(source.value); }

setting::TextList TextList(const Source& source) { return split(source.value, ','); }

bool Flag(const Source& source) {
  if (source.value == "true" || source.value == "on" || source.value == "yes" || source.value == "1") return true;
  if (source.value == "false" || source.value == "off" || source.value == "no" || source.value == "0") return false;
  source.fail("true or false");
}

int64_t Count(const Source& source) {
  const auto parsed = number_and_unit(source.value);
  if (!parsed || !parsed->second.empty() || parsed->first > std::numeric_limits<int32_t>::max()) {
    source.fail("a whole number from 0 to 2147483647");
  }
  return parsed->first;
}

int64_t Bytes(const Source& source) {
  constexpr std::pair<std::string_view, int64_t> kUnits[] = {{"", 1}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}};
  const std::optional<int64_t> bytes = scaled(source.value, kUnits);
  if (!bytes) source.fail("a size such as 4096, 64K, 16M or 2G");
  return *bytes;
}

double Share(const Source& source) {
  const std::optional<double> share = number_of_0_or_more(source.value);
  if (!share || *share > 1) source.fail("a share from 0 to 1, such as 0.05");
  return *share;
}

std::chrono::microseconds Duration(const Source& source) {
  const std::optional<std::chrono::microseconds> value = parsed_duration(source.value);
  if (!value) source.fail(kDurations);
  return *value;
}

setting::Delay Delay(const Source& source) {
  if (source.value == "auto") return std::nullopt;
  return Duration(source);
}

setting::Real Real(const Source& source) {
  if (source.value.empty()) return std::nullopt;
  const std::optional<double> value = number_of_0_or_more(source.value);
  if (!value) source.fail("a number of 0 or more, such as 0.001 or 1e-3");
  return value;
}

setting::OptionalFlag OptionalFlag(const Source& source) {
  if (source.value.empty()) return std::nullopt;
  return Flag(source);
}

setting::Counts Counts(const Source& source) {
  setting::Counts counts;
  for (const std::string& part : split(source.value, ',')) {
    counts.push_back(Count(Source{source.key, part, source.origin}));
    if (counts.back() == 0) source.fail("whole numbers of 1 or more, separated by commas");
  }
  std::sort(counts.begin(), counts.end());
  return counts;
}

server::Address Address(const Source& source) {
  constexpr std::string_view kExpected = "HOST:PORT, [IPV6]:PORT or off";
  if (source.value == "off") return {};
  const size_t colon = source.value.rfind(':');
  if (colon == std::string_view::npos) source.fail(kExpected);
  std::string_view host = source.value.substr(0, colon);
  const std::string_view port = source.value.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    source.fail(kExpected);
  }
  server::Address address;
  const auto number = parse_number<decltype(address.port)>(port);
  if (host.empty() || !number) source.fail(kExpected);
  address.host = host;
  address.port = *number;
  return address;
}

// The names of an enum's values in their order.
constexpr std::string_view names(Versions) { return "latest, all"; }
constexpr std::string_view names(LoadWhen) { return "start, demand"; }
constexpr std::string_view names(TlsMode) { return "off, on, mutual"; }
constexpr std::string_view names(Batching) { return "auto, on, off"; }
constexpr std::string_view names(DeviceFault) { return "stay, end, restart"; }
constexpr std::string_view names(WeightsMismatch) { return "refuse, package"; }
constexpr std::string_view names(TimeoutAction) { return "reject, delay"; }
constexpr std::string_view names(SequenceWeights) { return "begun, active"; }
constexpr std::string_view names(LogLevel) { return "trace, debug, info, warn, error, off"; }
constexpr std::string_view names(LogFormat) { return "text, json"; }
constexpr std::string_view names(TraceFormat) { return "chrome, otlp"; }
constexpr std::string_view names(TraceLevel) { return "off, timestamps, tensors"; }

template <class E>
E Choice(const Source& source) {
  const std::vector<std::string> all = split(names(E{}), ',');
  const auto found = std::find(all.begin(), all.end(), source.value);
  if (found == all.end()) source.fail("one of " + std::string(names(E{})));
  return static_cast<E>(found - all.begin());
}

}  // namespace read

// Settings of earlier releases.
struct Renamed {
  std::string_view before, now;
};
constexpr Renamed kRenamed[] = {{"weights_keep", "weights_store"},
                                {"weights_keep_key", "weights_store_key"},
                                {"sets_dir", "sets_folder"},
                                {"sets_bound", "sets_instances"}};

[[noreturn]] void fail_unknown(const Source& source, const char* what) {
  for (const Renamed& one : kRenamed)
    SCONCE_CHECK(source.key != one.before, kInvalidArgument, "setting ", one.before, " is called ", one.now, " now (",
                 source.origin, ")");
  SCONCE_FAIL(kInvalidArgument, "unknown setting", what, ": ", source.key, " (", source.origin, ")");
}

void assign(ModelConfig& config, const Source& source) {
#define SECTION(title, text)
#define SERVER(key, type, default_value, text)
#define MODEL(name, type, default_value, text) \
  if (source.key == #name) {                   \
    config.name = read::type(source);          \
    return;                                    \
  }
#include "server/support/settings.def"
#undef MODEL
#undef SERVER
  fail_unknown(source, " of a model");
}

void assign(ServerConfig& config, const Source& source) {
#define SERVER(name, type, default_value, text) \
  if (source.key == #name) {                    \
    config.name = read::type(source);           \
    return;                                     \
  }
#define MODEL(key, type, default_value, text)
#include "server/support/settings.def"
#undef MODEL
#undef SERVER
#undef SECTION
  fail_unknown(source, "");
}

std::vector<SettingRow> make_rows() {
  std::vector<SettingRow> rows;
  std::string_view section, section_text;
  const auto add = [&](std::string_view key, std::string_view value, std::string_view text, bool of_model) {
    rows.push_back({key, value, text, section, section_text, of_model});
    section = section_text = {};
  };
#define SECTION(title, text) \
  section = title;           \
  section_text = text;
#define SERVER(key, type, default_value, text) add(#key, default_value, text, false);
#define MODEL(key, type, default_value, text) add(#key, default_value, text, true);
#include "server/support/settings.def"
#undef MODEL
#undef SERVER
#undef SECTION
  return rows;
}

void append_wrapped(std::string& out, std::string_view text) {
  constexpr size_t kWidth = 98;
  while (!text.empty()) {
    size_t length = text.size();
    if (length > kWidth) length = text.rfind(' ', kWidth);
    out += "# ";
    out += text.substr(0, length);
    out += '\n';
    text.remove_prefix(std::min(text.size(), length + 1));
  }
}

}  // namespace

void set_model_setting(ModelConfig& config, std::string_view key, std::string_view value, std::string_view origin) {
  assign(config, Source{key, value, origin});
}

std::span<const SettingRow> setting_rows() noexcept {
  static const std::vector<SettingRow> rows = make_rows();
  return rows;
}

std::chrono::microseconds duration_of(std::string_view text, std::string_view what) {
  const std::optional<std::chrono::microseconds> value = parsed_duration(trim(text, kBlanks));
  SCONCE_CHECK(value, kInvalidArgument, what, " must be ", kDurations, ", got '", excerpt(text), "'");
  return *value;
}

std::string flag_name(std::string_view key) {
  std::string name = "--" + std::string(key);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string environment_name(std::string_view key) {
  std::string name = "SCONCE_";
  for (const char c : key) name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

std::string annotated_configuration() {
  std::string out =
      "# Settings of `sconce serve`, read with --config FILE. Each is shown with its default; remove the leading #\n"
      "# to change it. The environment (SCONCE_KEY) and the command line (--key, with - for _) override this file.\n";
  for (const SettingRow& row : setting_rows()) {
    if (!row.section.empty()) {
      out += "\n## " + std::string(row.section) + "\n";
      append_wrapped(out, row.section_text);
    }
    out += '\n';
    append_wrapped(out, row.text);
    out += '#' + std::string(row.of_model ? "*." : "") + std::string(row.key) + " =";
    if (!row.default_value.empty()) out += ' ' + std::string(row.default_value);
    out += '\n';
  }
  return out;
}

bool is_model_name(std::string_view name) noexcept {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  return !name.empty() && name.size() <= 128 && name[0] != '.' && std::all_of(name.begin(), name.end(), allowed);
}

ServerConfig::ServerConfig() {
  for (const SettingRow& row : setting_rows()) {
    if (!row.of_model) assign(*this, Source{row.key, row.default_value, "default"});
  }
}

bool ServerConfig::tries_at_start() const {
  return !serve.empty() && load == LoadWhen::kStart && model("*").trial_timeout.count() > 0;
}

ModelConfig ServerConfig::model(std::string_view name, std::span<const ModelSetting> beside) const {
  ModelConfig config;
  for (const SettingRow& row : setting_rows()) {
    if (row.of_model) assign(config, Source{row.key, row.default_value, "default"});
  }
  for (const ModelSetting& s : beside) assign(config, Source{s.key, s.value, s.origin});
  for (const std::string_view which : {std::string_view("*"), name}) {
    for (const ModelSetting& s : model_settings) {
      if (s.model == which) assign(config, Source{s.key, s.value, s.origin});
    }
  }
  return config;
}

void ServerConfig::check_model_names(std::span<const std::string> names) const {
  for (const ModelSetting& s : model_settings) {
    if (s.model == "*" || std::find(names.begin(), names.end(), s.model) != names.end()) continue;
    std::string known;
    for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
    SCONCE_FAIL(kInvalidArgument, "setting ", s.key, " for a model that is not served: '", s.model, "' (", s.origin,
                "), served: ", known);
  }
}

void ServerConfig::set(std::string_view key, std::string_view value, std::string_view origin) {
  assign(*this, Source{key, trim(value, kBlanks), origin});
  given.emplace_back(key);
}

void ServerConfig::set_model(std::string_view assignment, std::string_view origin) {
  const size_t equals = assignment.find('=');
  const size_t dot = assignment.substr(0, equals).rfind('.');
  SCONCE_CHECK(equals != std::string_view::npos && dot != std::string_view::npos && dot > 0, kInvalidArgument,
               "expected MODEL.KEY=VALUE, got '", assignment, "' (", origin, ")");
  ModelSetting s{std::string(trim(assignment.substr(0, dot), kBlanks)),
                 std::string(trim(assignment.substr(dot + 1, equals - dot - 1), kBlanks)),
                 std::string(trim(assignment.substr(equals + 1), kBlanks)), std::string(origin)};
  SCONCE_CHECK(s.model == "*" || is_model_name(s.model), kInvalidArgument, "not a model's name: '", s.model, "' (",
               origin, ")");
  ModelConfig checked;
  assign(checked, Source{s.key, s.value, s.origin});
  check_cores(checked.cpu_set);
  model_settings.push_back(std::move(s));
}

void ServerConfig::read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  SCONCE_CHECK(file.is_open() && !file.bad(), kIo, "configuration file cannot be read: ", path.string());
  read_text(text, path.string());
}

void ServerConfig::read_text(std::string_view text, std::string_view name) {
  std::map<std::string, int, std::less<>> seen;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = trim(text.substr(0, end), kBlanks);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line[0] == '#') continue;
    const std::string origin = std::string(name) + ":" + std::to_string(number);
    const size_t equals = line.find('=');
    SCONCE_CHECK(equals != std::string_view::npos, kInvalidArgument, "expected KEY = VALUE, got '", line, "' (", origin,
                 ")");
    const std::string_view key = trim(line.substr(0, equals), kBlanks);
    const auto [it, fresh] = seen.emplace(key, number);
    SCONCE_CHECK(fresh, kInvalidArgument, "setting given twice: ", key, " (", origin, " and line ", it->second, ")");
    if (key.find('.') != std::string_view::npos) {
      set_model(line, origin);
    } else {
      set(key, line.substr(equals + 1), origin);
    }
  }
}

void ServerConfig::read_environment(const std::function<const char*(const char*)>& lookup) {
  for (const SettingRow& row : setting_rows()) {
    if (row.of_model) continue;
    const std::string name = environment_name(row.key);
    if (const char* value = lookup(name.c_str())) set(row.key, value, "environment " + name);
  }
  // A renamed setting that is ignored would serve other weights than before.
  for (const Renamed& one : kRenamed) {
    const std::string name = environment_name(one.before);
    if (const char* value = lookup(name.c_str())) set(one.before, value, "environment " + name);
  }
  if (const char* value = lookup("SCONCE_SET")) {
    for (const std::string& part : split(value, ';')) set_model(part, "environment SCONCE_SET");
  }
}

}  // namespace sconce::server
