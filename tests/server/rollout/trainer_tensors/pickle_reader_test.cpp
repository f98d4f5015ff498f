// Pickles read as data: values, sharing, what is refused. torch_pickles_test.cpp has those of PyTorch.
#include "server/rollout/trainer_tensors/pickle_reader.h"

#include <doctest/doctest.h>

#include <string>

#include "sconce/error.h"

namespace sconce::server::rollout {

using Kind = Pickle::Kind;
using namespace std::string_literals;

namespace {

Pickle read(const std::string& bytes) {
  Pickle::Left left;
  return Pickle(bytes, left);
}

// Reads a pickle that must be refused and returns the error's text.
std::string refusal(const std::string& bytes) {
  try {
    read(bytes);
    return "accepted";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidArgument);
    return error.what();
  }
}

}  // namespace

TEST_CASE("pickles: integers of each size") {
  const auto integer = [](const std::string& op) { return read("\x80\x04" + op + ".").integer(0); };
  CHECK(integer("K\xff") == 255);
  CHECK(integer("M\x01\x02") == 0x201);
  CHECK(integer("J\xff\xff\xff\xff") == -1);
  CHECK(integer("J\x00\x00\x00\x80"s) == INT32_MIN);
  CHECK(integer("\x8a\x00"s) == 0);
  CHECK(integer("\x8a\x01\xff") == -1);
  CHECK(integer("\x8a\x02\x00\x01"s) == 256);
  CHECK(integer("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f") == INT64_MAX);
  CHECK(integer("\x8b\x01\x00\x00\x00\x80"s) == -128);
  const std::string large = "\x80\x04\x8a\x09\x01\x02\x03\x04\x05\x06\x07\x08\x09.";
  const Pickle pickle = read(large);
  CHECK(pickle.kind(pickle.root()) == Kind::kLong);
  CHECK(!pickle.integer(pickle.root()));
}

TEST_CASE("pickles: sequences, dicts, memo, names and calls") {
  // {"a": (1, [None, True]), "b": collections.OrderedDict()}, with the list recalled a second time.
  const std::string bytes =
      "\x80\x04}(\x8c\x01"
      "aK\x01](N\x88"
      "e\x94\x86\x8c\x01"
      "bccollections\nOrderedDict\n)R\x8c\x01"
      "ch\x00u."s;
  const Pickle pickle = read(bytes);
  CHECK(pickle.bytes() == bytes.size());
  const auto root = pickle.root();
  REQUIRE(pickle.kind(root) == Kind::kDict);
  CHECK(pickle.describe(root) == "a dict of 3");
  const auto a = pickle.member(root, "a");
  REQUIRE(a);
  const auto* const pair = pickle.sequence(*a);
  REQUIRE(pair);
  REQUIRE(pair->size() == 2);
  CHECK(pickle.integer((*pair)[0]) == 1);
  const auto* const list = pickle.sequence((*pair)[1]);
  REQUIRE(list);
  REQUIRE(list->size() == 2);
  CHECK(pickle.kind((*list)[0]) == Kind::kNone);
  CHECK(pickle.boolean((*list)[1]) == true);
  CHECK(pickle.member(root, "c") == (*pair)[1]);
  const auto b = pickle.member(root, "b");
  REQUIRE(b);
  CHECK(pickle.callee(*b).is("collections.OrderedDict"));
  CHECK(pickle.arguments(*b)->empty());
  CHECK(!pickle.member(root, "d"));
  CHECK(!pickle.member(*a, "a"));
}

TEST_CASE("pickles: nothing is called, whatever the name") {
  const std::string bytes =
      "\x80\x02"
      "cos\nsystem\nX\x04\x00\x00\x00true\x85R."s;
  const Pickle pickle = read(bytes);
  CHECK(pickle.kind(pickle.root()) == Kind::kCall);
  CHECK(pickle.describe(pickle.root()) == "a call of os.system");
}

TEST_CASE("pickles: an object's state, and bytes of protocol 2") {
  const std::string object =
      "\x80\x04\x8c\x01m\x8c\x01"
      "C\x93)\x81}\x8c\x01xK\x05sb."s;
  const Pickle pickle = read(object);
  const auto state = pickle.state(pickle.root());
  REQUIRE(state);
  CHECK(pickle.integer(*pickle.member(*state, "x")) == 5);
  const std::string encoded =
      "\x80\x02"
      "c_codecs\nencode\nX\x05\x00\x00\x00"
      "a\xc3\xbf\xc2\x80X\x06\x00\x00\x00latin1\x86R."s;
  const Pickle bytes = read(encoded);
  CHECK(bytes.bytes(bytes.root()) == "a\xff\x80");
}

TEST_CASE("pickles: a list that contains itself is read") {
  const std::string bytes =
      "\x80\x04]\x94h\x00"
      "a."s;
  const Pickle pickle = read(bytes);
  REQUIRE(pickle.sequence(pickle.root())->size() == 1);
  CHECK(pickle.sequence(pickle.root())->front() == pickle.root());
}

