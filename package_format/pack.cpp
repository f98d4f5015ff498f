// pack_directory of sconce/package.h.
#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "package_format/archive/archive_reader.h"
#include "package_format/archive/archive_writer.h"
#include "package_format/files/crc32.h"
#include "package_format/manifest.h"
#include "sconce/check.h"
#include "sconce/package.h"
#include "src/support/hash.h"

namespace sconce {
namespace {

// A member that PyTorch's readers expect; written if the directory lacks it.
struct Required {
  std::string_view name, content;
};
constexpr Required kRequired[] = {
    {"archive_format", "pt2"}, {"archive_version", "0"}, {".data/version", "6\n"}, {"byteorder", "little"}};
constexpr std::string_view kSerializationId = ".data/serialization_id";

}  // namespace

void pack_directory(const std::filesystem::path& directory, const std::filesystem::path& archive) {
  const auto source = ArchiveReader::open(directory);
  SCONCE_CHECK(source->kind() == ArchiveReader::Kind::kDirectory, kInvalidArgument,
               "not a directory: ", directory.native());
  read_manifest(*source);
  const std::string root = archive.stem().string() + "/";
  ArchiveWriter writer(archive);
  // Forty digits that identify the content: a hash of the names and one of the bytes, as PyTorch writes them.
  uint64_t names = kFnvStart;
  uint32_t content = 0;
  const auto add = [&](std::string_view name, std::span<const std::byte> bytes) {
    names = fnv1a(name, names);
    content = crc32(bytes, content);
    writer.add(root + std::string(name), bytes);
  };
  for (const ArchiveMember* member : source->list(""))
    if (member->name != kSerializationId) add(member->name, source->view(*member));
  for (const Required& required : kRequired)
    if (source->find(required.name) == nullptr) add(required.name, std::as_bytes(std::span(required.content)));
  char id[41];
  std::snprintf(id, sizeof id, "%020" PRIu64 "%020" PRIu32, names, content);
  writer.add(root + std::string(kSerializationId), std::string_view(id, 40));
  writer.finish();
}

}  // namespace sconce
