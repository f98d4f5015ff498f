#include "server/http/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <new>

#include "sconce/check.h"

namespace sconce::server::http {
namespace {

std::string_view last_reason() noexcept {
  const char* const text = ERR_reason_error_string(ERR_peek_error());
  return text != nullptr ? text : "unknown error";
}

// Prevents OpenSSL from asking for a key's passphrase on the terminal.
int no_passphrase(char*, int, int, void*) noexcept { return 0; }

void check_readable(const std::string& file, const char* what) {
  SCONCE_CHECK(::access(file.c_str(), R_OK) == 0, kIo, what, " cannot be read: ", file);
}

void use_certificate(SSL_CTX* context, const std::string& certificate, const std::string& key) {
  check_readable(certificate, "the certificate");
  check_readable(key, "the certificate's key");
  SCONCE_CHECK(SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) == 1, kInvalidArgument,
               "not a certificate in PEM: ", certificate, ": ", last_reason());
  SCONCE_CHECK(SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) == 1, kInvalidArgument,
               "not the certificate's key, in PEM and without a passphrase: ", key, ": ", last_reason());
  SCONCE_CHECK(SSL_CTX_check_private_key(context) == 1, kInvalidArgument,
               "key and certificate do not belong together: ", key, " and ", certificate);
}

void trust(SSL_CTX* context, const std::string& ca) {
  check_readable(ca, "the certificates to trust");
  SCONCE_CHECK(SSL_CTX_load_verify_file(context, ca.c_str()) == 1, kInvalidArgument, "no certificates in PEM: ", ca,
               ": ", last_reason());
}

SSL_CTX* new_context(const SSL_METHOD* method) {
  ERR_clear_error();
  SSL_CTX* const context = SSL_CTX_new(method);
  if (context == nullptr) throw std::bad_alloc();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(context, TlsContext::kCiphers);
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(context,
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_default_passwd_cb(context, no_passphrase);
  return context;
}

int clamped(size_t bytes) noexcept { return static_cast<int>(std::min<size_t>(bytes, INT_MAX)); }

}  // namespace

void TlsContext::Free::operator()(ssl_ctx_st* context) const noexcept { SSL_CTX_free(context); }

std::shared_ptr<const TlsContext> TlsContext::of_server(const std::string& certificate, const std::string& key,
                                                        const std::string& client_ca, std::string_view sessions) {
  Handle handle(new_context(TLS_server_method()));
  use_certificate(handle.get(), certificate, key);
  SSL_CTX_set_session_id_context(handle.get(), reinterpret_cast<const unsigned char*>(sessions.data()),
                                 static_cast<unsigned>(sessions.size()));
  if (!client_ca.empty()) {
    trust(handle.get(), client_ca);
    // The issuers by which clients choose their certificate.
    SSL_CTX_set_client_CA_list(handle.get(), SSL_load_client_CA_file(client_ca.c_str()));
    SSL_CTX_set_verify(handle.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(handle)));
}

void TlsContext::check_client(const std::string& ca, const std::string& certificate, const std::string& key) {
  SCONCE_CHECK(certificate.empty() == key.empty(), kInvalidArgument, "a certificate and its key go together");
  if (ca.empty() && certificate.empty()) return;
  const Handle handle(new_context(TLS_client_method()));
  if (!ca.empty()) trust(handle.get(), ca);
  if (!certificate.empty()) use_certificate(handle.get(), certificate, key);
}

void TlsStream::Free::operator()(ssl_st* stream) const noexcept { SSL_free(stream); }

TlsStream::TlsStream(const TlsContext& context, int descriptor) : handle_(SSL_new(context.handle_.get())) {
  if (!handle_ || SSL_set_fd(handle_.get(), descriptor) != 1) throw std::bad_alloc();
  SSL_set_accept_state(handle_.get());
}

// Interprets an operation's result; call this directly after it.
TlsStream::Step TlsStream::step(int result) noexcept {
  if (result > 0) return {static_cast<size_t>(result)};
  switch (SSL_get_error(handle_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return {0, Want::kReadable};
    case SSL_ERROR_WANT_WRITE:
      return {0, Want::kWritable};
    case SSL_ERROR_ZERO_RETURN:
      return {0, Want::kNothing, true};
    case SSL_ERROR_SYSCALL:
      reason_ = "the connection was closed";
      break;
    default:
      reason_ = last_reason();
  }
  failed_ = true;
  return {};
}

// Repeats an operation that a signal interrupted. In that case OpenSSL asks to wait for the socket, but with
// edge-triggered notices the thread would wait in vain for bytes that have already arrived.
template <class Operation>
TlsStream::Step TlsStream::uninterrupted(const Operation& operation) noexcept {
  for (;;) {
    ERR_clear_error();
    errno = 0;
    const Step made = step(operation());
    if (made.want == Want::kNothing || made.bytes > 0 || errno != EINTR) return made;
  }
}

TlsStream::Step TlsStream::handshake() noexcept {
  return uninterrupted([&] { return SSL_do_handshake(handle_.get()); });
}

TlsStream::Step TlsStream::read(void* at, size_t room) noexcept {
  return uninterrupted([&] { return SSL_read(handle_.get(), at, clamped(room)); });
}

TlsStream::Step TlsStream::write(const void* at, size_t bytes) noexcept {
  return uninterrupted([&] { return SSL_write(handle_.get(), at, clamped(bytes)); });
}

bool TlsStream::has_data() noexcept {
  if (failed_ || SSL_pending(handle_.get()) > 0) return true;
  char byte;
  return uninterrupted([&] { return SSL_peek(handle_.get(), &byte, 1); }).want == Want::kNothing;
}

void TlsStream::finish() noexcept {
  if (failed_) return;
  ERR_clear_error();
  SSL_shutdown(handle_.get());
}

std::string TlsStream::problem() const {
  const long result = SSL_get_verify_result(handle_.get());
  if (result != X509_V_OK) return "the certificate was refused: " + std::string(X509_verify_cert_error_string(result));
  return std::string(reason_);
}

}  // namespace sconce::server::http
