#include "package_format/wrapper/rows/kernel_library.h"

#include "package_format/text/source_text.h"
#include "package_format/wrapper/source_call.h"

namespace sconce::rows {
namespace {

constexpr size_t kMaxKernels = 65536, kLongestParameters = 65536;

}  // namespace

// "extern "C"  void  cpp_fused_relu_0(const float* in_ptr0, ...)\n{ ... }"; a declaration ends in ";".
KernelLibrary::KernelLibrary(std::span<const std::string_view> sources) {
  for (std::string_view text : sources)
    while (skip_to(text, "extern \"C\"")) {
      std::string_view rest = trim(text.substr(0, text.find('\n')));
      if (!skip(rest, "void")) continue;
      rest = trim(rest);
      const std::string_view name = skip_word(rest);
      if (!rest.starts_with("(")) continue;
      std::string_view body = text.substr(static_cast<size_t>(rest.data() - text.data()));
      const size_t end = find_text(body, "\n}");
      if (end == std::string_view::npos || texts_.size() >= kMaxKernels) break;
      body = body.substr(0, end + 2);
      std::string_view after = body.substr(0, kLongestParameters);
      if (!skip_bracketed(after)) continue;
      after = body.substr(static_cast<size_t>(after.data() - body.data()));
      after.remove_prefix(std::min(after.find_first_not_of(" \n\r\t"), after.size()));
      if (after.starts_with("{")) texts_.emplace(name, body);
    }
}

std::string KernelLibrary::run(std::string_view name, const std::vector<KernelArgument>& arguments, RowState& state,
                               int64_t& steps) {
  const auto [at, added] = parsed_.try_emplace(name);
  Parsed& kernel = at->second;
  if (added) {
    const std::string_view text = texts_.at(name);
    steps -= static_cast<int64_t>(text.size() / 16);
    if (steps > 0)
      kernel.body = kernel.syntax.function(text, kernel.parameters, kernel.problem);
    else
      kernel.problem = "more than can be looked at";
  }
  if (!kernel.problem.empty()) return std::string(kernel.problem);
  return run_kernel(kernel.syntax, kernel.parameters, kernel.body, arguments, state, steps);
}

}  // namespace sconce::rows
