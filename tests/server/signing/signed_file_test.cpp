#include "server/signing/signed_file.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "package_format/archive/archive_writer.h"
#include "sconce/error.h"
#include "server/signing/archive_signature.h"
#include "server/signing/envelope.h"
#include "src/support/sha256.h"
#include "tests/errors.h"
#include "tests/server/signing/signing_keys.h"

namespace sconce::server::signing {

using namespace sconce::test;

namespace {

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span<const char>(text)); }

// A small archive as libtorch writes them.
std::string archive(bool zip64 = false, bool swapped = false) {
  const TempFolder folder;
  ArchiveWriter writer(folder / "net.pt2", {.zip64 = zip64});
  const std::string first = "the first member", second = "the other member";
  writer.add("net/a", swapped ? second : first);
  writer.add("net/b", swapped ? first : second);
  writer.add("net/archive_format", "pt2");
  writer.finish();
  return content_of(folder / "net.pt2");
}

std::string bundle_of(const std::string& file, const std::string& pem) {
  Statement statement;
  statement.subject = "net.pt2";
  statement.resources = {{".", sha256_of(bytes(file))}};
  statement.file = SignedBytes{file.size(), sha256_of(bytes(file))};
  return sign_payload(statement_text(statement), private_key(pem));
}

std::string with_inside(const std::string& file, const std::string& pem) {
  return file.substr(0, file.size() - 2) + archive_tail(bundle_of(file, pem));
}

// Why the file is refused; "": it is not.
std::string refusal(const std::string& file, const std::optional<Verified>& beside, std::span<const Key> keys) {
  try {
    verify_bytes(bytes(file), beside, keys);
  } catch (const Error& problem) {
    CHECK(problem.code() == ErrorCode::kForbidden);
    return problem.what();
  }
  return {};
}

struct Signed {
  std::string file = archive();
  std::vector<Key> keys = public_keys(kFirstPublic);
  Verified beside = verify_bundle(bundle_of(file, kFirst), keys);
  std::string inside = with_inside(file, kFirst);
};

}  // namespace

TEST_CASE("signed file: what was signed is good, beside and inside") {
  const Signed made;
  CHECK(refusal(made.file, made.beside, made.keys).empty());
  CHECK(refusal(made.inside, std::nullopt, made.keys).empty());
  CHECK(verify_bytes(bytes(made.inside), std::nullopt, made.keys).key_id == kFirstId);
}

TEST_CASE("signed file: every changed byte is noticed") {
  const Signed made;
  const auto check = [&](std::string file, const std::optional<Verified>& beside) {
    for (size_t at = 0; at < file.size(); ++at) {
      for (const int change : {1, 0x20, 0xff}) {
        file[at] = static_cast<char>(file[at] ^ change);
        CHECK_MESSAGE(!refusal(file, beside, made.keys).empty(), at);
        file[at] = static_cast<char>(file[at] ^ change);
      }
    }
  };
  check(made.file, made.beside);
  check(made.inside, std::nullopt);
}

TEST_CASE("signed file: every changed byte of what is signed in a .sig file is noticed") {
  const Signed made;
  std::string bundle = bundle_of(made.file, kFirst);
  const Envelope envelope = parse_bundle(bundle);
  for (size_t at = 0; at < bundle.size(); ++at) {
    bundle[at] = static_cast<char>(bundle[at] ^ 1);
    // What is around the payload and its signature may be changed: it says nothing.
    std::optional<Verified> verified;
    try {
      verified = verify_bundle(bundle, made.keys);
    } catch (const Error& problem) {
      CHECK(problem.code() == ErrorCode::kForbidden);
    }
    if (verified) CHECK(parse_bundle(bundle).payload == envelope.payload);
    bundle[at] = static_cast<char>(bundle[at] ^ 1);
  }
}

TEST_CASE("signed file: cut off, and with more behind it") {
  const Signed made;
  for (size_t size = 0; size < made.inside.size(); ++size)
    CHECK(!refusal(made.inside.substr(0, size), std::nullopt, made.keys).empty());
  for (size_t size = 0; size < made.file.size(); ++size)
    CHECK(!refusal(made.file.substr(0, size), made.beside, made.keys).empty());
  for (const std::string& more : {std::string("x"), std::string("\n"), std::string(1, '\0'), made.file, made.inside}) {
    CHECK(!refusal(made.file + more, made.beside, made.keys).empty());
    CHECK(!refusal("x" + more, made.beside, made.keys).empty());
  }
  // In front of an archive with a signature that ends as it did.
  for (const std::string& before : {std::string("x"), made.file, made.inside})
    CHECK(!refusal(before + made.inside, std::nullopt, made.keys).empty());
}

