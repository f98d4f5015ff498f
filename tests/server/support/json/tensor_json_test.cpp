#include "server/support/json/tensor_json.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "server/support/json/small_floats.h"
#include "server/support/trim.h"
#include "tests/errors.h"

using namespace sconce;
using namespace sconce::server;

namespace {

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::kFloat32;
  if constexpr (std::is_same_v<T, double>) return DType::kFloat64;
  if constexpr (std::is_same_v<T, bool>) return DType::kBool;
  if constexpr (std::is_same_v<T, int8_t>) return DType::kInt8;
  if constexpr (std::is_same_v<T, int16_t>) return DType::kInt16;
  if constexpr (std::is_same_v<T, int32_t>) return DType::kInt32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::kInt64;
  if constexpr (std::is_same_v<T, uint8_t>) return DType::kUInt8;
  if constexpr (std::is_same_v<T, uint16_t>) return DType::kUInt16;
  if constexpr (std::is_same_v<T, uint32_t>) return DType::kUInt32;
  if constexpr (std::is_same_v<T, uint64_t>) return DType::kUInt64;
}

// At most n elements; not std::vector<bool>, which has no data().
template <class T>
struct Elements {
  T data[64] = {};
  size_t count = 0;
  NestedShape shape;
};

template <class T>
Elements<T> read(std::string_view text, bool nested = false, size_t capacity = 64, DType dtype = dtype_of<T>()) {
  Elements<T> result;
  ElementSink sink{reinterpret_cast<std::byte*>(result.data), 0, capacity};
  JsonCursor in(text);
  read_elements(in, dtype, sink, nested ? &result.shape : nullptr);
  in.finish();
  result.count = sink.count;
  return result;
}

template <class T>
std::string error_of(std::string_view text, bool nested = false, size_t capacity = 64, DType dtype = dtype_of<T>()) {
  return error_from([&] { read<T>(text, nested, capacity, dtype); });
}

template <class T>
T one(std::string_view text, DType dtype = dtype_of<T>()) {
  const auto result = read<T>(text, false, 1, dtype);
  CHECK(result.count == 1);
  return result.data[0];
}

// The number, with so much text behind it that the reader may load many bytes at once.
std::string first_of_row(std::string_view number) {
  std::string text = "[";
  text += number;
  text += ",2.5,0.125,123456789]";
  return text;
}

std::string flat(const Tensor& tensor) {
  TextBuffer out;
  write_flat(out, tensor);
  return std::string(out.view());
}
std::string nested(const Tensor& tensor) {
  TextBuffer out;
  write_nested(out, tensor);
  return std::string(out.view());
}

template <class T>
Tensor tensor_of(std::vector<T>& data, std::vector<int64_t> sizes, std::vector<int64_t> strides,
                 DType dtype = dtype_of<T>()) {
  return Tensor::from_blob(data.data(), sizes, strides, dtype);
}

}  // namespace

TEST_CASE_TEMPLATE("tensor_json: integers are exact to their limits and never wrap", T, int8_t, int16_t, int32_t,
                   int64_t, uint8_t, uint16_t, uint32_t, uint64_t) {
  using Limits = std::numeric_limits<T>;
  CHECK(one<T>(std::to_string(Limits::max())) == Limits::max());
  CHECK(one<T>(std::to_string(Limits::min())) == Limits::min());
  CHECK(one<T>("-0") == 0);
  // One more than the largest, one less than the smallest, in decimal.
  const auto bump = [](std::string text) {
    size_t i = text.size();
    while (i-- > 0 && text[i] == '9') text[i] = '0';
    if (i == SIZE_MAX || text[i] == '-') {
      text.insert(i + 1, 1, '1');
    } else {
      ++text[i];
    }
    return text;
  };
  const std::string above = bump(std::to_string(Limits::max()));
  const std::string below = Limits::min() == 0 ? "-1" : bump(std::to_string(Limits::min()));
  for (const std::string& text :
       {above, below, std::string("99999999999999999999"), std::string("100000000000000000000"),
        std::string("-99999999999999999999"), std::string(400, '9')}) {
    CAPTURE(text);
    CHECK(error_of<T>(text) == "JSON: number out of range for the tensor's datatype at byte 0");
  }
  for (const char* text : {"1.0", "1e3", "1E0", "true", "null", "\"1\"", "NaN", "Infinity", "-", "+1", "0x1", "[1,2.5]",
                           "{}", "01", "-01"}) {
    CAPTURE(text);
    CHECK(contains(error_of<T>(text), " at byte "));
  }
}

