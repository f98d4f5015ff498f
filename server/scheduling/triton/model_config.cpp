#include "server/scheduling/triton/model_config.h"

#include <algorithm>
#include <set>

#include "sconce/check.h"
#include "server/scheduling/triton/text_format.h"
#include "src/support/excerpt.h"
#include "src/support/parse_number.h"

namespace sconce::server::scheduling {
namespace {

template <class... Parts>
[[noreturn]] void fail(const TextField& field, const Parts&... parts) {
  SCONCE_FAIL(kInvalidArgument, "line ", field.line, ": ", field.name, ": ", parts...);
}

// The message of a field; throws if it has none.
const TextMessage& message_of(const TextField& field) {
  if (field.kind != TextField::Kind::kMessage) fail(field, "expected a message in braces");
  return field.message;
}

const std::string& string_of(const TextField& field) {
  if (field.kind != TextField::Kind::kString) fail(field, "expected a string in quotes");
  return field.text;
}

const std::string& word_of(const TextField& field) {
  if (field.kind != TextField::Kind::kWord) fail(field, "expected a number or a name without quotes");
  return field.text;
}

int64_t integer_of(const TextField& field) {
  const auto number = parse_number<int64_t>(word_of(field));
  if (!number) fail(field, "expected a whole number, got '", excerpt(field.text), "'");
  return *number;
}

int64_t count_of(const TextField& field) {
  const int64_t number = integer_of(field);
  if (number < 0) fail(field, "expected a number of 0 or more, got ", number);
  return number;
}

bool flag_of(const TextField& field) {
  const std::string& word = word_of(field);
  if (word == "true" || word == "True" || word == "t" || word == "1") return true;
  if (word == "false" || word == "False" || word == "f" || word == "0") return false;
  fail(field, "expected true or false, got '", excerpt(word), "'");
}

// "TYPE_FP32" or "FP32".
std::string datatype_of(const TextField& field) {
  std::string_view word = word_of(field);
  constexpr std::string_view kPrefix = "TYPE_";
  if (!word.starts_with(kPrefix)) fail(field, "expected a data type such as TYPE_FP32, got '", excerpt(word), "'");
  word.remove_prefix(kPrefix.size());
  return word == "STRING" ? "BYTES" : std::string(word);
}

bool is_default(const TextField& field) {
  switch (field.kind) {
    case TextField::Kind::kWord:
      return field.text == "0" || field.text == "false";
    case TextField::Kind::kString:
      return field.text.empty();
    case TextField::Kind::kMessage:
      return std::all_of(field.message.fields.begin(), field.message.fields.end(), is_default);
  }
  return false;
}

// Joins numbers or names with commas.
template <class List>
std::string joined(const List& list) {
  std::string text;
  for (const auto& element : list) {
    if (!text.empty()) text += ',';
    if constexpr (std::is_integral_v<std::decay_t<decltype(element)>>)
      text += std::to_string(element);
    else
      text += element;
  }
  return text;
}

constexpr int64_t kMaxPlaces = 1'000'000;
constexpr std::string_view kOneByOne = "each step runs as soon as it can, by itself";

class TritonConfigReader {
 public:
  TritonConfigReader(const std::filesystem::path& folder, TritonConfig& config) : folder_(folder), config_(config) {}

  void read(const TextMessage& text) {
    for (const TextField& field : text.fields) read_field(field);
    if (!config_.ensemble) read_groups();
    if (!batching_.empty()) set("batching", batching_);
    if (most_sequences_ >= 0) set("sequences", std::to_string(std::min(most_sequences_, kMaxPlaces) * instances_));
  }

 private:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  void set(std::string key, std::string value) { config_.settings.emplace_back(std::move(key), std::move(value)); }
  // Records a field without an effect, unless it agrees with the server's behaviour.
  void ignore(const TextField& field, std::string_view within = {}, std::string_view why = {}) {
    if (is_default(field)) return;
    std::string text(within);
    if (!within.empty()) text += '.';
    text += excerpt(field.name) + " (line " + std::to_string(field.line) + ")";
    if (!why.empty()) text += ": " + std::string(why);
    config_.ignored.push_back(std::move(text));
  }

