#include "package_format/wrapper/wrapper_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "package_format/wrapper/source_call.h"

namespace sconce {
namespace {

constexpr int kMaxDepth = 16;
constexpr size_t kMaxNames = 4096;  // "tmp0" to this
constexpr size_t kLongest = 4096;   // characters in an expression

// A number that depends on an element of a parameter as scale * element + offset; without a parameter, a constant.
struct Line {
  int parameter = -1;
  double scale = 0, offset = 0;
};

std::optional<Line> sum(const Line& a, const Line& b, double sign) noexcept {
  if (a.parameter >= 0 && b.parameter >= 0 && a.parameter != b.parameter) return std::nullopt;
  return Line{std::max(a.parameter, b.parameter), a.scale + sign * b.scale, a.offset + sign * b.offset};
}

std::optional<Line> product(const Line& a, const Line& b) noexcept {
  if (a.parameter >= 0 && b.parameter >= 0) return std::nullopt;
  const Line &line = a.parameter >= 0 ? a : b, &by = a.parameter >= 0 ? b : a;
  return Line{line.parameter, line.scale * by.offset, line.offset * by.offset};
}

// The requirements of a kernel on the elements of each parameter.
using Wanted = std::vector<ValueBounds>;

// The number of "tmp12".
std::optional<size_t> skip_name(std::string_view& text) noexcept {
  std::string_view rest = text;
  if (!skip(rest, "tmp")) return std::nullopt;
  const std::optional<int64_t> number = skip_integer(rest);
  if (!number || *number < 0 || static_cast<size_t>(*number) >= kMaxNames) return std::nullopt;
  text = rest;
  return static_cast<size_t>(*number);
}

// "48L", "-2L", "255.0", "1.0f".
std::optional<double> read_number(std::string_view text) noexcept {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
  if (error != std::errc() || (rest != "" && rest != "L" && rest != "f" && rest != "LL")) return std::nullopt;
  return value;
}

class KernelReader {
 public:
  // parameters: names; text: the kernel's body.
  KernelReader(std::span<const std::string_view> parameters, std::string_view text) : parameters_(parameters) {
    wanted_.resize(parameters.size());
    read(text);
  }
  const Wanted& wanted() const noexcept { return wanted_; }

 private:
  void read(std::string_view text);
  void define(std::string_view text);
  void check(std::string_view message);
  void divide(std::string_view text);
  std::optional<Line> value_of(std::string_view text, int depth) const;
  std::optional<Line> operation(std::string_view text, int depth) const;
  std::optional<Line> loaded(std::string_view text) const;
  std::optional<Line> copied(std::string_view text) const;

