#include "package_format/archive/archive_reader.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <thread>

#include "sconce/error.h"
#include "tests/errors.h"
#include "tests/package_format/raw_zip.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

std::string text_of(std::span<const std::byte> bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

TEST_CASE("archive reader: members by name below the root") {
  const TempFolder folder;
  const auto path = folder.write("renamed.pt2", build({{{"net/archive_format", "pt2"},
                                                        {"net/data/aotinductor/model/x.so", "code"},
                                                        {"net/data/aotinductor/model/x.cpp", "text"},
                                                        {"net/extra/note", "hello"}}}));
  const auto archive = ArchiveReader::open(path);
  CHECK(archive->kind() == ArchiveReader::Kind::kArchive);
  CHECK(archive->root() == "net/");
  REQUIRE(archive->find("extra/note") != nullptr);
  CHECK(archive->find("extra/note")->path == "net/extra/note");
  CHECK(text_of(archive->read(*archive->find("extra/note"))) == "hello");
  CHECK(archive->read_text(*archive->find("archive_format")) == "pt2");
  CHECK(archive->find("extra") == nullptr);
  CHECK(archive->find("net/extra/note") == nullptr);
  const auto listed = archive->list("data/aotinductor/model/");
  REQUIRE(listed.size() == 2);
  CHECK(listed[0]->name == "data/aotinductor/model/x.cpp");
  CHECK(archive->members().size() == 4);
  CHECK(archive->members()[0].name == "archive_format");
  archive->verify();
}

TEST_CASE("archive reader: torch before 2.8 has no root folder") {
  const TempFolder folder;
  const auto path = folder.write("old.pt2", build({{{"version", "0"},
                                                    {"archive_format", "pt2"},
                                                    {"data/aotinductor/model/x.so", "code"},
                                                    {"other/archive_format", "pt2"}}}));
  const auto archive = ArchiveReader::open(path);
  CHECK(archive->root().empty());
  CHECK(archive->find("data/aotinductor/model/x.so") != nullptr);
  CHECK(archive->find("other/archive_format") != nullptr);
}

TEST_CASE("archive reader: stored members are read in place, at their offset in the file") {
  const TempFolder folder;
  const std::string file = build({{{"a/data/aotinductor/model/x.so", "some code"}, {"a/archive_format", "pt2"}}});
  const auto archive = ArchiveReader::open(folder.write("a.pt2", file));
  const ArchiveMember& member = *archive->find("data/aotinductor/model/x.so");
  CHECK(file.substr(member.offset, member.size) == "some code");
  CHECK(archive->read(member).data() == archive->view(member).data());
}

TEST_CASE("archive reader: deflated members, inflated once for all threads") {
  const TempFolder folder;
  const std::string content(100000, 'q');
  RawZip zip{{{"a/archive_format", "pt2"}, {"a/data/aotinductor/model/x.so", content, true}}};
  const auto archive = ArchiveReader::open(folder.write("a.pt2", build(zip)));
  const ArchiveMember& member = *archive->find("data/aotinductor/model/x.so");
  CHECK(member.deflated);
  CHECK(member.size == content.size());
  std::vector<const std::byte*> seen(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < seen.size(); ++i) threads.emplace_back([&, i] { seen[i] = archive->read(member).data(); });
  for (std::thread& thread : threads) thread.join();
  for (const std::byte* data : seen) CHECK(data == seen[0]);
  CHECK(text_of(archive->view(member)) == content);
  archive->verify();
}

TEST_CASE("archive reader: a wrong CRC is found when a member is read, not when it is viewed") {
  const TempFolder folder;
  for (const bool deflated : {false, true}) {
    RawZip zip{{{"a/archive_format", "pt2"}, {"a/data/aotinductor/model/x.so", "some code", deflated}}};
    zip.members[1].crc_central = zip.members[1].crc_local = 12345;
    const auto archive = ArchiveReader::open(folder.write("a.pt2", build(zip)));
    const ArchiveMember& member = *archive->find("data/aotinductor/model/x.so");
    const std::string message = error_from(ErrorCode::kCorruptPackage, [&] { archive->read(member); });
    CHECK_MESSAGE(contains(message, "a/data/aotinductor/model/x.so"), message);
    CHECK_MESSAGE(contains(message, "CRC"), message);
    if (!deflated) CHECK(text_of(archive->view(member)) == "some code");
    CHECK(contains(error_from(ErrorCode::kCorruptPackage, [&] { archive->verify(); }), "x.so"));
  }
}

TEST_CASE("archive reader: deflated data that lie about their size") {
  const TempFolder folder;
  for (const uint32_t claimed : {5u, 200u}) {
    RawZip zip{{{"a/archive_format", "pt2"}, {"a/data/aotinductor/model/x.so", std::string(100, 'x'), true}}};
    zip.members[1].size_central = zip.members[1].size_local = claimed;
    const auto archive = ArchiveReader::open(folder.write("a.pt2", build(zip)));
    const std::string message =
        error_from(ErrorCode::kCorruptPackage, [&] { archive->read(*archive->find("data/aotinductor/model/x.so")); });
    CHECK_MESSAGE(contains(message, "a/data/aotinductor/model/x.so"), message);
  }
  RawZip zip{{{"a/archive_format", "pt2"}, {"a/data/aotinductor/model/x.so", "not deflated at all"}}};
  zip.members[1].method_central = zip.members[1].method_local = 8;
  const auto archive = ArchiveReader::open(folder.write("a.pt2", build(zip)));
  CHECK(contains(
      error_from(ErrorCode::kCorruptPackage, [&] { archive->read(*archive->find("data/aotinductor/model/x.so")); }),
      "cannot be inflated"));
}

TEST_CASE("archive reader: a deflate bomb is refused before memory is taken") {
  const TempFolder folder;
  RawZip zip{{{"a/archive_format", "pt2"}, {"a/data/aotinductor/model/x.so", "x", true}}};
  zip.members[1].size_central = zip.members[1].size_local = 0xf0000000;
  const auto archive = ArchiveReader::open(folder.write("a.pt2", build(zip)));
  const ArchiveMember& member = *archive->find("data/aotinductor/model/x.so");
  const std::string message = error_from(ErrorCode::kCorruptPackage, [&] { archive->read(member); });
  CHECK_MESSAGE(contains(message, "inflates to too much: a/data/aotinductor/model/x.so"), message);
  // Many that are each below the limit: their sum counts.
  const std::string content(40 << 20, '\0');
  RawZip many{{{"a/archive_format", "pt2"},
               {"a/data/aotinductor/m/1", content, true},
               {"a/data/aotinductor/m/2", content, true}}};
  const auto pair = ArchiveReader::open(folder.write("b.pt2", build(many)));
  CHECK(pair->read(*pair->find("data/aotinductor/m/1")).size() == content.size());
  CHECK(contains(error_from(ErrorCode::kCorruptPackage, [&] { pair->read(*pair->find("data/aotinductor/m/2")); }),
                 "too much: a/data/aotinductor/m/2"));
}

TEST_CASE("archive reader: a directory with the archive's layout") {
  const TempFolder folder;
  folder.write("pkg/archive_format", "pt2");
  folder.write("pkg/data/aotinductor/model/x.so", "code");
  folder.write("pkg/empty", "");
  const auto archive = ArchiveReader::open(folder.path() / "pkg");
  CHECK(archive->kind() == ArchiveReader::Kind::kDirectory);
  CHECK(archive->root().empty());
  CHECK(text_of(archive->read(*archive->find("data/aotinductor/model/x.so"))) == "code");
  CHECK(archive->read(*archive->find("empty")).empty());
  archive->verify();
  const auto unpacked = ArchiveReader::open(folder.path());  // as `unzip` leaves it: with the root folder
  CHECK(unpacked->root() == "pkg/");
  CHECK(unpacked->find("data/aotinductor/model/x.so") != nullptr);
}

TEST_CASE("archive reader: a bare library is one member") {
  const TempFolder folder;
  const auto archive = ArchiveReader::open(folder.write("model.so", "\177ELF and more"));
  CHECK(archive->kind() == ArchiveReader::Kind::kSharedObject);
  REQUIRE(archive->members().size() == 1);
  CHECK(archive->members()[0].name == "model.so");
}

TEST_CASE("archive reader: what is no file, no archive or not there") {
  const TempFolder folder;
  CHECK(contains(error_from(ErrorCode::kIo, [&] { ArchiveReader::open(folder.path() / "absent"); }), "absent"));
  CHECK(
      contains(error_from(ErrorCode::kIo, [&] { ArchiveReader::open("/dev/null"); }), "not a regular file: /dev/null"));
  CHECK(contains(error_from(ErrorCode::kUnsupported, [&] { ArchiveReader::open(folder.write("t.txt", "text")); }),
                 "t.txt"));
  const std::string empty = folder.write("e", "");
  CHECK(error_from(ErrorCode::kCorruptPackage, [&] { ArchiveReader::open(empty); }) == "file is empty: " + empty);
  CHECK(error_from(ErrorCode::kCorruptPackage, [&] {
          ArchiveReader::open(bytes_of("").first(0), nullptr, "the bytes");
        }) == "file is empty: the bytes");
  CHECK(contains(error_from(ErrorCode::kCorruptPackage, [&] { ArchiveReader::open(folder.write("z", "PK\3\4")); }),
                 "truncated"));
}

TEST_CASE("archive reader: a file that is something else is called what it is, and nothing of it is shown") {
  const TempFolder folder;
  const auto refused = [&](const std::string& content, const std::string& kind) {
    const std::string path = folder.write("f.pt2", content);
    CHECK(error_from(ErrorCode::kUnsupported, [&] { ArchiveReader::open(path); }) ==
          "file is neither a package nor a model library" + kind + ": " + path);
  };
  refused("version https://git-lfs.github.com/spec/v1\noid",
          ", but a placeholder of Git LFS (git lfs pull fetches the file)");
  refused("<!DOCTYPE html>\n<html>", ", but a web page or XML");
  refused("\x80\x02}q", ", but a Python pickle");
  refused("\x1f\x8b\x08", ", but compressed by gzip");
  refused("secret", "");
  refused("\n", "");
}

TEST_CASE("archive reader: a directory without a package says so before any file in it is opened") {
  const TempFolder folder;
  const auto refused = [&](const std::string& name, const std::string& message) {
    const std::string path = folder / name;
    CHECK(error_from(ErrorCode::kUnsupported, [&] { ArchiveReader::open(path); }) == message);
  };
  std::filesystem::create_directory(folder / "empty");
  refused("empty", "directory is empty, not an AOTInductor package: " + (folder / "empty").native());
  // A pipe would stop whoever opens it.
  folder.write("other/readme", "hello");
  REQUIRE(::mkfifo((folder / "other/pipe").c_str(), 0600) == 0);
  refused("other", "directory is not an AOTInductor package: it has neither archive_format nor data/aotinductor/: " +
                       (folder / "other").native());
  folder.write("several/readme", "hello");
  for (const char* name : {"a.pt2", "b.pt2"}) folder.write(std::string("several/") + name, "");
  const std::string several = "directory holds packages, but is not one: " + (folder / "several").native();
  refused("several", several + ": name a file in it: a.pt2, b.pt2");
  for (const char* name : {"c\n.pt2", "d.pt2", "e.pt2"}) folder.write(std::string("several/") + name, "");
  refused("several", several + ": name a file in it: a.pt2, b.pt2, c\\x0a.pt2 and 2 more");
  // However large and deep it is, and whatever in it cannot be read.
  CHECK(contains(error_from(ErrorCode::kUnsupported, [] { ArchiveReader::open("/"); }), "not an AOTInductor package"));
}