  void read_field(const TextField& field) {
    const std::string& name = field.name;
    if (name == "name") {
      config_.name = string_of(field);
    } else if (name == "platform") {
      read_platform(field);
    } else if (name == "backend") {
      if (string_of(field) != "pytorch") ignore(field, {}, "the package decides");
    } else if (name == "max_batch_size") {
      config_.max_batch_size = count_of(field);
      if (config_.max_batch_size > 0) {
        set("max_batch_size", std::to_string(config_.max_batch_size));
        batching_ = batching_.empty() ? "on" : batching_;
      } else {
        batching_ = "off";
      }
    } else if (name == "input") {
      config_.inputs.push_back(read_tensor(field));
    } else if (name == "output") {
      config_.outputs.push_back(read_tensor(field));
    } else if (name == "instance_group") {
      groups_.push_back(&field);
    } else if (name == "dynamic_batching") {
      if (batching_.empty()) batching_ = "on";
      read_batching(message_of(field));
    } else if (name == "version_policy") {
      read_versions(field);
    } else if (name == "parameters") {
      read_parameter(field);
    } else if (name == "metric_tags") {
      const auto [key, value] = entry_of(field);
      config_.metric_tags.emplace_back(key, string_of(*value));
    } else if (name == "model_warmup") {
      config_.warm_ups.push_back(read_warm_up(message_of(field)));
    } else if (name == "ensemble_scheduling") {
      config_.ensemble = true;
      for (const TextField& inner : message_of(field).fields) {
        if (inner.name == "step")
          config_.steps.push_back(read_step(message_of(inner)));
        else
          ignore(inner, name);
      }
    } else if (name == "model_operations") {
      read_operations(message_of(field));
    } else if (name == "default_model_filename") {
      if (string_of(field) != "model.pt2") ignore(field, {}, "a version's package is model.pt2");
    } else if (name == "sequence_batching") {
      read_sequences(message_of(field));
    } else {
      ignore(field);
    }
  }

  void read_platform(const TextField& field) {
    const std::string& platform = string_of(field);
    if (platform == "ensemble")
      config_.ensemble = true;
    else if (platform != "torch_aoti" && platform != "pytorch_libtorch" && !platform.empty())
      ignore(field, {}, "the package decides");
  }

  TritonTensor read_tensor(const TextField& field) {
    TritonTensor tensor;
    for (const TextField& inner : message_of(field).fields) {
      if (inner.name == "name") {
        tensor.name = string_of(inner);
      } else if (inner.name == "data_type") {
        tensor.datatype = datatype_of(inner);
      } else if (inner.name == "dims") {
        if (!tensor.dims) tensor.dims.emplace();
        tensor.dims->push_back(integer_of(inner));
        if (tensor.dims->back() < -1) fail(inner, "a size of -1, 0 or more is needed, got ", tensor.dims->back());
      } else if (inner.name == "label_filename" && field.name == "output") {
        if (!string_of(inner).empty()) set("labels", below_folder(inner, folder_));
      } else if (inner.name != "format" || word_of(inner) != "FORMAT_NONE") {
        ignore(inner, field.name);
      }
    }
    if (tensor.name.empty()) fail(field, "it has no name");
    return tensor;
  }

  // The path of a file that a field names, which must be in the folder.
  static std::string below_folder(const TextField& field, const std::filesystem::path& folder) {
    const std::filesystem::path file = string_of(field);
    const bool inside = !file.empty() && file.is_relative() &&
                        std::none_of(file.begin(), file.end(), [](const auto& part) { return part == ".."; }) &&
                        file.native().find('\0') == std::string::npos;
    if (!inside) fail(field, "expected a file below ", folder.string(), ", got '", excerpt(file.native()), "'");
    return (folder / file).string();
  }

