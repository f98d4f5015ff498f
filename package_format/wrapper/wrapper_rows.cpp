#include "package_format/wrapper/wrapper_rows.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "package_format/wrapper/source_call.h"

namespace sconce {
namespace {

// A tensor's variable while the graph runs.
struct Rows {
  bool carries = false;        // computed from rows of the batch
  bool sized = false;          // its shape depends on how many rows there are
  bool shaped = false;         // its shape is known
  std::string_view joined;     // the fixed-size tensor of rows that it is computed from; empty: none
  std::string_view base = {};  // of a view
};

// The symbol of the first dimension that all inputs share, as the server's batch_symbol().
std::string_view batch_symbol(const ModelSpec& spec) {
  std::string_view symbol;
  for (const TensorSpec& input : spec.inputs) {
    if (!input.has_shape || input.dims.empty() || input.dims[0].is_static()) return {};
    if (input.dims[0].symbol.empty() || (!symbol.empty() && input.dims[0].symbol != symbol)) return {};
    symbol = input.dims[0].symbol;
  }
  return symbol;
}

// How coarsely values of the dtype are rounded.
int coarseness(std::optional<DType> dtype) noexcept {
  return dtype == DType::kBFloat16 ? 2 : dtype == DType::kFloat16 ? 1 : 0;
}

enum class Use : int8_t { kNone, kRead, kWrite, kBoth };

// A compiled kernel: its steps, and how each step uses each parameter. PyTorch puts unrelated computations into one CPU
// kernel, as blocks after each other.
struct Kernel {
  std::vector<std::string_view> parameters;
  std::vector<std::vector<Use>> steps;
};

Use use_of(std::string_view parameter) noexcept {
  return parameter.starts_with("in_ptr")       ? Use::kRead
         : parameter.starts_with("out_ptr")    ? Use::kWrite
         : parameter.starts_with("in_out_ptr") ? Use::kBoth
                                               : Use::kNone;
}

size_t indent_of(std::string_view line) noexcept { return std::min(line.find_first_not_of(' '), line.size()); }

// Notes how a line of a kernel uses pointers: "auto tmp0 = out_ptr0[0L];" and "loadu(out_ptr0 + ..." read what an
// earlier step has written.
void note_uses(std::string_view line, const Kernel& kernel, std::vector<Use>& step) {
  constexpr std::string_view kPointer = "_ptr";
  for (size_t at = find_text(line, kPointer); at != std::string_view::npos; at = find_text(line, kPointer, at + 1)) {
    size_t begin = at;
    while (begin > 0 && is_word(line[begin - 1])) --begin;
    std::string_view word = line.substr(begin);
    word = skip_word(word);
    const std::string_view before = line.substr(0, begin);
    const bool read = before.ends_with("loadu(") || before.ends_with("= ");
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      if (kernel.parameters[i] != word) continue;
      const Use use = read ? Use::kRead : use_of(word);
      step[i] = step[i] == Use::kNone || step[i] == use ? use : Use::kBoth;
    }
  }
}

// Reads the steps of the kernel definition at the start of `text`; a declaration has none.
void read_steps(std::string_view text, Kernel& kernel) {
  const std::vector<Use> unused(kernel.parameters.size(), Use::kNone);
  bool parallel = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line == "}") return;
    const size_t indent = indent_of(line);
    const std::string_view content = line.substr(indent);
    if (indent == 4 && content.starts_with("#pragma omp parallel")) parallel = true;
    if (indent == 4 && content == "}") parallel = false;
    if (kernel.steps.empty() || (content == "{" && indent == (parallel ? 8 : 4))) kernel.steps.push_back(unused);
    note_uses(line, kernel, kernel.steps.back());
  }
}

class RowsReader {
 public:
  explicit RowsReader(ModelSpec& spec) : spec_(spec), integers_{batch_symbol(spec)} {}

  // Reads launchers of Triton kernels, and CPU kernels or their declarations.
  void declare(std::string_view text) {
    declare_kernels(text, "static inline void call_");
    declare_kernels(text, "extern \"C\"  void  cpp_");
  }

  void read(std::string_view body) {
    while (const auto line = skip_line(body)) {
      if (line->starts_with("}") && line->find("::run_impl") != std::string_view::npos) break;
      if (line->starts_with("// subgraph:") && !condition_.empty()) found(condition_);
      condition_ = {};
      if (!line->empty() && !line->starts_with("//")) statement(*line);
      if (!spec_.rows_joined.empty()) return;
    }
  }

 private:
  void declare_kernels(std::string_view text, std::string_view mark);
  void statement(std::string_view line);
  void assign(std::string_view target, std::string_view value);
  void call(std::string_view function, std::string_view list);
  void abi_call(std::string_view function, const std::vector<std::string_view>& arguments);
  void assert_shape(std::string_view arguments);
  void write(std::span<const std::string_view> arguments, std::span<const Use> uses);

