// Settings: their types, sources and final values.
//
// Later sources override earlier ones: defaults, the file, the environment, the command line. All errors are
// kInvalidArgument and name the setting, the source of the value, and the expected form.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sconce::server {

enum class Versions : int8_t { kLatest, kAll };
enum class LoadWhen : int8_t { kStart, kDemand };
enum class Batching : int8_t { kAuto, kOn, kOff };
enum class DeviceFault : int8_t { kStay, kEnd, kRestart };
enum class WeightsMismatch : int8_t { kRefuse, kPackage };
enum class TimeoutAction : int8_t { kReject, kDelay };
enum class SequenceWeights : int8_t { kBegun, kActive };
enum class LogLevel : int8_t { kTrace, kDebug, kInfo, kWarn, kError, kOff };
enum class LogFormat : int8_t { kText, kJson };
enum class TraceFormat : int8_t { kChrome, kOtlp };
enum class TraceLevel : int8_t { kOff, kTimestamps, kTensors };

enum class TlsMode : int8_t { kOff, kOn, kMutual };

struct Address {
  std::string host;  // empty: off
  uint16_t port = 0;
  bool enabled() const noexcept { return !host.empty(); }
  friend bool operator==(const Address&, const Address&) = default;
};

// The C++ types behind the type names of settings.def.
namespace setting {
using Text = std::string;
using TextList = std::vector<std::string>;
template <class E>
using Choice = E;
using Flag = bool;
using Address = server::Address;
using Count = int64_t;
using Bytes = int64_t;
using Duration = std::chrono::microseconds;
using Delay = std::optional<std::chrono::microseconds>;  // nullopt: auto
using Counts = std::vector<int64_t>;                     // ascending
using Share = double;                                    // 0 to 1
using Real = std::optional<double>;                      // nullopt: not given
using OptionalFlag = std::optional<bool>;                // nullopt: not given
}  // namespace setting

struct ModelConfig {
#define SECTION(title, text)
#define SERVER(key, type, default_value, text)
#define MODEL(key, type, default_value, text) setting::type key{};
#include "server/support/settings.def"
#undef MODEL
#undef SERVER
};

// Sets one setting by name. origin: source of the value, for errors.
void set_model_setting(ModelConfig& config, std::string_view key, std::string_view value, std::string_view origin);

// A setting for one model, or for all ("*"), as written.
struct ModelSetting {
  std::string model, key, value, origin;
};

struct ServerConfig {
#define SERVER(key, type, default_value, text) setting::type key{};
#define MODEL(key, type, default_value, text)
#include "server/support/settings.def"
#undef MODEL
#undef SERVER
#undef SECTION
  std::vector<ModelSetting> model_settings;
  std::vector<std::string> given;  // names of the server's settings that a source has set

  ServerConfig();  // the defaults

  // Settings of the named model: defaults, then those in a file beside the model, then those of "*", then its own.
  ModelConfig model(std::string_view name, std::span<const ModelSetting> beside = {}) const;
  // Whether models are loaded at start that a child process may try first.
  bool tries_at_start() const;
  // kInvalidArgument if a setting is for a model not in `names`.
  void check_model_names(std::span<const std::string> names) const;

  void set(std::string_view key, std::string_view value, std::string_view origin);
  // "MODEL.KEY=VALUE", split at the last dot before the '='.
  void set_model(std::string_view assignment, std::string_view origin);
  // kIo if the file cannot be read.
  void read_file(const std::filesystem::path& path);
  void read_text(std::string_view text, std::string_view name);
  // lookup: returns an environment variable's value, null if unset.
  void read_environment(const std::function<const char*(const char*)>& lookup);
};

struct SettingRow {
  std::string_view key, default_value, text;
  std::string_view section, section_text;  // only in the first row of each section
  bool of_model = false;
};
std::span<const SettingRow> setting_rows() noexcept;

// "30s" as a Duration. kInvalidArgument names `what`.
std::chrono::microseconds duration_of(std::string_view text, std::string_view what);

std::string flag_name(std::string_view key);         // "max_body_bytes" -> "--max-body-bytes"
std::string environment_name(std::string_view key);  // -> "SCONCE_MAX_BODY_BYTES"

// conf/sconce.conf: every setting with its description and default.
std::string annotated_configuration();

// Letters, digits, '_', '-' and '.', at most 128 characters, not starting with '.'.
bool is_model_name(std::string_view name) noexcept;

}  // namespace sconce::server
