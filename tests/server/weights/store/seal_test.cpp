#include "server/weights/store/seal.h"

#include <doctest/doctest.h>

#include "sconce/error.h"
#include "tests/errors.h"
#include "tests/files.h"

namespace sconce::server::weights {
namespace {

const std::string kText = "{\"a\": 1}\n";

Seal seal_with(const std::string& key) {
  const TempFolder folder;
  return Seal(folder.write("key", key).string());
}

std::string refusal(const Seal& seal, const std::string& text, std::string_view place = "net/1") {
  return error_from(ErrorCode::kCorruptPackage, [&] { (void)seal.opened(text, place, "journal"); });
}

}  // namespace

TEST_CASE("seal: a text is known again, and with any byte changed it is not") {
  const Seal seal = seal_with(std::string(32, 'k'));
  const std::string sealed = seal.sealed(kText, "net/1");
  CHECK(seal.opened(sealed, "net/1", "journal") == kText);
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    CHECK_MESSAGE(refusal(seal, changed) != "no error", i);
    CHECK(refusal(seal, sealed.substr(0, i)) != "no error");
  }
  CHECK(refusal(seal, sealed + "x") != "no error");
  CHECK(refusal(seal, sealed + sealed) != "no error");
  CHECK(refusal(seal, kText + sealed) != "no error");
}

TEST_CASE("seal: of another key, of another place, and none") {
  const Seal seal = seal_with(std::string(32, 'k') + "\n"), other = seal_with(std::string(33, 'k'));
  CHECK(refusal(seal, other.sealed(kText, "net/1")).find("not by weights_store_key") != std::string::npos);
  CHECK(refusal(seal, seal.sealed(kText, "net/2")).find("not by weights_store_key") != std::string::npos);
  CHECK(refusal(seal, kText).find("it has no seal") != std::string::npos);
}

TEST_CASE("seal: without a key, texts are as they are, and seals are passed over") {
  const Seal none;
  CHECK(!none.on());
  CHECK(none.sealed(kText, "net/1") == kText);
  CHECK(none.opened(kText, "net/1", "journal") == kText);
  CHECK(none.opened(seal_with(std::string(32, 'k')).sealed(kText, "net/1"), "net/1", "journal") == kText);
}

TEST_CASE("seal: a key that could be guessed") {
  CHECK(error_from(ErrorCode::kInvalidArgument, [] {
          seal_with(std::string(31, 'k'));
        }).find("at least 32 random bytes") != std::string::npos);
  CHECK(error_from(ErrorCode::kIo, [] { Seal("/nowhere/key"); }).find("/nowhere/key") != std::string::npos);
}

}  // namespace sconce::server::weights