TEST_CASE("tensor_json: integers are written exactly") {
  std::vector<int64_t> data = {INT64_MAX, INT64_MIN, 9007199254740993, 0};
  CHECK(flat(tensor_of(data, {4}, {1})) == "[9223372036854775807,-9223372036854775808,9007199254740993,0]");
  std::vector<uint64_t> big = {UINT64_MAX};
  CHECK(nested(tensor_of(big, {}, {})) == "18446744073709551615");
}

TEST_CASE("tensor_json: booleans are true and false only") {
  const auto values = read<bool>("[true, false,true]");
  CHECK(values.count == 3);
  CHECK(values.data[0]);
  CHECK_FALSE(values.data[1]);
  for (const char* text : {"1", "0", "[true,1]", "null", "\"true\"", "tru", "True"}) {
    CAPTURE(text);
    CHECK(contains(error_of<bool>(text), "expected true or false at byte"));
  }
}

TEST_CASE_TEMPLATE("tensor_json: floats are read correctly rounded", T, float, double) {
  std::mt19937_64 random(7);
  std::vector<std::string> texts = split(
      "0 -0 0.0 -0.0 1 0.1 1e22 1e23 8388609.5 16777217 16777219 9007199254740993 0.1e-6 "
      "123456789012345678901234567890 0.000000000000000000000000000000000000011754943508222875 "
      "1.1754943508222875e-38 1.4e-45 1e-37 3.4028234663852886e38 2.2250738585072014e-38 "
      "1.00000005960464477539062500 1.00000005960464477539062501 1.00000017881393432617187500 "
      "100000000000000000000 0.30000001192092896",
      ' ');
  for (int i = 0; i < 20000; ++i) {
    const uint64_t bits = random();
    char text[64];
    const double wide = std::bit_cast<double>(bits);
    const float narrow = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!std::isfinite(wide) || !std::isfinite(narrow)) continue;
    // Shortest, 17 digits in fixed and scientific form, few digits, and a float printed as a double.
    if (std::is_same_v<T, double>) texts.emplace_back(text, std::to_chars(text, text + 64, wide).ptr);
    texts.emplace_back(text, std::to_chars(text, text + 64, static_cast<double>(narrow)).ptr);
    const double unit = static_cast<double>(bits >> 11) * 0x1p-53;
    texts.emplace_back(text, std::to_chars(text, text + 64, unit, std::chars_format::fixed).ptr);
    texts.emplace_back(text, std::to_chars(text, text + 64, unit * 1e6, std::chars_format::scientific, 18).ptr);
    texts.emplace_back(text, std::to_chars(text, text + 64, unit * 100, std::chars_format::fixed, 2).ptr);
    texts.push_back(std::to_string(bits >> 40) + "e" + std::to_string(static_cast<int>(bits % 60) - 30));
  }
  for (const std::string& text : texts) {
    T want = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), want).ec != std::errc()) continue;
    // Alone, and followed by text that the reader may load at once.
    const T got = one<T>(text), inside = read<T>(first_of_row(text)).data[0];
    if (std::memcmp(&got, &want, sizeof(T)) != 0 || std::memcmp(&inside, &want, sizeof(T)) != 0) {
      CAPTURE(text);
      CHECK(inside == want);
      CHECK(got == want);
      CHECK(std::signbit(got) == std::signbit(want));
    }
  }
}

