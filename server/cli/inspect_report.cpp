#include "server/cli/inspect_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "sconce/runnable.h"
#include "sconce/tensor.h"
#include "server/cli/description.h"
#include "server/scheduling/signature/names.h"
#include "server/support/html/html_page.h"
#include "server/support/terminal/text.h"

namespace sconce::server::cli {
namespace {

// A table whose cells are HTML.
class HtmlTable {
 public:
  explicit HtmlTable(std::initializer_list<const char*> columns) {
    html_ = "<div class=\"wide\"><table><thead><tr>";
    for (const char* const column : columns)
      html_ += fmt::format("<th scope=\"col\"{}>{}</th>",
                           std::string_view(column) == "bytes" ? " class=\"number\"" : "", column);
    html_ += "</tr></thead><tbody>\n";
  }
  HtmlTable& row() {
    html_ += std::exchange(open_, true) ? "</tr>\n<tr>" : "<tr>";
    return *this;
  }
  HtmlTable& text(std::string_view cell, const char* kind = "") {
    html_ += fmt::format("<td class=\"{}\">{}</td>", kind, escape_html(cell));
    return *this;
  }
  // A size, and its share of the total as a bar.
  HtmlTable& bytes(uint64_t size, uint64_t whole) {
    const double share = whole == 0 ? 0 : 100 * static_cast<double>(size) / static_cast<double>(whole);
    html_ += fmt::format(
        "<td class=\"number\">{}</td><td><svg class=\"share\" viewBox=\"0 0 100 8\" "
        "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{:.1f} %\"><rect width=\"{:.2f}\" "
        "height=\"8\"/></svg></td>",
        format_bytes(size), share, share);
    return *this;
  }
  std::string end() { return html_ + (open_ ? "</tr>\n" : "") + "</tbody></table></div>\n"; }

