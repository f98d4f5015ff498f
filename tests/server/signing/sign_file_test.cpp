#include "server/signing/sign_file.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "fake_package.h"
#include "sconce/error.h"
#include "sconce/package.h"
#include "server/signing/signed_file.h"
#include "src/support/sha256.h"
#include "tests/errors.h"
#include "tests/server/signing/signing_keys.h"

namespace sconce::server::signing {

using namespace sconce::test;

namespace {

struct SignedPackage {
  const TempFolder folder;
  const std::filesystem::path file = folder / "net.pt2";
  const Key key = private_key(kFirst);
  const std::vector<Key> keys = public_keys(kFirstPublic);
  SignedPackage() { fake::write_package(file); }

  Verified verified() const { return read_signed(file, signature_beside(file), keys).verified; }
};

}  // namespace

TEST_CASE("sign: a package beside and inside, with the digests of all members") {
  const SignedPackage made;
  const auto package = Package::open(made.file);
  const std::vector<PackageMember> members = package->members();
  const auto check = [&] {
    const Statement statement = made.verified().statement;
    CHECK(statement.subject == "net.pt2");
    REQUIRE(statement.resources.size() == members.size());
    for (size_t i = 0; i < members.size(); ++i) {
      const auto found = std::find_if(statement.resources.begin(), statement.resources.end(),
                                      [&](const SignedResource& one) { return one.name == members[i].path; });
      REQUIRE(found != statement.resources.end());
      CHECK(found->digest == sha256_of(package->content(i)));
      CHECK(members[i].path == "net/" + members[i].name);
    }
  };
  const std::string before = content_of(made.file);
  sign_beside(made.file, made.key, signature_beside(made.file));
  check();
  CHECK(content_of(made.file) == before);
  std::filesystem::remove(signature_beside(made.file));
  sign_inside(made.file, made.key);
  check();
  const std::string once = content_of(made.file);
  CHECK(once.substr(0, before.size() - 2) == before.substr(0, before.size() - 2));
  // Readers find the members where they were.
  const auto signed_package = Package::open(made.file);
  signed_package->verify();
  CHECK(signed_package->members().size() == members.size());
  // Again, and by another key: the earlier signature goes.
  sign_inside(made.file, made.key);
  CHECK(content_of(made.file) == once);
  sign_inside(made.file, private_key(kSecond));
  CHECK(code_of([&] { made.verified(); }) == ErrorCode::kForbidden);
  // Beside one that has a signature inside: of all its bytes.
  sign_beside(made.file, made.key, signature_beside(made.file));
  check();
}

TEST_CASE("sign: other files have one resource") {
  const SignedPackage made;
  const auto file = made.folder.write("weights.bin", "12345");
  sign_beside(file, made.key, made.folder / "weights.sig");
  const Statement statement = read_signed(file, made.folder / "weights.sig", made.keys).verified.statement;
  REQUIRE(statement.resources.size() == 1);
  CHECK(statement.resources[0].name == ".");
  CHECK(statement.file->bytes == 5);
  CHECK(!statement.head);
  CHECK(describe_file(file).file == statement.file);
}

TEST_CASE("sign: who may read a package stays as it was, and a link in its way is not followed") {
  const SignedPackage made;
  namespace fs = std::filesystem;
  const auto others = made.folder.write("others", "as it was");
  for (const fs::perms mode : {fs::perms(0600), fs::perms(0640), fs::perms(0755)}) {
    fs::permissions(made.file, mode);
    fs::create_symlink(others, made.folder / "net.pt2.unfinished");
    sign_inside(made.file, made.key);
    CHECK(fs::status(made.file).permissions() == mode);
    CHECK(!fs::exists(made.folder / "net.pt2.unfinished"));
  }
  CHECK(content_of(others) == "as it was");
  CHECK(made.verified().key_id == made.key.id());
}

TEST_CASE("sign: a stream is signed like a file with its bytes") {
  const TempFolder folder;
  const std::string content = std::string("\x02\0\0\0\0\0\0\0{}", 10) + "weights";
  size_t at = 0;
  const auto next = [&](std::span<std::byte> block) {
    const size_t bytes = std::min({block.size(), content.size() - at, size_t{3}});
    std::memcpy(block.data(), content.data() + at, bytes);
    at += bytes;
    return bytes;
  };
  const SignedStream made = sign_stream("w.safetensors", next, folder.write("key.pem", kFirst).native());
  const Verified verified = verify_bundle(made.bundle, public_keys(kFirstPublic));
  CHECK(verified.statement.subject == "w.safetensors");
  CHECK(made.digest == sha256_of(std::as_bytes(std::span<const char>(content))));
  CHECK(verified.statement.file == SignedBytes{content.size(), made.digest});
  REQUIRE(verified.statement.head);
  CHECK(verified.statement.head->bytes == 10);
  CHECK(verified.statement.resources.size() == 1);
  CHECK(code_of([&] { sign_stream("w", next, (folder / "absent.pem").native()); }) == ErrorCode::kIo);
}

TEST_CASE("sign: what cannot be signed") {
  const SignedPackage made;
  const auto weights = made.folder.write("weights.bin", "12345");
  CHECK(contains(error_from([&] { sign_inside(weights, made.key); }), "only a package"));
  CHECK(contains(error_from([&] { sign_beside(made.folder.path(), made.key, made.folder / "x"); }), "sconce pack"));
  CHECK(code_of([&] { sign_beside(made.folder / "absent", made.key, made.folder / "x"); }) == ErrorCode::kIo);
  CHECK(code_of([&] { sign_beside(weights, made.key, made.folder / "no/x"); }) == ErrorCode::kIo);
  // A damaged member: nobody should vouch for it.
  std::string content = content_of(made.file);
  const size_t at = content.find("\177ELF");
  REQUIRE(at != std::string::npos);
  content[at + 100] = static_cast<char>(content[at + 100] ^ 1);
  made.folder.write("net.pt2", content);
  CHECK(code_of([&] { sign_beside(made.file, made.key, made.folder / "x"); }) == ErrorCode::kCorruptPackage);
  CHECK(!std::filesystem::exists(made.folder / "x"));
  content[at + 100] = static_cast<char>(content[at + 100] ^ 1);
  content[content.size() - 2] = 1;
  made.folder.write("net.pt2", content + "c");
  CHECK(contains(error_from([&] { sign_inside(made.file, made.key); }), "has a comment"));
}

}  // namespace sconce::server::signing
