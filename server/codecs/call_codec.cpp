#include "server/codecs/call_codec.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>

#include "sconce/check.h"
#include "server/codecs/infer_codec.h"
#include "server/scheduling/signature/recorded_strides.h"
#include "server/support/json/base64.h"
#include "server/support/json/tensor_json.h"
#include "server/support/json/tensor_list.h"
#include "server/support/json_cursor.h"
#include "src/support/excerpt.h"

namespace sconce::server::codecs {
namespace {

using Kind = SpecNode::Kind;

bool is_object(const SpecNode& node) noexcept {
  return node.kind == Kind::kDict || node.kind == Kind::kOrderedDict || node.kind == Kind::kDefaultDict ||
         node.kind == Kind::kDataclass;
}

// The position of a leaf's value in the request.
struct Leaf {
  enum class Form : int8_t { kAbsent, kScalar, kOther, kTensor };  // kOther: a string or null
  Form form = Form::kAbsent;
  size_t at = 0;
  std::string path;
};

class Decoder {
 public:
  Decoder(const scheduling::ModelSignature& model, const BodyBuffer& body, TensorScratch& scratch,
          std::vector<Tensor>& inputs)
      : model_(model),
        spec_(model.spec.call_spec),
        scratch_(scratch),
        inputs_(inputs),
        json_({reinterpret_cast<const char*>(body.begin()), body.size()}) {}

  void run() {
    if (!spec_.known) {
      flat_.kind = Kind::kTuple;
      flat_.children.resize(model_.inputs.size());
    }
    const SpecNode& args = spec_.known ? spec_.args : flat_;
    leaves_.reserve(args.leaves() + (spec_.known ? spec_.kwargs.leaves() : 0));
    bool args_seen = false, kwargs_seen = false;
    json_.object("the call", [&](std::string_view key) {
      if (key == "args") {
        SCONCE_CHECK(!args_seen, kInvalidArgument, "the call has 'args' twice");
        args_seen = true;
        args_at_ = json_.offset();
        json_.peek() == '[' ? (void)json_.skip_unchecked() : json_.fail_expected("'args'", "an array");
      } else if (key == "kwargs") {
        SCONCE_CHECK(!kwargs_seen, kInvalidArgument, "the call has 'kwargs' twice");
        kwargs_seen = true;
        kwargs_at_ = json_.offset();
        json_.peek() == '{' ? (void)json_.skip_unchecked() : json_.fail_expected("'kwargs'", "an object");
      } else {
        SCONCE_FAIL(kInvalidArgument, "the call has 'args' and 'kwargs' only, got '", excerpt(key), "'");
      }
    });
    json_.finish();
    // in flat order, whatever their order in the text
    walk_part(args, args_at_, "args");
    if (spec_.known) {
      walk_part(spec_.kwargs, kwargs_at_, "kwargs");
    } else {
      SCONCE_CHECK(!kwargs_at_, kInvalidArgument, "the package has no call spec: give the inputs in 'args', in order");
    }
    const std::vector<size_t> leaf_of_input = assign_leaves();
    inputs_.resize(model_.inputs.size());
    for (size_t i = 0; i < inputs_.size(); ++i) read_input(i, leaves_[leaf_of_input[i]]);
  }

 private:
  void walk_part(const SpecNode& node, std::optional<size_t> at, const char* name) {
    path_ = name;
    if (!at) return absent(node);
    json_.seek(*at);
    walk(node);
  }

  // A subtree that the request omits; an error is thrown later if it should have a tensor.
  void absent(const SpecNode& node) {
    if (node.kind == Kind::kLeaf) {
      leaves_.push_back({Leaf::Form::kAbsent, 0, path_});
      return;
    }
    const size_t length = path_.size();
    for (size_t i = 0; i < node.children.size(); ++i) {
      push_path(node, i);
      absent(node.children[i]);
      path_.resize(length);
    }
  }

  void push_path(const SpecNode& node, size_t i) {
    if (is_object(node)) {
      path_.append("[\"").append(node.keys[i]).append("\"]");
    } else {
      path_.append("[").append(std::to_string(i)).append("]");
    }
  }

