#include <algorithm>
#include <cstring>
#include <memory>

#include "sconce/check.h"
#include "sconce/weight_sources.h"
#include "src/support/sha256.h"
#include "src/tensor_files/safetensors_header.h"

namespace sconce {

namespace {

// The most bytes that next() returns at once, and the size below which it collects entries.
constexpr size_t kMaxBytes = size_t{4} << 20, kSmallBytes = size_t{64} << 10;

}  // namespace

SafetensorsEncoder::SafetensorsEncoder(std::unique_ptr<WeightFile> file) : file_(std::move(file)) {
  tensor_files::SafetensorsHeader header;
  uint64_t position = 0;
  for (size_t i = 0; i < file_->entries().size(); ++i) {
    const WeightEntry& entry = file_->entries()[i];
    const uint64_t begin = position;
    position += file_->bytes(i);
    header.entries.push_back({entry.name, entry.dtype, entry.shape, begin, position});
    for (const std::string& name : entry.tied) header.metadata[name] = entry.name;
  }
  header_ = tensor_files::make_safetensors_header(header, "weights");
}

SafetensorsEncoder::~SafetensorsEncoder() = default;
SafetensorsEncoder::SafetensorsEncoder(SafetensorsEncoder&&) noexcept = default;
SafetensorsEncoder& SafetensorsEncoder::operator=(SafetensorsEncoder&&) noexcept = default;

size_t SafetensorsEncoder::read(std::span<std::byte> out) {
  SCONCE_CHECK(!out.empty() && out.size() % 16 == 0, kInvalidArgument,
               "room for encoded weights is not a multiple of 16 bytes: ", out.size());
  size_t written = std::min<size_t>(header_.size() - sent_, out.size());
  std::memcpy(out.data(), header_.data() + sent_, written);
  sent_ += written;
  while (sent_ == header_.size() && entry_ < file_->entries().size()) {
    const size_t item = dtype_bytes(file_->entries()[entry_].dtype);
    const uint64_t left = file_->bytes(entry_) - position_;
    const size_t piece = static_cast<size_t>(std::min<uint64_t>((out.size() - written) / item * item, left));
    if (piece == 0 && left > 0) break;  // no room for another element
    if (piece > 0) file_->read(entry_, out.subspan(written, piece));
    written += piece;
    step(piece);
  }
  if (complete() && written > 0) file_->check_whole();
  return written;
}

std::span<const std::byte> SafetensorsEncoder::next(std::span<std::byte> scratch) {
  if (sent_ == header_.size() && entry_ < file_->entries().size()) {
    const std::span<const std::byte> values = file_->in_place(entry_);
    // Small entries are returned together. read() may have returned the beginning, but never the end of an entry that
    // begins here.
    if (values.size() > kSmallBytes) {
      const auto from = static_cast<size_t>(position_);
      const std::span<const std::byte> piece = values.subspan(from, std::min(values.size() - from, kMaxBytes));
      step(piece.size());
      if (complete()) file_->check_whole();
      return piece;
    }
  }
  return scratch.first(read(scratch));
}

void SafetensorsEncoder::step(uint64_t bytes) {
  position_ += bytes;
  if (position_ < file_->bytes(entry_)) return;
  ++entry_;
  position_ = 0;
}

Sha256Digest digest_of(SafetensorsEncoder& encoder) {
  constexpr size_t kBlock = size_t{256} << 10;
  const auto block = std::make_unique<std::byte[]>(kBlock);
  Sha256 digest;
  while (const size_t n = encoder.read({block.get(), kBlock})) digest.update({block.get(), n});
  return digest.finish();
}

}  // namespace sconce
