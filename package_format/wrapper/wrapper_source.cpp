#include "package_format/wrapper/wrapper_source.h"

#include <algorithm>

#include "package_format/text/source_text.h"
#include "package_format/wrapper/wrapper_graph.h"
#include "sconce/check.h"

namespace sconce {
namespace {

constexpr int64_t kMaxCount = 65536;

// The part of `text` after `mark`; empty if it is not there.
std::string_view behind(std::string_view text, std::string_view mark) {
  const size_t at = find_text(text, mark);
  return at == std::string_view::npos ? std::string_view() : text.substr(at + mark.size());
}

// "{8, 3, 3}": integers; a comma may follow the last. Parsed by hand, as a packed weight has hundreds.
template <class T>
bool read_list(std::string_view text, std::vector<T>& values) {
  const char* at = text.data();
  const char* const end = at + text.size();
  if (at == end || *at++ != '{') return false;
  while (at != end) {
    if (*at == ' ' || *at == ',' || *at == 'L') {
      ++at;
    } else if (*at == '}') {
      return true;
    } else {
      int64_t value = 0;
      const auto [stop, error] = std::from_chars(at, end, value);
      if (error != std::errc()) return false;
      values.push_back(static_cast<T>(value));
      at = stop;
    }
  }
  return false;
}

std::optional<Device> device_named(std::string_view type) {
  if (type == "cpu") return Device{};
  if (type == "cuda") return Device{DeviceType::kCuda, 0};
  return std::nullopt;
}

// The word after the first `prefix`: "static_cast<int32_t>(cached_torch_dtype_float32)".
std::string_view word_behind(std::string_view text, std::string_view prefix) {
  text = behind(text, prefix);
  return skip_word(text);
}

ConstantType constant_type(std::string_view name) {
  if (name == "Parameter") return ConstantType::kParameter;
  if (name == "Buffer") return ConstantType::kBuffer;
  if (name == "TensorConstant") return ConstantType::kTensorConstant;
  if (name == "FoldedConstant") return ConstantType::kFolded;
  return ConstantType::kUnknown;
}

// Reads `field = value;` of one constant. A value of an unknown form leaves the field unknown.
void read_constant_field(std::string_view field, std::string_view value, ConstantSpec& constant) {
  const auto text = [&] {
    std::string_view rest = value;
    return skip_string(rest).value_or(std::string());
  };
  const auto integer = [&] {
    std::string_view rest = value;
    return skip_integer(rest).value_or(0);
  };
  if (field == "name") {
    constant.name = text();
  } else if (field == "original_fqn") {
    constant.fqn = text();
  } else if (field == "dtype") {
    constant.dtype = dtype_from_name(word_behind(value, "torch_dtype_"));
  } else if (field == "device_type") {
    constant.device = device_named(word_behind(value, "torch_device_type_"));
  } else if (field == "offset") {
    constant.offset = integer();
  } else if (field == "data_size") {
    constant.data_size = static_cast<uint64_t>(std::max<int64_t>(integer(), 0));
  } else if (field == "from_folded") {
    constant.folded = value.starts_with("true");
  } else if (field == "type") {
    constant.type = constant_type(word_behind(value, "ConstantType::"));
  } else if (field == "shape") {
    constant.shape.clear();
    if (!read_list(value, constant.shape)) constant.shape.clear();
  } else if (field == "stride") {
    constant.strides.clear();
    if (!read_list(value, constant.strides)) constant.strides.clear();
  } else if (field == "layout") {
    constant.opaque = word_behind(value, "torch_layout_") == "_mkldnn";
  } else if (field == "opaque_metadata") {
    constant.opaque_metadata.clear();
    if (!read_list(value, constant.opaque_metadata)) constant.opaque_metadata.clear();
  }
}

// "[12].field = value;" -> the element, with `text` at the field. Null if the index is outside the list.
template <class T>
T* skip_element(std::string_view& text, std::vector<T>& list) {
  if (!skip(text, "[")) return nullptr;
  const std::optional<int64_t> index = skip_integer(text);
  if (!index || *index < 0 || static_cast<size_t>(*index) >= list.size() || !skip(text, "].")) return nullptr;
  return &list[static_cast<size_t>(*index)];
}

template <class T>
void resize(std::vector<T>& list, std::string_view& text, const char* what) {
  const std::optional<int64_t> count = skip_integer(text);
  SCONCE_CHECK(count && *count >= 0 && *count <= kMaxCount, kCorruptPackage,
               "generated source has no sensible number of ", what);
  list.resize(static_cast<size_t>(*count));
  text.remove_prefix(std::min(text.find_first_not_of(", \n\r\t"), text.size()));
}

// Reads from "AOTInductorModelBase(" to the end of the constructor; returns the remaining text.
std::string_view read_constructor(std::string_view text, ModelSpec& spec, WrapperSource& source) {
  resize(spec.inputs, text, "inputs");
  resize(spec.outputs, text, "outputs");
  resize(spec.constants, text, "constants");
  const std::string_view arguments = skip_to(text, "{").value_or(std::string_view());
  source.include_weights = arguments.find("false") == std::string_view::npos;
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    if (text.empty() || text.front() == '}') return text;
    if (skip(text, "in_spec_ =")) {
      source.in_spec = skip_string(text).value_or(std::string());
    } else if (skip(text, "out_spec_ =")) {
      source.out_spec = skip_string(text).value_or(std::string());
    } else {
      std::string_view line = *skip_line(text);
      if (skip(line, "constants_info_")) {
        ConstantSpec* constant = skip_element(line, spec.constants);
        const auto field = skip_to(line, " = ");
        if (constant && field) read_constant_field(*field, line, *constant);
      } else {
        const bool input = skip(line, "inputs_info_");
        if (!input && !skip(line, "outputs_info_")) continue;
        TensorSpec* tensor = skip_element(line, input ? spec.inputs : spec.outputs);
        if (tensor && skip(line, "name = ")) tensor->name = skip_string(line).value_or(std::string());
      }
    }
  }
}

struct InputCheck {
  TensorSpec* input = nullptr;
  std::string_view name;  // its C++ variable

