#include "server/registry/repositories/name_table.h"

#include <doctest/doctest.h>

namespace sconce::server::registry {
namespace {

std::vector<PackageFile> versions_of(const std::string& stem, std::initializer_list<int64_t> versions) {
  std::vector<PackageFile> files;
  for (const int64_t version : versions)
    files.push_back({stem, version, "/models/" + stem + "/" + std::to_string(version) + "/model.pt2", {}, {1, 2, 3}});
  return files;
}

std::vector<std::string> names(const NameTable& table) {
  std::vector<std::string> all;
  for (const NameTable::Known& known : table.all()) all.push_back(known.name);
  return all;
}

}  // namespace

TEST_CASE("name table: knows names and versions, until the files are gone") {
  NameTable table;
  table.set("b", versions_of("b", {2, 1}));
  table.set("a", versions_of("a", {1}));
  CHECK(table.size() == 2);
  CHECK(names(table) == std::vector<std::string>{"a", "b"});
  CHECK(table.all()[1].versions == std::vector<int64_t>{1, 2});
  const std::vector<PackageFile> files = table.find("b");
  REQUIRE(files.size() == 2);
  CHECK(files[1].path == "/models/b/2/model.pt2");
  CHECK(files[1].stamp == FileStamps{1, 2, 3});
  CHECK(files[1].on_demand);
  table.set("b", {});
  CHECK(!table.knows("b"));
  CHECK(table.find("b").empty());
  CHECK(names(table) == std::vector<std::string>{"a"});
}

TEST_CASE("name table: a package may have several models, which is known once it was opened") {
  NameTable table;
  table.set("m", versions_of("m", {1}));
  CHECK(table.knows("m"));
  CHECK(table.knows("m.encoder"));  // perhaps
  CHECK(!table.knows("mm"));
  table.learn("m", {"m.decoder", "m.encoder", "m.encoder"});
  CHECK(table.knows("m.encoder"));
  CHECK(!table.knows("m"));
  CHECK(!table.knows("m.other"));
  CHECK(names(table) == std::vector<std::string>{"m.decoder", "m.encoder"});
  CHECK(table.names_of("m").size() == 2);
  table.set("m", versions_of("m", {1}));  // it was replaced
  CHECK(table.knows("m.other"));
  table.learn("m", {"m"});
  CHECK(table.knows("m"));
  CHECK(!table.knows("m.other"));
  table.learn("gone", {"gone"});
  CHECK(table.size() == 1);
}

TEST_CASE("name table: the longest stem has the name") {
  NameTable table;
  table.set("m", versions_of("m", {1}));
  table.set("m.x", versions_of("m.x", {7}));
  CHECK(table.find("m.x.y").front().version == 7);
  CHECK(table.find("m.y").front().version == 1);
  table.learn("m.x", {"m.x"});
  CHECK(table.find("m.x.y").front().version == 1);
}

TEST_CASE("name table: names that no file can have are unknown") {
  NameTable table;
  table.set("m", versions_of("m", {1}));
  for (const char* name : {"", ".", "..", "../m", "m/1", ".m", "/models/m", "n.m"}) CHECK(!table.knows(name));
  CHECK(!table.knows(std::string(100'000, '.')));
  CHECK(!table.knows(std::string_view("m\0", 2)));
}

}  // namespace sconce::server::registry