 private:
  std::string html_;
  bool open_ = false;
};

std::string heading(const char* text, size_t count) { return fmt::format("<h3>{} ({})</h3>\n", text, count); }

const char* kind_word(SpecNode::Kind kind) {
  using enum SpecNode::Kind;
  switch (kind) {
    case kLeaf:
      return "tensor";
    case kNone:
      return "None";
    case kTuple:
      return "tuple";
    case kList:
      return "list";
    case kDict:
      return "dict";
    case kOrderedDict:
      return "OrderedDict";
    case kDefaultDict:
      return "defaultdict";
    case kNamedTuple:
      return "namedtuple";
    case kDeque:
      return "deque";
    case kDataclass:
      return "dataclass";
  }
  return "";
}

// Classes of the model's author, whose names are informative.
bool is_named(SpecNode::Kind kind) { return kind == SpecNode::Kind::kNamedTuple || kind == SpecNode::Kind::kDataclass; }

// The name and description of each leaf of the call; empty names: the compiler dropped the leaf.
struct NamedLeaf {
  std::string name, text;
};

void add_node(std::string& out, const std::string& label, const SpecNode& node, const std::vector<NamedLeaf>& leaves,
              size_t& leaf) {
  const std::string start = label.empty() ? "" : "<b>" + escape_html(label) + "</b> ";
  if (node.kind == SpecNode::Kind::kLeaf) {
    const NamedLeaf* const found = leaf < leaves.size() ? &leaves[leaf] : nullptr;
    ++leaf;
    out += "<li>" + start +
           (found && !found->name.empty()
                ? "<code>" + escape_html(found->name) + "</code> <span class=\"soft\">" + escape_html(found->text) +
                      "</span>"
                : std::string("<span class=\"soft\">taken into the code by the compiler</span>")) +
           "</li>\n";
    return;
  }
  const std::string type = node.type.substr(node.type.rfind('.') + 1);
  out += "<li>" + start + kind_word(node.kind) + (is_named(node.kind) && !type.empty() ? " " + escape_html(type) : "");
  if (!node.children.empty()) {
    out += "<ul>\n";
    for (size_t i = 0; i < node.children.size(); ++i)
      add_node(out, i < node.keys.size() ? node.keys[i] : std::to_string(i), node.children[i], leaves, leaf);
    out += "</ul>";
  }
  out += "</li>\n";
}

std::string call_tree(const ModelSpec& model) {
  const CallSpec& call = model.call_spec;
  if (!call.known) return "<p class=\"soft\">The package does not record the structure of the call.</p>\n";
  const scheduling::TensorNames inputs = scheduling::TensorNames::of_inputs(model),
                                outputs = scheduling::TensorNames::of_outputs(model);
  std::vector<NamedLeaf> leaves(call.args.leaves() + call.kwargs.leaves());
  for (size_t i = 0; i < call.input_leaf.size() && i < model.inputs.size(); ++i)
    if (call.input_leaf[i] < leaves.size()) leaves[call.input_leaf[i]] = {inputs.name(i), describe(model.inputs[i])};
  if (call.input_leaf.empty() && leaves.size() == model.inputs.size())
    for (size_t i = 0; i < leaves.size(); ++i) leaves[i] = {inputs.name(i), describe(model.inputs[i])};
  std::vector<NamedLeaf> results;
  for (size_t i = 0; i < model.outputs.size(); ++i) results.push_back({outputs.name(i), describe(model.outputs[i])});
  std::string out = "<ul>\n";
  size_t leaf = 0;
  add_node(out, "args", call.args, leaves, leaf);
  add_node(out, "kwargs", call.kwargs, leaves, leaf);
  leaf = 0;
  add_node(out, "result", call.result, results, leaf);
  return out + "</ul>\n";
}

std::string tensor_table(const std::vector<TensorSpec>& tensors, const scheduling::TensorNames& names) {
  HtmlTable table({"name", "in the code", "dtype, shape, strides"});
  for (size_t i = 0; i < tensors.size(); ++i)
    table.row().text(names.name(i), "name mono").text(tensors[i].name, "mono").text(describe(tensors[i]), "mono");
  return table.end();
}

std::string constant_section(const ModelSpec& model) {
  uint64_t whole = 0;
  for (const ConstantSpec& constant : model.constants) whole += constant.data_size;
  if (!model.has_source) return fmt::format("<h3>constants</h3>\n<p>{}</p>\n", describe_constants(model));
  HtmlTable table({"name", "dtype", "shape", "kind", "bytes", "share"});
  for (const ConstantSpec& constant : model.constants)
    table.row()
        .text(constant.fqn.empty() ? constant.name : constant.fqn, "name mono")
        .text(constant.dtype ? dtype_name(*constant.dtype) : std::string_view("unknown"), "mono")
        .text(to_string(std::span<const int64_t>(constant.shape)), "mono")
        .text(marks_of(constant))
        .bytes(constant.data_size, whole);
  return heading("constants", model.constants.size()) + table.end();
}

std::string operator_table(const ModelSpec& model, const std::vector<std::string>& operators) {
  const std::vector<std::string> implemented = implemented_operators();
  HtmlTable table({"function or operator", "how it is called"});
  for (const std::string& name : operators) {
    const bool known = std::binary_search(implemented.begin(), implemented.end(), name);
    table.row()
        .text(name, "name mono")
        .text(known ? "by the C ABI" : "not implemented by this build", known ? "" : "bad");
  }
  for (const std::string& name : model.proxy_targets)
    table.row().text(name, "name mono").text("by name, through the proxy executor");
  return table.end();
}

std::string or_not_known(const std::string& text) { return text.empty() ? "not recorded" : text; }

std::string facts_table(const ModelSpec& model) {
  HtmlTable table({"fact", "value"});
  const auto fact = [&](const char* name, const std::string& value) { table.row().text(name).text(value, "mono"); };
  fact("device", model.device_key + (model.compute_capability.empty() ? "" : ", sm_" + model.compute_capability));
  fact("platform", or_not_known(model.platform) + ", " + or_not_known(model.machine));
  fact("instruction set", or_not_known(model.cpu_isa) + (model.march.empty() ? "" : ", -march=" + model.march));
  fact("threads", model.threads == 0 ? "one, or not known" : std::to_string(model.threads));
  fact("code", fmt::format("{}, {}", format_bytes(model.so_bytes), model.so_member));
  fact("weights", fmt::format("{}, {}", format_bytes(model.weights_bytes), form_name(model.weights_form)));
  fact("call", describe_call(model));
  fact("rows", describe_rows(model));
  if (const std::string sizes = describe_least_sizes(model); !sizes.empty()) fact("sizes", sizes);
  for (const auto& [key, value] : model.metadata) fact(key.c_str(), value);
  return table.end();
}

std::string model_section(const ModelSpec& model) {
  const std::vector<std::string> operators = operators_of(model);
  return fmt::format("<section>\n<h2>model {}</h2>\n", escape_html(model.name)) + facts_table(model) +
         "<h3>structure of the call</h3>\n" + call_tree(model) + heading("inputs", model.inputs.size()) +
         tensor_table(model.inputs, scheduling::TensorNames::of_inputs(model)) +
         heading("outputs", model.outputs.size()) +
         tensor_table(model.outputs, scheduling::TensorNames::of_outputs(model)) + constant_section(model) +
         heading("operators", operators.size() + model.proxy_targets.size()) + operator_table(model, operators) +
         "</section>\n";
}

}  // namespace

std::string inspect_page(const Package& package, std::span<const ModelSpec* const> models) {
  const std::vector<PackageMember> members = package.members();
  uint64_t whole = 0;
  for (const PackageMember& member : members) whole += member.bytes;
  const std::string name = package.path().filename().string();
  std::string body = fmt::format("<h1>{}</h1>\n<p>{}<br>made by {}, {} in {} members</p>\n", escape_html(name),
                                 escape_html(package.path().string()), escape_html(or_not_known(package.producer())),
                                 format_bytes(whole), members.size());
  for (const ModelSpec* model : models) body += model_section(*model);
  body += "<section>\n<h2>members of the archive</h2>\n";
  HtmlTable table({"name", "stored", "bytes", "share"});
  for (const PackageMember& member : members)
    table.row()
        .text(member.name, "name mono")
        .text(member.deflated ? "deflated" : "as it is")
        .bytes(member.bytes, whole);
  body += table.end() + "</section>\n";
  return html_file("sconce inspect: " + name,
                   ".share{width:6rem;height:.5rem;background:var(--card)}.share rect{fill:var(--bar)}\n"
                   "b{font-weight:600}li{overflow-wrap:anywhere}\n",
                   body);
}

}  // namespace sconce::server::cli
