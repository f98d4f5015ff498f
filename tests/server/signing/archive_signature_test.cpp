#include "server/signing/archive_signature.h"

#include <doctest/doctest.h>

#include "sconce/error.h"
#include "src/support/sha256.h"
#include "tests/errors.h"

namespace sconce::server::signing {
namespace {

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span<const char>(text)); }

// An archive without members: its end record.
const std::string kArchive = std::string("PK\5\6") + std::string(18, '\0');

std::string signed_with(const std::string& bundle) { return kArchive.substr(0, 20) + archive_tail(bundle); }

}  // namespace

TEST_CASE("archive signature: it is found, and what comes before is the archive as it was") {
  for (const std::string& bundle : {std::string(), std::string("{}"), std::string(60'000, 'x')}) {
    const std::string file = signed_with(bundle);
    const auto found = find_archive_signature(bytes(file));
    REQUIRE(found);
    CHECK(found->bundle == bundle);
    CHECK(signed_archive(found->archive) == SignedBytes{kArchive.size(), sha256_of(bytes(kArchive))});
  }
}

TEST_CASE("archive signature: there is none") {
  const std::string file = signed_with("{}");
  for (const std::string& other :
       {std::string(), kArchive, file + "x", file + "\n", file.substr(1), file.substr(0, file.size() - 1),
        file.substr(0, 20) + "x" + file.substr(21), "sconce-signature 00000000\n" + std::string(),
        std::string("sconce-signature 99999999\n"), std::string(30, '\n')})
    CHECK(!find_archive_signature(bytes(other)));
}

TEST_CASE("archive signature: a comment of an archive has room for so much") {
  CHECK(find_archive_signature(bytes(signed_with(std::string(65'535 - 26, 'x')))));
  const std::string said = error_from(ErrorCode::kTooLarge, [] { archive_tail(std::string(65'535 - 25, 'x')); });
  CHECK_MESSAGE(said.find("write it beside the archive") != std::string::npos, said);
}

}  // namespace sconce::server::signing