  const std::span<const std::string_view> parameters_;
  std::vector<std::optional<Line>> names_ = std::vector<std::optional<Line>>(64);
  Wanted wanted_;
};

// Searches for definitions and checks.
void KernelReader::read(std::string_view text) {
  constexpr std::string_view kDefines = "auto tmp", kChecks = "\"index out of bounds: 0 <= ";
  size_t check_at = find_text(text, kChecks);
  for (size_t at = 0;;) {
    const size_t define_at = find_text(text, kDefines, at);
    while (check_at < define_at && check_at != std::string_view::npos) {
      check(text.substr(check_at + kChecks.size()));
      check_at = find_text(text, kChecks, check_at + 1);
    }
    if (define_at == std::string_view::npos) return;
    define(text.substr(define_at + 5));
    at = define_at + kDefines.size();
  }
}

// "tmp4 = EXPRESSION;"
void KernelReader::define(std::string_view text) {
  const std::optional<size_t> name = skip_name(text);
  if (!name || !skip(text, " =")) return;
  if (*name >= names_.size()) names_.resize(*name + 1);
  text = trim(text.substr(0, kLongest));
  while (!text.empty() && (text.front() == '\n' || text.front() == ' ')) text.remove_prefix(1);
  if (text.starts_with("[&]")) {
    names_[*name] = copied(text);
    return;
  }
  const size_t end = text.find(';');
  if (end == std::string_view::npos) return;
  text = text.substr(0, end);
  divide(text);
  names_[*name] = value_of(text, 0);
}

// A function that stores a vector in an array, or loads one from it, as indices require.
std::optional<Line> KernelReader::copied(std::string_view text) const {
  std::string_view body = text.substr(3);
  while (!body.empty() && (body.front() == '\n' || body.front() == ' ')) body.remove_prefix(1);
  const std::optional<std::string_view> inside = skip_bracketed(body);
  if (!inside || inside->find("tmpbuf") == std::string_view::npos) return std::nullopt;
  std::optional<size_t> only;
  for (size_t at = find_text(*inside, "tmp"); at != std::string_view::npos; at = find_text(*inside, "tmp", at + 3)) {
    std::string_view name = inside->substr(at);
    const std::optional<size_t> number = skip_name(name);
    if (!number) continue;
    if (only && *only != *number) return std::nullopt;
    only = number;
  }
  return only && *only < names_.size() ? names_[*only] : std::nullopt;
}

// "tmp7 < 32L\"": narrows the parameter from which the index comes.
void KernelReader::check(std::string_view message) {
  const std::optional<size_t> name = skip_name(message);
  if (!name || *name >= names_.size() || !names_[*name] || !skip(message, " < ")) return;
  const std::optional<int64_t> count = skip_integer(message);
  const Line& line = *names_[*name];
  if (!count || *count <= 0 || !message.starts_with("L\"") || line.parameter < 0 || line.scale == 0) return;
  double low = -line.offset / line.scale, high = (static_cast<double>(*count - 1) - line.offset) / line.scale;
  if (low > high) std::swap(low, high);
  ValueBounds& bounds = wanted_[static_cast<size_t>(line.parameter)];
  bounds.low = std::max(bounds.low, low + 0.0);  // no -0
  bounds.high = std::min(bounds.high, high + 0.0);
}

// "tmp3 / tmp5", "tmp3 % tmp5", "c10::div_floor_integer(tmp3, tmp5)".
void KernelReader::divide(std::string_view text) {
  const auto by = [&](std::string_view divisor) {
    // "decltype(tmp2)::set(decltype(tmp2)(1), tmp2, 8)": ones in the unused elements of a vector.
    if (skip(divisor, "decltype(") && skip_to(divisor, ")::set")) {
      const std::vector<std::string_view> parts = split_arguments(skip_bracketed(divisor).value_or(std::string_view()));
      divisor = parts.size() > 1 ? parts[1] : std::string_view();
    }
    const std::optional<size_t> name = skip_name(divisor);
    if (!name || *name >= names_.size() || !names_[*name]) return;
    const Line& line = *names_[*name];
    if (line.parameter >= 0 && line.scale != 0 && line.offset == 0)
      wanted_[static_cast<size_t>(line.parameter)].not_zero = true;
  };
  for (const std::string_view mark : {" / ", " % "})
    for (size_t at = text.find(mark); at != std::string_view::npos; at = text.find(mark, at + 1))
      by(text.substr(at + mark.size()));
  if (const size_t call = text.find("div_floor_integer("); call != std::string_view::npos) {
    std::string_view list = text.substr(text.find('(', call));
    const std::optional<std::string_view> inside = skip_bracketed(list);
    const std::vector<std::string_view> arguments = split_arguments(inside.value_or(std::string_view()));
    if (arguments.size() == 2) by(arguments[1]);
  }
}

// "in_ptr0[static_cast<int64_t>(x0)]", "at::vec::VectorizedN<int64_t,2>::loadu(in_ptr4 + ..., ...)".
std::optional<Line> KernelReader::loaded(std::string_view text) const {
  constexpr std::string_view kLoad = "::loadu(";
  const size_t load = text.find(kLoad);
  std::string_view from = load == std::string_view::npos ? text : text.substr(load + kLoad.size());
  const std::string_view name = skip_word(from);
  if (!name.starts_with("in_ptr") || (load == std::string_view::npos && !from.starts_with("["))) return std::nullopt;
  const auto at = std::find(parameters_.begin(), parameters_.end(), name);
  if (at == parameters_.end()) return std::nullopt;
  return Line{static_cast<int>(at - parameters_.begin()), 1, 0};
}

// The sum, difference or product of two parts, or a choice between two parts that differ by a number: for an index
// counted from the end, the latter is the index counted from the start.
std::optional<Line> KernelReader::operation(std::string_view text, int depth) const {
  int brackets = 0;
  for (size_t i = 0; i + 2 < text.size(); ++i) {
    const char c = text[i];
    brackets += (c == '(' || c == '[') - (c == ')' || c == ']');
    if (brackets != 0 || c != ' ' || text[i + 2] != ' ') continue;
    const char sign = text[i + 1];
    if (sign == '?') {
      const size_t colon = text.rfind(" : ");
      if (colon == std::string_view::npos || colon < i + 3) return std::nullopt;
      const auto chosen = value_of(text.substr(i + 3, colon - i - 3), depth),
                 otherwise = value_of(text.substr(colon + 3), depth);
      const bool alike =
          chosen && otherwise && chosen->parameter == otherwise->parameter && chosen->scale == otherwise->scale;
      return alike ? otherwise : std::nullopt;
    }
    if (sign != '+' && sign != '-' && sign != '*') continue;
    const auto left = value_of(text.substr(0, i), depth), right = value_of(text.substr(i + 3), depth);
    if (!left || !right) return std::nullopt;
    return sign == '*' ? product(*left, *right) : sum(*left, *right, sign == '+' ? 1 : -1);
  }
  return std::nullopt;
}

std::optional<Line> KernelReader::value_of(std::string_view text, int depth) const {
  text = trim(text);
  if (depth > kMaxDepth || text.empty()) return std::nullopt;
  std::string_view rest = text;
  if (const std::optional<size_t> name = skip_name(rest); name && rest.empty())
    return *name < names_.size() ? names_[*name] : std::nullopt;
  if (const std::optional<double> number = read_number(text)) return Line{-1, 0, *number};
  if (const std::optional<Line> line = loaded(text)) return line;
  if (const std::optional<Line> line = operation(text, depth + 1)) return line;
  // A conversion: the bracket at the end, after a type or the name of a function that preserves the value.
  const size_t open = text.front() == '(' ? 0 : text.find(text.starts_with("decltype(") ? ")" : "(");
  if (open == std::string_view::npos) return std::nullopt;
  std::string_view before = text.substr(0, open), list = text.substr(open);
  if (before.starts_with("decltype(")) {
    list.remove_prefix(1);
    if (skip(list, "::blendv")) {
      const std::optional<std::string_view> inside = skip_bracketed(list);
      const std::vector<std::string_view> parts = split_arguments(inside.value_or(std::string_view()));
      if (parts.size() < 3) return std::nullopt;  // "mask_cast<int64_t,2>(tmp7)" is two parts
      const auto otherwise = value_of(parts[0], depth + 1), chosen = value_of(parts[1], depth + 1);
      const bool alike =
          chosen && otherwise && chosen->parameter == otherwise->parameter && chosen->scale == otherwise->scale;
      return alike ? otherwise : std::nullopt;
    }
  } else {
    const bool converts = before.starts_with("c10::convert<") || before.starts_with("static_cast<") ||
                          before.starts_with("at::vec::convert<") || before.starts_with("at::vec::Vectorized");
    const bool type =
        before.empty() || before == "int64_t" || before == "int32_t" || before == "float" || before == "double";
    if (!type && !(converts && before.ends_with(">"))) return std::nullopt;
  }
  const std::optional<std::string_view> inside = skip_bracketed(list);
  return inside && list.empty() ? value_of(*inside, depth + 1) : std::nullopt;
}

class ValuesReader {
 public:
  explicit ValuesReader(ModelSpec& spec) : spec_(spec) {}

