// Files that are used only if their signature is good. The file is read once, into memory that nobody can change: what
// was compared is what is used. Nothing of it is parsed before; of an archive, its end is looked at for a signature.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "server/signing/keys.h"
#include "server/signing/statement.h"
#include "server/support/files/private_copy.h"

namespace sconce::server {

struct Verified {
  Statement statement;
  std::string key_id, key_file;  // of the key by which the signature is good
};

// "x.pt2" -> "x.pt2.sig"
std::filesystem::path signature_beside(const std::filesystem::path& file);

// kForbidden: the text is no signature, or none by these keys.
Verified verify_bundle(std::string_view bundle, std::span<const Key> keys);
// beside: the signature that came with the bytes; nullopt: it must be inside them. kForbidden with the reason.
Verified verify_bytes(std::span<const std::byte> bytes, const std::optional<Verified>& beside,
                      std::span<const Key> keys);

struct SignedFile {
  std::shared_ptr<const PrivateCopy> copy;
  Verified verified;
};
// signature: the file that has it; if there is none, it must be inside. Nothing is copied before a signature is good
// and says that the file has these bytes. kForbidden names the file and the reason; kIo.
SignedFile read_signed(const std::filesystem::path& file, const std::filesystem::path& signature,
                       std::span<const Key> keys);

}  // namespace sconce::server
