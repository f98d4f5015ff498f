#include "server/signing/sign_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "sconce/check.h"
#include "sconce/package.h"
#include "server/signing/archive_signature.h"
#include "server/signing/envelope.h"
#include "server/signing/stream_digests.h"
#include "server/support/files/private_copy.h"
#include "src/support/error_context.h"
#include "src/support/sha256.h"

namespace sconce::server::signing {
namespace {

namespace fs = std::filesystem;

// Names a single file in the manifest, as model_signing does.
constexpr const char* kItself = ".";
// Bytes of a stream that are read at once.
constexpr size_t kBlock = size_t{1} << 20;

bool write_all(int file, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// Replaces the file atomically: it has either all new bytes or the old ones. Its permissions are preserved.
void write_whole(const fs::path& path, std::initializer_list<std::string_view> parts) {
  fs::path unfinished = path;
  unfinished += ".unfinished";
  std::error_code ignored;
  fs::remove(unfinished, ignored);
  struct stat before {};
  const bool replaces = ::stat(path.c_str(), &before) == 0;
  // Does not follow a link that another process creates meanwhile.
  const Descriptor file(
      ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, replaces ? 0600 : 0666));
  SCONCE_CHECK(file.get() >= 0, kIo, "cannot write ", unfinished.native(), ": ", std::strerror(errno));
  bool written = !replaces || ::fchmod(file.get(), before.st_mode & 0777) == 0;
  for (const std::string_view part : parts) written = written && write_all(file.get(), part);
  if (written && ::rename(unfinished.c_str(), path.c_str()) == 0) return;
  const std::string reason = std::strerror(errno);
  fs::remove(unfinished, ignored);
  SCONCE_FAIL(kIo, "cannot write ", path.native(), ": ", reason);
}

bool is_package(const fs::path& file) { return file.extension() == ".pt2"; }

void add_members(const PrivateCopy& copy, const fs::path& file, Statement& statement) {
  const auto package = Package::open(copy.bytes(), nullptr, file.native());
  package->verify();
  size_t member = 0;
  for (const PackageMember& one : package->members())
    statement.resources.push_back({one.path, sha256_of(package->content(member++))});
}

Statement describe(const PrivateCopy& copy, const fs::path& file) {
  Statement statement{.subject = file.filename().string(), .resources = {}, .file = {}, .head = {}};
  const std::optional<ArchiveSignature> inside = find_archive_signature(copy.bytes());
  if (inside) {
    statement.file = signed_archive(inside->archive);
  } else {
    StreamDigests digests;
    digests.update(copy.bytes());
    statement.file = digests.whole();
    statement.head = digests.head();
  }
  if (is_package(file))
    add_members(copy, file, statement);
  else
    statement.resources.push_back({kItself, sha256_of(copy.bytes())});
  return statement;
}

void check_file(const fs::path& file) {
  std::error_code ignored;
  SCONCE_CHECK(!fs::is_directory(file, ignored), kInvalidArgument, file.native(),
               " is a directory, which cannot be signed: `sconce pack` makes a package of it");
}

}  // namespace

Statement describe_file(const fs::path& file) {
  const ErrorContext context(file.native());
  check_file(file);
  return describe(PrivateCopy(file), file);
}

void sign_beside(const fs::path& file, const Key& key, const fs::path& signature) {
  const ErrorContext context(file.native());
  check_file(file);
  const PrivateCopy copy(file);
  Statement statement = describe(copy, file);
  // Here the file counts with all its bytes, including a signature inside.
  if (find_archive_signature(copy.bytes())) statement.file = SignedBytes{copy.bytes().size(), sha256_of(copy.bytes())};
  write_whole(signature, {sign_payload(statement_text(std::move(statement)), key)});
}

void sign_inside(const fs::path& file, const Key& key) {
  const ErrorContext context(file.native());
  check_file(file);
  SCONCE_CHECK(is_package(file), kInvalidArgument, "only a package (.pt2) can hold its signature");
  const PrivateCopy copy(file);
  const std::string bundle = sign_payload(statement_text(describe(copy, file)), key);
  std::string_view archive = copy.text();
  const std::optional<ArchiveSignature> inside = find_archive_signature(copy.bytes());
  if (inside) {
    archive = archive.substr(0, inside->archive.size());
  } else {
    SCONCE_CHECK(archive.ends_with(std::string_view("\0\0", 2)) && archive.size() >= 22 &&
                     archive.substr(archive.size() - 22).starts_with("PK\5\6"),
                 kInvalidArgument, "the archive has a comment, which the signature would replace");
    archive.remove_suffix(2);
  }
  write_whole(file, {archive, archive_tail(bundle)});
}

SignedStream sign_stream(const std::string& name, const std::function<size_t(std::span<std::byte>)>& next,
                         const std::string& key_file) {
  const std::vector<Key> keys = read_keys(key_file, Key::Kind::kPrivate);
  StreamDigests digests;
  std::vector<std::byte> block(kBlock);
  while (const size_t bytes = next(block)) digests.update({block.data(), bytes});
  Statement statement;
  statement.subject = name;
  statement.file = digests.whole();
  statement.head = digests.head();
  const Sha256Digest digest = statement.file->digest;
  statement.resources.push_back({kItself, digest});
  return {digest, sign_payload(statement_text(std::move(statement)), keys.front())};
}

}  // namespace sconce::server::signing
