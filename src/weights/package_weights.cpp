// The stored constants of a package. The package's mapping gives their offsets; their bytes are read from the file,
// unless they are deflated in the archive.
#include <algorithm>
#include <map>
#include <memory>
#include <unordered_set>

#include "package_format/archive/archive_reader.h"
#include "package_format/weights_index.h"
#include "sconce/check.h"
#include "sconce/tensor.h"
#include "src/support/excerpt.h"
#include "src/weights/placed_weights.h"

namespace sconce::weights {
namespace {

// Finds the file and offset of bytes from an ArchiveReader.
class MemberPlaces {
 public:
  MemberPlaces(const ArchiveReader& archive, PlacedWeights& weights) : archive_(archive), weights_(weights) {
    for (const ArchiveMember& member : archive.members())
      if (!member.deflated) {
        const std::span<const std::byte> bytes = archive.view(member);
        if (!bytes.empty()) ranges_[bytes.data() + bytes.size()] = {bytes.data(), &member};
      }
  }

  // nullptr: no file has these bytes
  const ArchiveMember* find(const std::byte* data, uint64_t& offset) const {
    const auto at = ranges_.upper_bound(data);
    if (at == ranges_.end() || data < at->second.begin) return nullptr;
    offset = at->second.member->offset + static_cast<uint64_t>(data - at->second.begin);
    return at->second.member;
  }

  size_t file_of(const ArchiveMember& member) {
    if (archive_.kind() != ArchiveReader::Kind::kDirectory) return 0;
    const auto [at, added] = files_.try_emplace(&member, 0);
    if (added) at->second = weights_.add_file(InputFile(archive_.path() / member.path));
    return at->second;
  }

 private:
  struct Range {
    const std::byte* begin = nullptr;
    const ArchiveMember* member = nullptr;
  };
  const ArchiveReader& archive_;
  PlacedWeights& weights_;
  std::map<const std::byte*, Range> ranges_;  // by end
  std::map<const ArchiveMember*, size_t> files_;
};

}  // namespace

std::unique_ptr<WeightFile> open_package(const std::filesystem::path& path, const FileOptions& options) {
  const std::string where = path.string();
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  SCONCE_CHECK(!folder || !options.sha256, kInvalidArgument, "a folder has no SHA-256: ", where);
  auto weights = std::make_unique<PlacedWeights>(options.sha256);
  if (!folder) weights->add_file(InputFile(path));
  const std::shared_ptr<const Package> package = Package::open(path);
  if (!folder) weights->file(0).check_same_path();
  weights->keep(package);
  const ModelSpec& model = package->model(options.package_model);
  SCONCE_CHECK(model.weights_form != WeightsForm::kUserProvided, kInvalidArgument, "package holds no weights: ", where);
  const WeightsIndex index = locate_weights(*package, model);
  MemberPlaces places(package->archive(), *weights);
  std::unordered_set<std::string> seen;
  for (const WeightLocation& location : index.locations) {
    const ConstantSpec& constant = model.constants[location.constant];
    if (constant.mutated && !constant.assumed) continue;
    WeightEntry entry = entry_of(constant, where);
    if (!seen.insert(entry.name).second) continue;  // several constants may have one name and value
    const size_t item = dtype_bytes(entry.dtype);
    const uint64_t bytes = storage_bytes_needed(constant.shape, constant.strides, location.offset, item);
    SCONCE_CHECK(bytes <= location.bytes, kCorruptPackage, "constant is larger than its place: ", where, ": ",
                 excerpt(entry.name), ": ", bytes, " and ", location.bytes, " bytes");
    const uint64_t offset = std::min(static_cast<uint64_t>(location.offset) * item, bytes);
    StoredLayout layout{constant.strides, bytes - offset, false};
    uint64_t start = 0;
    if (const ArchiveMember* member = places.find(location.data, start))
      weights->add(std::move(entry), std::move(layout), places.file_of(*member), start + offset);
    else
      weights->add(std::move(entry), std::move(layout), location.data + offset);
  }
  return weights;
}

}  // namespace sconce::weights
