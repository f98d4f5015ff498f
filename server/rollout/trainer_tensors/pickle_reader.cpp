#include "server/rollout/trainer_tensors/pickle_reader.h"

#include <cstring>
#include <unordered_map>
#include <utility>

#include "sconce/check.h"
#include "src/support/excerpt.h"

namespace sconce::server::rollout {
namespace {

// Maximum number of values on the stack, of marks, and of memoized values.
constexpr size_t kMaxStack = size_t{1} << 20;

// The opcodes of pickle.
enum Op : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kDict = 'd',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kList = 'l',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyDict = '}',
  kEmptyList = ']',
  kEmptyTuple = ')',
  kBinFloat = 'G',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kProto = 0x80,
  kNewObj = 0x81,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kNewObjEx = 0x92,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
  kByteArray8 = 0x96,
  kNextBuffer = 0x97,
  kReadOnlyBuffer = 0x98,
};

// Decodes protocol 2's form of bytes: Latin-1 text in UTF-8. nullopt for other texts.
std::optional<std::string> from_latin1(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x80) {
      bytes += text[i];
      continue;
    }
    if ((c != 0xc2 && c != 0xc3) || i + 1 == text.size()) return std::nullopt;
    const auto next = static_cast<unsigned char>(text[++i]);
    if ((next & 0xc0) != 0x80) return std::nullopt;
    bytes += static_cast<char>((c & 3) << 6 | (next & 0x3f));
  }
  return bytes;
}

}  // namespace

class Pickle::Machine {
 public:
  Machine(Pickle& pickle, std::string_view bytes, Left& left) : pickle_(pickle), bytes_(bytes), left_(left) {}

  void run() {
    constexpr size_t kBetweenChecks = size_t{1} << 16;
    do {
      begin_ = at_;
      if (left_.instructions == 0) fail("more instructions than are read,");
      --left_.instructions;
      if (left_.instructions % kBetweenChecks == 0 && left_.check) left_.check();
    } while (!step());
    pickle_.end_ = at_;
  }

