#include "src/loader/library/elf_fixups.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "src/device/device_backend.h"
#include "tests/loader/sample_file.h"

using namespace sconce;
using namespace sconce::loader;

namespace {

std::vector<std::byte> fixed(const std::string& name, const FixupOptions& options = {}) {
  std::vector<std::byte> bytes = sample(name);
  const Fixups fixups = compute_fixups(ElfImage(bytes, name), options);
  for (const Patch& patch : fixups.patches) {
    REQUIRE(patch.offset + patch.bytes.size() <= bytes.size());
    std::copy(patch.bytes.begin(), patch.bytes.end(), bytes.begin() + static_cast<ptrdiff_t>(patch.offset));
  }
  for (const ByteRange& range : fixups.unused)
    std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(range.offset), range.size, std::byte{0});
  return bytes;
}

std::vector<std::string> needed(const ElfImage& image) {
  std::vector<std::string> names;
  for (const ElfImage::Needed& n : image.needed()) names.emplace_back(n.name);
  return names;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> symbol_names(const ElfImage& image) {
  std::vector<std::string> names;
  for (size_t i = 0; i < image.symbol_count(); ++i) names.emplace_back(image.symbol_name(i));
  return names;
}

uint32_t stack_flags(const ElfImage& image) {
  for (const Elf64_Phdr& segment : image.segments())
    if (segment.p_type == PT_GNU_STACK) return segment.p_flags;
  return 0;
}

int count_unique(const ElfImage& image) {
  int count = 0;
  for (size_t i = 0; i < image.symbol_count(); ++i) count += ELF64_ST_BIND(image.symbol(i).st_info) == STB_GNU_UNIQUE;
  return count;
}

}  // namespace

TEST_CASE("elf fixups: libsconce takes the place of libtorch") {
  const std::vector<std::byte> before = sample("sample_model"), after = fixed("sample_model");
  const ElfImage old(before, "old"), now(after, "now");
  CHECK(contains(needed(old), "libtorch.so"));
  CHECK(contains(needed(old), "libtorch_cpu.so"));
  // It takes libtorch.so's place, before the C and C++ libraries.
  CHECK(needed(now).front() == kSconceLibrary);
  const std::vector<std::string> names = needed(now);
  CHECK(std::count(names.begin(), names.end(), kSconceLibrary) == 1);
  CHECK(!contains(needed(now), "libtorch.so"));
  CHECK(!contains(needed(now), "libtorch_cpu.so"));
  CHECK(contains(needed(now), "libc.so.6"));
  CHECK(symbol_names(now) == symbol_names(old));
  CHECK(needed(now).size() == needed(old).size() - 1);
}

TEST_CASE("elf fixups: libsconce_cuda takes the place of libtorch_cuda where it is asked for") {
  const std::vector<std::byte> before = sample("sample_cuda");
  CHECK(compute_fixups(ElfImage(before, "old"), {.use_cuda_library = true}).needs_cuda_library);
  CHECK(!compute_fixups(ElfImage(before, "old")).needs_cuda_library);
  const std::vector<std::byte> after = fixed("sample_cuda", {.use_cuda_library = true}), plain = fixed("sample_cuda");
  const std::vector<std::string> names = needed(ElfImage(after, "now"));
  CHECK(contains(names, kCudaLibrary));
  CHECK(contains(names, kSconceLibrary));
  CHECK(!contains(names, kTorchCudaLibrary));
  CHECK(!contains(needed(ElfImage(plain, "plain")), kCudaLibrary));
}

TEST_CASE("elf fixups: the stack is not executable, unique symbols are weak, nothing else about them changes") {
  const std::vector<std::byte> before = sample("sample_model"), after = fixed("sample_model");
  const ElfImage old(before, "old"), now(after, "now");
  CHECK((stack_flags(old) & PF_X) != 0);
  CHECK(stack_flags(now) == (stack_flags(old) & ~static_cast<uint32_t>(PF_X)));
  CHECK(count_unique(old) > 0);
  CHECK(count_unique(now) == 0);
  for (size_t i = 0; i < old.symbol_count(); ++i) {
    Elf64_Sym expected = old.symbol(i);
    if (ELF64_ST_BIND(expected.st_info) == STB_GNU_UNIQUE)
      expected.st_info = ELF64_ST_INFO(STB_WEAK, ELF64_ST_TYPE(expected.st_info));
    const Elf64_Sym actual = now.symbol(i);
    CHECK(std::memcmp(&expected, &actual, sizeof(expected)) == 0);
  }
}

