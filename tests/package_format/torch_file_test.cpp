#include "package_format/torch_file.h"

#include <doctest/doctest.h>

#include "sconce/error.h"
#include "tests/package_format/raw_zip.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

const std::string kPickle =
    "\x80\x02"
    "ctorch._utils\n_rebuild_parameter\nq\x01"
    "ctorch._utils\n_rebuild_tensor_v2\nq\x02.";

RawZip file(const std::string& pickle) {
  return {{{"archive/data.pkl", pickle},
           {"archive/byteorder", "little"},
           {"archive/data/0", "0123456789abcdef"},
           {"archive/version", "3\n"}}};
}

}  // namespace

TEST_CASE("torch file: the storage of a plain tensor or Parameter, in place") {
  for (const std::string& pickle : {kPickle, std::string("ctorch._utils\n_rebuild_tensor_v2\n.")}) {
    const std::string bytes = build(file(pickle));
    const auto storage = torch_file_storage(bytes_of(bytes), "weight_0");
    CHECK(storage.size() == 16);
    CHECK(std::string(reinterpret_cast<const char*>(storage.data()), 16) == "0123456789abcdef");
  }
}

TEST_CASE("torch file: everything else is refused by name") {
  const auto refused = [](const std::string& bytes, const char* reason) {
    CHECK_THROWS_WITH_AS(torch_file_storage(bytes_of(bytes), "weight_0"), doctest::Contains(reason), Error);
    CHECK_THROWS_WITH_AS(torch_file_storage(bytes_of(bytes), "weight_0"), doctest::Contains("weight_0"), Error);
  };
  refused(build(file("ctorch._utils\n_rebuild_qtensor\n.")), "something else than one plain tensor");
  refused(build(file("ctorch._utils\n_rebuild_wrapper_subclass\n" + kPickle)), "something else than one plain tensor");
  refused(build(file("ctorch._utils\n_rebuild_tensor_v2\nctorch._utils\n_rebuild_tensor_v2\n.")), "something else");
  refused(build(file("cos\nsystem\n.")), "something else than one plain tensor");
  refused("\x80\x02}q\x01.", "ZIP format");
  refused("", "ZIP format");
  RawZip two = file(kPickle);
  two.members.push_back({"archive/data/1", "x"});
  refused(build(two), "more than one storage");
  RawZip big = file(kPickle);
  big.members[1].content = "big";
  refused(build(big), "little-endian");
  RawZip packed = file(kPickle);
  packed.members[2].deflated = true;
  refused(build(packed), "compressed");
  RawZip none = file(kPickle);
  none.members.erase(none.members.begin() + 2);
  refused(build(none), "lacks its pickle or storage");
}
