#include "server/registry/remote/remote_listing.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sconce/error.h"

namespace sconce::server::registry {
namespace {

std::vector<std::string> taken(const std::vector<std::string>& paths) {
  std::vector<RemoteFile> files;
  for (const std::string& path : paths) files.push_back({path, 1, ""});
  std::vector<std::string> names;
  for (const RemoteFile& file : files_of_models(std::move(files))) names.push_back(file.path);
  return names;
}

TEST_CASE("what belongs to models is taken, packages last") {
  CHECK(taken({"a.pt2", "a.pt2.sig", "p.pipeline.json", "README.md", "weights.bin"}) ==
        std::vector<std::string>{"a.pt2.sig", "p.pipeline.json", "a.pt2"});
  CHECK(taken({"m/1/model.pt2", "m/config.pbtxt", "m/labels.txt", "m/warmup/raw", "m/1/model.onnx",
               "m/1/model.pt2.sig"}) == std::vector<std::string>{"m/config.pbtxt", "m/labels.txt", "m/warmup/raw",
                                                                 "m/1/model.pt2.sig", "m/1/model.pt2"});
  CHECK(taken({"data/file.txt", "data/1/model.onnx", "m/01/model.pt2", "x/y/z.pt2"}).empty());
}

TEST_CASE("names that would leave the folder are not taken") {
  CHECK(taken({"../a.pt2", "/a.pt2", "m/1/model.pt2", "m/../../x", "m/./x", "m//x", "m/.x", "m/a\nb", ".pt2"}) ==
        std::vector<std::string>{"m/1/model.pt2"});
}

TEST_CASE("a hub's tree is read") {
  const std::vector<RemoteFile> files = parse_tree(
      R"([{"type":"directory","oid":"1","size":0,"path":"sub/d"},
          {"type":"file","oid":"abc","size":5,"path":"sub/config.pbtxt"},
          {"type":"file","oid":"def","size":7,"path":"sub/x.pt2","lfs":{"oid":"0123","size":7}},
          {"type":"file","oid":"def","size":7,"path":"other.pt2"}])",
      "sub");
  REQUIRE(files.size() == 2);
  CHECK(files[0].path == "config.pbtxt");
  CHECK(files[0].validator == "abc");
  CHECK(files[1].validator == "0123");
  CHECK(files[1].bytes == 7);
  for (const char* wrong :
       {"", "{}", "[1]", R"([{"type":"file"}])", R"([{"type":"file","path":1,"oid":"","size":1}])",
        R"([{"type":"file","path":"a","oid":"","size":-1}])", R"([{"type":"file","path":"a","oid":"","size":1e300}])"})
    CHECK_THROWS_AS(parse_tree(wrong, ""), Error);
}

}  // namespace
}  // namespace sconce::server::registry