  Dim& dim(int64_t index) {
    if (static_cast<size_t>(index) >= input->dims.size()) {
      input->dims.resize(static_cast<size_t>(index) + 1);
      input->strides.resize(input->dims.size());
    }
    return input->dims[static_cast<size_t>(index)];
  }
};

// Reads "NAME_size[D]" and leaves the rest in `text`.
std::optional<int64_t> skip_indexed(std::string_view& text, std::string_view name, std::string_view what) {
  std::string_view rest = text;
  if (!skip(rest, name) || !skip(rest, what) || !skip(rest, "[")) return std::nullopt;
  const std::optional<int64_t> index = skip_integer(rest);
  if (!index || *index < 0 || *index >= 64 || !skip(rest, "]")) return std::nullopt;
  text = rest;
  return index;
}

// A condition: "4 != X_size[0])", "X_size[0] < 2)", "X_size[0] > 8)", "4 != X_stride[0])".
void read_condition(std::string_view text, InputCheck& check) {
  if (const auto index = skip_indexed(text, check.name, "_size")) {
    const bool lower = skip(text, " < ");
    if (!lower && !skip(text, " > ")) return;
    const std::optional<int64_t> bound = skip_integer(text);
    Dim& dim = check.dim(*index);
    if (bound) (lower ? dim.min : dim.max) = *bound;
    return;
  }
  const std::optional<int64_t> value = skip_integer(text);
  if (!value || !skip(text, " != ")) return;
  if (const auto size = skip_indexed(text, check.name, "_size")) {
    Dim& dim = check.dim(*size);
    dim.min = dim.max = *value;
  } else if (const auto stride = skip_indexed(text, check.name, "_stride")) {
    check.dim(*stride);
    check.input->strides[static_cast<size_t>(*stride)] = *value;
  }
}

// Reads the checks of all inputs: functions check_input_N, or one function in torch 2.7.
void read_checks(std::string_view text, ModelSpec& spec) {
  InputCheck check;
  while (const auto next = skip_line(text)) {
    std::string_view line = *next;
    if (skip(line, "ConstantHandle ")) {
      check = {};
      const std::string_view name = skip_word(line);
      if (!skip(line, " = ConstantHandle(input_handles[")) continue;
      const std::optional<int64_t> index = skip_integer(line);
      if (!index || *index < 0 || static_cast<size_t>(*index) >= spec.inputs.size()) continue;
      check = {&spec.inputs[static_cast<size_t>(*index)], name};
    } else if (!check.input) {
      continue;
    } else if (skip(line, "if (")) {
      read_condition(line, check);
    } else if (skip(line, "auto ")) {
      if (skip(line, check.name) && line.starts_with("_size = ")) check.input->has_shape = true;
    } else if (skip(line, "int32_t ") && skip(line, check.name)) {
      if (skip(line, "_expected_dtype = aoti_torch_dtype_")) {
        check.input->dtype = dtype_from_name(skip_word(line));
      } else if (skip(line, "_expected_device_type = ")) {
        const std::optional<int64_t> type = skip_integer(line);
        if (type == 0) check.input->device = Device{};
        if (type == 1) check.input->device = Device{DeviceType::kCuda, 0};
      }
    }
  }
}

// "-march=x86-64-v3 -mavx2 -mfma". -mno-NAME removes a name; -mNAME=VALUE is not an instruction set.
void read_compile_command(std::string_view command, ModelSpec& spec) {
  constexpr std::string_view kMachine = "-m", kArchitecture = "-march=";
  while (!command.empty()) {
    std::string_view word = command.substr(0, command.find(' '));
    command.remove_prefix(std::min(word.size() + 1, command.size()));
    if (skip(word, kArchitecture)) {
      spec.march = word;
    } else if (skip(word, kMachine) && !word.starts_with("no-") && word.find('=') == std::string_view::npos) {
      if (!spec.isa_flags.empty()) spec.isa_flags += ' ';
      spec.isa_flags += word;
    }
  }
}

}  // namespace

