#include "src/custom_ops/operator/schema.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <map>

#include "sconce/error.h"
#include "src/custom_ops/aten/aten.h"
#include "tests/errors.h"
#include "tests/files.h"

namespace sconce::custom_ops {
namespace {

const SchemaArgument& argument(const Schema& schema, std::string_view name) {
  const int index = schema.argument(name);
  REQUIRE(index >= 0);
  return schema.arguments[static_cast<size_t>(index)];
}

void check_fails(std::string_view text, std::string_view reason) {
  CAPTURE(text);
  const std::string error = error_from([&] { parse_schema(text); });
  CHECK_MESSAGE(contains(error, reason), error);
}

}  // namespace

TEST_CASE("schema: names, keyword-only arguments, defaults") {
  const Schema s = parse_schema("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
  CHECK(s.qualified() == "aten::add.Tensor");
  CHECK(s.arguments.size() == 3);
  CHECK(s.results.size() == 1);
  CHECK_FALSE(argument(s, "other").keyword_only);
  CHECK(argument(s, "alpha").keyword_only);
  CHECK(argument(s, "alpha").type.kind == TypeKind::kScalar);
  CHECK(*argument(s, "alpha").default_value->get_if<int64_t>() == 1);
  CHECK(s.argument("beta") == -1);
  CHECK(parse_schema("op(Tensor x) -> ()", "mine").qualified() == "mine::op");
  CHECK(parse_operator_name("aten::add.Tensor").overload == "Tensor");
  CHECK(parse_operator_name("add", "aten").qualified() == "aten::add");
}

TEST_CASE("schema: types") {
  const Schema s = parse_schema(
      "a::b(Tensor?[] t, int[2]? sizes, SymInt[] shape, str? mode, ScalarType? dtype, Layout l, MemoryFormat m, "
      "Device d, Generator? g, float[] f, bool[3] mask, Tensor[][] nested, __torch__.torch.classes.ns.Thing thing, "
      "Dict(str, Tensor) map) -> (Tensor(a!), Tensor[] many, int count)");
  CHECK(argument(s, "t").type.text() == "Tensor?[]");
  CHECK(argument(s, "sizes").type.text() == "int[2]?");
  CHECK(argument(s, "sizes").type.element->list_size == 2);
  CHECK(argument(s, "shape").type.is_list_of(TypeKind::kInt));
  CHECK(argument(s, "nested").type.text() == "Tensor[][]");
  CHECK(argument(s, "thing").type.kind == TypeKind::kOther);
  CHECK(argument(s, "thing").type.text() == "__torch__.torch.classes.ns.Thing");
  CHECK(argument(s, "map").type.text() == "Dict(str, Tensor)");
  CHECK(s.results.size() == 3);
  CHECK(s.results[0].written);
  CHECK(s.results[0].alias == "a");
  CHECK(s.results[1].name == "many");
}

TEST_CASE("schema: aliases") {
  const Schema s = parse_schema("a::b(Tensor(a -> *) x, Tensor(b!)[] y, Tensor(c|d! -> e) z) -> Tensor(a)[]");
  CHECK(argument(s, "x").alias == "a");
  CHECK_FALSE(argument(s, "x").written);
  CHECK(argument(s, "y").written);
  CHECK(argument(s, "y").type.is_list_of(TypeKind::kTensor));
  CHECK(argument(s, "z").written);
  CHECK(s.results[0].alias == "a");
}

TEST_CASE("schema: defaults of every kind") {
  const Schema s = parse_schema(
      "a::b(int i=-3, float f=1., float g=1e-05, float h=-inf, float n=nan, float w=2, bool t=True, bool u=False, "
      "str s=\"a \\\"b\\\" c\", str r='x', int[2] two=1, int[] list=[1, -2], float[] reals=[0.5, 1], Tensor? "
      "none=None, "
      "int[]? no=None, ScalarType k=long, MemoryFormat mf=contiguous_format, MemoryFormat mn=0, Layout l=strided, "
      "int red=Mean, Device d=\"cpu\", Scalar c=1.5j, Scalar b=True, bool[2] flags=[True, False], str[] words=[\"p\"]) "
      "-> ()");
  const auto value = [&](const char* name) { return *argument(s, name).default_value; };
  CHECK(*value("i").get_if<int64_t>() == -3);
  CHECK(*value("f").get_if<double>() == 1.0);
  CHECK(*value("g").get_if<double>() == 1e-5);
  CHECK(*value("h").get_if<double>() == -HUGE_VAL);
  CHECK(std::isnan(*value("n").get_if<double>()));
  CHECK(*value("w").get_if<double>() == 2.0);
  CHECK(*value("t").get_if<bool>());
  CHECK_FALSE(*value("u").get_if<bool>());
  CHECK(*value("s").get_if<std::string>() == "a \"b\" c");
  CHECK(*value("r").get_if<std::string>() == "x");
  CHECK(*value("two").get_if<Value::Ints>() == Value::Ints{1, 1});
  CHECK(*value("list").get_if<Value::Ints>() == Value::Ints{1, -2});
  CHECK(*value("reals").get_if<Value::Reals>() == Value::Reals{0.5, 1});
  CHECK(value("none").is_none());
  CHECK(value("no").is_none());
  CHECK(*value("k").get_if<int64_t>() == 4);
  CHECK(*value("mf").get_if<int64_t>() == 0);
  CHECK(*value("mn").get_if<int64_t>() == 0);
  CHECK(*value("l").get_if<int64_t>() == 0);
  CHECK(*value("red").get_if<int64_t>() == 1);
  CHECK(*value("d").get_if<Device>() == Device{});
  CHECK(*value("c").get_if<std::complex<double>>() == std::complex<double>(0, 1.5));
  CHECK(*value("b").get_if<bool>());
  CHECK(value("flags").get_if<Value::List>()->size() == 2);
  CHECK(*value("words").get_if<Value::List>()->front().get_if<std::string>() == "p");
}

TEST_CASE("schema: what is wrong is named") {
  check_fails("", "expected the operator's name");
  check_fails("op(Tensor x) -> Tensor", "no namespace");
  check_fails("a::b(Tensor) -> Tensor", "expected an argument's name");
  check_fails("a::b(Tensor x, int x) -> Tensor", "two arguments are named x");
  check_fails("a::b(Tensor x, *, *, int y) -> Tensor", "a second *");
  check_fails("a::b(Tensor x) Tensor", "expected '-'");
  check_fails("a::b(Tensor x) -> Tensor Tensor x", "text after the results");
  check_fails("a::b(int x=1.5) -> ()", "a fraction for int");
  check_fails("a::b(int x=99999999999999999999) -> ()", "expected an integer");
  check_fails("a::b(int[99999999] x=1) -> ()", "a list size out of range");
  check_fails("a::b(str x=\"open) -> ()", "an open string");
  check_fails("a::b(str x=True) -> ()", "True for str");
  check_fails("a::b(int x=spam) -> ()", "a default 'spam' for int");
  check_fails("a::b(Dict(str x", "an open (");
  check_fails("a::b(int????????????? x) -> ()", "a type of too many parts");
  check_fails(std::string(1 << 17, 'a'), "too long");
}

TEST_CASE("schema: no prefix or damaged byte of one does more than fail") {
  const std::string text =
      "aten::x.y(Tensor(a! -> *)[] t, int[2]? s=[1, 2], *, float f=-1e-3, str? m=\"q\", Device d='cpu') -> (Tensor(a), "
      "int n)";
  CHECK(parse_schema(text).arguments.size() == 5);
  const auto survives = [](const std::string& damaged) {
    try {
      parse_schema(damaged);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidArgument);
    }
  };
  for (size_t length = 0; length < text.size(); ++length) survives(text.substr(0, length));
  for (size_t at = 0; at < text.size(); ++at)
    for (const char c : {'\0', '(', ')', '[', '?', '!', '-', ',', '"', '9', '*', '\xff'}) {
      std::string damaged = text;
      damaged[at] = c;
      survives(damaged);
    }
}

TEST_CASE("schema: the rows of ATen's operators have PyTorch's schemas") {
  std::ifstream file(source_path("tests/custom_ops/aten_schemas.txt"));
  std::map<std::string, std::string> expected;
  for (std::string line; std::getline(file, line);) expected[line.substr(0, line.find('('))] = line;
  size_t rows = 0;
  for (const auto table : aten_tables())
    for (const AtenRow& row : table) {
      ++rows;
      const std::string text = row.schema;
      const Schema schema = parse_schema(text);
      CHECK(schema.qualified() == text.substr(0, text.find('(')));
      CHECK(expected[schema.qualified()] == text);
    }
  CHECK(rows == expected.size());
}

}  // namespace sconce::custom_ops
