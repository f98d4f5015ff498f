// Reads pickles (protocols 2 to 5) as data. Nothing is imported or called: names of classes and functions stay names,
// and a call is a value with the callee and the arguments. The reader does not know tensors; torch_pickles.h does.
//
// Pure: a Pickle is immutable once read. Its texts are views of the input bytes, or of the Pickle itself. All errors
// are kInvalidArgument and name the byte offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sconce::server::rollout {

class Pickle {
 public:
  enum class Kind : int8_t {
    kNone,
    kBool,
    kInteger,
    kLong,  // an integer beyond int64
    kFloat,
    kText,
    kBytes,
    kTuple,
    kList,
    kDict,        // items: key, value, key, value...
    kName,        // a class or function. items: module, name
    kCall,        // items: the callee, its arguments, and the state set on the result, if any
    kPersistent,  // an object outside the pickle. items: its id
  };
  // Index of a value. Values may share others, or contain themselves.
  using Value = uint32_t;

  // The cost limit of one body, shared by all of its pickles; each subtracts its cost. A tensor takes about 100 values,
  // and twice as many instructions.
  struct Left {
    size_t values = size_t{1} << 22;        // including elements of values
    size_t instructions = size_t{1} << 24;  // about a second
    size_t decoded = size_t{64} << 20;      // bytes that protocol 2 encodes as text
    std::function<void()> check = {};       // called from time to time; an exception aborts the reading
  };
  // Maximum length of names of modules, classes and functions, in bytes.
  static constexpr size_t kLongestName = 1024;
  // Maximum number of entries of a dict that member() searches.
  static constexpr size_t kMaxMembers = 256;

  // The name of a class or function, as views without a copy.
  struct Name {
    std::string_view module, last;  // both empty: not a name
    // full: "torch.Size".
    bool is(std::string_view full) const noexcept {
      return full.size() == module.size() + 1 + last.size() && full.starts_with(module) && full[module.size()] == '.' &&
             full.ends_with(last);
    }
    // Whether the last dot-separated words of the name are these.
    bool ends_with(std::string_view words) const noexcept {
      return last == words || (last.ends_with(words) && last[last.size() - words.size() - 1] == '.');
    }
    std::string text() const;  // "module.last"; empty if it is not a name
  };

  // Reads one pickle from the beginning of the bytes, which must outlive the object.
  Pickle(std::string_view bytes, Left& left);

  Value root() const noexcept { return root_; }
  // Number of consumed bytes.
  size_t bytes() const noexcept { return end_; }

  Kind kind(Value value) const noexcept { return nodes_[value].kind; }
  const std::vector<Value>& items(Value value) const noexcept { return nodes_[value].items; }
  // These return nullopt for a value of another kind.
  std::optional<int64_t> integer(Value value) const noexcept;
  std::optional<bool> boolean(Value value) const noexcept;
  std::optional<std::string_view> text(Value value) const noexcept;
  std::optional<std::string_view> bytes(Value value) const noexcept;
  // Elements of a tuple or list.
  const std::vector<Value>* sequence(Value value) const noexcept;
  // The value of a text key; nullopt also if this is not a dict. kInvalidArgument for a dict with more than kMaxMembers
  // entries.
  std::optional<Value> member(Value dict, std::string_view key) const;
  Name name(Value value) const noexcept;
  // The callee of a call.
  Name callee(Value value) const noexcept;
  const std::vector<Value>* arguments(Value call) const noexcept;
  std::optional<Value> state(Value call) const noexcept;
  // A description for errors: "a tuple of 3", "a call of torch.Size".
  std::string describe(Value value) const;

 private:
  class Machine;
  struct Node {
    Kind kind = Kind::kNone;
    int64_t number = 0;
    std::string_view text;
    std::vector<Value> items;
  };
  std::vector<Node> nodes_;
  std::deque<std::string> owned_;  // texts that are not verbatim in the bytes
  Value root_ = 0;
  size_t end_ = 0;
};

}  // namespace sconce::server::rollout
