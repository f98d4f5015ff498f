#include "server/signing/keys.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <cstring>

#include "sconce/check.h"
#include "server/support/files/private_copy.h"
#include "src/support/hex.h"
#include "src/support/sha256.h"

namespace sconce::server::signing {
namespace {

constexpr size_t kLargestFile = 1 << 20, kMaxKeys = 1000, kLongestSignature = 256;

struct FreeBio {
  void operator()(BIO* bio) const noexcept { BIO_free(bio); }
};
using Bio = std::unique_ptr<BIO, FreeBio>;
struct FreeContext {
  void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MD_CTX, FreeContext>;

const unsigned char* raw(std::string_view bytes) noexcept {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

// Prevents OpenSSL from asking for a passphrase on the terminal.
int refuse_passphrase(char*, int, int, void*) noexcept { return -1; }

EVP_PKEY* read_pem(std::string_view pem, Key::Kind kind) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  SCONCE_CHECK(bio, kOutOfMemory, "no memory for a key");
  const auto read = kind == Key::Kind::kPrivate ? PEM_read_bio_PrivateKey : PEM_read_bio_PUBKEY;
  return read(bio.get(), nullptr, refuse_passphrase, nullptr);
}

std::string public_pem(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  SCONCE_CHECK(bio && PEM_write_bio_PUBKEY(bio.get(), key) == 1, kOutOfMemory, "no memory for a key");
  std::string text(4096, '\0');
  const int bytes = BIO_read(bio.get(), text.data(), static_cast<int>(text.size()));
  text.resize(bytes > 0 ? static_cast<size_t>(bytes) : 0);
  return text;
}

bool is_p256(EVP_PKEY* key) noexcept {
  char group[64] = {};
  return EVP_PKEY_get_group_name(key, group, sizeof group, nullptr) == 1 && std::strcmp(group, "prime256v1") == 0;
}

}  // namespace

Key::Key(std::shared_ptr<void> handle, std::string where) : handle_(std::move(handle)), where_(std::move(where)) {
  auto* const key = static_cast<EVP_PKEY*>(handle_.get());
  const char* const type = EVP_PKEY_get0_type_name(key);
  const std::string_view algorithm = type ? type : "unknown";
  hashes_first_ = algorithm == "EC" && is_p256(key);
  SCONCE_CHECK(algorithm == "ED25519" || hashes_first_, kInvalidArgument, where_,
               ": a key must be of Ed25519 or of ECDSA on P-256; there is one of ", algorithm);
  id_ = to_hex(sha256_of(std::as_bytes(std::span<const char>(public_pem(key)))));
}

std::string Key::sign(std::string_view bytes) const {
  const Context context(EVP_MD_CTX_new());
  std::string signature(kLongestSignature, '\0');
  size_t size = signature.size();
  auto* const key = static_cast<EVP_PKEY*>(handle_.get());
  SCONCE_CHECK(
      context &&
          EVP_DigestSignInit(context.get(), nullptr, hashes_first_ ? EVP_sha256() : nullptr, nullptr, key) == 1 &&
          EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, raw(bytes),
                         bytes.size()) == 1,
      kInvalidArgument, where_, ": the key does not sign");
  signature.resize(size);
  return signature;
}

bool Key::verifies(std::string_view bytes, std::string_view signature) const noexcept {
  const Context context(EVP_MD_CTX_new());
  auto* const key = static_cast<EVP_PKEY*>(handle_.get());
  return context &&
         EVP_DigestVerifyInit(context.get(), nullptr, hashes_first_ ? EVP_sha256() : nullptr, nullptr, key) == 1 &&
         EVP_DigestVerify(context.get(), raw(signature), signature.size(), raw(bytes), bytes.size()) == 1;
}

std::vector<Key> read_keys(const std::string& path, Key::Kind kind) {
  const PrivateCopy file(path, kLargestFile);
  const std::string_view text = file.text();
  constexpr std::string_view kBegin = "-----BEGIN ", kEnd = "-----END ", kDashes = "-----";
  const char* const wanted = kind == Key::Kind::kPrivate ? "private" : "public";
  std::vector<Key> keys;
  for (size_t at = 0; (at = text.find(kBegin, at)) != std::string_view::npos;) {
    const size_t last = text.find(kEnd, at);
    const size_t end = last == std::string_view::npos ? last : text.find(kDashes, last + kEnd.size());
    SCONCE_CHECK(end != std::string_view::npos, kInvalidArgument, path, ": a key in PEM has no end");
    SCONCE_CHECK(keys.size() < kMaxKeys, kInvalidArgument, path, " has more than ", kMaxKeys, " keys");
    const size_t size = end + kDashes.size() - at;
    std::shared_ptr<void> handle(read_pem(text.substr(at, size), kind),
                                 [](void* key) { EVP_PKEY_free(static_cast<EVP_PKEY*>(key)); });
    SCONCE_CHECK(handle, kInvalidArgument, path, ": expected ", wanted, " keys in PEM, without a passphrase");
    keys.push_back(Key(std::move(handle), path));
    at += size;
  }
  SCONCE_CHECK(!keys.empty(), kInvalidArgument, path, " has no ", wanted, " key in PEM");
  return keys;
}

}  // namespace sconce::server::signing
