#include "package_format/archive/zip_directory.h"

#include <doctest/doctest.h>

#include "sconce/error.h"
#include "tests/errors.h"
#include "tests/package_format/raw_zip.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

std::string fault(const std::string& file) {
  return error_from(ErrorCode::kCorruptPackage, [&] { read_zip_directory(bytes_of(file)); });
}

// Two sound members around whatever `change` does to the second.
template <class Change>
std::string with_second(Change change) {
  RawZip zip{{{"a/first", "one"}, {"a/second", "two and more"}, {"a/third", "3"}}};
  change(zip.members[1]);
  return build(zip);
}

}  // namespace

// Each message must name the member and hold the reason.
#define CHECK_FAULT(file, member, reason)                         \
  do {                                                            \
    const std::string message = fault(file);                      \
    CHECK_MESSAGE(message.find(member) != message.npos, message); \
    CHECK_MESSAGE(message.find(reason) != message.npos, message); \
  } while (0)

TEST_CASE("zip directory: sound archives of every kind") {
  for (const bool deflated : {false, true})
    for (const uint16_t flags : {0, 8, 0x800, 0x808}) {
      const std::string file = with_second([&](RawMember& m) {
        m.deflated = deflated;
        m.flags = flags;
      });
      const std::vector<ZipMember> members = read_zip_directory(bytes_of(file));
      REQUIRE(members.size() == 3);
      CHECK(members[1].name == "a/second");
      CHECK(members[1].size == 12);
      CHECK(members[1].deflated == deflated);
      CHECK(members[1].crc == crc_of("two and more"));
      if (!deflated) CHECK(file.substr(members[1].offset, members[1].stored_size) == "two and more");
    }
  CHECK(read_zip_directory(bytes_of(build({}))).empty());
  CHECK(read_zip_directory(bytes_of(build({.members = {{"x", ""}}, .comment = "a comment"}))).size() == 1);
  CHECK(read_zip_directory(bytes_of(build({{{"folder/", ""}, {"folder/x", "1"}}}))).size() == 1);
}

TEST_CASE("zip directory: data begin behind the local header's own extra field") {
  const std::string file = with_second([](RawMember& m) { m.local_extra = "FB" + u16(20) + std::string(20, 'Z'); });
  const std::vector<ZipMember> members = read_zip_directory(bytes_of(file));
  CHECK(file.substr(members[1].offset, 12) == "two and more");
}

TEST_CASE("zip directory: descriptors with and without signature, of 32 and 64 bits") {
  const std::string crc = u32(crc_of("two and more"));
  for (const std::string& descriptor : {u32(0x08074b50) + crc + u32(12) + u32(12), crc + u32(12) + u32(12),
                                        u32(0x08074b50) + crc + u64(12) + u64(12), crc + u64(12) + u64(12)}) {
    const std::string file = with_second([&](RawMember& m) {
      m.flags = 8;
      m.descriptor = descriptor;
    });
    CHECK(read_zip_directory(bytes_of(file)).size() == 3);
  }
  for (const std::string& descriptor : {u32(0x08074b50) + crc + u32(12) + u32(13), std::string(), u32(0x08074b50)}) {
    const std::string file = with_second([&](RawMember& m) {
      m.flags = 8;
      m.descriptor = descriptor;
    });
    CHECK_FAULT(file, "a/second", "descriptor differs");
  }
}

TEST_CASE("zip directory: names") {
  for (const auto& [name, reason] :
       std::vector<std::pair<std::string, std::string>>{{"../x", "could leave the archive"},
                                                        {"a/../../x", "could leave the archive"},
                                                        {"a/..", "could leave the archive"},
                                                        {"./x", "could leave the archive"},
                                                        {"a//x", "could leave the archive"},
                                                        {"/etc/passwd", "is absolute"},
                                                        {"C:/x", "is absolute"},
                                                        {"..\\x", "backslash"},
                                                        {"a\nb", "control character"},
                                                        {std::string("a\0b", 3), "control character"},
                                                        {"", "is empty"}}) {
    const std::string message = fault(with_second([&](RawMember& m) { m.name = name; }));
    CHECK_MESSAGE(message.find(reason) != message.npos, name << ": " << message);
    CHECK(message.find('\n') == message.npos);
  }
  CHECK(zip_name_fault("a/b.c/..d/e..").empty());
  CHECK(zip_name_fault("a/b/").empty());
  CHECK(fault(build({{{"folder/", "content"}}})).find("folder has content: folder/") != std::string::npos);
}