  void walk(const SpecNode& node) {
    if (node.kind == Kind::kLeaf) return leaf();
    if (node.kind == Kind::kNone) {
      if (!json_.consume_null()) json_.fail_expected(path_, "null");
      return;
    }
    // Recursion is as deep as the package's spec, independent of the request.
    is_object(node) ? walk_object(node) : walk_array(node);
  }

  void leaf() {
    const char c = json_.peek();
    Leaf leaf{Leaf::Form::kOther, json_.offset(), path_};
    if (c == '[' || c == '{') {
      leaf.form = Leaf::Form::kTensor;
      json_.skip_unchecked();
    } else {
      if (c != '"' && c != 'n') leaf.form = Leaf::Form::kScalar;
      json_.skip();
    }
    leaves_.push_back(std::move(leaf));
  }

  void walk_array(const SpecNode& node) {
    const size_t length = path_.size();
    size_t count = 0;
    json_.array(path_, [&](size_t i) {
      SCONCE_CHECK(i < node.children.size(), kInvalidArgument, path_, " has more than ", node.children.size(),
                   " elements");
      push_path(node, i);
      walk(node.children[i]);
      path_.resize(length);
      count = i + 1;
    });
    for (; count < node.children.size(); ++count) {
      push_path(node, count);
      absent(node.children[count]);
      path_.resize(length);
    }
  }

  void walk_object(const SpecNode& node) {
    std::vector<size_t> at(node.children.size(), SIZE_MAX);
    json_.object(path_, [&](std::string_view key) {
      const size_t i = static_cast<size_t>(std::find(node.keys.begin(), node.keys.end(), key) - node.keys.begin());
      SCONCE_CHECK(i < node.keys.size(), kInvalidArgument, path_, " has no key '", excerpt(key), "', keys are ",
                   keys(node));
      SCONCE_CHECK(at[i] == SIZE_MAX, kInvalidArgument, path_, " has the key '", excerpt(key), "' twice");
      json_.peek();
      at[i] = json_.offset();
      json_.skip_unchecked();
    });
    const size_t resume = json_.offset(), length = path_.size();
    for (size_t i = 0; i < node.children.size(); ++i) {
      push_path(node, i);
      if (at[i] == SIZE_MAX) {
        absent(node.children[i]);
      } else {
        json_.seek(at[i]);
        walk(node.children[i]);
      }
      path_.resize(length);
    }
    json_.seek(resume);
  }

  static std::string keys(const SpecNode& node) {
    std::string text;
    for (const std::string& key : node.keys) text += (text.empty() ? "'" : ", '") + key + "'";
    return text.empty() ? "none" : text;
  }

  // Assigns a leaf to each input. If the package dropped leaves without recording which, lists and tensor objects are
  // tensors, and numbers are tensors only if the count would otherwise be wrong.
  std::vector<size_t> assign_leaves() const {
    if (!spec_.known || model_.input_leaf.size() == model_.inputs.size()) {
      std::vector<size_t> identity = model_.input_leaf;
      for (size_t i = identity.size(); i < model_.inputs.size(); ++i) identity.push_back(i);
      for (const size_t leaf : identity) {
        SCONCE_CHECK(leaf < leaves_.size(), kInternal, "call spec has fewer leaves than inputs");
      }
      if (spec_.known) check_dropped(identity);
      return identity;
    }
    std::vector<size_t> tensors, with_scalars;
    for (size_t i = 0; i < leaves_.size(); ++i) {
      const Leaf::Form form = leaves_[i].form;
      if (form == Leaf::Form::kTensor) tensors.push_back(i);
      if (form == Leaf::Form::kTensor || form == Leaf::Form::kScalar) with_scalars.push_back(i);
    }
    if (tensors.size() == model_.inputs.size()) return tensors;
    if (with_scalars.size() == model_.inputs.size()) return with_scalars;
    SCONCE_FAIL(kInvalidArgument, "the call has ", tensors.size(), " tensors, the model takes ", model_.inputs.size(),
                with_scalars.size() > model_.inputs.size()
                    ? "; send 0-dimensional tensors as {\"dtype\", \"shape\", \"base64\"} to tell them from numbers"
                    : "");
  }

