#include "package_format/elf_image.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "sconce/error.h"
#include "tests/loader/sample_file.h"
#include "tests/package_format/fixtures.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

// "" if it parses, else the error's text.
std::string refusal(std::span<const std::byte> bytes) {
  try {
    const ElfImage image(bytes, "model");
    // Everything an image hands out must be readable, whatever the file says.
    size_t total = 0;
    for (size_t i = 0; i < image.symbol_count(); ++i) total += image.symbol_name(i).size() + image.symbol_version(i);
    for (size_t i = 0; i < image.relocation_count(); ++i) total += image.relocation(i).r_info & 1;
    for (const auto& version : image.needed_versions()) total += version.name.size() + version.library.size();
    for (const auto& needed : image.needed()) total += needed.name.size();
    for (const ByteRange& range : image.unmapped_sections()) total += range.end() <= bytes.size();
    for (const char* name : {"memcpy", "sample_unique", "absent"}) total += image.find_symbol(name);
    total += image.imports().size();
    if (const auto weights = image.exported("_binary_constants_bin_start"))
      total += image.bytes_at(weights->st_value, weights->st_size + 256).size() + image.writable(weights->st_value);
    return total == 0 ? "nothing in it" : "";
  } catch (const Error& error) {
    CHECK((error.code() == ErrorCode::kCorruptPackage || error.code() == ErrorCode::kIncompatible));
    CHECK(std::string(error.what()).find("model") != std::string::npos);
    return error.what();
  }
}

template <class T>
T* at(std::vector<std::byte>& bytes, uint64_t offset) {
  return reinterpret_cast<T*>(bytes.data() + offset);
}

}  // namespace

// Whoever cannot keep writers out of the file reads it while they write.
TEST_CASE("elf image: what was checked stays, whatever the file becomes") {
  const std::vector<std::byte> original = sample("sample_model");
  std::vector<std::byte> bytes = original;
  const ElfImage expected(original, "model"), image(bytes, "model");
  std::fill(bytes.begin(), bytes.end(), std::byte{0xff});
  REQUIRE(image.symbol_count() == expected.symbol_count());
  REQUIRE(image.relocation_count() == expected.relocation_count());
  bool same = true;
  for (size_t i = 0; i < expected.symbol_count(); ++i) {
    same &= image.symbol_name(i) == expected.symbol_name(i) && image.symbol_version(i) == expected.symbol_version(i);
    same &= image.find_symbol(expected.symbol_name(i)) == expected.find_symbol(expected.symbol_name(i));
  }
  for (size_t i = 0; i < expected.relocation_count(); ++i)
    same &= image.relocation(i).r_info == expected.relocation(i).r_info;
  for (size_t i = 0; i < expected.needed().size(); ++i) same &= image.needed()[i].name == expected.needed()[i].name;
  for (size_t i = 0; i < expected.needed_versions().size(); ++i)
    same &= image.needed_versions()[i].name == expected.needed_versions()[i].name;
  for (const ByteRange& table : expected.tables())
    same &= std::memcmp(image.table_bytes().data() + table.offset, original.data() + table.offset, table.size) == 0;
  CHECK(same);
  CHECK(image.imports() == expected.imports());
  CHECK(image.unmapped_sections().size() == expected.unmapped_sections().size());
}

TEST_CASE("elf image: what a shared object needs, exports and imports") {
  const std::vector<std::byte> bytes = sample("sample_model");
  const ElfImage image(bytes, "model");
  CHECK(image.machine() == EM_X86_64);
  std::vector<std::string> needed;
  for (const ElfImage::Needed& n : image.needed()) needed.emplace_back(n.name);
  CHECK(std::find(needed.begin(), needed.end(), "libtorch.so") != needed.end());
  CHECK(std::find(needed.begin(), needed.end(), "libtorch_cpu.so") != needed.end());
  CHECK(std::find(needed.begin(), needed.end(), "libc.so.6") != needed.end());

  const size_t exported = image.find_symbol("sample_unique");
  REQUIRE(exported != 0);
  CHECK(image.symbol(exported).st_shndx != SHN_UNDEF);
  const size_t imported = image.find_symbol("memcpy");
  REQUIRE(imported != 0);
  CHECK(image.symbol(imported).st_shndx == SHN_UNDEF);
  const auto version = std::find_if(image.needed_versions().begin(), image.needed_versions().end(),
                                    [&](const auto& v) { return v.index == image.symbol_version(imported); });
  REQUIRE(version != image.needed_versions().end());
  CHECK(version->library == "libc.so.6");
  CHECK(version->name == "GLIBC_2.14");
  CHECK(image.find_symbol("no_such_symbol") == 0);
  CHECK(image.exported("sample_unique"));
  CHECK(!image.exported("memcpy"));
  for (size_t i = 1; i < image.symbol_count(); ++i)
    CHECK(image.symbol_name(image.find_symbol(image.symbol_name(i))) == image.symbol_name(i));

  const size_t weights = image.find_symbol("_binary_constants_bin_start");
  REQUIRE(weights != 0);
  const uint64_t offset = image.offset_of(image.symbol(weights).st_value, 65536, "weights");
  for (size_t i : {0, 1, 250, 251, 65535}) CHECK(static_cast<size_t>(bytes[offset + i]) == i % 251);
}

