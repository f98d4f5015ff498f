#include "src/c_api/options.h"

#include <optional>

#include "src/c_api/boundary.h"
#include "src/c_api/structs.h"
#include "src/support/hex.h"

namespace sconce::c_api {
namespace {

constexpr size_t kMost = 65536;

template <class T>
void check_list(const T* list, size_t count, const char* name) {
  SCONCE_CHECK(list || count == 0, kInvalidArgument, name, " is null, and its count is ", count);
  SCONCE_CHECK(count <= kMost, kInvalidArgument, name, " has too many elements: ", count);
}

int not_negative(int32_t value, const char* name) {
  SCONCE_CHECK(value >= 0, kInvalidArgument, "options: ", name, " is negative: ", value);
  return value;
}

}  // namespace

std::vector<std::string> texts_of(const char* const* list, size_t count, const char* name) {
  check_list(list, count, name);
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) {
    SCONCE_CHECK(list[i], kInvalidArgument, name, "[", i, "] is null");
    texts.emplace_back(list[i]);
  }
  return texts;
}

std::vector<std::filesystem::path> paths_of(const char* const* list, size_t count, const char* name) {
  const std::vector<std::string> texts = texts_of(list, count, name);
  return {texts.begin(), texts.end()};
}

std::vector<int> cores_of(const int32_t* cpus, size_t count) {
  check_list(cpus, count, "cpus");
  return {cpus, cpus + count};
}

bool switch_of(int32_t value, const char* name) {
  SCONCE_CHECK(value == 0 || value == 1, kInvalidArgument, "options: ", name, " is to be 0 or 1, and is ", value);
  return value == 1;
}

Sha256Digest digest_of(const char* text, const char* name) {
  const std::optional<Sha256Digest> digest = sha256_from_hex(text);
  SCONCE_CHECK(digest, kInvalidArgument, name, ": sha256 is not 64 hexadecimal digits");
  return *digest;
}

LoadOptions load_options_of(const sconce_load_options* given) {
  const auto options = taken(given, "options");
  LoadOptions result;
  if (options.model_name) result.model_name = options.model_name;
  if (options.device_count > 0) {
    result.devices.clear();
    for (const std::string& device : texts_of(options.devices, options.device_count, "devices"))
      result.devices.push_back(parse_device(device));
  }
  if (not_negative(options.replicas, "replicas") > 0) result.replicas = options.replicas;
  result.threads = not_negative(options.threads, "threads");
  result.cpu_set = cores_of(options.cpus, options.cpu_count);
  result.op_libraries = paths_of(options.op_libraries, options.op_library_count, "op_libraries");
  result.check_inputs = !switch_of(options.skip_input_checks, "skip_input_checks");
  result.verify = switch_of(options.verify, "verify");
  result.warm_up = !switch_of(options.skip_warm_up, "skip_warm_up");
  result.host_outputs = !switch_of(options.device_outputs, "device_outputs");
  SCONCE_CHECK(options.cuda_graphs >= -1, kInvalidArgument, "options: cuda_graphs is below -1: ", options.cuda_graphs);
  if (options.cuda_graphs != 0) result.cuda_graphs = options.cuda_graphs < 0 ? 0 : options.cuda_graphs;
  result.allow_tf32 = switch_of(options.allow_tf32, "allow_tf32");
  if (options.trial_program) result.trial.program = options.trial_program;
  constexpr int64_t kMaxMilliseconds = int64_t{1000} * 3600 * 24 * 365;
  SCONCE_CHECK(options.trial_timeout_ms >= 0 && options.trial_timeout_ms <= kMaxMilliseconds, kInvalidArgument,
               "options: trial_timeout_ms is out of range: ", options.trial_timeout_ms);
  if (options.trial_timeout_ms > 0) result.trial.time = std::chrono::milliseconds(options.trial_timeout_ms);
  return result;
}

UpdateOptions update_options_of(const sconce_update_options* given) {
  const auto options = taken(given, "options");
  UpdateOptions result;
  result.full = !switch_of(options.partial, "partial");
  result.check_finite = switch_of(options.check_finite, "check_finite");
  result.dry_run = switch_of(options.dry_run, "dry_run");
  if (options.label) result.label = options.label;
  result.ignore = texts_of(options.ignore, options.ignore_count, "ignore");
  return result;
}

}  // namespace sconce::c_api
