#include <algorithm>
#include <memory>

#include "package_format/files/crc32.h"
#include "sconce/check.h"
#include "src/tensor_files/npz_reader.h"
#include "src/weights/npz_places.h"
#include "src/weights/stored_weights.h"

namespace sconce::weights {
namespace {

// Small enough that the CRC finds the bytes in the cache.
constexpr size_t kPiece = size_t{256} << 10;

class NpzWeights final : public StoredWeights {
 public:
  NpzWeights(InputFile file, const FileOptions& options)
      : file_(std::move(file)),
        reader_(file_.descriptor(), file_.size(), file_.path().string()),
        places_(find_stored_members(file_, reader_.size())),
        expected_(options.sha256) {
    places_.resize(reader_.size());
    for (size_t i = 0; i < reader_.size(); ++i) {
      const tensor_files::NpyHeader& header = reader_.open(i);
      StoredWeights::add({reader_.name(i), header.dtype, header.sizes},
                         {header.strides, header.data_bytes, header.swap_bytes});
      // Both readers of the directory must find the same members.
      if (places_[i].bytes != header.header_bytes + header.data_bytes) places_[i].offset = 0;
    }
  }

  void check_whole() override {
    if (expected_) check_digest(file_.sha256(), *expected_, file_.path().string());
    file_.check_unchanged();
  }

 private:
  void fetch(size_t entry, uint64_t position, std::span<std::byte> out) override {
    if (position == 0) begin(entry);
    const NpzPlace& place = places_[entry];
    left_ -= out.size();
    if (place.offset == 0) {
      reader_.read(out);
      if (left_ == 0) reader_.finish();
      return;
    }
    uint64_t at = place.offset + place.bytes - left_ - out.size();
    while (!out.empty()) {
      const std::span<std::byte> piece = out.first(std::min(out.size(), kPiece));
      file_.read(at, piece);
      crc_ = crc32(piece, crc_);
      at += piece.size();
      out = out.subspan(piece.size());
    }
    if (left_ == 0)
      SCONCE_CHECK(crc_ == place.crc, kCorruptPackage, "npz: member is damaged: ", reader_.where(entry),
                   ": its CRC differs");
  }

  void begin(size_t entry) {
    const NpzPlace& place = places_[entry];
    if (place.offset == 0) {
      left_ = reader_.open(entry).data_bytes;
      return;
    }
    // The CRC covers the .npy header too.
    left_ = stored_bytes(entry);
    std::vector<std::byte> header(place.bytes - left_);
    file_.read(place.offset, header);
    crc_ = crc32(header, 0);
  }

  InputFile file_;
  tensor_files::NpzReader reader_;
  std::vector<NpzPlace> places_;
  std::optional<Sha256Digest> expected_;
  uint64_t left_ = 0;  // of the current member
  uint32_t crc_ = 0;
};

}  // namespace

std::unique_ptr<WeightFile> open_npz(InputFile file, const FileOptions& options) {
  return std::make_unique<NpzWeights>(std::move(file), options);
}

}  // namespace sconce::weights
