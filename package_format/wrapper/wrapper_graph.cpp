#include "package_format/wrapper/wrapper_graph.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "package_format/sizes/size_expression.h"
#include "package_format/wrapper/source_call.h"

namespace sconce {
namespace {

// A tensor while the graph runs.
struct Value {
  std::optional<DType> dtype;
  std::optional<Device> device;
  bool has_shape = false;
  std::vector<Dim> dims;
  std::vector<std::optional<int64_t>> strides;
  int input = -1;  // index, if the value is an input itself
};

constexpr int kUnknown = -1;

bool is_name(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_word); }

// "12L", "12" -> 12.
std::optional<int64_t> literal(std::string_view text) {
  const std::optional<int64_t> value = skip_integer(text);
  skip(text, "L");
  return text.empty() ? value : std::nullopt;
}

std::optional<DType> dtype_constant(std::string_view text) {
  return skip(text, "cached_torch_dtype_") ? dtype_from_name(text) : std::nullopt;
}

std::optional<Device> device_constant(std::string_view text) {
  if (text == "cached_torch_device_type_cpu") return Device{};
  if (text == "cached_torch_device_type_cuda") return Device{DeviceType::kCuda, 0};
  return std::nullopt;
}

// Operators that often end a model and return the dtype of their first argument. Before torch 2.14 nothing else
// records that dtype.
bool keeps_dtype(std::string_view function) {
  for (const std::string_view device : {"cpu_", "cuda_"}) skip(function, device);
  for (const std::string_view name :
       {"convolution", "mkldnn__convolution_pointwise", "_linear_pointwise", "mkldnn__convolution_transpose_pointwise",
        "mkldnn__convolution_pointwise_binary", "_linear_pointwise_binary"})
    if (function == name) return true;
  return false;
}

class GraphReader {
 public:
  explicit GraphReader(ModelSpec& spec) : spec_(spec), outputs_(spec.outputs.size(), kUnassigned) {}

  void read(std::string_view body) {
    while (const auto line = skip_line(body)) {
      if (line->starts_with("}") && line->find("::run_impl") != std::string_view::npos) break;
      statement(*line);
    }
    finish();
  }

 private:
  static constexpr int kUnassigned = -2;

  void statement(std::string_view line);
  void declare_list(std::string_view line);
  void declare_integer(std::string_view line);
  bool declare_number(std::string_view line);
  void assign(std::string_view line, bool fresh);
  void call(std::string_view line);
  void assert_shape(std::string_view arguments);
  void casts(std::string_view line);

  int evaluate(std::string_view text);
  int view(std::string_view source, std::string_view sizes, std::string_view strides);
  int scalar(std::string_view expression);
  int lookup(std::string_view name) const;
  int add(Value value) {
    values_.push_back(std::move(value));
    return static_cast<int>(values_.size()) - 1;
  }
  void bind(std::string_view target, int value);
  int merged(int a, int b);

  std::vector<std::string_view> list(std::string_view text) const;
  void set_shape(Value& value, std::string_view sizes, std::string_view strides) const;
  Dim dim(std::string_view text) const;
  std::string symbol(std::string_view text) const;
  void note_symbol(Value& value, size_t d, std::string_view text);
  void infer_symbols();
  void finish();