int kernel_threads(std::string_view text) {
  int64_t threads = 0;
  for (const std::string_view before : {"num_threads(", "int64_t num_thread = "})
    for (size_t at = find_text(text, before); at != std::string_view::npos; at = find_text(text, before, at)) {
      at += before.size();
      std::string_view rest = text.substr(at);
      threads = std::max(threads, skip_integer(rest).value_or(0));
    }
  return static_cast<int>(std::min<int64_t>(threads, kMaxCount));
}

WrapperSource read_wrapper_source(std::string_view text, ModelSpec& spec) {
  WrapperSource source;
  std::string_view rest = behind(text, ": AOTInductorModelBase(");
  if (rest.empty()) return source;
  source.found = true;
  rest = read_constructor(rest, spec, source);
  // After the constructor come the code that folds constants, the checks, the body of run_impl, and the compile command
  // as a comment.
  const size_t run = std::min(find_text(rest, "::run_impl("), rest.size());
  const std::string_view before = rest.substr(0, run);
  source.body = rest.substr(run);
  const std::string_view folding = behind(before, "::_const_run_impl(");
  const size_t folding_end = find_text(folding, "::_const_run_impl\n");
  if (folding_end != std::string_view::npos) source.folding = folding.substr(0, folding_end);
  read_checks(before, spec);
  read_graph(source.body, spec);
  spec.loops = find_text(source.body, "while (") != std::string_view::npos;
  const std::string_view command = behind(source.body, "// Compile cmd\n");
  read_compile_command(command.substr(0, command.find('\n')), spec);
  return source;
}

}  // namespace sconce
