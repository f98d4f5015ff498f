// Files made by NumPy and by the safetensors library (make_files.py), and what the writers make of them.
#include "tests/files.h"

#include <doctest/doctest.h>

#include <array>
#include <complex>
#include <cstring>
#include <fstream>

#include "sconce/error.h"
#include "sconce/tensor_files.h"

namespace sconce {
namespace {

namespace fs = std::filesystem;

const fs::path kData = source_path("tests/tensor_files/data");

template <class T>
double as_double(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  if constexpr (requires { value.imag(); }) {
    CHECK(value.imag() == -value.real());
    return static_cast<double>(value.real());
  } else {
    return static_cast<double>(value);
  }
}

// Element (row, column) of make_files.py's ramp: 0 to 5, complex i - i*1j. The 16- and 8-bit floats by their bits.
double element(const Tensor& t, int64_t row, int64_t column) {
  const std::byte* data =
      t.data_as<std::byte>() + (row * t.stride(0) + column * t.stride(1)) * static_cast<int64_t>(t.itemsize());
  const auto index_of = [&](auto bits, auto table) {
    std::memcpy(&bits, data, sizeof bits);
    const auto found = std::find(table.begin(), table.end(), bits);
    return found == table.end() ? -1.0 : static_cast<double>(found - table.begin());
  };
  using Bits16 = std::array<uint16_t, 6>;
  using Bits8 = std::array<uint8_t, 6>;
  switch (t.dtype()) {
    case DType::kBool:
    case DType::kUInt8:
      return as_double<uint8_t>(data);
    case DType::kInt8:
      return as_double<int8_t>(data);
    case DType::kInt16:
      return as_double<int16_t>(data);
    case DType::kUInt16:
      return as_double<uint16_t>(data);
    case DType::kInt32:
      return as_double<int32_t>(data);
    case DType::kUInt32:
      return as_double<uint32_t>(data);
    case DType::kInt64:
      return as_double<int64_t>(data);
    case DType::kUInt64:
      return as_double<uint64_t>(data);
    case DType::kFloat32:
      return as_double<float>(data);
    case DType::kFloat64:
      return as_double<double>(data);
    case DType::kComplex64:
      return as_double<std::complex<float>>(data);
    case DType::kComplex128:
      return as_double<std::complex<double>>(data);
    case DType::kFloat16:
      return index_of(uint16_t{}, Bits16{0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500});
    case DType::kBFloat16:
      return index_of(uint16_t{}, Bits16{0, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0});
    case DType::kFloat8E4M3FN:
      return index_of(uint8_t{}, Bits8{0, 0x38, 0x40, 0x44, 0x48, 0x4a});
    case DType::kFloat8E5M2:
      return index_of(uint8_t{}, Bits8{0, 0x3c, 0x40, 0x42, 0x44, 0x45});
    default:
      return -2;
  }
}

void check_ramp(const Tensor& t) {
  CAPTURE(dtype_name(t.dtype()));
  REQUIRE(t.dim() == 2);
  REQUIRE(t.size(0) == 2);
  REQUIRE(t.size(1) == 3);
  for (int64_t i = 0; i < 6; ++i)
    CHECK(element(t, i / 3, i % 3) == static_cast<double>(t.dtype() == DType::kBool ? i % 2 : i));
}

const NamedTensor& named(const std::vector<NamedTensor>& tensors, std::string_view name) {
  for (const NamedTensor& t : tensors)
    if (t.name == name) return t;
  FAIL("no tensor ", std::string(name));
  return tensors.front();
}

}  // namespace

TEST_CASE("npz: every NumPy type, stored and deflated") {
  for (const char* file : {"stored.npz", "deflated.npz"}) {
    const auto tensors = read_npz(kData / file);
    CHECK(tensors.size() == 14);
    for (const NamedTensor& t : tensors) {
      CHECK(t.name == dtype_name(t.tensor.dtype()));
      check_ramp(t.tensor);
    }
  }
}

TEST_CASE("npy: fortran order becomes strides") {
  const Tensor t = read_npy(kData / "fortran.npy");
  CHECK(t.stride(0) == 1);
  CHECK(t.stride(1) == 2);
  check_ramp(t);
}

TEST_CASE("npy: big-endian elements are turned, halves of complex ones apart") {
  check_ramp(read_npy(kData / "big_endian.npy"));
}

TEST_CASE("npy: rank 0, size 0, format 3.0") {
  const Tensor scalar = read_npy(kData / "scalar.npy");
  CHECK(scalar.dim() == 0);
  CHECK(*scalar.data_as<double>() == 2.5);
  const Tensor empty = read_npy(kData / "empty.npy");
  CHECK(empty.numel() == 0);
  CHECK(to_string(empty.sizes()) == "[0, 3]");
  check_ramp(read_npy(kData / "version3.npy"));
}

TEST_CASE("npy: objects and structures are refused by name") {
  CHECK_THROWS_WITH_AS(read_npy(kData / "object.npy"), doctest::Contains("descr '|O'"), Error);
  CHECK_THROWS_WITH_AS(read_npy(kData / "structured.npy"), doctest::Contains("structured types"), Error);
}

TEST_CASE("npy: the file is as NumPy writes it") {
  const TempFolder folder;
  for (const char* file : {"scalar.npy", "empty.npy"}) {
    write_npy(folder / file, read_npy(kData / file));
    CHECK(content_of(folder / file) == content_of(kData / file));
  }
  // Strided tensors are gathered; NumPy would write the same with fortran_order False.
  write_npy(folder / "gathered.npy", read_npy(kData / "fortran.npy"));
  const Tensor gathered = read_npy(folder / "gathered.npy");
  CHECK(gathered.is_contiguous());
  check_ramp(gathered);
}

TEST_CASE("npy: more strided bytes than one piece holds") {
  const TempFolder folder;
  const int64_t sizes[] = {700, 601}, strides[] = {1, 700};
  Tensor t = Tensor::empty_strided(sizes, strides, DType::kInt32);
  for (int32_t i = 0; i < t.numel(); ++i) t.data_as<int32_t>()[i] = i;
  write_npy(folder / "large.npy", t);
  const Tensor back = read_npy(folder / "large.npy");
  REQUIRE(back.is_contiguous());
  bool equal = true;
  for (int64_t i = 0; i < t.numel(); ++i) equal &= back.data_as<int32_t>()[i] == (i % 601) * 700 + i / 601;
  CHECK(equal);
}

TEST_CASE("npy: a view is private to the process") {
  const TempFolder folder;
  fs::copy(kData / "version3.npy", folder / "a.npy");
  const Tensor t = read_npy(folder / "a.npy");
  t.data_as<int32_t>()[0] = 77;
  CHECK(content_of(folder / "a.npy") == content_of(kData / "version3.npy"));
}

TEST_CASE("safetensors: every type") {
  const auto tensors = read_safetensors(kData / "all.safetensors");
  CHECK(tensors.size() == 19);
  int ramps = 0;
  for (const NamedTensor& t : tensors)
    if (t.name == dtype_name(t.tensor.dtype())) {
      check_ramp(t.tensor);
      ++ramps;
    }
  CHECK(ramps == 16);
  CHECK(*named(tensors, "scalar").tensor.data_as<float>() == 2.5f);
  CHECK(named(tensors, "scalar").tensor.dim() == 0);
  CHECK(to_string(named(tensors, "empty").tensor.sizes()) == "[0, 3]");
  CHECK(*named(tensors, "name with \"quotes\", \u00e4 and \\").tensor.data_as<float>() == 1.0f);
}

TEST_CASE("safetensors: written and read back, data aligned to the element") {
  const TempFolder folder;
  auto tensors = read_safetensors(kData / "all.safetensors");
  std::reverse(tensors.begin(), tensors.end());  // narrow types first
  write_safetensors(folder / "a.safetensors", tensors, {{"format", "pt"}});
  CHECK(content_of(folder / "a.safetensors").find(R"({"__metadata__":{"format":"pt"},)") == 8);
  CHECK(read_safetensors_metadata(folder / "a.safetensors") == std::map<std::string, std::string>{{"format", "pt"}});
  const auto back = read_safetensors(folder / "a.safetensors");
  REQUIRE(back.size() == tensors.size());
  for (size_t i = 0; i < back.size(); ++i) {
    CHECK(back[i].name == tensors[i].name);
    CHECK(back[i].tensor.dtype() == tensors[i].tensor.dtype());
    CHECK(to_string(back[i].tensor.sizes()) == to_string(tensors[i].tensor.sizes()));
    CHECK(std::memcmp(back[i].tensor.data(), tensors[i].tensor.data(), back[i].tensor.bytes()) == 0);
    CHECK(reinterpret_cast<uintptr_t>(back[i].tensor.data()) % back[i].tensor.itemsize() == 0);
  }
}

TEST_CASE("safetensors: float4 counts pairs") {
  const TempFolder folder;
  const int64_t sizes[] = {2, 3};
  const NamedTensor t{"packed", Tensor::empty(sizes, DType::kFloat4E2M1FNx2)};
  std::memset(t.tensor.data(), 0x21, 6);
  write_safetensors(folder / "f4.safetensors", {&t, 1});
  CHECK(content_of(folder / "f4.safetensors").find(R"("F4","shape":[2,6],"data_offsets":[0,6])") != std::string::npos);
  const auto back = read_safetensors(folder / "f4.safetensors");
  REQUIRE(back.size() == 1);
  CHECK(to_string(back[0].tensor.sizes()) == "[2, 3]");
}

TEST_CASE("npz: written and read back") {
  const TempFolder folder;
  auto tensors = read_npz(kData / "stored.npz");
  tensors.push_back({"\u00e4/b", read_npy(kData / "fortran.npy")});
  write_npz(folder / "a.npz", tensors);
  const auto back = read_npz(folder / "a.npz");
  REQUIRE(back.size() == tensors.size());
  for (size_t i = 0; i < back.size(); ++i) {
    CHECK(back[i].name == tensors[i].name);
    check_ramp(back[i].tensor);
  }
  write_npz(folder / "none.npz", {});
  CHECK(read_npz(folder / "none.npz").empty());
}

TEST_CASE("read_tensors: formats are told apart by content") {
  const TempFolder folder;
  fs::copy(kData / "version3.npy", folder / "x.bin");
  CHECK(read_tensors(folder / "x.bin").at(0).name == "x");
  fs::copy(kData / "stored.npz", folder / "y");
  CHECK(read_tensors(folder / "y").size() == 14);
  fs::copy(kData / "all.safetensors", folder / "z");
  CHECK(read_tensors(folder / "z").size() == 19);
  std::ofstream(folder / "text.txt") << "nothing of the kind";
  CHECK_THROWS_WITH_AS(read_tensors(folder / "text.txt"), doctest::Contains("text.txt"), Error);
}

TEST_CASE("writers: what a format cannot hold is refused, and no file is left") {
  const TempFolder folder;
  const int64_t sizes[] = {1};
  const NamedTensor half{"h", Tensor::empty(sizes, DType::kBFloat16)};
  CHECK_THROWS_WITH_AS(write_npy(folder / "h.npy", half.tensor), doctest::Contains("bfloat16"), Error);
  CHECK_THROWS_WITH_AS(write_npz(folder / "h.npz", {&half, 1}), doctest::Contains("bfloat16"), Error);
  const NamedTensor wide{"w", Tensor::empty(sizes, DType::kComplex128)};
  CHECK_THROWS_WITH_AS(write_safetensors(folder / "w.safetensors", {&wide, 1}), doctest::Contains("complex128"), Error);
  const NamedTensor twice[] = {half, half};
  CHECK_THROWS_WITH_AS(write_safetensors(folder / "t.safetensors", twice), doctest::Contains("same name"), Error);
  const NamedTensor bytes{"\xff\xfe", half.tensor};
  CHECK_THROWS_WITH_AS(write_safetensors(folder / "u.safetensors", {&bytes, 1}), doctest::Contains("UTF-8"), Error);
  const NamedTensor reserved{"__metadata__", half.tensor};
  CHECK_THROWS_AS(write_safetensors(folder / "m.safetensors", {&reserved, 1}), Error);
  CHECK_THROWS_WITH_AS(write_npy(folder / "no/such.npy", Tensor::empty(sizes, DType::kInt8)),
                       doctest::Contains("No such file"), Error);
  CHECK(fs::is_empty(folder.path()));
}

}  // namespace sconce
