#include "server/console/page_files.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace sconce::server::console {
namespace {

const std::filesystem::path kFolder = SCONCE_CONSOLE_PAGE;

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Answered {
  http::Response response;
  Answered(const PageFile& file, http::Coding accepts, std::string_view known = {}) {
    response.reset();
    answer_page_file(file, accepts, known, response);
  }
  std::string text() { return std::string(response.text().view().substr(http::Response::kHeadRoom)); }
};

}  // namespace

TEST_CASE("page files: every file of the folder is in the program, as it is there") {
  size_t files = 0, bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    ++files;
    const std::string name = entry.path().filename().string();
    CAPTURE(name);
    const PageFile* const file = find_page_file(name);
    REQUIRE(file != nullptr);
    Answered plain(*file, http::Coding::kIdentity);
    CHECK(plain.text() == read(entry.path()));
    CHECK(plain.response.fields.find("Content-Encoding") == std::string_view::npos);
    Answered gzip(*file, http::Coding::kGzip);
    REQUIRE(gzip.response.segments.size() == 1);
    CHECK(gzip.response.segments[0].bytes == file->gzip.size());
    CHECK(gzip.text().empty());
    CHECK(gzip.response.fields.find("Content-Encoding: gzip\r\n") != std::string_view::npos);
    bytes += file->gzip.size();
  }
  CHECK(files == kPageFiles.size());
  CHECK(bytes <= 200 * 1024);
}

TEST_CASE("page files: who has a file is told so") {
  const PageFile& file = *find_page_file("index.html");
  for (const std::string& known : {std::string(file.tag), "\"other\", " + std::string(file.tag)}) {
    Answered again(file, http::Coding::kGzip, known);
    CHECK(again.response.status == 304);
    CHECK(again.response.body_bytes() == 0);
    CHECK(again.response.fields.find(file.tag) != std::string_view::npos);
  }
  CHECK(Answered(file, http::Coding::kGzip, "W/\"0123456789abcdef\"").response.status == 200);
  CHECK(find_page_file("nothing.js") == nullptr);
  CHECK(find_page_file("") == nullptr);
}

TEST_CASE("page files: heads have room") {
  for (const PageFile& file : kPageFiles)
    CHECK(Answered(file, http::Coding::kGzip).response.fields.size() + 400 < http::Response::kHeadRoom);
}

}  // namespace sconce::server::console
