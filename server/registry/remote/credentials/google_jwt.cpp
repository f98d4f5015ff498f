// Signed tokens with which a service account's key proves its identity (RFC 7515, RFC 7523).
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <cstring>
#include <memory>

#include "sconce/check.h"
#include "server/registry/remote/credentials/google_providers.h"
#include "server/support/json/base64.h"
#include "server/support/json_document.h"
#include "server/support/text_buffer.h"

namespace sconce::server::registry {
namespace {

struct FreeSigningKey {
  void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
};
struct FreeSigningContext {
  void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
};
struct FreePem {
  void operator()(BIO* bio) const noexcept { BIO_free(bio); }
};

// Base64 for URLs, without padding.
std::string url_base64(std::string_view bytes) {
  TextBuffer buffer;
  append_base64(buffer, reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  std::string text(buffer.view());
  while (text.ends_with('=')) text.pop_back();
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  return text;
}

std::string rs256(const std::string& pem, std::string_view text) {
  const std::unique_ptr<BIO, FreePem> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const std::unique_ptr<EVP_PKEY, FreeSigningKey> key(
      bio ? PEM_read_bio_PrivateKey(
                bio.get(), nullptr, [](char*, int, int, void*) { return -1; }, nullptr)
          : nullptr);
  const char* const type = key ? EVP_PKEY_get0_type_name(key.get()) : nullptr;
  SCONCE_CHECK(type && std::strcmp(type, "RSA") == 0, kInvalidArgument, "its private_key is no RSA key in PEM");
  const std::unique_ptr<EVP_MD_CTX, FreeSigningContext> context(EVP_MD_CTX_new());
  SCONCE_CHECK(context, kOutOfMemory, "no memory for a signature");
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  size_t size = 0;
  SCONCE_CHECK(EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) == 1 &&
                   EVP_DigestSign(context.get(), nullptr, &size, bytes, text.size()) == 1,
               kInvalidArgument, "its private_key cannot sign");
  std::string signature(size, '\0');
  SCONCE_CHECK(
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, bytes, text.size()) == 1,
      kInvalidArgument, "its private_key cannot sign");
  signature.resize(size);
  return signature;
}

}  // namespace

std::string signed_jwt(const OrderedJson& header, const OrderedJson& claims, const std::string& key) {
  std::string text = url_base64(dump(header)) + "." + url_base64(dump(claims));
  return text + "." + url_base64(rs256(key, text));
}

}  // namespace sconce::server::registry