  // Groups that differ only in their devices are merged. Other groups are not supported, because a model has the same
  // number of replicas on each of its devices.
  void read_groups() {
    std::optional<int64_t> replicas;
    std::vector<std::string> devices;
    for (const TextField* const group : groups_) {
      int64_t count = 1;
      std::string kind = "KIND_AUTO";
      std::vector<std::string> gpus;
      for (const TextField& inner : message_of(*group).fields) {
        if (inner.name == "count") {
          count = std::max<int64_t>(count_of(inner), 1);
        } else if (inner.name == "kind") {
          kind = word_of(inner);
          if (kind != "KIND_AUTO" && kind != "KIND_CPU" && kind != "KIND_GPU") {
            ignore(inner, group->name);
            kind = "KIND_AUTO";
          }
        } else if (inner.name == "gpus") {
          gpus.push_back("cuda:" + std::to_string(count_of(inner)));
        } else if (inner.name != "name") {
          ignore(inner, group->name);
        }
      }
      if (kind == "KIND_CPU") {
        gpus = {"cpu"};
      } else if (gpus.empty()) {
        gpus = {kind == "KIND_GPU" ? "cuda" : "auto"};
        if (kind == "KIND_GPU")
          config_.ignored.push_back("instance_group (line " + std::to_string(group->line) +
                                    "): without gpus the model is on the first GPU; name others with gpus");
      }
      if (replicas && *replicas != count)
        config_.ignored.push_back("instance_group.count (line " + std::to_string(group->line) +
                                  "): each device has as many replicas as the first group says");
      if (!replicas) replicas = count;
      for (std::string& device : gpus)
        if (std::find(devices.begin(), devices.end(), device) == devices.end()) devices.push_back(std::move(device));
    }
    if (groups_.empty()) return;
    set("replicas", std::to_string(*replicas));
    set("devices", joined(devices));
    instances_ = std::min(*replicas, kMaxPlaces) * static_cast<int64_t>(devices.size());
  }

  void read_batching(const TextMessage& message) {
    constexpr std::string_view kWithin = "dynamic_batching";
    std::set<int64_t> preferred;
    for (const TextField& field : message.fields) {
      if (field.name == "preferred_batch_size") {
        preferred.insert(count_of(field));
      } else if (field.name == "max_queue_delay_microseconds") {
        set("batch_delay", std::to_string(count_of(field)) + "us");
      } else if (field.name == "priority_levels") {
        set("priority_levels", std::to_string(count_of(field)));
      } else if (field.name == "default_priority_level") {
        set("default_priority", std::to_string(count_of(field)));
      } else if (field.name == "default_queue_policy") {
        read_queue(message_of(field));
      } else {
        ignore(field, kWithin);
      }
    }
    preferred.erase(0);
    if (!preferred.empty()) set("preferred_batch_sizes", joined(preferred));
  }

  void read_queue(const TextMessage& message) {
    bool override_allowed = false;
    for (const TextField& field : message.fields) {
      if (field.name == "max_queue_size") {
        if (const int64_t size = count_of(field); size > 0) set("queue", std::to_string(size));
      } else if (field.name == "default_timeout_microseconds") {
        set("queue_timeout", std::to_string(count_of(field)) + "us");
      } else if (field.name == "timeout_action") {
        const std::string& action = word_of(field);
        if (action != "REJECT" && action != "DELAY")
          fail(field, "expected REJECT or DELAY, got '", excerpt(action), "'");
        set("timeout_action", action == "REJECT" ? "reject" : "delay");
      } else if (field.name == "allow_timeout_override") {
        override_allowed = flag_of(field);
      } else {
        ignore(field, "dynamic_batching.default_queue_policy");
      }
    }
    set("timeout_override", override_allowed ? "true" : "false");
  }

  // A sequence without a slot is refused, so there are more slots than in Triton, unless the file gives their number.
  void read_sequences(const TextMessage& message) {
    constexpr std::string_view kWithin = "sequence_batching";
    constexpr int64_t kPlaces = 1024, kIdleMicroseconds = 1'000'000;
    int64_t idle = 0;
    most_sequences_ = 0;
    for (const TextField& field : message.fields) {
      if (field.name == "max_sequence_idle_microseconds") {
        idle = count_of(field);
      } else if (field.name == "control_input") {
        read_control(field);
      } else if (field.name == "direct") {
        for (const TextField& inner : message_of(field).fields) ignore(inner, "sequence_batching.direct", kOneByOne);
      } else if (field.name == "oldest") {
        for (const TextField& inner : message_of(field).fields) {
          if (inner.name == "max_candidate_sequences")
            most_sequences_ = count_of(inner);
          else if (inner.name != "preserve_ordering")  // the answers of a sequence are always in order
            ignore(inner, "sequence_batching.oldest", kOneByOne);
        }
      } else if (field.name == "state") {
        config_.ignored.push_back("sequence_batching.state (line " + std::to_string(field.line) +
                                  "): a state is a buffer that the package writes");
      } else {
        ignore(field, kWithin);
      }
    }
    if (most_sequences_ == 0) most_sequences_ = kPlaces;
    set("sequence_idle", std::to_string(idle > 0 ? idle : kIdleMicroseconds) + "us");
  }