TEST_CASE("signed file: the signature of another archive") {
  const Signed made;
  const std::string swapped = archive(false, true), wide = archive(true);
  CHECK(!refusal(swapped, made.beside, made.keys).empty());
  CHECK(!refusal(wide, made.beside, made.keys).empty());
  const std::string tail = archive_tail(bundle_of(made.file, kFirst));
  CHECK(!refusal(swapped.substr(0, swapped.size() - 2) + tail, std::nullopt, made.keys).empty());
  CHECK(refusal(with_inside(wide, kFirst), std::nullopt, made.keys).empty());
  // A signature within the comment of another one, and two of them.
  CHECK(!refusal(made.inside.substr(0, made.inside.size() - 2) + tail, std::nullopt, made.keys).empty());
  CHECK(!refusal(made.inside + tail.substr(2), std::nullopt, made.keys).empty());
}

TEST_CASE("signed file: a member that is there twice is not hidden behind the signature") {
  const Signed made;
  // Whoever adds a member changes bytes before the end record, wherever readers look for it.
  std::string twice = made.file;
  twice.insert(0, made.file.substr(0, 100));
  CHECK(!refusal(twice, made.beside, made.keys).empty());
  CHECK(!refusal(twice.substr(0, twice.size() - 2) + made.inside.substr(made.file.size() - 2), std::nullopt, made.keys)
             .empty());
}

TEST_CASE("signed file: by which keys") {
  const Signed made;
  CHECK(refusal(made.inside, std::nullopt, public_keys(kSecondPublic)).find("not by a key that is asked for") !=
        std::string::npos);
  CHECK(refusal(made.inside, std::nullopt, public_keys(kSecondPublic + kEcdsaPublic + kFirstPublic)).empty());
  CHECK(!refusal(made.inside, std::nullopt, {}).empty());
  CHECK(refusal(with_inside(made.file, kEcdsa), std::nullopt, public_keys(kEcdsaPublic)).empty());
}

TEST_CASE("signed file: read from the disk") {
  const Signed made;
  const TempFolder folder;
  const auto file = folder.write("net.pt2", made.file), signature = folder / "net.pt2.sig";
  const auto read = [&] { return read_signed(file, signature_beside(file), made.keys); };
  const std::string none = error_from(ErrorCode::kForbidden, read);
  CHECK(contains(none, "neither beside it (.sig) nor inside"));
  CHECK(contains(none, file.native()));
  folder.write("net.pt2.sig", bundle_of(made.file, kFirst));
  CHECK(read().copy->text() == made.file);
  folder.write("net.pt2", archive(false, true));
  CHECK(contains(error_from(ErrorCode::kForbidden, read), "not those that were signed"));
  // One that is beside goes before one that is inside.
  folder.write("net.pt2", made.inside);
  CHECK(contains(error_from(ErrorCode::kForbidden, read), "were signed"));
  std::filesystem::remove(signature);
  CHECK(read().copy->text() == made.inside);
  std::filesystem::remove(file);
  CHECK(code_of(read) == ErrorCode::kIo);
}

TEST_CASE("signed file: one of eight terabytes takes no memory before its signature says so") {
  const Signed made;
  const TempFolder folder;
  constexpr uint64_t kBytes = uint64_t{1} << 43;  // a hole; as much as file systems let a file have
  const auto file = folder.write("net.pt2", made.file);
  const auto read = [&] { return read_signed(file, signature_beside(file), made.keys); };
  std::filesystem::resize_file(file, kBytes);
  CHECK(contains(error_from(ErrorCode::kForbidden, read), "neither beside it (.sig) nor inside"));
  folder.write("net.pt2.sig", bundle_of(made.file, kFirst));
  CHECK(contains(error_from(ErrorCode::kForbidden, read), "it has 8796093022208 bytes, but "));
  std::filesystem::remove(signature_beside(file));
  // The end is that of a signed archive, with a hole before it.
  std::ofstream(file, std::ios::binary | std::ios::in).seekp(kBytes - made.inside.size()) << made.inside;
  CHECK(std::filesystem::file_size(file) == kBytes);
  CHECK(contains(error_from(ErrorCode::kForbidden, read), std::to_string(made.file.size()) + " were signed"));
}

}  // namespace sconce::server::signing