  // Tensors that a model does not use stay inputs of the package. A leaf without an input was therefore not a tensor at
  // export, and the code was compiled for its value.
  void check_dropped(const std::vector<size_t>& leaf_of_input) const {
    std::vector<bool> is_input(leaves_.size());
    for (const size_t leaf : leaf_of_input) is_input[leaf] = true;
    for (size_t i = 0; i < leaves_.size(); ++i)
      SCONCE_CHECK(
          is_input[i] || leaves_[i].form != Leaf::Form::kTensor, kInvalidArgument, leaves_[i].path,
          " cannot be a tensor: it was None, a number or a string when the model was exported, and the package "
          "takes no tensor there");
  }

  void read_input(size_t index, const Leaf& leaf) {
    SCONCE_CHECK(leaf.form != Leaf::Form::kAbsent, kInvalidArgument, leaf.path, " is missing");
    const std::optional<DType> dtype = model_.inputs[index].dtype;
    json_.seek(leaf.at);
    json_.set_context(leaf.path);
    Tensor tensor;
    if (json_.peek() == '{') {
      tensor = read_bytes(leaf.path, dtype);
    } else {
      SCONCE_CHECK(dtype, kInvalidArgument, leaf.path,
                   ": the package does not record the dtype, send {\"dtype\", \"shape\", \"base64\"}");
      SCONCE_CHECK(leaf.form != Leaf::Form::kOther, kInvalidArgument, leaf.path,
                   " must be a tensor: a number, a list or "
                   "{\"dtype\", \"shape\", \"base64\"}");
      TensorList list(*dtype, scratch_);
      list.add(json_, leaf.path);
      tensor = list.single(leaf.path);
    }
    json_.set_context({});
    inputs_[index] = scheduling::in_recorded_strides(std::move(tensor), model_.spec.inputs[index], scratch_);
  }

  Tensor read_bytes(std::string_view path, std::optional<DType> expected) {
    std::string_view name, base64;
    bool has_base64 = false, has_shape = false;
    std::array<int64_t, Tensor::kMaxRank> sizes;
    size_t rank = 0;
    json_.object(path, [&](std::string_view key) {
      if (key == "dtype") {
        name = json_.string("'dtype'");
      } else if (key == "base64") {
        base64 = json_.string("'base64'");
        has_base64 = true;
      } else if (key == "shape") {
        has_shape = true;
        rank = 0;
        json_.array("'shape'", [&](size_t i) {
          const uint64_t size = json_.unsigned_integer("a size in 'shape'");
          SCONCE_CHECK(i < sizes.size() && size <= INT64_MAX, kInvalidArgument, path, ": 'shape' is out of range");
          sizes[i] = static_cast<int64_t>(size);
          rank = i + 1;
        });
      } else {
        SCONCE_FAIL(kInvalidArgument, path, ": a tensor has 'dtype', 'shape' and 'base64', got '", excerpt(key), "'");
      }
    });
    SCONCE_CHECK(!name.empty() && has_base64 && has_shape, kInvalidArgument, path,
                 ": a tensor needs 'dtype', 'shape' and 'base64'");
    const std::optional<DType> dtype = dtype_from_name(name);
    SCONCE_CHECK(dtype, kInvalidArgument, path, ": unknown dtype: '", excerpt(name), "'");
    SCONCE_CHECK(!expected || *dtype == *expected, kInvalidArgument, path, ": dtype must be ",
                 dtype_name(expected.value_or(*dtype)), ", got ", name);
    const IntSpan shape{sizes.data(), rank};
    // Refuses the request before allocating memory for elements that the text cannot hold.
    int64_t bytes = static_cast<int64_t>(dtype_bytes(*dtype));
    bool fits = true;
    for (const int64_t size : shape) fits = fits && !__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes);
    SCONCE_CHECK(fits, kInvalidArgument, path, ": shape has too many elements: ", excerpt(to_string(shape)));
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) bytes = 0;
    const size_t bound = base64_decoded_bound(base64.size());
    SCONCE_CHECK(static_cast<uint64_t>(bytes) <= bound && bound <= static_cast<uint64_t>(bytes) + 2, kInvalidArgument,
                 path, ": shape ", excerpt(to_string(shape)), " of ", name, " has ", bytes, " bytes, 'base64' has ",
                 bound, " at most");
    const TensorScratch::Piece piece = scratch_.allocate(bound);
    const std::optional<size_t> decoded = decode_base64(base64, piece.data);
    SCONCE_CHECK(decoded, kInvalidArgument, path, ": 'base64' is malformed");
    SCONCE_CHECK(*decoded == static_cast<size_t>(bytes), kInvalidArgument, path, ": shape ", excerpt(to_string(shape)),
                 " of ", name, " has ", bytes, " bytes, 'base64' has ", *decoded);
    return scratch_.over(piece.storage, piece.data, *dtype, shape);
  }