TEST_CASE("elf image: a file cut anywhere is refused, with the reason") {
  const std::vector<std::byte> bytes = sample("sample_model");
  const ElfImage image(bytes, "model");
  uint64_t mapped_end = 0;
  for (const Elf64_Phdr& segment : image.segments())
    if (segment.p_type == PT_LOAD) mapped_end = std::max(mapped_end, segment.p_offset + segment.p_filesz);
  for (size_t size = 0; size < mapped_end; size += size < 4096 ? 1 : 997)
    CHECK_MESSAGE(!refusal(std::span(bytes).first(size)).empty(), size);
  CHECK(refusal({}).find("shorter than an ELF header") != std::string::npos);
  // Debug sections may be cut off: nothing reads them.
  CHECK(refusal(std::span(bytes).first(mapped_end)).empty());
}

TEST_CASE("elf image: random damage never leads outside the file") {
  const std::vector<std::byte> bytes = sample("sample_model");
  std::vector<ByteRange> tables;
  {
    const ElfImage image(bytes, "model");
    tables.assign(image.tables().begin(), image.tables().end());
  }
  std::mt19937_64 random(20250101);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::byte> damaged = bytes;
    for (int change = 0; change < 3; ++change) {
      const ByteRange& table = tables[random() % tables.size()];
      if (table.size == 0) continue;
      const uint64_t offset = table.offset + random() % table.size;
      damaged[offset] = static_cast<std::byte>(random());
      if (random() % 4 == 0 && offset + 8 <= damaged.size()) *at<uint64_t>(damaged, offset & ~7ULL) = random();
    }
    refused += !refusal(damaged).empty();
  }
  CHECK(refused > 500);
}

