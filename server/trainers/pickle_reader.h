// Reads pickles (protocols 2 to 5) as data. Nothing is imported or called: names of classes and functions stay names,
// and a call is a value that says what would be called with what. The reader knows no tensors; torch_pickles.h does.
//
// Pure: a Pickle is immutable once read. Its texts are views of the bytes it was read from, or of the Pickle itself.
// All errors are kInvalidArgument and name the byte offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sconce::server {

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
    kName,        // of a class or function. items: module, name
    kCall,        // items: what is called, its arguments, and the state that was given to the result, if there is one
    kPersistent,  // an object that the writer keeps elsewhere. items: its id
  };
  // Number of a value. Values may share others, even themselves.
  using Value = uint32_t;

  // How many values and elements of values are read. A tensor takes about 100.
  static constexpr size_t kMostValues = size_t{1} << 22;

  // Reads one pickle from the beginning of the bytes, which must outlive it. `left`: how many values it may have at
  // most; what it has is subtracted. So several pickles of one small body cannot take much memory either.
  Pickle(std::string_view bytes, size_t& left);

  Value root() const noexcept { return root_; }
  // How many of the bytes it took.
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
  // The value of a key that is a text; nullopt also if this is no dict.
  std::optional<Value> member(Value dict, std::string_view key) const noexcept;
  // "module.name" of a class or function; empty for other values.
  std::string name(Value value) const;
  // The same of what a call calls.
  std::string callee(Value value) const;
  const std::vector<Value>* arguments(Value call) const noexcept;
  std::optional<Value> state(Value call) const noexcept;
  // What it is, for errors: "a tuple of 3", "a call of torch.Size".
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
  std::deque<std::string> owned_;  // texts that are not in the bytes as they are
  Value root_ = 0;
  size_t end_ = 0;
};

}  // namespace sconce::server