TEST_CASE("zip directory: duplicates and overlaps") {
  CHECK_FAULT(with_second([](RawMember& m) { m.name = "a/third"; }), "a/third", "twice");
  // The second entry points at the first one's bytes, under its own and under the same name.
  CHECK_FAULT(with_second([](RawMember& m) { m.local_offset = 0; }), "a/second", "another name");
  RawZip shared{{{"one", "1111"}, {"two", "2222"}}};
  shared.members[1].local_name = "one";
  shared.members[1].local_offset = 0;
  CHECK_FAULT(build(shared), "two", "another name");
  // A member hidden in another one's data.
  const std::string inner = build({{{"inner", "secret"}}});
  RawZip outer{{{"outer", inner}, {"inner", "secret"}}};
  outer.members[1].local_offset = 30 + 5;
  CHECK_FAULT(build(outer), "outer and inner", "overlap");
}

TEST_CASE("zip directory: headers that lie") {
  CHECK_FAULT(with_second([](RawMember& m) { m.size_central = 13; }), "a/second", "lies about its size");
  CHECK_FAULT(with_second([](RawMember& m) { m.stored_central = m.size_central = 11; }), "a/second", "differs");
  CHECK_FAULT(with_second([](RawMember& m) { m.size_local = 11; }), "a/second", "differs");
  CHECK_FAULT(with_second([](RawMember& m) { m.crc_local = 1; }), "a/second", "differs");
  CHECK_FAULT(with_second([](RawMember& m) { m.method_local = 8; }), "a/second", "differs");
  CHECK_FAULT(with_second([](RawMember& m) { m.local_name = "a/sEcond"; }), "a/second", "another name");
  CHECK_FAULT(
      with_second([](RawMember& m) { m.stored_central = m.size_central = m.stored_local = m.size_local = 4000; }),
      "a/second", "beyond the central directory");
  CHECK_FAULT(with_second([](RawMember& m) { m.local_offset = 1; }), "a/second", "no local header");
  CHECK_FAULT(with_second([](RawMember& m) { m.local_offset = 0x7fffffff; }), "a/second", "no local header");
  CHECK_FAULT(with_second([](RawMember& m) { m.method_central = m.method_local = 12; }), "a/second", "method: ");
  CHECK_FAULT(with_second([](RawMember& m) { m.flags = 1; }), "a/second", "encrypted");
  CHECK_FAULT(with_second([](RawMember& m) { m.flags = 1 << 13; }), "a/second", "encrypted");
  CHECK_FAULT(with_second([](RawMember& m) { m.flags = 1 << 5; }), "a/second", "patch");
  CHECK_FAULT(with_second([](RawMember& m) {
                m.central_extra = u16(1) + u16(99);
                m.size_central = 0xffffffff;
              }),
              "a/second", "too long");
  CHECK_FAULT(with_second([](RawMember& m) {
                m.central_extra = u16(1) + u16(4) + u32(0);
                m.size_central = 0xffffffff;
              }),
              "a/second", "too short");
}

TEST_CASE("zip directory: end records that lie") {
  const std::vector<RawMember> members{{"x", "1"}};
  CHECK_FAULT(build({.members = members, .entries = 2}), "central directory", "cut off");
  CHECK_FAULT(build({.members = members, .entries = 0}), "central directory", "behind its last entry");
  CHECK_FAULT(build({.members = members, .disk_entries = 0}), "several", "disks");
  CHECK_FAULT(build({.members = members, .disk = 1}), "several", "disks");
  CHECK_FAULT(build({.members = members, .directory_offset = 0}), "central directory", "lies about its place");
  CHECK_FAULT(build({.members = members, .directory_bytes = 0}), "central directory", "lies about its place");
  CHECK_FAULT(build({.members = members}) + "x", "archive", "truncated or not a ZIP");
  CHECK_FAULT(std::string("junk").append(build({.members = members})), "central directory", "lies about its place");
  CHECK_FAULT("", "archive", "truncated");
}

