#include "server/cli/weights/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <vector>

#include "sconce/difference.h"
#include "server/rollout/admin_documents.h"
#include "server/support/json_document.h"
#include "server/support/terminal/text.h"

namespace sconce::server::cli {
namespace {

using Kind = TensorDifference::Kind;

std::string shape_text(const WeightEntry& entry) {
  std::string text(dtype_name(entry.dtype));
  text += '[';
  for (size_t i = 0; i < entry.shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(entry.shape[i]);
  return text + ']';
}

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kSame:
      return "same";
    case Kind::kChanged:
      return "changed";
    case Kind::kReshaped:
      return "reshaped";
    case Kind::kOnlyA:
      return "only in A";
    case Kind::kOnlyB:
      return "only in B";
  }
  return "";
}

OrderedJson document(const TensorDifference& tensor) {
  OrderedJson result{{"name", tensor.name}, {"state", name_of(tensor.kind)}};
  if (tensor.kind != Kind::kOnlyB) result["a"] = {{"dtype", dtype_name(tensor.a.dtype)}, {"shape", tensor.a.shape}};
  if (tensor.kind != Kind::kOnlyA) result["b"] = {{"dtype", dtype_name(tensor.b.dtype)}, {"shape", tensor.b.shape}};
  if (tensor.kind != Kind::kSame && tensor.kind != Kind::kChanged) return result;
  rollout::add_difference(result, tensor.difference, "not_finite_a", "not_finite_b");
  return result;
}

void print(const TensorDifference& tensor) {
  const Difference& d = tensor.difference;
  std::string text;
  if (tensor.kind == Kind::kChanged) {
    text = fmt::format("relative {:.3g}, largest {:.3g} at {}, mean {:.3g}, cosine {:.6f}, {} of {} changed",
                       d.relative(), d.largest, d.largest_at, d.mean(), d.cosine(), d.changed, d.elements);
    if (d.not_finite_b > 0 || d.not_finite_a > 0)
      text += red(fmt::format(", not finite: {} in A, {} in B", d.not_finite_a, d.not_finite_b));
  } else if (tensor.kind == Kind::kReshaped) {
    text = red(shape_text(tensor.a) + " in A, " + shape_text(tensor.b) + " in B");
  } else if (tensor.kind == Kind::kSame) {
    text = faint("same");
  } else {
    text = red(
        fmt::format("{} ({})", name_of(tensor.kind), shape_text(tensor.kind == Kind::kOnlyA ? tensor.a : tensor.b)));
  }
  std::cout << bold(tensor.name) << "  " << text << "\n";
}

}  // namespace

int diff_weights(const DiffOptions& options) {
  FileOptions file;
  file.package_model = options.package_model;
  const std::unique_ptr<WeightFile> a = WeightFile::open(options.a, file), b = WeightFile::open(options.b, file);
  std::vector<TensorDifference> tensors = compare_weights(*a, *b);
  size_t counts[5] = {};
  for (const TensorDifference& tensor : tensors) ++counts[static_cast<size_t>(tensor.kind)];
  const size_t same = counts[static_cast<size_t>(Kind::kSame)];
  if (options.json) {
    OrderedJson all = OrderedJson::array();
    for (const TensorDifference& tensor : tensors)
      if (options.all || tensor.kind != Kind::kSame) all.push_back(document(tensor));
    const OrderedJson whole{{"tensors", tensors.size()}, {"same", same}, {"differences", std::move(all)}};
    std::cout << dump(whole) << "\n";
    return same == tensors.size() ? 0 : 1;
  }
  // Missing tensors and tensors of another shape first, then the largest changes.
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorDifference& x, const TensorDifference& y) {
    if (x.kind != y.kind) return x.kind > y.kind;
    return x.difference.relative() > y.difference.relative();
  });
  for (const TensorDifference& tensor : tensors)
    if (options.all || tensor.kind != Kind::kSame) print(tensor);
  std::cout << fmt::format("{} tensors: {} same, {} changed, {} reshaped, {} only in A, {} only in B\n", tensors.size(),
                           counts[0], counts[1], counts[2], counts[3], counts[4]);
  return same == tensors.size() ? 0 : 1;
}

}  // namespace sconce::server::cli