TEST_CASE_TEMPLATE("tensor_json: floats that are too large are refused, too small become zero", T, float, double) {
  const std::string zeros(400, '0');
  for (const std::string& text : {std::string("1e999"), std::string("-1e400"), "1" + zeros, "1" + zeros + ".0",
                                  "0." + zeros + "1e900", std::string("1e99999999999999999999")}) {
    CAPTURE(text);
    CHECK(error_of<T>(text) == "JSON: number out of range for the tensor's datatype at byte 0");
  }
  for (const std::string& text :
       {std::string("1e-999"), "0." + zeros + "1", "1" + zeros + "e-999", std::string("1e-99999999999999999999")}) {
    CAPTURE(text);
    CHECK(one<T>(text) == 0);
    CHECK(std::signbit(one<T>("-" + text)));
  }
}

TEST_CASE_TEMPLATE("tensor_json: NaN and Infinity tokens", T, float, double) {
  const auto values = read<T>("[NaN, Infinity,-Infinity]");
  CHECK(std::isnan(values.data[0]));
  CHECK(values.data[1] == std::numeric_limits<T>::infinity());
  CHECK(values.data[2] == -std::numeric_limits<T>::infinity());
  for (const char* text :
       {"nan", "inf",  "-NaN", "+Infinity", "null", "Inf", "infinity", "\"NaN\"", "-",     ".5",
        "1.",  "1.e5", "1e",   "1e+",       "--1",  "00",  "01.5",     "1.5.5",   "1e5.5", "0x1p3"}) {
    CAPTURE(text);
    CHECK(contains(error_of<T>(text), " at byte "));
    CHECK(contains(error_of<T>(first_of_row(text)), " at byte "));
  }
  std::vector<T> data(values.data, values.data + 3);
  CHECK(flat(tensor_of(data, {3}, {1})) == "[NaN,Infinity,-Infinity]");
}

TEST_CASE("tensor_json: floats are written shortest and read back the same") {
  std::vector<float> data = {1.0f, 0.1f, -0.0f, 1e20f, 16777216.0f, 1.17549435e-38f, 3.4028235e38f, 1e-45f, 0.3f};
  CHECK(flat(tensor_of(data, {9}, {1})) == "[1.0,0.1,-0.0,1e+20,16777216.0,1.1754944e-38,3.4028235e+38,1e-45,0.3]");
  std::mt19937_64 random(11);
  std::vector<double> wide;
  while (wide.size() < 64) {
    const double value = std::bit_cast<double>(random());
    if (std::isfinite(value)) wide.push_back(value);
  }
  const auto back = read<double>(flat(tensor_of(wide, {64}, {1})));
  CHECK(std::memcmp(back.data, wide.data(), 64 * sizeof(double)) == 0);
}

TEST_CASE_TEMPLATE("tensor_json: floats are written as std::to_chars writes them, with a point", T, float, double) {
  std::mt19937_64 random(13);
  std::vector<T> values = {T(0.001), T(0.0009999), T(0.1), T(999999.5), T(99999.95), T(0.999999), T(0.9999999)};
  for (int i = 0; i < 40000; ++i) {
    // Few digits with the point anywhere, and the floats next to such.
    const double digits = static_cast<double>(random() % static_cast<uint64_t>(std::pow(10, 1 + i % 17)));
    const T value = static_cast<T>(digits / std::pow(10, static_cast<double>(random() % 20)));
    const T sign = (random() & 1) != 0 ? T(1) : T(-1);
    values.insert(values.end(), {sign * value, std::nextafter(value, T(0)), sign * std::nextafter(value, T(1e30))});
  }
  for (const T value : values) {
    std::vector<T> data = {value};
    char text[64];
    std::string want(text, std::to_chars(text, text + 64, value).ptr);
    if (value == std::trunc(value) && std::fabs(value) < T(1 << 24)) {
      want.assign(text, std::to_chars(text, text + 64, value, std::chars_format::fixed).ptr);
    }
    if (want.find_first_of(".e") == std::string::npos) want += ".0";
    if (const std::string got = nested(tensor_of(data, {}, {})); got != want) CHECK(got == want);
  }
}

