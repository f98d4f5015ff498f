#include "package_format/archive/archive_writer.h"

#include <doctest/doctest.h>

#include "package_format/archive/archive_reader.h"
#include "sconce/error.h"
#include "tests/package_format/raw_zip.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("archive writer: what it writes is read back, aligned, and sound for libzip") {
  const TempFolder folder;
  std::vector<std::pair<std::string, std::string>> members{
      {"m/archive_format", "pt2"}, {"m/empty", ""}, {"m/data/aotinductor/model/x.so", std::string(5000, 'c')}};
  for (size_t length = 1; length < 70; ++length) members.push_back({"m/" + std::string(length, 'n'), "x"});
  for (const bool descriptors : {true, false})
    for (const bool zip64 : {true, false}) {
      const auto path = folder.path() / "out.pt2";
      ArchiveWriter writer(path, {.descriptors = descriptors, .zip64 = zip64});
      for (const auto& [name, content] : members) writer.add(name, content);
      writer.finish();
      const auto archive = ArchiveReader::open(path);
      archive->verify();
      REQUIRE(archive->members().size() == members.size());
      for (size_t i = 0; i < members.size(); ++i) {
        const ArchiveMember& member = archive->members()[i];
        CHECK(member.path == members[i].first);
        CHECK(archive->read_text(member) == members[i].second);
        CHECK(member.offset % 64 == 0);
      }
    }
}

TEST_CASE("archive writer: the same members give the same bytes") {
  const TempFolder folder;
  const auto write = [&](const char* name) {
    ArchiveWriter writer(folder.path() / name);
    writer.add("r/archive_format", "pt2");
    writer.add_file("r/file", folder.write("source", "content"));
    writer.finish();
    return std::string(ArchiveReader::open(folder.path() / name)->members().size(), 'x') +
           std::to_string(std::filesystem::file_size(folder.path() / name));
  };
  CHECK(write("one.pt2") == write("two.pt2"));
  CHECK(content_of(folder / "one.pt2") == content_of(folder / "two.pt2"));
}

TEST_CASE("archive writer: nothing is seen of an archive that is not finished") {
  const TempFolder folder;
  const auto path = folder.write("out.pt2", "what was there");
  {
    ArchiveWriter writer(path);
    writer.add("r/x", "y");
  }
  CHECK(std::filesystem::file_size(path) == 14);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("archive writer: names and paths that cannot be") {
  const TempFolder folder;
  ArchiveWriter writer(folder.path() / "out.pt2");
  for (const char* name : {"", "/abs", "../up", "a//b", "folder/", "a\\b"})
    CHECK_THROWS_AS(writer.add(name, "x"), Error);
  writer.add("r/x", "1");
  CHECK_THROWS_AS(writer.add("r/x", "2"), Error);
  CHECK_THROWS_AS(writer.add_file("r/y", folder.path() / "absent"), Error);
  CHECK_THROWS_AS(ArchiveWriter(folder.path() / "no" / "such" / "folder.pt2"), Error);
}
