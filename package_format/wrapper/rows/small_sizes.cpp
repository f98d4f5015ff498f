#include "package_format/wrapper/rows/small_sizes.h"

#include <algorithm>
#include <string>
#include <vector>

#include "package_format/wrapper/rows/graph_rows.h"
#include "sconce/sizes/size_relations.h"

namespace sconce {
namespace {

// A package with more symbols is examined with all of them at once.
constexpr size_t kMaxAlone = 8;

class SmallSizes {
 public:
  SmallSizes(rows::ParsedCode& code, ModelSpec& spec) : code_(code), spec_(spec) {
    for (const TensorSpec& input : spec.inputs)
      for (const Dim& dim : input.dims) add(dim);
  }

  void find() {
    find_smallest();
    if (!least_.empty()) spec_.bounds = rows::look_at_accesses(code_, least_, spec_, rows::LookAt::kAllSizes).open;
  }

 private:
  void find_smallest() {
    if (open_.empty()) return;
    if (lower(open_, 0).empty()) return;
    spec_.why_not_smaller = lower(open_, 1);
    if (open_.size() <= kMaxAlone) lower_each(spec_.why_not_smaller.empty() ? 0 : 1);
    for (TensorSpec& input : spec_.inputs)
      for (Dim& dim : input.dims)
        for (const std::string& symbol : symbols_of(dim.symbol)) dim.smallest = std::max(dim.smallest, least_[symbol]);
  }

  // A symbol that is not a dimension by itself has the minimum of 2 that torch.export assumes.
  void add(const Dim& dim) {
    if (dim.is_static()) return;
    for (const std::string& symbol : symbols_of(dim.symbol)) {
      const int64_t least = symbol == dim.symbol ? dim.min : 2;
      const auto [at, fresh] = least_.emplace(symbol, least);
      if (!fresh && symbol == dim.symbol) at->second = std::max(at->second, least);
    }
    open_.clear();
    for (const auto& [symbol, least] : least_)
      if (least == 2) open_.push_back(symbol);
  }

  // Gives the symbols the value unless an access is known to leave its tensor; else returns that access. If this is
  // unknown, the code counts as correct for the declared sizes, which the source does not contain: nearly all code is,
  // and torch.export asserts it.
  std::string lower(const std::vector<std::string>& symbols, int64_t value) {
    const rows::LeastSizes before = least_;
    for (const std::string& symbol : symbols) least_[symbol] = value;
    rows::Accesses accesses = rows::look_at_accesses(code_, least_, spec_, rows::LookAt::kSmallSizes);
    if (!accesses.leave) return "";
    least_ = before;
    return std::move(accesses.problem);
  }

  void lower_each(int64_t value) {
    for (const std::string& symbol : open_)
      if (least_[symbol] == value + 1 && open_.size() > 1) lower({symbol}, value);
  }

  rows::ParsedCode& code_;
  ModelSpec& spec_;
  rows::LeastSizes least_;
  std::vector<std::string> open_;
};

}  // namespace

void find_small_sizes(rows::ParsedCode& code, ModelSpec& spec) {
  if (!code.source().found || spec.device_key != "cpu") return;
  SmallSizes(code, spec).find();
}

}  // namespace sconce