  void read_control(const TextField& field) {
    TritonControl control;
    const TextField* given = nullptr;
    for (const TextField& inner : message_of(field).fields) {
      if (inner.name == "name") {
        control.name = string_of(inner);
      } else if (inner.name == "control") {
        if (given) fail(inner, "an input has one control");
        given = &inner;
      } else {
        ignore(inner, "sequence_batching.control_input");
      }
    }
    if (control.name.empty()) fail(field, "it has no name");
    if (!given) fail(field, "'", excerpt(control.name), "' has no control");
    std::string kind = "CONTROL_SEQUENCE_START";
    std::vector<double> values;
    for (const TextField& inner : message_of(*given).fields) {
      if (inner.name == "kind") {
        kind = word_of(inner);
      } else if (inner.name == "data_type") {
        control.datatype = datatype_of(inner);
      } else if (inner.name == "int32_false_true" || inner.name == "fp32_false_true" ||
                 inner.name == "bool_false_true") {
        const std::string datatype = inner.name.front() == 'i' ? "INT32" : inner.name.front() == 'f' ? "FP32" : "BOOL";
        if (!values.empty() && control.datatype != datatype) fail(inner, "a control has values of one type");
        control.datatype = datatype;
        values.push_back(control_value(inner));
      } else {
        ignore(inner, "sequence_batching.control_input.control");
      }
    }
    static const std::pair<std::string_view, TritonControl::Kind> kKinds[] = {
        {"CONTROL_SEQUENCE_START", TritonControl::Kind::kStart},
        {"CONTROL_SEQUENCE_END", TritonControl::Kind::kEnd},
        {"CONTROL_SEQUENCE_READY", TritonControl::Kind::kReady},
        {"CONTROL_SEQUENCE_CORRID", TritonControl::Kind::kId}};
    const auto* const known =
        std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& pair) { return pair.first == kind; });
    if (known == std::end(kKinds)) fail(*given, "there is no kind '", excerpt(kind), "'");
    control.kind = known->second;
    const bool id = control.kind == TritonControl::Kind::kId;
    if (id ? !values.empty() || control.datatype.empty() : values.size() != 2)
      fail(*given, "'", excerpt(control.name), "' needs ",
           id ? "a data_type" : "int32_false_true, fp32_false_true or bool_false_true with two values");
    if (!id) control.off = values[0], control.on = values[1];
    for (const TritonControl& other : config_.controls)
      if (other.kind == control.kind) fail(*given, "'", excerpt(other.name), "' is a ", kind, " already");
    config_.controls.push_back(std::move(control));
  }

  static double control_value(const TextField& field) {
    if (field.name == "bool_false_true") return flag_of(field) ? 1 : 0;
    if (field.name == "int32_false_true") {
      const auto number = parse_number<int32_t>(word_of(field));
      if (!number) fail(field, "expected a whole number of 32 bits, got '", excerpt(field.text), "'");
      return *number;
    }
    std::string word = word_of(field);
    if (word.ends_with('f') || word.ends_with('F')) word.pop_back();
    const auto number = parse_number<float>(word);
    if (!number) fail(field, "expected a number, got '", excerpt(field.text), "'");
    return *number;
  }

  void read_versions(const TextField& field) {
    for (const TextField& policy : message_of(field).fields) {
      if (policy.name == "all") {
        message_of(policy);
        set("version_policy", "all");
      } else if (policy.name == "latest") {
        int64_t count = 1;
        for (const TextField& inner : message_of(policy).fields) {
          if (inner.name == "num_versions")
            count = std::max<int64_t>(count_of(inner), 1);
          else
            ignore(inner, field.name);
        }
        set("version_policy", "latest:" + std::to_string(count));
      } else if (policy.name == "specific") {
        std::set<int64_t> versions;
        for (const TextField& inner : message_of(policy).fields) {
          if (inner.name == "versions")
            versions.insert(count_of(inner));
          else
            ignore(inner, field.name);
        }
        if (versions.empty()) fail(policy, "it names no version");
        set("version_policy", joined(versions));
      } else {
        ignore(policy, field.name);
      }
    }
  }