TEST_CASE("tensor_json: nesting is free where only the order counts") {
  for (const char* text :
       {"[1,2,3,4,5,6]", "[[1,2,3],[4,5,6]]", "[[[1],[2]],3,[[4,5]],6]", " [ [ 1 , 2 ] , [ 3,4 ],[],5,6]"}) {
    CAPTURE(text);
    const auto values = read<int32_t>(text);
    CHECK(values.count == 6);
    for (int i = 0; i < 6; ++i) CHECK(values.data[i] == i + 1);
  }
  CHECK(read<int32_t>("[]").count == 0);
  CHECK(read<int32_t>("[[],[[]]]").count == 0);
  CHECK(error_of<int32_t>("[1,2,3]", false, 2) == "JSON: more elements than the shape holds at byte 5");
  for (const char* text : {"[1,]", "[,1]", "[1,[2,]]", "[1 2]", "[1", "[[1]", "[1}", "", "[[1],,[2]]", "[", "[1,2]]"}) {
    CAPTURE(text);
    CHECK(contains(error_of<int32_t>(text), " at byte "));
  }
}

TEST_CASE("tensor_json: shapes of nested lists") {
  const auto shape_of = [](std::string_view text) {
    const auto result = read<int64_t>(text, true);
    return std::vector<int64_t>(result.shape.sizes.begin(), result.shape.sizes.begin() + result.shape.rank);
  };
  CHECK(shape_of("7").empty());
  CHECK(shape_of("[7]") == std::vector<int64_t>{1});
  CHECK(shape_of("[]") == std::vector<int64_t>{0});
  CHECK(shape_of("[[],[]]") == std::vector<int64_t>{2, 0});
  CHECK(shape_of("[[1,2,3],[4,5,6]]") == std::vector<int64_t>{2, 3});
  CHECK(shape_of("[[[1],[2]],[[3],[4]],[[5],[6]]]") == std::vector<int64_t>{3, 2, 1});
  for (const char* text : {"[[1,2],[3]]", "[1,[2]]", "[[1],2]", "[[],1]", "[[],[1]]", "[[],[[]]]", "[[[]],[]]",
                           "[[[1]],[2]]", "[[1],[[2]]]", "[[1,2],[3,4],5]"}) {
    CAPTURE(text);
    CHECK(contains(error_of<int64_t>(text, true), "rows of different length or depth at byte"));
  }
}

TEST_CASE("tensor_json: nesting limit") {
  const auto text = [](size_t depth) { return std::string(depth, '[') + "1" + std::string(depth, ']'); };
  for (const bool shape : {false, true}) {
    CHECK(error_of<float>(text(100), shape) == "no error");
    CHECK(error_of<float>(text(101), shape) == "JSON: nested deeper than 100 levels at byte 100");
    CHECK(error_of<float>(std::string(100'000'000, '['), shape) == "JSON: nested deeper than 100 levels at byte 100");
  }
}

TEST_CASE("tensor_json: a sink that grows") {
  std::vector<double> room(1);
  ElementSink sink{reinterpret_cast<std::byte*>(room.data()), 0, 1,
                   [](ElementSink& s) {
                     auto& v = *static_cast<std::vector<double>*>(s.context);
                     v.resize(v.size() * 2);
                     s.data = reinterpret_cast<std::byte*>(v.data());
                     s.capacity = v.size();
                   },
                   &room};
  std::string text = "[";
  for (int i = 0; i < 1000; ++i) text += std::to_string(i) + (i < 999 ? "," : "]");
  JsonCursor in(text);
  NestedShape shape;
  read_elements(in, DType::kFloat64, sink, &shape);
  CHECK(sink.count == 1000);
  CHECK(shape.sizes[0] == 1000);
  for (int i = 0; i < 1000; ++i) CHECK(room[static_cast<size_t>(i)] == i);
}

