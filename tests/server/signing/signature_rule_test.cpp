#include "server/signing/signature_rule.h"

#include <doctest/doctest.h>

#include <array>

#include "sconce/error.h"
#include "server/signing/sign_file.h"
#include "tests/errors.h"
#include "tests/server/signing/signing_keys.h"

namespace sconce::server::signing {

using namespace sconce::test;

namespace {

struct Ruled {
  const TempFolder folder;
  const std::array<std::string, 1> files = {folder.write("public.pem", kFirstPublic).string()};
  SignatureRule rule{files};
  const std::filesystem::path file = folder.write("library.so", "content");

  void sign(const std::string& pem) const { sign_beside(file, private_key(pem), signature_beside(file)); }
  bool good() const {
    return !code_of([&] { (void)rule.read(file); });
  }
};

}  // namespace

TEST_CASE("signature rule: without keys, nothing need be signed") {
  const SignatureRule rule;
  CHECK(!rule.on());
  CHECK(rule.verified_copy("/any/file") == "/any/file");
  rule.refuse_unsigned("anything");
}

TEST_CASE("signature rule: keys rotate when their file is read again") {
  Ruled made;
  CHECK(
      contains(error_from(ErrorCode::kForbidden, [&] { made.rule.refuse_unsigned("a thing"); }), "a thing cannot be"));
  made.sign(kFirst);
  CHECK(made.good());
  made.folder.write("public.pem", kFirstPublic + kSecondPublic);
  made.sign(kSecond);
  CHECK(!made.good());
  made.rule.refresh(true);
  CHECK(made.good());
  made.folder.write("public.pem", kSecondPublic);
  made.rule.refresh();
  made.sign(kFirst);
  CHECK(!made.good());
}

TEST_CASE("signature rule: a bad file leaves the keys as they were") {
  Ruled made;
  made.sign(kFirst);
  for (const std::string& bad : {std::string(), std::string("no key"), kFirst}) {
    made.folder.write("public.pem", bad);
    made.rule.refresh(true);
    CHECK(made.good());
  }
  std::filesystem::remove(made.files[0]);
  made.rule.refresh(true);
  CHECK(made.good());
  made.folder.write("public.pem", kSecondPublic);
  made.rule.refresh();
  CHECK(!made.good());
  CHECK(contains(error_from([&] { SignatureRule(std::array{made.file.string()}); }), "require_signature"));
}

TEST_CASE("signature rule: equal bytes have one copy, which stays as it was") {
  Ruled made;
  made.sign(kFirst);
  const std::filesystem::path copy = made.rule.verified_copy(made.file);
  CHECK(copy != made.file);
  CHECK(made.rule.verified_copy(made.file) == copy);
  made.folder.write("library.so", "another");
  CHECK(content_of(copy) == "content");
  CHECK(code_of([&] { (void)made.rule.verified_copy(made.file); }) == ErrorCode::kForbidden);
}

}  // namespace sconce::server::signing