TEST_CASE("zip directory: zip64") {
  const std::string content = "two and more";
  const auto zip64_end = [&](uint64_t entries, uint64_t bytes, uint64_t offset, uint64_t at) {
    return u32(0x06064b50) + u64(44) + u16(45) + u16(45) + u32(0) + u32(0) + u64(entries) + u64(entries) + u64(bytes) +
           u64(offset) + u32(0x07064b50) + u32(0) + u64(at) + u32(1);
  };
  RawZip zip{{{"big", content}}};
  zip.members[0].size_central = zip.members[0].stored_central = zip.members[0].local_offset = 0xffffffff;
  zip.members[0].size_local = zip.members[0].stored_local = 0xffffffff;
  zip.members[0].central_extra = u16(1) + u16(24) + u64(12) + u64(12) + u64(0);
  zip.members[0].local_extra = u16(1) + u16(16) + u64(12) + u64(12);
  const uint64_t start = 30 + 3 + 20 + 12, bytes = 46 + 3 + 28;
  zip.entries = 0xffff;
  zip.directory_bytes = zip.directory_offset = 0xffffffff;
  zip.before_end = zip64_end(1, bytes, start, start + bytes);
  const std::vector<ZipMember> members = read_zip_directory(bytes_of(build(zip)));
  REQUIRE(members.size() == 1);
  CHECK(members[0].size == 12);
  CHECK(build(zip).substr(members[0].offset, 12) == content);

  zip.before_end = zip64_end(2, bytes, start, start + bytes);
  CHECK_FAULT(build(zip), "central directory", "cut off");
  zip.before_end = zip64_end(65537, bytes, start, start + bytes);
  CHECK_FAULT(build(zip), "65537 members", "more than 65536");
  zip.before_end = zip64_end(1, bytes, start, start + bytes + 1);
  CHECK_FAULT(build(zip), "zip64 end record", "not where");
  zip.before_end = zip64_end(1, UINT64_MAX, start, start + bytes);
  CHECK_FAULT(build(zip), "central directory", "lies about its place");
  zip.before_end = zip64_end(1, bytes, UINT64_MAX - 3, start + bytes);
  CHECK_FAULT(build(zip), "central directory", "lies about its place");
  zip.entries = 3;
  zip.before_end = zip64_end(1, bytes, start, start + bytes);
  CHECK_FAULT(build(zip), "zip64 end record", "differ");
  zip.entries = 1;
  zip.members[0].central_extra = u16(1) + u16(24) + u64(1ull << 62) + u64(1ull << 62) + u64(0);
  CHECK_FAULT(build(zip), "big", "differs");
}

TEST_CASE("zip directory: 65,536 members are read, 65,537 refused") {
  RawZip zip;
  for (int i = 0; i < 65536; ++i) zip.members.push_back({std::string("m").append(std::to_string(i)), ""});
  const uint64_t start = [&] {
    uint64_t sum = 0;
    for (const RawMember& member : zip.members) sum += 30 + member.name.size();
    return sum;
  }();
  const auto end = [](uint64_t entries, uint64_t bytes, uint64_t offset) {
    return u32(0x06064b50) + u64(44) + u16(45) + u16(45) + u32(0) + u32(0) + u64(entries) + u64(entries) + u64(bytes) +
           u64(offset) + u32(0x07064b50) + u32(0) + u64(offset + bytes) + u32(1);
  };
  const uint64_t bytes = start + 65536 * 16;
  zip.entries = 0xffff;
  zip.before_end = end(65536, bytes, start);
  CHECK(read_zip_directory(bytes_of(build(zip))).size() == 65536);
  zip.members.push_back({"one more", ""});
  zip.before_end = end(65537, bytes + 46 + 8, start + 30 + 8);
  CHECK_FAULT(build(zip), "65537 members", "more than 65536");
}

TEST_CASE("zip directory: an archive cut off anywhere is refused, one with a flipped byte never read outside") {
  RawZip zip{{{"a/first", "one"}, {"a/second", std::string(300, 'x')}, {"a/third", ""}}};
  zip.members[0].flags = 8;
  zip.members[1].deflated = true;
  const std::string file = build(zip);
  for (size_t size = 0; size < file.size(); ++size) {
    // A copy of exactly that size, so that a sanitizer sees every byte beyond.
    const std::vector<char> cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK_THROWS_AS(read_zip_directory(std::as_bytes(std::span(cut))), Error);
  }
  for (size_t i = 0; i < file.size(); ++i)
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::vector<char> changed(file.begin(), file.end());
      changed[i] = static_cast<char>(changed[i] ^ flip);
      try {
        for (const ZipMember& member : read_zip_directory(std::as_bytes(std::span(changed)))) {
          REQUIRE(member.offset <= changed.size());
          REQUIRE(member.stored_size <= changed.size() - member.offset);
        }
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::kCorruptPackage);
      }
    }
}