  // The first word that names a tensor; empty if there is none.
  std::string_view tensor_in(std::string_view text) const {
    return first_word(text, [&](std::string_view word) { return rows_.contains(word); });
  }
  bool depends_on_batch(std::string_view text) const {
    return !first_word(text, [&](std::string_view word) { return integers_.contains(word); }).empty();
  }
  template <class Wanted>
  static std::string_view first_word(std::string_view text, Wanted&& wanted) {
    while (!text.empty()) {
      const std::string_view word = skip_word(text);
      if (!word.empty() && wanted(word)) return word;
      if (word.empty()) text.remove_prefix(1);
    }
    return {};
  }
  void found(std::string_view name) {
    constexpr std::string_view kHandle = "_handle";
    if (name.ends_with(kHandle)) name.remove_suffix(kHandle.size());
    spec_.rows_joined = name;
  }

  ModelSpec& spec_;
  std::unordered_set<std::string_view> integers_;                   // those that depend on the batch
  std::unordered_map<std::string_view, Rows> rows_;                 // tensors
  std::unordered_map<std::string_view, std::string_view> numbers_;  // read from a joined tensor
  std::unordered_map<std::string_view, Kernel> kernels_;
  std::string_view condition_;  // what the `if` of the previous line tests, if that is joined
};

// "static inline void call_NAME(\n const in_ptr0_type_& in_ptr0, ...)" and "extern "C"  void  cpp_NAME(const float*
// ...)"
void RowsReader::declare_kernels(std::string_view text, std::string_view mark) {
  while (skip_to(text, mark)) {
    const std::string_view name = skip_word(text);
    const std::optional<std::string_view> list = skip_bracketed(text);
    if (!list) return;
    Kernel kernel{.parameters = split_arguments(*list), .steps = {}};
    for (std::string_view& parameter : kernel.parameters) {
      parameter = trim(parameter.substr(0, parameter.find('=')));
      size_t begin = parameter.size();
      while (begin > 0 && is_word(parameter[begin - 1])) --begin;
      parameter.remove_prefix(begin);
    }
    if (mark.starts_with("static")) {
      for (std::vector<Use>& step = kernel.steps.emplace_back(); const std::string_view parameter : kernel.parameters)
        step.push_back(use_of(parameter));
    } else if (skip(text, "\n{\n")) {
      read_steps(text, kernel);
    }
    if (!kernel.steps.empty()) kernels_[name] = std::move(kernel);
  }
}

void RowsReader::statement(std::string_view line) {
  if (skip(line, "if (_check_aoti_runtime_check_inputs_env()) { ") && line.ends_with(" }")) line.remove_suffix(2);
  skip(line, "[[maybe_unused]] ");
  skip(line, "AOTI_TORCH_ERROR_CODE_CHECK(");
  if (skip(line, "if (")) {
    const std::string_view word = skip_word(line);
    if (const auto number = numbers_.find(word); number != numbers_.end()) condition_ = number->second;
    return;
  }
  skip(line, "static constexpr ");
  skip(line, "const ");
  if (skip(line, "int64_t ")) {
    skip(line, "*");
    const std::string_view name = skip_word(line);
    if (depends_on_batch(line)) integers_.insert(name);
    return;
  }
  std::string_view rest = line;
  for (const std::string_view type : {"RAIIAtenTensorHandle ", "auto& ", "auto ", "decltype(auto) "})
    if (skip(rest, type)) break;
  const bool declares = rest.size() != line.size();
  std::string_view target = rest;
  const std::string_view name = skip_word(rest);
  if (name == "output_handles") {
    if (const std::string_view output = tensor_in(rest); !output.empty() && !rows_[output].joined.empty())
      found(rows_[output].joined);
  } else if (skip(rest, " = ") || (declares && rest.starts_with("("))) {
    assign(target.substr(0, name.size()), rest);
  } else if (const auto list = skip_bracketed(rest)) {
    call(name, *list);
  }
}

// Another name of a tensor, or a view of it: "std::move(x)", "wrap_with_raii_handle_if_needed(reinterpret...(x, ...))".
void RowsReader::assign(std::string_view target, std::string_view value) {
  constexpr std::string_view kInput = "std::move(inputs[", kView = "reinterpret_tensor_wrapper(";
  if (skip(value, kInput)) {
    const std::optional<int64_t> index = skip_integer(value);
    if (index && *index >= 0 && static_cast<size_t>(*index) < spec_.inputs.size())
      rows_[target] = {.carries = true, .sized = true, .shaped = true, .joined = {}};
    return;
  }
  const std::string_view from = tensor_in(value);
  if (from.empty()) {
    rows_.erase(target);
    return;
  }
  Rows rows = rows_[from];
  if (skip_to(value, kView)) {
    value = value.substr(0, value.rfind(')'));
    const std::vector<std::string_view> arguments = split_arguments(value);
    if (arguments.size() >= 4) {
      const bool sized = depends_on_batch(arguments[2]);
      if (rows.carries && rows.sized && !sized && rows.joined.empty()) rows.joined = target;  // its rows are certain
      rows.sized = sized;
      rows.shaped = true;
      rows.base = from;
    }
  }
  rows_[target] = rows;
}