TEST_CASE("elf image: each contradiction is named") {
  const std::vector<std::byte> bytes = sample("sample_model");
  const ElfImage good(bytes, "model");
  const auto damaged = [&](auto change) {
    std::vector<std::byte> copy = bytes;
    change(copy);
    return refusal(copy);
  };
  const auto dynamic = [&](std::vector<std::byte>& copy, int64_t tag) -> Elf64_Dyn& {
    for (size_t i = 0; i < good.dynamic().size(); ++i)
      if (good.dynamic()[i].d_tag == tag) return *at<Elf64_Dyn>(copy, good.dynamic_offset() + i * sizeof(Elf64_Dyn));
    throw std::runtime_error("no such tag");
  };
  CHECK(damaged([](auto& b) { b[0] = std::byte{'M'}; }).find("no ELF file") != std::string::npos);
  CHECK(damaged([](auto& b) { b[EI_CLASS] = std::byte{ELFCLASS32}; }).find("64-bit") != std::string::npos);
  CHECK(damaged([](auto& b) { at<Elf64_Ehdr>(b, 0)->e_type = ET_REL; }).find("no shared object") != std::string::npos);
  CHECK(damaged([](auto& b) { at<Elf64_Ehdr>(b, 0)->e_phnum = 60000; }).find("program header") != std::string::npos);
  CHECK(damaged([](auto& b) { at<Elf64_Ehdr>(b, 0)->e_phoff = ~0ULL; }).find("program header") != std::string::npos);
  CHECK(damaged([&](auto& b) { dynamic(b, DT_STRTAB).d_un.d_ptr = 1ULL << 40; }).find("string table lies outside") !=
        std::string::npos);
  CHECK(damaged([&](auto& b) { dynamic(b, DT_STRSZ).d_un.d_val -= 1; }).find("does not end") != std::string::npos);
  CHECK(damaged([&](auto& b) { dynamic(b, DT_NEEDED).d_un.d_val = 1ULL << 33; }).find("needed library") !=
        std::string::npos);
  CHECK(damaged([&](auto& b) {
          dynamic(b, DT_INIT_ARRAYSZ).d_un.d_val = 1ULL << 40;
        }).find("initialisers lies outside") != std::string::npos);
  CHECK(damaged([&](auto& b) { dynamic(b, DT_RELASZ).d_un.d_val += 1; }).find("within an entry") != std::string::npos);
  CHECK(damaged([&](auto& b) { dynamic(b, DT_GNU_HASH).d_tag = 0x60001234; }).find("no symbol hash") !=
        std::string::npos);
  const uint64_t gnu_hash = good.offset_of(
      std::find_if(good.dynamic().begin(), good.dynamic().end(), [](auto& d) { return d.d_tag == DT_GNU_HASH; })
          ->d_un.d_ptr,
      16, "hash");
  CHECK(damaged([&](auto& b) { at<uint32_t>(b, gnu_hash)[2] = 3; }).find("3 words of filter") != std::string::npos);
  CHECK(damaged([&](auto& b) { at<uint32_t>(b, gnu_hash)[1] += 1; }).find("a bucket begins at") != std::string::npos);
  CHECK(damaged([&](auto& b) { at<Elf64_Sym>(b, good.symbols_offset())[5].st_name = ~0U; }).find("symbol 5") !=
        std::string::npos);
  const uint64_t first_relocation = good.offset_of(
      std::find_if(good.dynamic().begin(), good.dynamic().end(), [](auto& d) { return d.d_tag == DT_RELA; })
          ->d_un.d_ptr,
      sizeof(Elf64_Rela), "relocations");
  CHECK(damaged([&](auto& b) { at<Elf64_Rela>(b, first_relocation)->r_offset = 0; }).find("writable data") !=
        std::string::npos);
  CHECK(damaged([&](auto& b) { at<Elf64_Rela>(b, first_relocation)->r_info |= ~0ULL << 32; }).find("does not exist") !=
        std::string::npos);
}

TEST_CASE("elf image: imports and exports of a model") {
  const std::string file = fixture("model_2_15");
  const ElfImage so(bytes_of(file), "m.so");
  CHECK(so.imports() == std::vector<std::string>{"aoti_torch_cpu_mm_out", "aoti_torch_get_dtype"});  // no weak ones
  CHECK(so.needed().empty());
  CHECK(so.exported("AOTInductorGetLastError"));
  CHECK(!so.exported("AOTInductorGetLastErro"));
  CHECK(!so.exported("aoti_torch_cpu_mm_out"));
}

TEST_CASE("elf image: bytes at an address, and whether the model may write them") {
  for (const char* name : {"model_2_15", "model_writable"}) {
    const std::string file = fixture(name);
    const ElfImage so(bytes_of(file), "m.so");
    const auto start = so.exported("_binary_constants_bin_start"), end = so.exported("_binary_constants_bin_end");
    REQUIRE(start);
    REQUIRE(end);
    CHECK(end->st_value - start->st_value == 256);
    const auto bytes = so.bytes_at(start->st_value, 256);
    REQUIRE(bytes.size() == 256);
    for (size_t i = 0; i < 256; ++i) REQUIRE(bytes[i] == static_cast<std::byte>(i));
    CHECK(so.writable(start->st_value) == (std::string(name) == "model_writable"));
    CHECK(so.bytes_at(start->st_value, 1 << 30).empty());
    CHECK(so.bytes_at(UINT64_MAX, 1).empty());
    CHECK(so.bytes_at(UINT64_MAX - 3, 8).empty());
  }
}

TEST_CASE("elf image: every byte of a model's headers, tables and dynamic section may be wrong") {
  const std::string file = fixture("model_2_15");
  std::vector<std::byte> bytes(bytes_of(file).begin(), bytes_of(file).end());
  std::vector<ByteRange> ranges{{0, std::min<uint64_t>(bytes.size(), 2048)}};
  const ElfImage image(bytes_of(file), "model");
  ranges.insert(ranges.end(), image.tables().begin(), image.tables().end());
  for (const ByteRange& range : ranges)
    for (uint64_t i = range.offset; i < range.end(); ++i)
      for (const unsigned char value : {0x00, 0x7f, 0xff}) {
        const std::byte before = std::exchange(bytes[i], std::byte{value});
        refusal(bytes);
        bytes[i] = before;
      }
}