  void declare(std::string_view text);
  void read(std::string_view body);

 private:
  void statement(std::string_view line);
  void narrow(std::string_view argument, const ValueBounds& wanted);
  template <class Map>
  static auto find_in(const Map& map, std::string_view text) {
    while (!text.empty()) {
      const std::string_view word = skip_word(text);
      if (const auto at = map.find(word); at != map.end()) return at;
      if (word.empty()) text.remove_prefix(1);
    }
    return map.end();
  }

  ModelSpec& spec_;
  std::unordered_map<std::string_view, Wanted> kernels_;
  std::unordered_map<std::string_view, size_t> inputs_, constants_;  // by the names of their variables
};

// "extern "C"  void  cpp_NAME(const int64_t* in_ptr0, ...)\n{"
void ValuesReader::declare(std::string_view text) {
  while (skip_to(text, "extern \"C\"  void  ")) {
    const std::string_view name = skip_word(text);
    const std::optional<std::string_view> list = skip_bracketed(text);
    if (!list) return;
    if (!skip(text, "\n{")) continue;  // a declaration
    const size_t end = std::min(find_text(text, "\n}"), text.size());
    std::vector<std::string_view> parameters = split_arguments(*list);
    for (std::string_view& parameter : parameters) {
      parameter = trim(parameter);
      size_t begin = parameter.size();
      while (begin > 0 && is_word(parameter[begin - 1])) --begin;
      parameter.remove_prefix(begin);
    }
    const KernelReader kernel(parameters, text.substr(0, end));
    if (std::ranges::any_of(kernel.wanted(), &ValueBounds::known)) kernels_[name] = kernel.wanted();
    text.remove_prefix(end);
  }
}

void ValuesReader::read(std::string_view body) {
  while (const auto line = skip_line(body)) {
    if (line->starts_with("}") && line->find("::run_impl") != std::string_view::npos) return;
    statement(*line);
  }
}

void ValuesReader::statement(std::string_view line) {
  const auto place = [](std::string_view text, std::string_view before, size_t count) -> std::optional<size_t> {
    if (!skip(text, before)) return std::nullopt;
    const std::optional<int64_t> index = skip_integer(text);
    return index && *index >= 0 && static_cast<size_t>(*index) < count ? std::optional(static_cast<size_t>(*index))
                                                                       : std::nullopt;
  };
  skip(line, "[[maybe_unused]] ");
  if (skip(line, "auto& ") || skip(line, "auto ")) {
    const std::string_view name = skip_word(line);
    if (const auto input = place(line, " = std::move(inputs[", spec_.inputs.size())) inputs_[name] = *input;
    if (const auto constant = place(line, " = constants_->at(", spec_.constants.size())) constants_[name] = *constant;
    return;
  }
  skip(line, "AOTI_TORCH_ERROR_CODE_CHECK(");
  const std::string_view function = skip_word(line);
  if (function == "aoti_torch_cpu_embedding" || function == "aoti_torch_cpu__embedding_bag") {
    const std::vector<std::string_view> arguments = split_arguments(skip_bracketed(line).value_or(std::string_view()));
    if (arguments.size() < 2) return;
    const auto table = find_in(constants_, arguments[0]);
    if (table == constants_.end() || spec_.constants[table->second].shape.empty()) return;
    const int64_t rows = spec_.constants[table->second].shape[0];
    if (rows > 0) narrow(arguments[1], {.low = 0, .high = static_cast<double>(rows - 1), .not_zero = false});
    return;
  }
  const auto kernel = kernels_.find(function);
  if (kernel == kernels_.end()) return;
  const std::vector<std::string_view> arguments = split_arguments(skip_bracketed(line).value_or(std::string_view()));
  for (size_t i = 0; i < std::min(arguments.size(), kernel->second.size()); ++i)
    if (kernel->second[i].known()) narrow(arguments[i], kernel->second[i]);
}

void ValuesReader::narrow(std::string_view argument, const ValueBounds& wanted) {
  const auto input = find_in(inputs_, argument);
  if (input == inputs_.end()) return;
  ValueBounds& values = spec_.inputs[input->second].values;
  values.low = std::max(values.low, wanted.low);
  values.high = std::min(values.high, wanted.high);
  values.not_zero = values.not_zero || wanted.not_zero;
}

}  // namespace

void find_values(const WrapperSource& source, std::span<const std::string_view> kernels, ModelSpec& spec) {
  if (!source.found || spec.device_key == "cuda") return;
  ValuesReader reader(spec);
  for (const std::string_view text : kernels) reader.declare(text);
  reader.read(source.body);
}

}  // namespace sconce
