// Files that lie: every reader answers with an Error that names the file, and reads nothing outside it.
#include <doctest/doctest.h>

#include <functional>

#include "sconce/error.h"
#include "sconce/tensor_files.h"
#include "tests/files.h"

namespace sconce {
namespace {

namespace fs = std::filesystem;

const fs::path kData = source_path("tests/tensor_files/data");

using Reader = std::function<void(const fs::path&)>;

// The text of the error, "" if there was none.
std::string refusal(const Reader& read, const std::string& bytes) {
  const TempFolder folder;
  const fs::path file = folder.write("hostile", bytes);
  try {
    read(file);
  } catch (const Error& e) {
    CHECK(std::string(e.what()).find(file.string()) != std::string::npos);
    return e.what();
  }
  return "";
}

const Reader kNpy = [](const fs::path& path) { read_npy(path); };
const Reader kNpz = [](const fs::path& path) { read_npz(path); };
const Reader kSafetensors = [](const fs::path& path) { read_safetensors(path); };

std::string npy(const std::string& dict, const std::string& data, char version = 1) {
  const std::string header = dict + "\n";
  std::string file = "\x93NUMPY";
  file += version;
  file += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) file += static_cast<char>(header.size() >> 8 * i & 0xff);
  return file + header + data;
}

std::string safetensors(const std::string& json, const std::string& data = "") {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(json.size() >> 8 * i & 0xff);
  return file + json + data;
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

}  // namespace

TEST_CASE("hostile: files cut at every byte are refused") {
  const std::pair<const char*, const Reader*> files[] = {
      {"version3.npy", &kNpy}, {"deflated.npz", &kNpz}, {"all.safetensors", &kSafetensors}};
  for (const auto& [name, read] : files) {
    CAPTURE(name);
    const std::string whole = content_of(kData / name);
    CHECK(refusal(*read, whole) == "");
    for (size_t n = 0; n < whole.size(); ++n) {
      CAPTURE(n);
      CHECK(refusal(*read, whole.substr(0, n)) != "");
    }
    CHECK(refusal(*read, whole + std::string(70000, 'x')) != "");
  }
}

TEST_CASE("hostile: any byte changed in a deflated .npz is refused or harmless") {
  const std::string whole = content_of(kData / "deflated.npz");
  int refused = 0;
  for (size_t n = 0; n < whole.size(); ++n) {
    std::string changed = whole;
    changed[n] = static_cast<char>(changed[n] ^ 0x55);
    if (refusal(kNpz, changed) != "") ++refused;
  }
  CHECK(refused > static_cast<int>(whole.size()) / 2);
}

TEST_CASE("hostile: npy headers") {
  const std::string four(4, '\0');
  CHECK(refusal(kNpy, npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", four)) == "");
  CHECK(refusal(kNpy, npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1L,)}", four)) == "");
  const auto refused = [&](const char* dict, const char* reason) {
    CAPTURE(dict);
    CHECK(refusal(kNpy, npy(dict, four)).find(reason) != std::string::npos);
    CHECK(refusal(kNpy, npy(dict, four, 2)).find(reason) != std::string::npos);
  };
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "expected 8 bytes");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "not a number between");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "not a number between");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "sizes overflow");
  refused("{'descr': '<f4', 'fortran_order': True, 'shape': (0, 4611686018427387904, 4), }", "sizes overflow");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': 1, }", "expected '('");
  refused("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }", "True or False");
  refused("{'descr': '<f4', 'shape': (1,), }", "exactly");
  refused("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "unexpected key");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", "unexpected key");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "exactly");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", "expected '}'");
  refused("{'descr': '<f4", "does not end");
  refused("{'descr': '', 'fortran_order': False, 'shape': (1,)}", "descr");
  refused("{'descr': '<V2', 'fortran_order': False, 'shape': (1,)}", "descr '<V2'");
  refused("", "expected '{'");
  CHECK(refusal(kNpy, npy("{}", four, 9)).find("version") != std::string::npos);
  std::string dims;
  for (int i = 0; i < 65; ++i) dims += "1, ";
  refused(("{'descr': '<f4', 'fortran_order': False, 'shape': (" + dims + ")}").c_str(), "too many dimensions");
  std::string length_lie = npy("{}", "", 2);
  length_lie[11] = '\x7f';
  CHECK(refusal(kNpy, length_lie).find("too long") != std::string::npos);
}