TEST_CASE("pickles: malformed ones are refused with their offset") {
  CHECK(refusal("") == "pickle: it ends too early, at byte 0");
  CHECK(refusal("\x80\x04K") == "pickle: it ends too early, at byte 2");
  CHECK(refusal("\x80\x01.").find("protocol") != std::string::npos);
  CHECK(refusal("\x80\x06N.").find("protocol") != std::string::npos);
  CHECK(refusal(".") == "pickle: a value is missing at byte 0");
  CHECK(refusal("NN.").find("left over") != std::string::npos);
  CHECK(refusal("(N.").find("left over") != std::string::npos);
  CHECK(refusal("h\x07.").find("unknown value") != std::string::npos);
  CHECK(refusal("e").find("mark") != std::string::npos);
  CHECK(refusal("N(Ke").find("too early") != std::string::npos);
  CHECK(refusal("N(NNe").find("added to what has none") != std::string::npos);
  CHECK(refusal("}(Nu").find("without a value") != std::string::npos);
  CHECK(refusal("(Nd").find("without a value") != std::string::npos);
  CHECK(refusal("K\x01K\x02\x93").find("no text") != std::string::npos);
  CHECK(refusal("NNb").find("not an object") != std::string::npos);
  CHECK(refusal("X\xff\xff\xff\xff"
                "a")
            .find("too early") != std::string::npos);
  CHECK(refusal("\x8e\xff\xff\xff\xff\xff\xff\xff\xff").find("too early") != std::string::npos);
  CHECK(refusal("\x97").find("buffer") != std::string::npos);
  CHECK(refusal("i").find("instruction 105") != std::string::npos);
  CHECK(refusal("cmodule").find("without an end") != std::string::npos);
}

TEST_CASE("pickles: a small body takes no large memory") {
  CHECK(refusal(std::string(5 << 20, 'N')).find("than are read") != std::string::npos);
  CHECK(refusal("N" + std::string(3 << 20, '2')).find("than are read") != std::string::npos);
  CHECK(refusal(std::string(3 << 20, '(')).find("than are read") != std::string::npos);
  // A pickle that appends a long list to another one many times.
  std::string again = "]\x94]\x94(";
  again.append(1000, 'N');
  again += "e";
  const std::string append = std::string("h\0h\1", 4) + "a0";  // the second list to the first
  for (int i = 0; i < 100000; ++i) again += append;
  again += ".";
  CHECK(refusal(again).find("left over") != std::string::npos);
  Pickle::Left left;
  left.values = 10;
  const std::string three = "NNN\x87.";
  const Pickle first(three, left);
  CHECK(left.values == 3);
  CHECK_THROWS_AS(Pickle(three, left), Error);
}

TEST_CASE("pickles: names are short, and asking for one copies nothing") {
  const std::string longest(Pickle::kLongestName, 'a'), longer = longest + "a";
  CHECK(refusal("c" + longest + "\n" + longest + "\n.") == "accepted");
  CHECK(refusal("c" + longer + "\nb\n.") == "pickle: a name of more than 1024 bytes at byte 0");
  CHECK(refusal("cb\n" + longer + "\n.").find("more than 1024 bytes") != std::string::npos);
  // A text of any length may be recalled for a name.
  CHECK(refusal("X\x01\x04\x00\x00"s + longer + "\x94h\x00\x93."s).find("more than 1024 bytes") != std::string::npos);
  const std::string bytes = "ctorch.nn\nA.B\n.";
  const Pickle pickle = read(bytes);
  const Pickle::Name name = pickle.name(pickle.root());
  CHECK(name.module.data() == bytes.data() + 1);
  CHECK(name.text() == "torch.nn.A.B");
  CHECK(name.is("torch.nn.A.B"));
  CHECK(!name.is("torch.nn.A"));
  CHECK(!name.is("torch.nnA.B."));
  CHECK(name.ends_with("B"));
  CHECK(name.ends_with("A.B"));
  CHECK(!name.ends_with("nn.A.B"));
  CHECK(!name.ends_with("C"));
}

TEST_CASE("pickles: the work of one body is bounded, and can be ended") {
  Pickle::Left left;
  left.instructions = 1'000;
  std::string marks;
  for (int i = 0; i < 600; ++i) marks += "(1";  // makes no values
  CHECK_THROWS_WITH_AS(Pickle(marks + "N.", left), "pickle: more instructions than are read, at byte 1000", Error);
  CHECK_THROWS_AS(Pickle("N.", left), Error);  // those of one body share the bound
  left = {};
  int checks = 0;
  left.check = [&] {
    if (++checks == 2) throw Error(ErrorCode::kUnavailable, "the server is shutting down");
  };
  std::string many;
  for (int i = 0; i < 200'000; ++i) many += "(1";
  CHECK_THROWS_WITH_AS(Pickle(many, left), "the server is shutting down", Error);
  // A text that is decoded over and over.
  std::string again = "X\x1e\x00\x00\x00"s + std::string(30, 'a') +
                      "\x94X\x06\x00\x00\x00latin1\x94"
                      "c_codecs\nencode\n\x94("s;
  for (int i = 0; i < 4; ++i) again += "h\x02h\x00h\x01\x86R"s;
  again = "(" + again + "l0l.";
  left = {};
  left.decoded = 120;
  CHECK_NOTHROW(Pickle(again, left));
  left = {};
  left.decoded = 119;
  CHECK_THROWS_AS(Pickle(again, left), Error);
}

TEST_CASE("pickles: a member is looked for in small dicts only") {
  std::string small = "}(", large = "}(";
  for (int i = 0; i < 300; ++i) {
    if (i < 200) small += "K\x01N";
    large += "K\x01N";
  }
  small += "u.";
  large += "u.";
  const Pickle few = read(small), many = read(large);
  CHECK(!few.member(few.root(), "a"));
  CHECK_THROWS_WITH_AS((void)many.member(many.root(), "a"), "expected a dict of at most 256 entries, got a dict of 300",
                       Error);
}

}  // namespace sconce::server::rollout
