#include <algorithm>
#include <functional>
#include <vector>

#include "sconce/check.h"
#include "sconce/weight_sources.h"
#include "src/device/file_source.h"
#include "src/support/excerpt.h"
#include "src/tensor_files/npy_header.h"
#include "src/weights/placed_weights.h"

namespace sconce {
namespace {

// Large enough to make calls cheap, small enough that a digest finds the bytes in the cache.
constexpr size_t kBlock = size_t{4} << 20, kDigestedBlock = size_t{256} << 10;

// Whether the update reads each entry from the file itself; never if a digest is requested.
std::vector<bool> take_from_files(WeightUpdate& update, const WeightFile& file, const FileOptions& options,
                                  const std::function<void(uint64_t)>& tick) {
  std::vector<bool> taken(file.entries().size());
  auto* const taker = dynamic_cast<FileTaker*>(&update);
  const auto* const placed = dynamic_cast<const weights::PlacedWeights*>(&file);
  if (!taker || !placed || options.sha256) return taken;
  std::vector<FilePart> parts;
  for (size_t i = 0; i < taken.size(); ++i) {
    const auto place = placed->place(i);
    taken[i] = place.file && taker->takes(i);
    if (taken[i]) parts.push_back({i, place.file->descriptor(), place.offset});
  }
  if (parts.empty()) return taken;
  taker->take(parts, tick);
  uint64_t bytes = 0;
  for (const FilePart& part : parts) bytes += file.bytes(part.entry);
  tick(bytes);
  return taken;
}

}  // namespace

void stage_file(WeightUpdate& update, const std::filesystem::path& path, const FileOptions& options) {
  stage_file(update, *WeightFile::open(path, options), path.string(), options);
}

void stage_file(WeightUpdate& update, WeightFile& file, const std::string& source, const FileOptions& options) {
  update.declare(file.entries());
  const size_t block = options.sha256 ? kDigestedBlock : kBlock;
  const uint64_t total = file.bytes();
  uint64_t done = 0;
  const auto pause = [&] {
    SCONCE_CHECK(!options.cancel || !options.cancel->load(std::memory_order_relaxed), kCancelled,
                 "staging was cancelled: ", source, ": after ", done, " of ", total, " bytes");
    if (options.progress) options.progress(done, total);
  };
  pause();
  const std::vector<bool> taken = take_from_files(update, file, options, [&](uint64_t moved) {
    done = moved;
    pause();
  });
  for (size_t i = 0; i < file.entries().size(); ++i) {
    if (taken[i]) continue;
    const std::span<std::byte> memory = update.memory(i);
    SCONCE_CHECK(memory.size() == file.bytes(i), kInternal,
                 "memory of an update has not the size of its entry: ", excerpt(file.entries()[i].name), ": ",
                 memory.size(), " and ", file.bytes(i), " bytes");
    for (size_t at = 0; at < memory.size();) {
      const std::span<std::byte> piece = memory.subspan(at, std::min(block, memory.size() - at));
      file.read(i, piece);
      at += piece.size();
      done += piece.size();
      pause();
    }
    if (file.entries()[i].dtype == DType::kBool)
      tensor_files::check_bools(memory, source + ": " + file.entries()[i].name);
    update.complete(i);
  }
  file.check_whole();
}

}  // namespace sconce