TEST_CASE("tensor_json: any strides are written in row-major order") {
  std::vector<int32_t> data = {1, 2, 3, 4, 5, 6};
  CHECK(nested(tensor_of(data, {2, 3}, {3, 1})) == "[[1,2,3],[4,5,6]]");
  CHECK(nested(tensor_of(data, {3, 2}, {1, 3})) == "[[1,4],[2,5],[3,6]]");
  CHECK(flat(tensor_of(data, {3, 2}, {1, 3})) == "[1,4,2,5,3,6]");
  CHECK(flat(tensor_of(data, {2, 2}, {0, 1})) == "[1,2,1,2]");
  CHECK(nested(tensor_of(data, {2, 0}, {1, 1})) == "[[],[]]");
  CHECK(nested(tensor_of(data, {0, 2}, {1, 1})) == "[]");
  CHECK(flat(tensor_of(data, {2, 0}, {1, 1})) == "[]");
  CHECK(nested(tensor_of(data, {1, 1, 2}, {6, 6, 1})) == "[[[1,2]]]");
}

TEST_CASE("tensor_json: complex elements are pairs") {
  std::vector<float> data = {1, 2, 3, 4, 5, 6, 7, 8};
  const auto tensor = tensor_of(data, {2, 2}, {1, 2}, DType::kComplex64);
  CHECK(nested(tensor) == "[[[1.0,2.0],[5.0,6.0]],[[3.0,4.0],[7.0,8.0]]]");
  CHECK(flat(tensor) == "[1.0,2.0,5.0,6.0,3.0,4.0,7.0,8.0]");
  CHECK(component_dtype(DType::kComplex128) == DType::kFloat64);
  CHECK(component_dtype(DType::kComplex32) == DType::kFloat16);
  CHECK(component_dtype(DType::kInt8) == DType::kInt8);
}

TEST_CASE("tensor_json: half types") {
  CHECK(one<uint16_t>("1.5", DType::kFloat16) == 0x3e00);
  CHECK(one<uint16_t>("-65504", DType::kFloat16) == 0xfbff);
  CHECK(one<uint16_t>("Infinity", DType::kFloat16) == 0x7c00);
  CHECK(contains(error_of<uint16_t>("65520", false, 1, DType::kFloat16), "out of range"));
  CHECK(one<uint16_t>("1.00390625", DType::kBFloat16) == 0x3f80);  // tie to even
  CHECK(one<uint16_t>("1.01171875", DType::kBFloat16) == 0x3f82);
  CHECK(contains(error_of<uint16_t>("3.4e38", false, 1, DType::kBFloat16), "out of range"));
  std::vector<uint16_t> data = {0x3e00, 0xfbff, 0x7e00};
  CHECK(flat(tensor_of(data, {3}, {1}, DType::kFloat16)) == "[1.5,-65504.0,NaN]");
  CHECK(one<uint8_t>("448", DType::kFloat8E4M3FN) == 0x7e);
  CHECK(contains(error_of<uint8_t>("465", false, 1, DType::kFloat8E4M3FN), "out of range"));
  std::vector<uint8_t> bytes = {0x7e, 0x7f, 0x38};
  CHECK(flat(tensor_of(bytes, {3}, {1}, DType::kFloat8E4M3FN)) == "[448.0,NaN,1.0]");
  CHECK_FALSE(has_json_form(DType::kFloat4E2M1FNx2));
  CHECK(contains(error_of<uint8_t>("1", false, 1, DType::kFloat4E2M1FNx2), "have no JSON form"));
}
