#include "server/api/examples.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "sconce/sizes/size_relations.h"
#include "server/support/json_document.h"

namespace sconce::server::api {
namespace {

using Kind = SpecNode::Kind;
using Sizes = std::vector<int64_t>;

// Requests with more elements are sent in binary, because long lists of zeros help no reader.
constexpr int64_t kMaxWritten = 128;
// Size of a variable dimension other than the first. Convolutions and pooling fail on smaller ones.
constexpr int64_t kUsualSize = 16;
constexpr int64_t kMaxElements = int64_t{1} << 31;

int64_t product(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

// In the protocol's form: complex numbers have a last dimension of 2.
Sizes sent_sizes(const scheduling::TensorInterface& tensor, Sizes sizes) {
  if (is_complex(*tensor.dtype)) sizes.push_back(2);
  return sizes;
}

std::string list_of(const Sizes& sizes) {
  std::string text;
  for (const int64_t size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return text;
}

bool is_half(std::string_view datatype) { return datatype == "FP16" || datatype == "BF16"; }

// A word for a POSIX shell.
std::string shell_word(std::string_view text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string shell_url(const std::string& url) {
  return url.find_first_of("[]") == std::string::npos ? url : shell_word(url);
}

// JSON strings are valid Python strings.
std::string quoted(const std::string& text) { return dump(OrderedJson(text)); }

// NumPy's type for a dtype; empty: none.
std::string numpy_type(DType dtype) {
  if (dtype == DType::kComplex32 || dtype == DType::kFloat4E2M1FNx2) return {};
  if (dtype == DType::kBool) return "np.bool_";
  const std::string name(dtype_name(dtype));
  return (dtype == DType::kBFloat16 || is_float8(dtype) ? "ml_dtypes." : "np.") + name;
}

bool is_identifier(const std::string& name) {
  static constexpr std::string_view kKeywords[] = {
      "False",   "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
      "class",   "continue", "def",   "del",    "elif", "else",   "except", "for",      "from",
      "finally", "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
      "or",      "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto rest = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  return !name.empty() && letter(name[0]) && std::all_of(name.begin(), name.end(), rest) &&
         std::find(std::begin(kKeywords), std::end(kKeywords), name) == std::end(kKeywords);
}

class ExampleWriter {
 public:
  ExampleWriter(const registry::ServedModel& served, const Reach& reach, std::vector<Sizes> sizes)
      : served_(served), model_(served.interface()), reach_(reach), sizes_(std::move(sizes)) {
    for (size_t i = 0; i < sizes_.size(); ++i)
      if (!model_.is_control(i)) sent_.push_back(i);
    for (const size_t i : sent_) {
      elements_ += product(sizes_[i]);
      half_ |= is_half(model_.inputs[i].datatype);
    }
    for (size_t i = 0; i < model_.outputs.size(); ++i)
      half_result_ |= !model_.spec.outputs[i].none && (!model_.outputs[i].dtype || is_half(model_.outputs[i].datatype));
    find_leaves();
  }

  std::vector<Example> all() {
    std::vector<Example> examples;
    const auto add = [&](const char* title, Example::Language language, std::string text) {
      if (!text.empty()) examples.push_back({title, language, std::move(text)});
    };
    using enum Example::Language;
    if (!reach_.url.empty()) {
      add("The call as in Python, by curl", kShell, call());
      add("Tokens from a prompt, by curl", kShell, generate());
      add("Open Inference Protocol v2, by curl", kShell, infer());
      add("sconce.Client", kPython, client());
      add("Triton's client", kPython, triton(false));
    }
    if (!reach_.grpc.empty()) add("gRPC, by Triton's client", kPython, triton(true));
    return examples;
  }

 private:
  // Maps each leaf of the call to an input; -1: the compiler dropped it.
  void find_leaves() {
    const CallSpec& call = model_.spec.call_spec;
    const size_t leaves = call.known ? call.args.leaves() + call.kwargs.leaves() : sizes_.size();
    known_leaves_ = model_.input_leaf.size() == sizes_.size() || leaves == sizes_.size();
    if (!known_leaves_) return;
    input_of_leaf_.assign(leaves, -1);
    for (size_t i = 0; i < sizes_.size(); ++i) {
      const size_t leaf = model_.input_leaf.size() == sizes_.size() ? model_.input_leaf[i] : i;
      if (leaf >= leaves) {
        known_leaves_ = false;
        return;
      }
      input_of_leaf_[leaf] = static_cast<long>(i);
    }
  }

  std::string path(std::string_view form) const { return reach_.url + "/v2/models/" + model_.name + std::string(form); }
  std::string curl_fields() const { return reach_.token ? " -H \"Authorization: Bearer $SCONCE_TOKEN\"" : ""; }
  std::string environment() const { return reach_.token ? "import os\n" : ""; }

  static std::string zeros(const Sizes& sizes, const std::string& zero, size_t dimension = 0) {
    if (dimension == sizes.size()) return zero;
    const std::string inner = zeros(sizes, zero, dimension + 1);
    std::string text = "[";
    for (int64_t i = 0; i < sizes[dimension]; ++i) text += (i == 0 ? "" : ", ") + inner;
    return text + "]";
  }

  std::string json_tensor(size_t input) const {
    const DType dtype = *model_.inputs[input].dtype;
    return zeros(sizes_[input], dtype == DType::kBool ? "false" : is_complex(dtype) ? "[0, 0]" : "0");
  }
  std::string array(size_t input) const {
    const Sizes& sizes = sizes_[input];
    return "np.zeros((" + list_of(sizes) + (sizes.size() == 1 ? ",), " : "), ") +
           numpy_type(*model_.inputs[input].dtype) + ")";
  }

  // A part of the call with tensors as leaves, in JSON or in Python.
  std::string tree(const SpecNode& node, size_t& leaf, bool python) const {
    if (node.kind == Kind::kNone) return python ? "None" : "null";
    if (node.kind == Kind::kLeaf) {
      const long input = input_of_leaf_[leaf++];
      if (input < 0) return python ? "None" : "null";
      return python ? array(static_cast<size_t>(input)) : json_tensor(static_cast<size_t>(input));
    }
    const bool named = node.kind == Kind::kDict || node.kind == Kind::kOrderedDict || node.kind == Kind::kDefaultDict ||
                       node.kind == Kind::kDataclass;
    const bool tuple = python && (node.kind == Kind::kTuple || node.kind == Kind::kNamedTuple);
    std::string text;
    for (size_t i = 0; i < node.children.size(); ++i) {
      if (i > 0) text += ", ";
      if (named) text += quoted(node.keys[i]) + ": ";
      text += tree(node.children[i], leaf, python);
    }
    if (named) return "{" + text + "}";
    if (tuple) return "(" + text + (node.children.size() == 1 ? ",)" : ")");
    return "[" + text + "]";
  }

  std::string call() const {
    if (served_.sequences() || !known_leaves_ || elements_ > kMaxWritten) return {};
    for (const scheduling::TensorInterface& input : model_.inputs)
      if (*input.dtype == DType::kFloat4E2M1FNx2) return {};
    std::string body = "{\"args\": ";
    size_t leaf = 0;
    if (model_.spec.call_spec.known) {
      body += tree(model_.spec.call_spec.args, leaf, false);
      if (!model_.spec.call_spec.kwargs.children.empty())
        body += ", \"kwargs\": " + tree(model_.spec.call_spec.kwargs, leaf, false);
    } else {
      body += "[";
      for (size_t i = 0; i < sizes_.size(); ++i) body += (i == 0 ? "" : ", ") + json_tensor(i);
      body += "]";
    }
    return "curl -s" + curl_fields() + " " + shell_url(reach_.url + "/v1/models/" + model_.name + ":call") + " -d " +
           shell_word(body + "}") + "\n";
  }

  std::string generate() const {
    const scheduling::LoopPlan* const loop = served_.loop();
    if (loop == nullptr || !loop->given.empty()) return {};
    const std::string most = std::to_string(std::clamp<int64_t>(loop->steps, 1, 4));
    return "curl -sN" + curl_fields() + " " + shell_url(path("/generate_stream")) +
           " -d '{\"prompt\": [0], \"max_tokens\": " + most + "}'\n";
  }

  std::string infer() const {
    const bool binary = half_ || elements_ > kMaxWritten;
    std::string inputs;
    int64_t bytes = 0;
    for (const size_t i : sent_) {
      const scheduling::TensorInterface& tensor = model_.inputs[i];
      const Sizes sizes = sent_sizes(tensor, sizes_[i]);
      const int64_t size = product(sizes_[i]) * static_cast<int64_t>(dtype_bytes(*tensor.dtype));
      bytes += size;
      inputs += (inputs.empty() ? "" : ", ") + ("{\"name\": " + model_.input_names.json(i)) + ", \"datatype\": \"" +
                std::string(tensor.datatype) + "\", \"shape\": [" + list_of(sizes) + "], ";
      inputs += binary ? "\"parameters\": {\"binary_data_size\": " + std::to_string(size) + "}}"
                       : "\"data\": " + zeros({product(sizes)}, tensor.datatype == "BOOL" ? "false" : "0") + "}";
    }
    std::string parameters;
    if (served_.sequences()) parameters = "\"sequence_id\": 1, \"sequence_start\": true, \"sequence_end\": true";
    if (half_result_) parameters += std::string(parameters.empty() ? "" : ", ") + "\"binary_data_output\": true";
    std::string body = "{\"inputs\": [" + inputs + "]";
    if (!parameters.empty()) body += ", \"parameters\": {" + parameters + "}";
    body += "}";
    const std::string target = curl_fields() + " " + shell_url(path("/infer"));
    const std::string file = half_result_ ? " -o answer.bin" : "";
    if (!binary) return "curl -s" + file + target + " -d " + shell_word(body) + "\n";
    return "{ printf %s " + shell_word(body) + "; head -c " + std::to_string(bytes) + " /dev/zero; } |\n  curl -s" +
           file + target + " -H 'Inference-Header-Content-Length: " + std::to_string(body.size()) +
           "' --data-binary @-\n";
  }

  std::string client() const {
    if (served_.sequences() || !known_leaves_ || !model_.spec.call_spec.known || model_.name.empty()) return {};
    bool small_types = false;
    for (const scheduling::TensorInterface& input : model_.inputs) {
      const std::string type = numpy_type(*input.dtype);
      if (type.empty()) return {};
      small_types |= type.starts_with("ml_dtypes.");
    }
    const CallSpec& call = model_.spec.call_spec;
    std::string arguments, other;
    size_t leaf = 0;
    for (const SpecNode& child : call.args.children) arguments += ", " + tree(child, leaf, true);
    for (size_t i = 0; i < call.kwargs.children.size(); ++i) {
      const std::string& key = call.kwargs.keys[i];
      const std::string value = tree(call.kwargs.children[i], leaf, true);
      if (is_identifier(key))
        arguments += ", " + key + "=" + value;
      else
        other += (other.empty() ? "" : ", ") + quoted(key) + ": " + value;
    }
    if (!other.empty()) arguments += ", **{" + other + "}";
    return environment() + "import numpy as np, sconce" + (small_types ? ", ml_dtypes" : "") +
           "\nclient = sconce.Client(" + quoted(reach_.url) +
           (reach_.token ? ", token=os.environ[\"SCONCE_TOKEN\"]" : "") + ")\nprint(client.infer(" +
           quoted(model_.name) + arguments + "))\n";
  }

  std::string triton(bool grpc) const {
    const std::string host = grpc ? reach_.grpc : reach_.url.substr(reach_.url.find("://") + 3);
    const bool bfloat =
        std::any_of(sent_.begin(), sent_.end(), [&](size_t i) { return model_.inputs[i].datatype == "BF16"; });
    std::string text = environment() + "import numpy as np" + (bfloat ? ", ml_dtypes" : "") + ", tritonclient." +
                       (grpc ? "grpc" : "http") + " as triton\nclient = triton.InferenceServerClient(" + quoted(host) +
                       (reach_.tls ? ", ssl=True" : "") + ")\n";
    std::string inputs;
    for (const size_t i : sent_) {
      const scheduling::TensorInterface& tensor = model_.inputs[i];
      const Sizes sizes = sent_sizes(tensor, sizes_[i]);
      const std::string name = "x" + std::to_string(i);
      text += name + " = triton.InferInput(" + model_.input_names.json(i) + ", [" + list_of(sizes) + "], \"" +
              std::string(tensor.datatype) + "\")\n" + name + ".set_data_from_numpy(np.zeros([" + list_of(sizes) +
              "], " + numpy_type(*scheduling::dtype_from_oip(tensor.datatype)) + "))\n";
      inputs += (inputs.empty() ? "" : ", ") + name;
    }
    text += "answer = client.infer(" + quoted(model_.name) + ", [" + inputs + "]";
    if (served_.sequences()) text += ", sequence_id=1, sequence_start=True, sequence_end=True";
    if (reach_.token) {
      // HTTP/2 allows only lower case.
      text += grpc ? ", headers={\"authorization\"" : ", headers={\"Authorization\"";
      text += ": \"Bearer \" + os.environ[\"SCONCE_TOKEN\"]}";
    }
    text += ")\n";
    for (size_t i = 0; i < model_.outputs.size(); ++i)
      if (!model_.spec.outputs[i].none) text += "print(answer.as_numpy(" + model_.output_names.json(i) + "))\n";
    return text;
  }

  const registry::ServedModel& served_;
  const scheduling::ModelSignature& model_;
  const Reach& reach_;
  const std::vector<Sizes> sizes_;
  std::vector<size_t> sent_;  // inputs that clients send
  int64_t elements_ = 0;
  bool half_ = false;         // an input has no JSON form in v2
  bool half_result_ = false;  // an output has no JSON form, or may have none
  bool known_leaves_ = false;
  std::vector<long> input_of_leaf_;
};

}  // namespace

std::optional<std::vector<std::vector<int64_t>>> example_sizes(const scheduling::ModelSignature& model) {
  const std::vector<TensorSpec>& specs = model.spec.inputs;
  // A symbol in the first dimension of an input stays small in all positions.
  std::set<std::string> small;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].dims.empty()) continue;
    small.insert(std::to_string(i) + ",0");
    for (const std::string& symbol : symbols_of(specs[i].dims[0].symbol)) small.insert(symbol);
  }
  const SizeRelations relations(specs, model.spec.bounds);
  const auto chosen = relations.sizes({}, [&](const std::string& symbol, SizeRelations::Range range) {
    // torch.export records 2 for a size that may be 1.
    const int64_t least = range.least <= 2 ? 1 : range.least;
    return small.contains(symbol) ? least : std::clamp(kUsualSize, least, std::max(least, range.most));
  });
  if (!chosen) return std::nullopt;
  auto next = chosen->begin();
  std::vector<std::vector<int64_t>> all;
  int64_t elements = 0;
  for (size_t i = 0; i < specs.size(); ++i) {
    const TensorSpec& spec = specs[i];
    if (!spec.has_shape || !model.inputs[i].dtype) return std::nullopt;
    std::vector<int64_t> sizes;
    int64_t count = 1;
    for (const Dim& dim : spec.dims) {
      sizes.push_back(dim.is_static() ? dim.min : *next++);
      if (__builtin_mul_overflow(count, sizes.back(), &count)) return std::nullopt;
    }
    if (__builtin_add_overflow(elements, count, &elements) || elements > kMaxElements) return std::nullopt;
    all.push_back(std::move(sizes));
  }
  return all;
}

std::vector<Example> examples_of(const registry::ServedModel& model, const Reach& reach) {
  std::optional<std::vector<std::vector<int64_t>>> sizes = example_sizes(model.interface());
  if (!sizes) return {};
  return ExampleWriter(model, reach, std::move(*sizes)).all();
}

}  // namespace sconce::server::api