TEST_CASE("hostile: a bool that is neither 0 nor 1") {
  CHECK(refusal(kNpy, npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", "\1\2")).find("element 1 is 2") !=
        std::string::npos);
  CHECK(refusal(kSafetensors, safetensors("{\"b\":" + entry("BOOL", "[1]", "[0,1]") + "}", "\xff")).find("is 255") !=
        std::string::npos);
}

TEST_CASE("hostile: npz members that are no .npy") {
  CHECK_THROWS_WITH_AS(read_npz(kData / "other_member.npz"), doctest::Contains("readme.txt"), Error);
  CHECK(refusal(kNpz, "PK, but nothing else") != "");
}

TEST_CASE("hostile: npz sizes that lie") {
  std::string stored = content_of(kData / "stored.npz");
  // The uncompressed size of the first entry of the central directory, 24 bytes into it.
  const size_t directory = stored.find("PK\1\2");
  REQUIRE(directory != std::string::npos);
  std::string large = stored;
  large[directory + 27] = '\x7f';
  CHECK(refusal(kNpz, large) != "");
}

TEST_CASE("hostile: safetensors headers") {
  const std::string four(4, '\0');
  const auto refused = [&](const std::string& json, const char* reason) {
    CAPTURE(json);
    const std::string text = refusal(kSafetensors, safetensors(json, four));
    CAPTURE(text);
    CHECK(text.find(reason) != std::string::npos);
  };
  const std::string good = entry("F32", "[1]", "[0,4]");
  CHECK(refusal(kSafetensors, safetensors("{\"a\":" + good + "}  ", four)) == "");
  CHECK(refusal(kSafetensors, safetensors("{}")) == "");
  // As the library takes them.
  CHECK(refusal(kSafetensors, safetensors("{\"__metadata__\":null,\"a\":" + good + "}", four)) == "");
  CHECK(refusal(kSafetensors,
                safetensors(R"({"a":{"x":{"y":[1,-2,0.5,null,true,"z",{}]},"dtype":"F32","shape":[1],"more":[[]],)"
                            R"("data_offsets":[0,4],"last":"text"}})",
                            four)) == "");
  refused("{\"a\":" + entry("F32", "[2]", "[0,4]") + "}", "expected 8 bytes");
  refused("{\"a\":" + entry("F32", "[1]", "[0,5]") + "}", "outside the file");
  refused("{\"a\":" + entry("F32", "[1]", "[4,0]") + "}", "outside the file");
  refused("{\"a\":" + entry("F32", "[1]", "[4,8]") + "}", "outside the file");
  refused("{\"a\":" + good + ",\"b\":" + good + "}", "overlaps or leaves a gap");
  refused("{\"a\":" + entry("U8", "[1]", "[0,1]") + ",\"b\":" + entry("U8", "[2]", "[2,4]") + "}", "gap: ");
  refused("{\"a\":" + entry("U8", "[1]", "[0,1]") + "}", "bytes of no tensor");
  refused("{\"a\":" + good + ",\"a\":" + good + "}", "occurs twice: a");
  refused("{\"a\":" + entry("F6_E2M3", "[1]", "[0,4]") + "}", "F6_E2M3 of tensor: a");
  refused("{\"a\":" + entry("F4", "[3]", "[0,4]") + "}", "not even");
  refused("{\"a\":" + entry("F32", "[-1]", "[0,4]") + "}", "negative number at: a");
  refused("{\"a\":" + entry("F32", "[1.0]", "[0,4]") + "}", "fraction at: a");
  refused("{\"a\":" + entry("F32", "[\"1\"]", "[0,4]") + "}", "string at: a");
  refused("{\"a\":" + entry("F32", "[[1]]", "[0,4]") + "}", "array at: a");
  refused("{\"a\":" + entry("F32", "1", "[0,4]") + "}", "number at: a");
  refused("{\"a\":" + entry("F32", "null", "[0,4]") + "}", "null at: a");
  refused("{\"a\":" + entry("F32", "[1]", "[0]") + "}", "not two numbers, of tensor: a");
  refused("{\"a\":" + entry("F32", "[0,4611686018427387904,8]", "[0,0]") + "}", "sizes overflow");
  refused("{\"a\":" + entry("F32", "[9223372036854775808]", "[0,0]") + "}", "too large");
  refused(R"({"a":{"dtype":"F32","shape":[1]}})", "lacks dtype, shape or data_offsets: a");
  refused(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "unexpected field \"dtype\"");
  refused(R"({"a":{"x":[1,{"dtype":"F32"}],"shape":[1],"data_offsets":[0,4]}})",
          "lacks dtype, shape or data_offsets: a");
  refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":[}})", "invalid JSON");
  refused(R"({"a":[]})", "array at: a");
  refused(R"({"a":7})", "number at: a");
  refused(R"({"a":null})", "null at: a");
  refused(R"({"__metadata__":{"a":1}})", "number at: __metadata__");
  refused(R"({"a":)", "invalid JSON");
  refused("[]", "start with '{'");
  refused("", "start with '{'");
  refused("{\"a\":" + good + "}}", "invalid JSON");
  refused("{\"\xff\":" + good + "}", "invalid JSON");
  refused("{" + std::string(100000, '[') + "}", "invalid JSON");
  refused("{\"a\":" + std::string(100000, '['), "array at: a");
  std::string dims = "[1";
  for (int i = 0; i < 64; ++i) dims += ",1";
  refused("{\"a\":" + entry("F32", dims + "]", "[0,4]") + "}", "too many");
}

TEST_CASE("hostile: safetensors header lengths") {
  std::string file = safetensors("{}");
  file[1] = 1;
  CHECK(refusal(kSafetensors, file).find("ends within its header") != std::string::npos);
  file[7] = '\xff';
  CHECK(refusal(kSafetensors, file).find("too long") != std::string::npos);
}

TEST_CASE("hostile: data that is not aligned is copied") {
  std::string data(4, '\0');
  data[2] = '\x80';
  data[3] = '\x3f';
  std::string json = "{\"a\":" + entry("F32", "[1]", "[0,4]") + "}";
  for (int pad = 0; pad < 4; ++pad) {
    const TempFolder folder;
    const auto tensors =
        read_safetensors(folder.write("padded", safetensors(json + std::string(static_cast<size_t>(pad), ' '), data)));
    CHECK(reinterpret_cast<uintptr_t>(tensors.at(0).tensor.data()) % 4 == 0);
    CHECK(*tensors[0].tensor.data_as<float>() == 1.0f);
  }
}

TEST_CASE("hostile: what is not a regular file is refused at once") {
  for (const Reader* read : {&kNpy, &kNpz, &kSafetensors}) {
    CHECK_THROWS_WITH_AS((*read)("/dev/zero"), doctest::Contains("not a regular file"), Error);
    CHECK_THROWS_WITH_AS((*read)("/no/such/file"), doctest::Contains("No such file"), Error);
    CHECK_THROWS_AS((*read)(kData), Error);
  }
}

}  // namespace sconce
