#include "package_format/wrapper/wrapper_mutation.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <vector>

#include "package_format/wrapper/source_call.h"

namespace sconce {
namespace {

// The parameter names of the definition of `function`, which launches a kernel that the compiler generated; empty if
// there is none. A user's kernel may write its in_ptr parameters.
std::vector<std::string_view> parameters(std::string_view text, std::string_view function) {
  std::string head(function);
  const size_t at = find_text(text, head.append("("));
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + function.size());
  const std::string_view list = skip_bracketed(text).value_or(std::string_view());
  // The kernel's source is a comment in the launcher.
  if (text.substr(0, find_text(text, "launchKernel(")).find("triton_heuristics.user_autotune") !=
      std::string_view::npos)
    return {};
  std::vector<std::string_view> names = split_arguments(list);
  for (std::string_view& name : names) {
    name = trim(name.substr(0, name.find('=')));
    size_t begin = name.size();
    while (begin > 0 && is_word(name[begin - 1])) --begin;
    name.remove_prefix(begin);
  }
  return names;
}

// "cpu__softmax" -> "_softmax": a function of the C ABI without the prefix of its device.
std::string_view operator_of(std::string_view function) {
  for (const std::string_view prefix : {"cpu_", "cuda_", "aten_"})
    if (skip(function, prefix)) break;
  return function;
}

// Whether the returned handle shares the memory of the function's first argument.
bool makes_view(std::string_view function) {
  static constexpr std::string_view kViews[] = {"_reinterpret_tensor",
                                                "as_strided",
                                                "assign_tensors_out",
                                                "narrow",
                                                "new_tensor_handle",
                                                "permute",
                                                "reshape",
                                                "slice_Tensor",
                                                "squeeze_dim",
                                                "view_as_complex",
                                                "view_as_real",
                                                "view_dtype"};
  return std::find(std::begin(kViews), std::end(kViews), operator_of(function)) != std::end(kViews);
}

// The argument that a function of the C ABI writes; -1 if none, as for all functions that make new tensors.
int written_argument(std::string_view function) {
  if (function == "tensor_copy_" || function == "assign_tensors") return 1;  // (source, destination)
  if (function.find("_pointwise_binary_") != std::string_view::npos && function.ends_with("_")) return 1;  // (x, sum)
  if (function.ends_with("_") || function.ends_with("_out") || function.find("_inplace") != std::string_view::npos)
    return 0;
  if (function == "get_data_ptr") return 0;  // for an unknown kernel
  // "bernoulli__float" is bernoulli_ with an overload; the namespace of "mkldnn__linear_pointwise" is mkldnn.
  const std::string_view name = operator_of(function);
  const size_t overload = name.find("__", 1);
  return overload != std::string_view::npos && name.substr(0, overload) != "mkldnn" ? 0 : -1;
}

class MutationReader {
 public:
  MutationReader(std::string_view text, const ModelSpec& spec)
      : text_(text), spec_(spec), written_(spec.constants.size() + spec.inputs.size()), taken_(spec.inputs.size()) {}

  bool writes_constant(size_t index) const { return written_[index]; }
  bool may_write_input(size_t index) const { return !taken_[index] || written_[spec_.constants.size() + index]; }

  void read(std::string_view body) {
    names_.clear();
    while (auto line = skip_line(body)) {
      if (line->starts_with("}") && line->find("::run_impl") != std::string_view::npos) break;
      if (!line->starts_with("//")) statement(*line);
    }
  }

 private:
  bool declares(std::string_view line);
  void statement(std::string_view line);
  void arguments(std::string_view list, const std::vector<bool>& reads);
  // Calls visit(number, name's position) for each name of a constant or an input.
  template <class Visit>
  void for_each_use(std::string_view line, Visit visit) const;