  ModelSpec& spec_;
  std::vector<Value> values_;
  std::unordered_map<std::string_view, int> names_;
  std::unordered_map<std::string_view, std::string_view> lists_;    // int_array_3 -> "2L, s77"
  std::unordered_map<std::string_view, std::string_view> aliases_;  // a symbol that equals another one
  std::unordered_map<std::string_view, DType> numbers_;             // C++ numbers other than int64_t: zuf0 -> float32
  std::vector<int> outputs_;
};

int GraphReader::lookup(std::string_view name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? kUnknown : found->second;
}

void GraphReader::bind(std::string_view target, int value) {
  skip(target, "&");
  if (skip(target, "output_handles[")) {
    const std::optional<int64_t> index = skip_integer(target);
    if (index && *index >= 0 && static_cast<size_t>(*index) < outputs_.size())
      outputs_[static_cast<size_t>(*index)] = value;
  } else if (is_name(target)) {
    names_[target] = value;
  }
}

// Merges the values of a variable after the two branches of a condition: keeps the facts that both share.
int GraphReader::merged(int a, int b) {
  if (a == b || a < 0 || b < 0) return b;
  const Value& x = values_[static_cast<size_t>(a)];
  Value both = values_[static_cast<size_t>(b)];
  both.input = -1;
  if (x.dtype != both.dtype) both.dtype.reset();
  if (x.device != both.device) both.device.reset();
  if (!x.has_shape || !both.has_shape || x.dims.size() != both.dims.size()) {
    both.has_shape = false;
    both.dims.clear();
    both.strides.clear();
    return add(std::move(both));
  }
  for (size_t d = 0; d < both.dims.size(); ++d) {
    const Dim &p = x.dims[d], &q = both.dims[d];
    if (p.min != q.min || p.max != q.max || p.symbol != q.symbol) both.dims[d] = {};
    if (x.strides.size() > d && both.strides.size() > d && x.strides[d] != both.strides[d]) both.strides[d].reset();
  }
  return add(std::move(both));
}

std::vector<std::string_view> GraphReader::list(std::string_view text) const {
  if (const auto found = lists_.find(text); found != lists_.end()) return split_arguments(found->second);
  const auto inner = skip_bracketed(text);
  return split_arguments(inner.value_or(std::string_view()));
}

// "2L*s43" -> "2*s27", if s43 equals s27.
std::string GraphReader::symbol(std::string_view text) const {
  std::string result;
  while (!text.empty()) {
    const std::string_view word = skip_word(text);
    if (word.empty()) {
      result.push_back(text.front());
      text.remove_prefix(1);
    } else if (const std::optional<int64_t> value = literal(word)) {
      result += std::to_string(*value);
    } else {
      const auto alias = aliases_.find(word);
      result += alias == aliases_.end() ? word : alias->second;
    }
  }
  // Calls of C++ functions read better in Python's form.
  if (result.find('<') == std::string::npos && result.find("::") == std::string::npos) return result;
  const auto expression = SizeExpression::parse(result);
  return expression ? expression->text() : result;
}

Dim GraphReader::dim(std::string_view text) const {
  if (const auto value = literal(text)) return {*value, *value, {}};
  Dim dim{.min = 0, .max = INT64_MAX, .symbol = symbol(text)};
  for (const TensorSpec& input : spec_.inputs)
    for (const Dim& known : input.dims)
      if (known.symbol == dim.symbol) return known;
  return dim;
}

void GraphReader::set_shape(Value& value, std::string_view sizes, std::string_view strides) const {
  value.has_shape = true;
  value.dims.clear();
  value.strides.clear();
  for (const std::string_view size : list(sizes)) value.dims.push_back(dim(size));
  for (const std::string_view stride : list(strides)) value.strides.push_back(literal(stride));
  if (value.strides.size() != value.dims.size()) value.strides.clear();
}

int GraphReader::view(std::string_view source, std::string_view sizes, std::string_view strides) {
  const int base = evaluate(source);
  Value value;
  if (base >= 0) {
    value.dtype = values_[static_cast<size_t>(base)].dtype;
    value.device = values_[static_cast<size_t>(base)].device;
  }
  set_shape(value, sizes, strides);
  return add(std::move(value));
}

// A number that the model returns becomes a tensor without dimensions, of the expression's C++ type.
int GraphReader::scalar(std::string_view expression) {
  Value value;
  value.device = Device{};
  value.has_shape = true;
  value.dtype = DType::kInt64;
  if (expression == "true" || expression == "false" || expression.find("==") != std::string_view::npos ||
      expression.find_first_of("<>!&|") != std::string_view::npos) {
    value.dtype = DType::kBool;
  } else if (expression.find('.') != std::string_view::npos) {
    value.dtype = DType::kFloat64;
  } else {
    for (std::string_view rest = expression; !rest.empty();) {
      const auto number = numbers_.find(skip_word(rest));
      if (number != numbers_.end()) value.dtype = number->second;
      if (!rest.empty()) rest.remove_prefix(1);
    }
  }
  return add(std::move(value));
}

// Reads "float zuf0_raw;" and "auto zuf0 = zuf0_raw;". False if the line is neither.
bool GraphReader::declare_number(std::string_view line) {
  std::string_view rest = line;
  const std::string_view type = skip_word(rest);
  if (!skip(rest, " ")) return false;
  const std::string_view name = skip_word(rest);
  if (type == "auto") {
    if (!skip(rest, " = ")) return false;
    const auto number = numbers_.find(skip_word(rest));
    if (number == numbers_.end() || rest != ";") return false;
    numbers_[name] = number->second;
    return true;
  }
  if (name.empty() || !(rest.starts_with(";") || rest.starts_with(" = "))) return false;
  const std::optional<DType> dtype = cpp_dtype(type);
  if (dtype) numbers_[name] = *dtype;
  return dtype.has_value();
}

// The value of an expression; kUnknown if it is not a tensor or has an unknown form.
int GraphReader::evaluate(std::string_view text) {
  text = trim(text);
  for (;;) {
    if (is_name(text)) return lookup(text);
    const size_t parenthesis = text.find_first_of("([");
    if (parenthesis == std::string_view::npos) return kUnknown;
    const std::string_view head = text.substr(0, parenthesis);
    std::string_view rest = text.substr(parenthesis);
    if (head == "output_handles") {
      skip(rest, "[");
      const std::optional<int64_t> index = skip_integer(rest);
      const bool known = index && *index >= 0 && static_cast<size_t>(*index) < outputs_.size();
      return known ? outputs_[static_cast<size_t>(*index)] : kUnknown;
    }
    const auto inner = skip_bracketed(rest);
    if (!inner) return kUnknown;
    if (head == "std::move" || head == "RAIIAtenTensorHandle" || head == "wrap_with_raii_handle_if_needed") {
      text = trim(*inner);
      std::string_view index = text;
      if (!skip(index, "inputs[")) continue;
      const std::optional<int64_t> i = skip_integer(index);
      if (!i || *i < 0 || static_cast<size_t>(*i) >= spec_.inputs.size()) return kUnknown;
      const TensorSpec& input = spec_.inputs[static_cast<size_t>(*i)];
      return add({input.dtype, input.device, input.has_shape, input.dims, input.strides, static_cast<int>(*i)});
    }
    if (head == "constants_->at") {
      const std::optional<int64_t> i = literal(*inner);
      if (!i || *i < 0 || static_cast<size_t>(*i) >= spec_.constants.size()) return kUnknown;
      const ConstantSpec& constant = spec_.constants[static_cast<size_t>(*i)];
      Value value{.dtype = constant.dtype, .device = constant.device, .has_shape = true, .dims = {}, .strides = {}};
      for (const int64_t size : constant.shape) value.dims.push_back({size, size, {}});
      value.strides.assign(constant.strides.begin(), constant.strides.end());
      return add(std::move(value));
    }
    if (head == "reinterpret_tensor_wrapper") {
      const std::vector<std::string_view> arguments = split_arguments(*inner);
      return arguments.size() == 5 ? view(arguments[0], arguments[2], arguments[3]) : kUnknown;
    }
    if (head == "scalar_to_tensor_handle") return scalar(*inner);
    if (head.ends_with(".release")) {
      text = head.substr(0, head.size() - 8);
      continue;
    }
    return kUnknown;
  }
}

// "int_array_0[] = {2L, s77};" or "*int_array_0=nullptr;"
void GraphReader::declare_list(std::string_view line) {
  skip(line, "*");
  const std::string_view name = skip_word(line);
  std::string_view value;
  if (skip(line, "[] = ")) value = skip_bracketed(line).value_or(std::string_view());
  lists_[name] = value;
}

// "s77 = arg0_1_size[0];", where the variable is an input's size, and "s43 = s77;"
void GraphReader::declare_integer(std::string_view line) {
  const std::string_view name = skip_word(line);
  if (!skip(line, " = ")) return;
  std::string_view word = skip_word(line);
  if (line == ";") {
    const auto alias = aliases_.find(word);
    aliases_[name] = alias == aliases_.end() ? word : alias->second;
    return;
  }
  if (!word.ends_with("_size") || !skip(line, "[")) return;
  word.remove_suffix(5);
  const std::optional<int64_t> d = skip_integer(line);
  const int value = lookup(word);
  if (value >= 0 && d && *d >= 0 && line == "];")
    note_symbol(values_[static_cast<size_t>(value)], static_cast<size_t>(*d), name);
}

void GraphReader::note_symbol(Value& value, size_t d, std::string_view text) {
  if (value.input < 0 || d >= value.dims.size() || value.dims[d].is_static()) return;
  value.dims[d].symbol = symbol(text);
  spec_.inputs[static_cast<size_t>(value.input)].dims[d].symbol = value.dims[d].symbol;
}

// "name = value;" or "name(value);". fresh: a declaration, so it is not the other branch of a condition.
void GraphReader::assign(std::string_view line, bool fresh) {
  std::string_view rest = line;
  std::string_view name = skip_word(rest);
  if (name == "output_handles") {
    const auto index = skip_to(rest, "] = ");
    if (!index) return;
    bind(line.substr(0, name.size() + index->size() + 1), evaluate(rest.substr(0, rest.rfind(';'))));
    return;
  }
  int value;
  if (skip(rest, " = ")) {
    value = evaluate(rest.substr(0, rest.find(';')));
  } else if (const auto inner = skip_bracketed(rest); inner && fresh && rest.starts_with(";")) {
    value = evaluate(*inner);
  } else {
    return;
  }
  bind(name, fresh ? value : merged(lookup(name), value));
}

void GraphReader::assert_shape(std::string_view text) {
  const std::vector<std::string_view> arguments = split_arguments(text);
  if (arguments.size() < 4) return;
  const int index = lookup(arguments[0]);
  if (index < 0) return;
  Value& value = values_[static_cast<size_t>(index)];
  if (value.input >= 0) {
    const std::vector<std::string_view> sizes = list(arguments[1]);
    if (sizes.size() == value.dims.size())
      for (size_t d = 0; d < sizes.size(); ++d) note_symbol(value, d, sizes[d]);
    return;
  }
  set_shape(value, arguments[1], arguments[2]);
  if (arguments.size() > 4)
    if (const auto dtype = dtype_constant(arguments[4])) value.dtype = dtype;
}

// "aoti_torch_NAME(...)", with the prefix removed.
void GraphReader::call(std::string_view line) {
  const std::string_view name = skip_word(line);
  const auto inner = skip_bracketed(line);
  if (!inner) return;
  if (inner->find('&') == std::string_view::npos) return;  // creates nothing
  const std::vector<std::string_view> arguments = split_arguments(*inner);
  if (arguments.size() >= 7 && name.starts_with("empty_strided")) {
    Value value;
    value.dtype = dtype_constant(arguments[3]);
    value.device = device_constant(arguments[4]);
    set_shape(value, arguments[1], arguments[2]);
    bind(arguments.back(), add(std::move(value)));
  } else if (arguments.size() == 2 && (name == "assign_tensors_out" || name == "new_tensor_handle")) {
    bind(arguments[1], evaluate(arguments[0]));
  } else if (arguments.size() == 2 && name.starts_with("clone")) {
    const int source = evaluate(arguments[0]);
    Value copy = source < 0 ? Value() : values_[static_cast<size_t>(source)];
    copy.input = -1;
    if (name == "clone") copy.strides.clear();
    bind(arguments[1], add(std::move(copy)));
  } else if (arguments.size() == 6 && name == "_reinterpret_tensor") {
    bind(arguments[5], view(arguments[0], arguments[2], arguments[3]));
  } else {
    // The results of an operator; the code may assert their shape later.
    const std::optional<Device> device = name.starts_with("cpu_")    ? std::optional(Device{})
                                         : name.starts_with("cuda_") ? std::optional(Device{DeviceType::kCuda, 0})
                                                                     : std::nullopt;
    const int first = keeps_dtype(name) ? evaluate(arguments[0]) : kUnknown;
    const std::optional<DType> dtype = first < 0 ? std::nullopt : values_[static_cast<size_t>(first)].dtype;
    for (const std::string_view argument : arguments)
      if (argument.starts_with("&") && argument.find('(') == std::string_view::npos)
        bind(argument, add({dtype, device, false, {}, {}}));
  }
}

// "(const float*)(buf0.data_ptr())" gives a dtype that nothing else records.
void GraphReader::casts(std::string_view line) {
  constexpr std::string_view kBehindType = "*)(";
  for (size_t at = line.find(kBehindType); at != std::string_view::npos; at = line.find(kBehindType, at + 1)) {
    std::string_view rest = line.substr(at + kBehindType.size());
    const int index = lookup(skip_word(rest));
    if (index < 0 || !rest.starts_with(".data_ptr()")) continue;
    Value& value = values_[static_cast<size_t>(index)];
    if (value.dtype) continue;
    const size_t open = line.rfind('(', at);
    if (open == std::string_view::npos) continue;
    value.dtype = cpp_dtype(line.substr(open + 1, at - open - 1));
    if (value.input >= 0) spec_.inputs[static_cast<size_t>(value.input)].dtype = value.dtype;
  }
}

void GraphReader::statement(std::string_view line) {
  if (line.empty() || line.starts_with("//")) return;
  if (skip(line, "if (_check_aoti_runtime_check_inputs_env()) { ") && line.ends_with(" }")) line.remove_suffix(2);
  skip(line, "[[maybe_unused]] ");
  if (skip(line, "AOTI_TORCH_ERROR_CODE_CHECK(") || line.starts_with("aoti_torch_")) {
    if (skip(line, "aoti_torch_")) call(line);
  } else if (skip(line, "assert_size_stride(")) {
    assert_shape(line.substr(0, line.rfind(')')));
  } else if (skip(line, "static constexpr int64_t ") || skip(line, "const int64_t ")) {
    declare_list(line);
  } else if (skip(line, "int64_t ")) {
    declare_integer(line);
  } else if (declare_number(line)) {
  } else if (skip(line, "auto& ") || skip(line, "auto ") || skip(line, "decltype(auto) ") ||
             skip(line, "RAIIAtenTensorHandle ")) {
    assign(line, /*fresh=*/true);
  } else if (line.find(".data_ptr())") != std::string_view::npos) {
    casts(line);
  } else {
    assign(line, /*fresh=*/false);
  }
}

// Up to torch 2.12 only the first of several equal sizes has a symbol. A dimension without one consists of symbols
// that were bound before it; if exactly one symbol has the same range, it is that symbol.
void GraphReader::infer_symbols() {
  struct Bound {
    const Dim* dim;
    bool unique = true;
  };
  std::map<std::pair<int64_t, int64_t>, Bound> by_range;
  for (TensorSpec& input : spec_.inputs)
    for (Dim& dim : input.dims) {
      if (dim.is_static() || !is_name(dim.symbol)) continue;
      const auto [at, added] = by_range.try_emplace({dim.min, dim.max}, Bound{&dim});
      if (!added && at->second.dim->symbol != dim.symbol) at->second.unique = false;
    }
  for (TensorSpec& input : spec_.inputs)
    for (Dim& dim : input.dims) {
      if (dim.is_static() || !dim.symbol.empty()) continue;
      const auto found = by_range.find({dim.min, dim.max});
      if (found != by_range.end() && found->second.unique) dim.symbol = found->second.dim->symbol;
    }
}

void GraphReader::finish() {
  infer_symbols();
  for (size_t i = 0; i < outputs_.size(); ++i) {
    TensorSpec& output = spec_.outputs[i];
    output.none = outputs_[i] == kUnassigned;
    if (outputs_[i] < 0) continue;
    Value& value = values_[static_cast<size_t>(outputs_[i])];
    output.dtype = value.dtype;
    output.device = value.device;
    output.has_shape = value.has_shape;
    output.dims = value.input < 0 ? value.dims : spec_.inputs[static_cast<size_t>(value.input)].dims;
    output.strides = value.strides;
  }
}

}  // namespace

void read_graph(std::string_view body, ModelSpec& spec) { GraphReader(spec).read(body); }

}  // namespace sconce