void RowsReader::write(std::span<const std::string_view> arguments, std::span<const Use> uses) {
  bool carries = false;
  std::string_view joined;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (uses[i] == Use::kWrite || uses[i] == Use::kNone) continue;
    const auto read = rows_.find(tensor_in(arguments[i]));
    if (read == rows_.end()) continue;
    carries = carries || read->second.carries;
    if (joined.empty()) joined = read->second.joined;
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (uses[i] == Use::kRead || uses[i] == Use::kNone) continue;
    const auto written = rows_.find(tensor_in(arguments[i]));
    if (written == rows_.end()) continue;
    Rows& rows = written->second;
    rows.carries = carries;
    rows.joined = carries && rows.shaped && !rows.sized && joined.empty() ? written->first : joined;
    if (const auto base = rows_.find(rows.base); base != rows_.end()) {
      base->second.carries = base->second.carries || carries;
      if (base->second.joined.empty()) base->second.joined = rows.joined;
    }
  }
}

// "{s77, 8L}" or the name of a list.
void RowsReader::assert_shape(std::string_view text) {
  const std::vector<std::string_view> arguments = split_arguments(text);
  if (arguments.size() < 3) return;
  const auto at = rows_.find(arguments[0]);
  if (at == rows_.end() || at->second.shaped) return;
  at->second.shaped = true;
  at->second.sized = depends_on_batch(arguments[1]);
  if (at->second.carries && !at->second.sized && at->second.joined.empty()) at->second.joined = at->first;
}

void RowsReader::abi_call(std::string_view function, const std::vector<std::string_view>& arguments) {
  if (arguments.empty()) return;
  const std::string_view last = arguments.back();
  if (function.starts_with("empty_strided") && arguments.size() >= 7) {
    const std::string_view made = last.substr(last.find_first_not_of('&'));
    rows_[made] = {.carries = false, .sized = depends_on_batch(arguments[1]), .shaped = true, .joined = {}};
    std::string_view name = arguments[3];
    const std::optional<DType> dtype = skip(name, "cached_torch_dtype_") ? dtype_from_name(name) : std::nullopt;
    if (coarseness(dtype) > coarseness(spec_.coarsest_buffer)) spec_.coarsest_buffer = dtype;
    return;
  }
  if (function.starts_with("item_")) {
    const std::string_view from = tensor_in(arguments[0]);
    if (!from.empty() && !rows_[from].joined.empty() && last.starts_with("&"))
      numbers_[last.substr(1)] = rows_[from].joined;
    return;
  }
  if (function == "proxy_executor_call_function") return;  // does not say which tensors it writes
  if (arguments.size() == 2 && (function == "assign_tensors_out" || function == "new_tensor_handle")) {
    if (last.starts_with("&")) assign(last.substr(1), arguments[0]);
    return;
  }
  std::vector<Use> uses(arguments.size(), Use::kRead);
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string_view name = arguments[i];
    if (!skip(name, "&")) continue;
    uses[i] = Use::kWrite;
    if (std::all_of(name.begin(), name.end(), is_word)) rows_[name] = {};
  }
  if (function.ends_with("_out")) uses[0] = Use::kWrite;
  if (function.ends_with("_")) uses[0] = Use::kBoth;
  if (function == "tensor_copy_" && uses.size() > 1) {
    uses[0] = Use::kRead;
    uses[1] = Use::kWrite;
  }
  write(arguments, uses);
}

void RowsReader::call(std::string_view function, std::string_view list) {
  if (function == "assert_size_stride") return assert_shape(list);
  const std::vector<std::string_view> arguments = split_arguments(list);
  if (skip(function, "aoti_torch_")) return abi_call(function, arguments);
  std::string_view name = function;
  if (!skip(name, "call_")) skip(name, "cpp_");
  const auto kernel = kernels_.find(name);
  if (kernel == kernels_.end()) return;
  const size_t count = std::min(arguments.size(), kernel->second.parameters.size());
  for (const std::vector<Use>& step : kernel->second.steps) write({arguments.data(), count}, {step.data(), count});
}

}  // namespace

void find_joined_rows(const WrapperSource& source, std::span<const std::string_view> kernels, ModelSpec& spec) {
  if (!source.found || batch_symbol(spec).empty()) return;
  RowsReader reader(spec);
  for (const std::string_view text : kernels) reader.declare(text);
  reader.read(source.body);
}

}  // namespace sconce
