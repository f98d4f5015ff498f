// Files that are used only with a valid signature. The file is read once, into memory that no other process can change:
// the verified bytes are the used bytes. Nothing is parsed before verification, except the end of an archive, to find
// the signature.
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

namespace sconce::server::signing {

struct Verified {
  Statement statement;
  std::string key_id, key_file;  // of the key whose signature is valid
};

// "x.pt2" -> "x.pt2.sig"
std::filesystem::path signature_beside(const std::filesystem::path& file);

// kForbidden: the text is not a signature, or not one by these keys.
Verified verify_bundle(std::string_view bundle, std::span<const Key> keys);
// beside: the signature that accompanies the bytes; nullopt: it must be inside them. kForbidden with the reason.
Verified verify_bytes(std::span<const std::byte> bytes, const std::optional<Verified>& beside,
                      std::span<const Key> keys);

struct SignedFile {
  std::shared_ptr<const PrivateCopy> copy;
  Verified verified;
};
// signature: path of the signature file; if the file does not exist, the signature must be inside. Nothing is copied
// before a valid signature with the file's size was found. kForbidden names the file and the reason; kIo.
SignedFile read_signed(const std::filesystem::path& file, const std::filesystem::path& signature,
                       std::span<const Key> keys);

}  // namespace sconce::server::signing
