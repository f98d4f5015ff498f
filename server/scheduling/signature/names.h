// TensorNames: the HTTP names of a model's inputs or outputs.
//
// The main name is the one that Triton uses for .pt2 packages: ARGS[0], ARGS[2][key], KWARGS[name], RESULT,
// RESULT[key][0]; or INPUT__i or OUTPUT__i if the call spec does not map the tensor to a leaf. INPUT__i, OUTPUT__i and
// the generated code's names (arg0_1, output0) are also accepted. Immutable.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sconce/package.h"

namespace sconce::server::scheduling {

class TensorNames {
 public:
  static TensorNames of_inputs(const ModelSpec& spec);
  static TensorNames of_outputs(const ModelSpec& spec);

  size_t size() const noexcept { return first_.size(); }
  const std::string& name(size_t i) const noexcept { return first_[i]; }
  // The name as a JSON string with quotes.
  const std::string& json(size_t i) const noexcept { return json_[i]; }
  std::optional<size_t> find(std::string_view name) const noexcept {
    const auto it = index_.find(name);
    if (it == index_.end()) return std::nullopt;
    return it->second;
  }
  std::string list() const;  // "'ARGS[0]', 'ARGS[1]'"
  // The same tensors with new main names; the previous names are still accepted. names: one for each tensor, all
  // different (kInvalidArgument).
  TensorNames renamed(std::vector<std::string> names) const;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
  };

  TensorNames() = default;
  TensorNames(std::vector<std::string> names, std::string_view alias, const std::vector<TensorSpec>& tensors);

  std::vector<std::string> first_, json_;
  std::unordered_map<std::string, size_t, Hash, std::equal_to<>> index_;
};

}  // namespace sconce::server::scheduling
