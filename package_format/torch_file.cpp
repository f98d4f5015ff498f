#include "package_format/torch_file.h"

#include <string_view>

#include "package_format/archive/zip_directory.h"
#include "package_format/text/source_text.h"
#include "sconce/check.h"

namespace sconce {
namespace {

// Whether the pickle only rebuilds a plain tensor and perhaps a Parameter around it. Every protocol stores the names of
// functions as plain text.
bool rebuilds_plain_tensor(std::string_view pickle) {
  constexpr std::string_view kRebuild = "_rebuild_";
  int tensors = 0;
  for (size_t at = find_text(pickle, kRebuild); at != std::string_view::npos;
       at = find_text(pickle, kRebuild, at + 1)) {
    std::string_view rest = pickle.substr(at);
    const std::string_view name = skip_word(rest);
    if (name == "_rebuild_tensor_v2") {
      ++tensors;
    } else if (name != "_rebuild_parameter") {
      return false;
    }
  }
  return tensors == 1;
}

}  // namespace

std::span<const std::byte> torch_file_storage(std::span<const std::byte> file, const std::string& path) {
  constexpr std::string_view kZipMagic = "PK";
  const std::string_view start(reinterpret_cast<const char*>(file.data()), std::min(file.size(), kZipMagic.size()));
  SCONCE_CHECK(start == kZipMagic, kUnsupported, "weights file is not of torch.save's ZIP format: ", path);
  const ZipMember *pickle = nullptr, *storage = nullptr;
  const std::vector<ZipMember> members = read_zip_directory(file);
  for (const ZipMember& member : members) {
    const std::string_view name = std::string_view(member.name).substr(member.name.find('/') + 1);
    SCONCE_CHECK(!member.deflated, kUnsupported, "weights file is compressed: ", path, ": ", member.name);
    const std::span<const std::byte> bytes = file.subspan(member.offset, member.size);
    if (name == "data.pkl") {
      pickle = &member;
    } else if (name == "byteorder") {
      const std::string_view order(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      SCONCE_CHECK(order == "little", kUnsupported, "weights file is not little-endian: ", path);
    } else if (name.starts_with("data/")) {
      SCONCE_CHECK(storage == nullptr, kUnsupported, "weights file has more than one storage: ", path);
      storage = &member;
    }
  }
  SCONCE_CHECK(pickle != nullptr && storage != nullptr, kCorruptPackage,
               "weights file lacks its pickle or storage: ", path);
  const std::string_view text(reinterpret_cast<const char*>(file.data() + pickle->offset), pickle->size);
  SCONCE_CHECK(rebuilds_plain_tensor(text), kUnsupported,
               "weights file holds something else than one plain tensor: ", path);
  return file.subspan(storage->offset, storage->size);
}

}  // namespace sconce