  // An entry of a map from strings to strings, or to messages with one member string_value.
  static std::pair<std::string, const TextField*> entry_of(const TextField& field) {
    std::pair<std::string, const TextField*> entry{{}, nullptr};
    for (const TextField& inner : message_of(field).fields) {
      if (inner.name == "key")
        entry.first = string_of(inner);
      else if (inner.name == "value")
        entry.second = &inner;
      else
        fail(inner, "expected key or value");
    }
    if (!entry.second) fail(field, "'", excerpt(entry.first), "' has no value");
    return entry;
  }

  void read_parameter(const TextField& field) {
    constexpr std::string_view kOwn = "sconce.";
    const auto [key, value] = entry_of(field);
    std::string text;
    for (const TextField& inner : message_of(*value).fields) {
      if (inner.name != "string_value") fail(inner, "expected string_value");
      text = string_of(inner);
    }
    if (key.starts_with(kOwn))
      set(key.substr(kOwn.size()), text);
    else if (key == "INTRA_OP_THREAD_COUNT")
      set("threads", text);
    config_.parameters.emplace_back(key, std::move(text));
  }

  void read_operations(const TextMessage& message) {
    std::vector<std::string> libraries;
    for (const TextField& field : message.fields) {
      if (field.name == "op_library_filename")
        libraries.push_back(string_of(field));
      else
        ignore(field, "model_operations");
    }
    if (!libraries.empty()) set("op_libraries", joined(libraries));
  }

  TritonWarmUp read_warm_up(const TextMessage& message) {
    TritonWarmUp warm_up;
    for (const TextField& field : message.fields) {
      if (field.name == "name") {
        warm_up.name = string_of(field);
      } else if (field.name == "batch_size") {
        warm_up.batch_size = count_of(field);
      } else if (field.name == "count") {
        warm_up.count = std::max<int64_t>(count_of(field), 1);
      } else if (field.name == "inputs") {
        warm_up.inputs.push_back(read_warm_up_input(field));
      } else {
        ignore(field, "model_warmup");
      }
    }
    return warm_up;
  }

  TritonWarmUp::Input read_warm_up_input(const TextField& field) {
    TritonWarmUp::Input input;
    const auto [name, value] = entry_of(field);
    input.name = name;
    bool given = false;
    for (const TextField& inner : message_of(*value).fields) {
      if (inner.name == "data_type") {
        input.datatype = datatype_of(inner);
      } else if (inner.name == "dims") {
        input.dims.push_back(count_of(inner));
      } else if (inner.name == "zero_data" || inner.name == "random_data") {
        given = flag_of(inner);
        input.values = inner.name == "zero_data" ? TritonWarmUp::Values::kZero : TritonWarmUp::Values::kRandom;
      } else if (inner.name == "input_data_file") {
        given = true;
        input.values = TritonWarmUp::Values::kFile;
        input.file = below_folder(inner, folder_ / "warmup");
      } else {
        ignore(inner, "model_warmup.inputs");
      }
    }
    if (!given) fail(field, "'", excerpt(name), "' has none of zero_data, random_data and input_data_file");
    return input;
  }

  TritonStep read_step(const TextMessage& message) {
    TritonStep step;
    const auto add = [](const TextField& field, Fields& to) {
      const auto [key, value] = entry_of(field);
      to.emplace_back(key, string_of(*value));
    };
    for (const TextField& field : message.fields) {
      if (field.name == "model_name") {
        step.model = string_of(field);
      } else if (field.name == "model_version") {
        step.version = integer_of(field);
      } else if (field.name == "input_map") {
        add(field, step.inputs);
      } else if (field.name == "output_map") {
        add(field, step.outputs);
      } else {
        ignore(field, "ensemble_scheduling.step");
      }
    }
    return step;
  }

  const std::filesystem::path& folder_;
  TritonConfig& config_;
  std::vector<const TextField*> groups_;
  int64_t instances_ = 1;
  std::string batching_;  // as in Triton, the file's author decides whether requests may share runs; empty: not said
  int64_t most_sequences_ = -1;  // per instance; -1: the file does not ask for sequences
};

}  // namespace

TritonConfig read_triton_config(std::string_view text, const std::filesystem::path& folder) {
  TritonConfig config;
  TritonConfigReader(folder, config).read(parse_text_format(text));
  return config;
}

}  // namespace sconce::server::scheduling