TEST_CASE("elf fixups: its own functions are bound, nothing else is") {
  for (const char* name : {"sample_model", "sample_now"}) {
    const std::vector<std::byte> before = sample(name), after = fixed(name);
    const ElfImage old(before, "old"), now(after, "now");
    REQUIRE(now.relocation_count() == old.relocation_count());
    int bound = 0, kept = 0;
    for (size_t i = 0; i < old.relocation_count(); ++i) {
      const Elf64_Rela was = old.relocation(i), is = now.relocation(i);
      CHECK(is.r_offset == was.r_offset);
      const Elf64_Sym symbol = old.symbol(ELF64_R_SYM(was.r_info));
      const uint64_t type = ELF64_R_TYPE(was.r_info);
      const bool own_function = symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC;
      if (own_function && (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_X86_64_64)) {
        ++bound;
        CHECK(is.r_info == ELF64_R_INFO(0, R_X86_64_RELATIVE));
        CHECK(static_cast<uint64_t>(is.r_addend) ==
              symbol.st_value + (type == R_X86_64_64 ? static_cast<uint64_t>(was.r_addend) : 0));
      } else {
        ++kept;
        CHECK(is.r_info == was.r_info);
        CHECK(is.r_addend == was.r_addend);
      }
    }
    CHECK(bound > 20);  // <regex> instantiated
    CHECK(kept > 20);
  }
}

TEST_CASE("elf fixups: few patches, in order, none of which overlaps another") {
  const std::vector<std::byte> bytes = sample("sample_model");
  const Fixups fixups = compute_fixups(ElfImage(bytes, "model"));
  CHECK(fixups.patches.size() > 1);
  CHECK(fixups.patches.size() <= 8);
  uint64_t end = 0;
  for (const Patch& patch : fixups.patches) {
    CHECK(patch.offset >= end);
    end = patch.offset + patch.bytes.size();
  }
}

TEST_CASE("elf fixups: a package linked without libtorch gets a needed entry of its own") {
  const std::vector<std::byte> before = sample("sample_torchless"), after = fixed("sample_torchless");
  const ElfImage old(before, "old"), now(after, "now");
  CHECK(!contains(needed(old), "libtorch_cpu.so"));
  CHECK(contains(needed(now), kSconceLibrary));
  CHECK(needed(now).size() == needed(old).size() + 1);
  // The new name overwrites that of a weak reference, which stays unresolved.
  std::vector<std::string> names = symbol_names(old);
  std::replace(names.begin(), names.end(), std::string("_ITM_deregisterTMCloneTable"), std::string(kSconceLibrary));
  CHECK(symbol_names(now) == names);
}

TEST_CASE("elf fixups: a name that is the end of another stays whole") {
  const std::vector<std::byte> before = sample("sample_shared_tail"), after = fixed("sample_shared_tail");
  const ElfImage old(before, "old"), now(after, "now");
  const auto soname = [](const ElfImage& image) {
    for (const Elf64_Dyn& entry : image.dynamic())
      if (entry.d_tag == DT_SONAME) return std::string(image.string(entry.d_un.d_val));
    return std::string();
  };
  uint64_t torch = 0, own = 0;
  for (const ElfImage::Needed& n : old.needed())
    if (n.name == "libtorch_cpu.so") torch = n.name_offset;
  for (const Elf64_Dyn& entry : old.dynamic())
    if (entry.d_tag == DT_SONAME) own = entry.d_un.d_val;
  REQUIRE(own == torch + std::string_view("libtorch_").size());  // the linker did share them
  CHECK(soname(now) == "cpu.so");
  CHECK(contains(needed(now), kSconceLibrary));
  CHECK(!contains(needed(now), "libtorch_cpu.so"));
}

TEST_CASE("elf fixups: a file without room for our name is said to have none") {
  const std::vector<std::byte> model = sample("sample_model"), full = sample("sample_no_room");
  CHECK(compute_fixups(ElfImage(model, "model")).needs_sconce);
  CHECK(!compute_fixups(ElfImage(full, "full")).needs_sconce);
}

TEST_CASE("elf fixups: versions are weak") {
  const std::vector<std::byte> before = sample("sample_new_glibc"), after = fixed("sample_new_glibc");
  const ElfImage old(before, "old"), now(after, "now");
  CHECK(std::any_of(old.needed_versions().begin(), old.needed_versions().end(),
                    [](const auto& v) { return v.name == "GLIBC_2.99" && !v.weak; }));
  REQUIRE(now.needed_versions().size() == old.needed_versions().size());
  for (const ElfImage::NeededVersion& version : now.needed_versions()) CHECK(version.weak);
}

TEST_CASE("elf fixups: sections that are not mapped are left out, and no header points at them") {
  const std::vector<std::byte> bytes = sample("sample_model");
  const ElfImage image(bytes, "model");
  const Fixups fixups = compute_fixups(image);
  REQUIRE(!fixups.unused.empty());  // .symtab at least
  for (const ByteRange& range : fixups.unused)
    for (const Elf64_Phdr& segment : image.segments())
      if (segment.p_type == PT_LOAD) CHECK(!range.overlaps({segment.p_offset, segment.p_filesz}));
  const std::vector<std::byte> after = fixed("sample_model");
  Elf64_Ehdr header;
  std::memcpy(&header, after.data(), sizeof(header));
  CHECK(header.e_shoff == 0);
  CHECK(header.e_shnum == 0);
}

TEST_CASE("elf fixups: which libraries are torch's") {
  for (const char* name : {"libtorch.so", "libtorch_cpu.so", "libtorch_cuda.so", "libc10.so", "libc10_cuda.so"})
    CHECK(is_torch_library(name));
  for (const char* name : {"libtorchvision.so", "libc.so.6", "libc101.so", "torch.so", "libc10", ""})
    CHECK(!is_torch_library(name));
}
