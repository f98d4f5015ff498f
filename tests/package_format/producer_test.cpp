#include "package_format/producer.h"

#include <doctest/doctest.h>

#include "sconce/error.h"
#include "tests/package_format/fixtures.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

std::string producer(const std::string& name, const std::string& source = "") {
  const std::string file = fixture(name);
  return find_producer(ElfImage(bytes_of(file), "m.so"), source, "m.so");
}

}  // namespace

TEST_CASE("producer: by what the library exports, and by its source") {
  CHECK(producer("model_2_6") == "torch 2.6");
  CHECK(producer("model_2_7") == "torch 2.7");
  CHECK(producer("model_2_8") == "torch 2.8 or 2.9");
  CHECK(producer("model_2_10") == "torch 2.10 to 2.12");
  CHECK(producer("model_2_10", constructor(10, {}, 0, {{"w", "w"}}, specs(0))) == "torch 2.10");
  CHECK(producer("model_2_10", constructor(11, {}, 0, {{"w", "w"}}, specs(0))) == "torch 2.11 or 2.12");
  CHECK(producer("model_2_13") == "torch 2.13");
  CHECK(producer("model_2_14") == "torch 2.14");
  CHECK(producer("model_2_15") == "torch 2.15 or later");
}

TEST_CASE("producer: versions before 2.6 and libraries that are no model are refused by name") {
  CHECK_THROWS_WITH_AS(producer("model_2_5"), doctest::Contains("before 2.6"), Error);
  std::string file = fixture("model_2_15");
  for (size_t at = file.find("AOTInductor"); at != file.npos; at = file.find("AOTInductor", at)) file[at] = 'B';
  CHECK_THROWS_WITH_AS(find_producer(ElfImage(bytes_of(file), "dir/m.so"), "", "dir/m.so"),
                       doctest::Contains("not an AOTInductor model: dir/m.so"), Error);
}