 private:
  [[noreturn]] void fail(std::string_view problem) const {
    SCONCE_FAIL(kInvalidArgument, "pickle: ", problem, " at byte ", begin_);
  }

  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_) fail("it ends too early,");
    const std::string_view taken = bytes_.substr(at_, static_cast<size_t>(count));
    at_ += taken.size();
    return taken;
  }
  uint64_t little(size_t count) {
    const std::string_view raw = take(count);
    uint64_t value = 0;
    for (size_t i = 0; i < count; ++i) value |= uint64_t{static_cast<unsigned char>(raw[i])} << 8 * i;
    return value;
  }
  std::string_view line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) fail("a name without an end");
    const std::string_view text = take(end - at_);
    take(1);
    return text;
  }

  void push(Value value) {
    if (stack_.size() >= kMaxStack) fail("more values at once than are read,");
    stack_.push_back(value);
  }
  Value make(Kind kind, std::string_view text = {}, int64_t number = 0, std::vector<Value> items = {}) {
    count(1 + items.size());
    pickle_.nodes_.push_back({kind, number, text, std::move(items)});
    return static_cast<Value>(pickle_.nodes_.size() - 1);
  }
  void push_new(Kind kind, std::string_view text = {}, int64_t number = 0, std::vector<Value> items = {}) {
    push(make(kind, text, number, std::move(items)));
  }
  void count(size_t values) {
    if (values > left_.values) fail("more values than are read,");
    left_.values -= values;
  }
  Value pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("a value is missing");
    const Value value = stack_.back();
    stack_.pop_back();
    return value;
  }
  Value top() {
    const Value value = pop();
    stack_.push_back(value);
    return value;
  }
  std::vector<Value> pop_mark() {
    if (marks_.empty()) fail("a mark is missing");
    std::vector<Value> values(stack_.begin() + static_cast<ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return values;
  }
  void push_tuple(size_t size) {
    std::vector<Value> items(size);
    for (size_t i = size; i-- > 0;) items[i] = pop();
    push_new(Kind::kTuple, {}, 0, std::move(items));
  }
  void extend(Kind kind, const std::vector<Value>& items) {
    const Value to = top();
    if (pickle_.kind(to) == Kind::kCall) return;  // a subclass of list or dict fills itself, so it stays a call
    if (pickle_.kind(to) != kind) fail("elements are added to what has none");
    if (kind == Kind::kDict && items.size() % 2 != 0) fail("a key without a value");
    count(items.size());
    std::vector<Value>& list = pickle_.nodes_[to].items;
    list.insert(list.end(), items.begin(), items.end());
  }
  void memoize(uint64_t index) {
    if (memo_.size() >= kMaxStack) fail("more values are kept than are read,");
    memo_[index] = top();
  }
  void recall(uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) fail("an unknown value is recalled");
    push(found->second);
  }
  void push_long(std::string_view raw) {
    if (raw.size() > sizeof(int64_t)) return push_new(Kind::kLong, raw);
    uint64_t value = 0;
    for (size_t i = 0; i < raw.size(); ++i) value |= uint64_t{static_cast<unsigned char>(raw[i])} << 8 * i;
    const bool negative = !raw.empty() && (static_cast<unsigned char>(raw.back()) & 0x80) != 0;
    if (negative && raw.size() < sizeof value) value |= ~uint64_t{0} << 8 * raw.size();
    push_new(Kind::kInteger, {}, static_cast<int64_t>(value));
  }
  void push_name(Value module, Value name) {
    const auto first = pickle_.text(module), second = pickle_.text(name);
    if (!first || !second) fail("a name that is no text");
    if (first->size() > kLongestName || second->size() > kLongestName) fail("a name of more than 1024 bytes");
    push_new(Kind::kName, {}, 0, {module, name});
  }
  void call(Value function, Value arguments) {
    // Before protocol 3, bytes are a call that decodes a text.
    if (const auto* given = pickle_.sequence(arguments);
        given && given->size() == 2 && pickle_.name(function).is("_codecs.encode")) {
      const auto text = pickle_.text((*given)[0]), coding = pickle_.text((*given)[1]);
      if (text && coding == "latin1") {
        if (text->size() > left_.decoded) fail("more bytes in texts than are read,");
        left_.decoded -= text->size();
        auto decoded = from_latin1(*text);
        if (!decoded) fail("bytes that are not Latin-1");
        pickle_.owned_.push_back(std::move(*decoded));
        return push_new(Kind::kBytes, pickle_.owned_.back());
      }
    }
    push_new(Kind::kCall, {}, 0, {function, arguments});
  }

  // Returns whether this was the last instruction.
  bool step() {
    begin_ = at_;
    const auto op = static_cast<Op>(little(1));
    switch (op) {
      case kProto:
        if (const uint64_t version = little(1); version < 2 || version > 5) fail("not protocol 2, 3, 4 or 5");
        return false;
      case kFrame:
        little(8);
        return false;
      case kStop:
        pickle_.root_ = pop();
        if (!stack_.empty() || !marks_.empty()) fail("values are left over");
        return true;
      case kMark:
        if (marks_.size() >= kMaxStack) fail("more marks than are read,");
        marks_.push_back(stack_.size());
        return false;
      case kPop:
        // As in Python, it removes a mark if no value is above the mark.
        if (!marks_.empty() && stack_.size() == marks_.back())
          marks_.pop_back();
        else
          pop();
        return false;
      case kPopMark:
        pop_mark();
        return false;
      case kDup:
        push(top());
        return false;
      case kNone:
        push_new(Kind::kNone);
        return false;
      case kNewTrue:
      case kNewFalse:
        push_new(Kind::kBool, {}, op == kNewTrue);
        return false;
      case kBinInt:
        push_new(Kind::kInteger, {}, static_cast<int32_t>(little(4)));
        return false;
      case kBinInt1:
        push_new(Kind::kInteger, {}, static_cast<int64_t>(little(1)));
        return false;
      case kBinInt2:
        push_new(Kind::kInteger, {}, static_cast<int64_t>(little(2)));
        return false;
      case kLong1:
        push_long(take(little(1)));
        return false;
      case kLong4:
        push_long(take(little(4)));
        return false;
      case kBinFloat:
        take(8);
        push_new(Kind::kFloat);
        return false;
      case kBinUnicode:
        push_new(Kind::kText, take(little(4)));
        return false;
      case kShortBinUnicode:
        push_new(Kind::kText, take(little(1)));
        return false;
      case kBinUnicode8:
        push_new(Kind::kText, take(little(8)));
        return false;
      case kBinString:
      case kBinBytes:
        push_new(Kind::kBytes, take(little(4)));
        return false;
      case kShortBinString:
      case kShortBinBytes:
        push_new(Kind::kBytes, take(little(1)));
        return false;
      case kBinBytes8:
      case kByteArray8:
        push_new(Kind::kBytes, take(little(8)));
        return false;
      case kEmptyTuple:
        push_tuple(0);
        return false;
      case kTuple1:
        push_tuple(1);
        return false;
      case kTuple2:
        push_tuple(2);
        return false;
      case kTuple3:
        push_tuple(3);
        return false;
      case kTuple:
        push_new(Kind::kTuple, {}, 0, pop_mark());
        return false;
      case kEmptyList:
        push_new(Kind::kList);
        return false;
      case kList:
        push_new(Kind::kList, {}, 0, pop_mark());
        return false;
      case kAppend:
        extend(Kind::kList, {pop()});
        return false;
      case kAppends:
        extend(Kind::kList, pop_mark());
        return false;
      case kEmptyDict:
        push_new(Kind::kDict);
        return false;
      case kDict: {
        std::vector<Value> items = pop_mark();
        if (items.size() % 2 != 0) fail("a key without a value");
        push_new(Kind::kDict, {}, 0, std::move(items));
        return false;
      }
      case kSetItem: {
        const Value value = pop(), key = pop();
        extend(Kind::kDict, {key, value});
        return false;
      }
      case kSetItems:
        extend(Kind::kDict, pop_mark());
        return false;
      case kGlobal: {
        const Value module = make(Kind::kText, line());
        push_name(module, make(Kind::kText, line()));
        return false;
      }
      case kStackGlobal: {
        const Value name = pop(), module = pop();
        push_name(module, name);
        return false;
      }
      case kReduce:
      case kNewObj: {
        const Value arguments = pop(), function = pop();
        call(function, arguments);
        return false;
      }
      case kNewObjEx: {
        pop();  // arguments by name
        const Value arguments = pop(), function = pop();
        call(function, arguments);
        return false;
      }
      case kBuild: {
        const Value state = pop(), object = top();
        if (pickle_.kind(object) != Kind::kCall) fail("a state is set on a value that is not an object");
        pickle_.nodes_[object].items.resize(2);
        pickle_.nodes_[object].items.push_back(state);
        count(1);
        return false;
      }
      case kBinPersId:
        push_new(Kind::kPersistent, {}, 0, {pop()});
        return false;
      case kMemoize:
        memoize(memo_.size());
        return false;
      case kBinPut:
        memoize(little(1));
        return false;
      case kLongBinPut:
        memoize(little(4));
        return false;
      case kBinGet:
        recall(little(1));
        return false;
      case kLongBinGet:
        recall(little(4));
        return false;
      case kNextBuffer:
      case kReadOnlyBuffer:
        fail("a buffer that was sent beside it");
    }
    fail("instruction " + std::to_string(static_cast<int>(op)) + " is not read,");
  }

  Pickle& pickle_;
  const std::string_view bytes_;
  size_t at_ = 0, begin_ = 0;  // begin_: of the current instruction
  Left& left_;
  std::vector<Value> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, Value> memo_;
};

