#include "package_format/elf_reader.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "sconce/error.h"
#include "tests/package_format/fixtures.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("elf reader: imports, exports and symbols of a model") {
  const std::string file = fixture("model_2_15");
  const ElfReader so(bytes_of(file), "m.so");
  CHECK(so.machine() == EM_X86_64);
  CHECK(so.imports() == std::vector<std::string>{"aoti_torch_cpu_mm_out", "aoti_torch_get_dtype"});  // no weak ones
  CHECK(so.needed().empty());
  const auto exports = so.exports("AOTInductor");
  CHECK(exports.size() == 9);
  CHECK(std::find(exports.begin(), exports.end(), "AOTInductorGetLastError") != exports.end());
  CHECK(!so.find("AOTInductorGetLastErro"));
  CHECK(!so.find("aoti_torch_cpu_mm_out"));
}

TEST_CASE("elf reader: bytes at an address, and whether the model may write them") {
  for (const char* name : {"model_2_15", "model_writable"}) {
    const std::string file = fixture(name);
    const ElfReader so(bytes_of(file), "m.so");
    const auto start = so.find("_binary_constants_bin_start"), end = so.find("_binary_constants_bin_end");
    REQUIRE(start);
    REQUIRE(end);
    CHECK(end->st_value - start->st_value == 256);
    const auto bytes = so.at(start->st_value, 256);
    REQUIRE(bytes.size() == 256);
    for (size_t i = 0; i < 256; ++i) REQUIRE(bytes[i] == static_cast<std::byte>(i));
    CHECK(so.writable(start->st_value) == (std::string(name) == "model_writable"));
    CHECK(so.at(start->st_value, 1 << 30).empty());
    CHECK(so.at(UINT64_MAX, 1).empty());
    CHECK(so.at(UINT64_MAX - 3, 8).empty());
  }
}

TEST_CASE("elf reader: what is no library for us") {
  std::string file = fixture("model_2_15");
  const auto fault = [](const std::string& bytes, ErrorCode code) {
    try {
      ElfReader(bytes_of(bytes), "dir/m.so");
    } catch (const Error& error) {
      CHECK(error.code() == code);
      CHECK(std::string(error.what()).find("dir/m.so") != std::string::npos);
      return;
    }
    FAIL("accepted");
  };
  fault("", ErrorCode::kCorruptPackage);
  fault("not an ELF file at all, but long enough to be one if only it had the magic number",
        ErrorCode::kCorruptPackage);
  std::string narrow = file;
  narrow[EI_CLASS] = ELFCLASS32;
  fault(narrow, ErrorCode::kIncompatible);
  std::string program = file;
  program[16] = ET_EXEC;
  fault(program, ErrorCode::kIncompatible);
}

TEST_CASE("elf reader: no damage makes it read outside the file") {
  const std::string file = fixture("model_2_15");
  const auto use = [](const std::vector<char>& bytes) {
    try {
      const ElfReader so(std::as_bytes(std::span(bytes)), "m.so");
      so.imports();
      so.needed();
      so.exports("AOTI");
      if (const auto symbol = so.find("_binary_constants_bin_start")) so.at(symbol->st_value, symbol->st_size + 256);
    } catch (const Error& error) {
      CHECK((error.code() == ErrorCode::kCorruptPackage || error.code() == ErrorCode::kIncompatible));
    }
  };
  for (size_t size = 0; size < file.size(); size += 13)
    use({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)});
  // Headers, dynamic section and tables: every byte of the first pages, and of the dynamic section.
  std::vector<char> bytes(file.begin(), file.end());
  Elf64_Ehdr header;
  std::memcpy(&header, file.data(), sizeof header);
  std::vector<std::pair<size_t, size_t>> ranges{{0, std::min<size_t>(file.size(), 2048)}};
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, file.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type == PT_DYNAMIC) ranges.push_back({segment.p_offset, segment.p_offset + segment.p_filesz});
  }
  for (const auto& [begin, end] : ranges)
    for (size_t i = begin; i < end; ++i)
      for (const char value : {'\x00', '\x7f', '\xff'}) {
        const char before = std::exchange(bytes[i], value);
        use(bytes);
        bytes[i] = before;
      }
}