  const scheduling::ModelSignature& model_;
  const CallSpec& spec_;
  TensorScratch& scratch_;
  std::vector<Tensor>& inputs_;
  JsonCursor json_;
  SpecNode flat_;  // for a package without a call spec
  std::optional<size_t> args_at_, kwargs_at_;
  std::vector<Leaf> leaves_;
  std::string path_;
};

class Encoder {
 public:
  Encoder(std::span<const Tensor> outputs, bool base64, TensorScratch& scratch, TextBuffer& text)
      : outputs_(outputs), base64_(base64), scratch_(scratch), text_(text) {}

  void node(const SpecNode& node) {
    if (node.kind == Kind::kLeaf) return tensor(outputs_[next_++]);
    if (node.kind == Kind::kNone) return text_.append("null");
    const bool object = is_object(node);
    text_.append(object ? '{' : '[');
    for (size_t i = 0; i < node.children.size(); ++i) {
      if (i != 0) text_.append(',');
      if (object) {
        std::string key;
        append_json_string(key, node.keys[i]);
        text_.append(key);
        text_.append(':');
      }
      this->node(node.children[i]);
    }
    text_.append(object ? '}' : ']');
  }

  void tensor(const Tensor& tensor) {
    if (!tensor.defined()) return text_.append("null");
    check_output(tensor);
    if (!base64_ && has_json_form(tensor.dtype())) return write_nested(text_, tensor);
    text_.append("{\"dtype\":\"");
    text_.append(dtype_name(tensor.dtype()));
    text_.append("\",\"shape\":[");
    for (int64_t d = 0; d < tensor.dim(); ++d) {
      if (d != 0) text_.append(',');
      text_.append(std::to_string(tensor.size(d)));
    }
    text_.append("],\"base64\":\"");
    if (tensor.numel() != 0) append_base64(text_, scratch_.row_major(tensor), tensor.bytes());
    text_.append("\"}");
  }

 private:
  std::span<const Tensor> outputs_;
  bool base64_;
  TensorScratch& scratch_;
  TextBuffer& text_;
  size_t next_ = 0;
};

}  // namespace

void decode_call(const scheduling::ModelSignature& model, const BodyBuffer& body, TensorScratch& scratch,
                 std::vector<Tensor>& inputs) {
  Decoder(model, body, scratch, inputs).run();
}

void encode_call(const scheduling::ModelSignature& model, std::span<const Tensor> outputs, bool base64,
                 TensorScratch& scratch, http::Response& response) {
  TextBuffer& text = response.text();
  Encoder encoder(outputs, base64, scratch, text);
  const CallSpec& spec = model.spec.call_spec;
  if (spec.known && spec.result.leaves() == outputs.size()) return encoder.node(spec.result);
  if (outputs.size() == 1) return encoder.tensor(outputs[0]);
  text.append('[');
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i != 0) text.append(',');
    encoder.tensor(outputs[i]);
  }
  text.append(']');
}

}  // namespace sconce::server::codecs