Pickle::Pickle(std::string_view bytes, Left& left) { Machine(*this, bytes, left).run(); }

std::optional<int64_t> Pickle::integer(Value value) const noexcept {
  return kind(value) == Kind::kInteger ? std::optional(nodes_[value].number) : std::nullopt;
}
std::optional<bool> Pickle::boolean(Value value) const noexcept {
  return kind(value) == Kind::kBool ? std::optional(nodes_[value].number != 0) : std::nullopt;
}
std::optional<std::string_view> Pickle::text(Value value) const noexcept {
  return kind(value) == Kind::kText ? std::optional(nodes_[value].text) : std::nullopt;
}
std::optional<std::string_view> Pickle::bytes(Value value) const noexcept {
  return kind(value) == Kind::kBytes ? std::optional(nodes_[value].text) : std::nullopt;
}
const std::vector<Pickle::Value>* Pickle::sequence(Value value) const noexcept {
  return kind(value) == Kind::kTuple || kind(value) == Kind::kList ? &items(value) : nullptr;
}

std::optional<Pickle::Value> Pickle::member(Value dict, std::string_view key) const {
  if (kind(dict) != Kind::kDict) return std::nullopt;
  const std::vector<Value>& all = items(dict);
  SCONCE_CHECK(all.size() <= 2 * kMaxMembers, kInvalidArgument, "expected a dict of at most ", kMaxMembers,
               " entries, got ", describe(dict));
  // The last entry with the key counts.
  for (size_t i = all.size(); i >= 2; i -= 2)
    if (text(all[i - 2]) == key) return all[i - 1];
  return std::nullopt;
}

std::string Pickle::Name::text() const {
  return module.empty() && last.empty() ? std::string() : std::string(module).append(".").append(last);
}
Pickle::Name Pickle::name(Value value) const noexcept {
  if (kind(value) != Kind::kName) return {};
  return {nodes_[items(value)[0]].text, nodes_[items(value)[1]].text};
}
Pickle::Name Pickle::callee(Value value) const noexcept {
  return kind(value) == Kind::kCall ? name(items(value)[0]) : Name{};
}
const std::vector<Pickle::Value>* Pickle::arguments(Value call) const noexcept {
  return kind(call) == Kind::kCall ? sequence(items(call)[1]) : nullptr;
}
std::optional<Pickle::Value> Pickle::state(Value call) const noexcept {
  if (kind(call) != Kind::kCall || items(call).size() < 3) return std::nullopt;
  return items(call)[2];
}

std::string Pickle::describe(Value value) const {
  switch (kind(value)) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return "a bool";
    case Kind::kInteger:
    case Kind::kLong:
      return "an int";
    case Kind::kFloat:
      return "a float";
    case Kind::kText:
      return "a str";
    case Kind::kBytes:
      return "bytes";
    case Kind::kTuple:
      return "a tuple of " + std::to_string(items(value).size());
    case Kind::kList:
      return "a list of " + std::to_string(items(value).size());
    case Kind::kDict:
      return "a dict of " + std::to_string(items(value).size() / 2);
    case Kind::kName:
      return excerpt(name(value).text());
    case Kind::kCall:
      return "a call of " + excerpt(callee(value).text());
    case Kind::kPersistent:
      return "an object that was kept elsewhere";
  }
  return "a value";
}

}  // namespace sconce::server::rollout