  std::string_view text_;
  const ModelSpec& spec_;
  std::vector<bool> written_;                           // constants, then inputs
  std::vector<bool> taken_;                             // inputs that have a variable
  std::unordered_map<std::string_view, size_t> names_;  // variables that are one of these or a view of one
};

template <class Visit>
void MutationReader::for_each_use(std::string_view line, Visit visit) const {
  for (size_t i = 0; i < line.size();) {
    if (!is_word(line[i])) {
      ++i;
      continue;
    }
    std::string_view rest = line.substr(i);
    const std::string_view word = skip_word(rest);
    if (const auto found = names_.find(word); found != names_.end()) visit(found->second, i);
    i += word.size();
  }
}

// Handles a variable that is a constant, an input, a view of one or its handle. False for any other line.
bool MutationReader::declares(std::string_view line) {
  skip(line, "[[maybe_unused]] ");
  std::string_view rest = line;
  const bool handle = skip(rest, "RAIIAtenTensorHandle ");
  if (handle || skip(rest, "auto& ") || skip(rest, "auto ") || skip(rest, "decltype(auto) ")) {
    const std::string_view name = skip_word(rest);
    std::string_view value = rest;
    if (skip(value, " = constants_->at(")) {
      const std::optional<int64_t> index = skip_integer(value);
      if (index && *index >= 0 && static_cast<size_t>(*index) < spec_.constants.size())
        names_[name] = static_cast<size_t>(*index);
      return true;
    }
    if (skip(value, " = std::move(inputs[")) {
      const std::optional<int64_t> index = skip_integer(value);
      if (index && *index >= 0 && static_cast<size_t>(*index) < spec_.inputs.size()) {
        names_[name] = spec_.constants.size() + static_cast<size_t>(*index);
        taken_[static_cast<size_t>(*index)] = true;
      }
      return true;
    }
    if (value.ends_with(".sizes();") || value.ends_with(".strides();")) return true;
    for_each_use(rest, [&](size_t constant, size_t) { names_[name] = constant; });
    return true;
  }
  constexpr std::string_view kAbi = "aoti_torch_";
  const size_t at = line.find(kAbi);
  if (at == std::string_view::npos) return false;
  rest = line.substr(at + kAbi.size());
  if (!makes_view(skip_word(rest))) return false;
  const size_t out = line.rfind('&');
  if (out == std::string_view::npos) return true;
  rest = line.substr(out + 1);
  const std::string_view name = skip_word(rest);
  for_each_use(line.substr(at, out - at), [&](size_t constant, size_t) { names_[name] = constant; });
  return true;
}

void MutationReader::arguments(std::string_view list, const std::vector<bool>& reads) {
  const std::vector<std::string_view> parts = split_arguments(list);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i < reads.size() ? reads[i] : reads.back()) continue;
    for_each_use(parts[i], [&](size_t constant, size_t) { written_[constant] = true; });
  }
}

void MutationReader::statement(std::string_view line) {
  if (declares(line)) return;
  bool used = false;
  for_each_use(line, [&](size_t, size_t) { used = true; });
  if (!used || line.find("assert_size_stride(") != std::string_view::npos ||
      line.find("assert_alignment(") != std::string_view::npos)
    return;
  // An input that is not aligned is replaced by its copy.
  if (line.starts_with("if ((reinterpret_cast<std::uintptr_t>(") ||
      line.find(" = std::move(RAIIAtenTensorHandle(") != std::string_view::npos || line.ends_with(".release();"))
    return;
  if (line.find(".data_ptr())") != std::string_view::npos) {
    // A compiled kernel: the cast before each pointer shows whether it is written.
    for_each_use(line, [&](size_t constant, size_t at) {
      const std::string_view before = line.substr(0, at);
      const size_t open = before.rfind('(', before.size() < 3 ? 0 : before.size() - 3);
      const bool reads = before.ends_with("*)(") && before.substr(open + 1).starts_with("const ");
      if (!reads) written_[constant] = true;
    });
    return;
  }
  skip(line, "AOTI_TORCH_ERROR_CODE_CHECK(");
  std::string_view rest = line;
  const std::string_view function = skip_word(rest);
  const auto list = skip_bracketed(rest);
  if (rest.starts_with(".reset()") || line.find(".reset();") != std::string_view::npos) return;
  if (!list) {
    arguments(line, {false});
  } else if (function.starts_with("aoti_torch_") && function != "aoti_torch_proxy_executor_call_function") {
    const int written = written_argument(function.substr(11));
    std::vector<bool> reads(static_cast<size_t>(written + 2), true);
    if (written >= 0) reads[static_cast<size_t>(written)] = false;
    arguments(*list, reads);
  } else {
    // A Triton kernel's launcher has parameters in_ptr, in_out_ptr and out_ptr. A user's kernel and an operator of the
    // proxy executor may write every argument.
    std::vector<bool> reads;
    for (const std::string_view name : parameters(text_, function)) reads.push_back(name.starts_with("in_ptr"));
    reads.push_back(false);
    arguments(*list, reads);
  }
}

}  // namespace

void find_mutated(std::string_view text, const WrapperSource& source, bool writable, ModelSpec& spec) {
  MutationReader folding(text, spec);
  folding.read(source.folding);
  for (size_t i = 0; i < spec.constants.size(); ++i)
    if (folding.writes_constant(i)) spec.constants[i].mutated = true;
  if (!writable && !source.found) return;
  MutationReader body(text, spec);
  body.read(source.body);
  if (source.found)
    for (size_t i = 0; i < spec.inputs.size(); ++i) spec.inputs[i].may_be_written = body.may_write_input(i);
  if (!writable) return;
  for (size_t i = 0; i < spec.constants.size(); ++i)
    if (body.writes_constant(i)) spec.constants[i].mutated = true;
  if (std::any_of(spec.constants.begin(), spec.constants.end(), [](const auto& c) { return c.mutated; })) return;
  std::vector<ConstantSpec*> all;
  for (ConstantSpec& constant : spec.constants) all.push_back(&constant);
  assume_mutated(all, true);
}

void assume_mutated(std::span<ConstantSpec* const> constants, bool some) {
  bool found = false;
  for (const bool parameters : {false, true}) {
    if (parameters && (found || !some)) return;
    for (ConstantSpec* constant : constants) {
      if (constant->folded || constant->opaque) continue;
      if ((constant->type == ConstantType::kParameter) != parameters) continue;
      found = constant->mutated = constant->assumed = true;
    }
  }
}

}  // namespace sconce
