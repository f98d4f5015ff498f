#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>

#include "sconce/check.h"
#include "sconce/weight_sources.h"
#include "src/support/excerpt.h"
#include "src/support/sha256.h"
#include "src/tensor_files/npy_header.h"
#include "src/tensor_files/safetensors_header.h"
#include "src/weights/input_file.h"

namespace sconce {
namespace {

constexpr size_t kLengthBytes = 8;
// Memory for a header grows with the bytes received.
constexpr size_t kFirstHeaderBytes = size_t{64} << 10;
// Smaller entries pass through a buffer, many per read.
constexpr size_t kSmallBytes = size_t{32} << 10, kBufferBytes = size_t{256} << 10;

}  // namespace

class WeightStream::Decoder {
 public:
  Decoder(WeightUpdate& update, StreamOptions options) : update_(update), options_(std::move(options)) {
    if (options_.sha256) digest_.emplace();
    SCONCE_CHECK(!options_.bytes || *options_.bytes >= kLengthBytes, kCorruptPackage,
                 "safetensors: file ends within its header: ", options_.source, ": ", *options_.bytes, " bytes");
  }

  std::span<std::byte> next() {
    switch (phase_) {
      case Phase::kLength:
        return room_ = std::span(length_).subspan(filled_);
      case Phase::kHeader:
        if (filled_ == header_.size()) header_.resize(std::min(2 * header_.size(), header_bytes_));
        return room_ = std::as_writable_bytes(std::span(header_)).subspan(filled_);
      case Phase::kData:
        if (buffered()) {
          if (buffer_.empty()) buffer_.resize(kBufferBytes);
          return room_ = std::span(buffer_).first(static_cast<size_t>(std::min<uint64_t>(kBufferBytes, left_)));
        }
        return room_ = memory_.subspan(filled_);
      case Phase::kDone:
        break;
    }
    return room_ = surplus_;
  }

  void advance(size_t bytes) {
    if (bytes == 0) return;
    SCONCE_CHECK(bytes <= room_.size(), kInternal, "more bytes came than there was room for: ", options_.source, ": ",
                 bytes, " and ", room_.size());
    SCONCE_CHECK(phase_ != Phase::kDone, kCorruptPackage, "safetensors: data go on behind their end: ", options_.source,
                 ": expected ", total_, " bytes");
    const std::span<const std::byte> got = room_.first(bytes);
    room_ = {};
    done_ += bytes;
    if (digest_) digest_->update(got);
    switch (phase_) {
      case Phase::kLength:
        filled_ += bytes;
        if (filled_ == kLengthBytes) read_length();
        break;
      case Phase::kHeader:
        filled_ += bytes;
        if (filled_ == header_bytes_) read_header();
        break;
      case Phase::kData:
        left_ -= bytes;
        if (got.data() == buffer_.data())
          distribute(got);
        else
          fill(bytes);
        break;
      case Phase::kDone:
        break;
    }
  }

  void end() {
    const char* part = phase_ == Phase::kData ? "data" : "header";
    if (phase_ == Phase::kData)
      SCONCE_FAIL(kCorruptPackage, "safetensors: stream ends within its ", part, ": ", options_.source, ": ",
                  excerpt(entry().name), ": after ", done_, " of ", total_, " bytes");
    SCONCE_CHECK(phase_ == Phase::kDone, kCorruptPackage, "safetensors: stream ends within its ", part, ": ",
                 options_.source, ": after ", done_, " bytes");
    if (digest_) weights::check_digest(digest_->finish(), *options_.sha256, options_.source);
  }

  uint64_t done() const noexcept { return done_; }
  uint64_t total() const noexcept { return options_.bytes.value_or(total_); }

 private:
  enum class Phase { kLength, kHeader, kData, kDone };
  const tensor_files::SafetensorsEntry& entry() const { return entries_.entries[current_]; }
  bool buffered() const noexcept { return left_ > memory_.size() - filled_ && memory_.size() - filled_ < kSmallBytes; }

  void read_length() {
    const uint64_t length = tensor_files::safetensors_header_bytes(length_, options_.bytes, options_.source);
    SCONCE_CHECK(length > 0, kCorruptPackage, "safetensors: header is empty: ", options_.source);
    header_bytes_ = length;
    header_.resize(std::min<size_t>(length, kFirstHeaderBytes));
    filled_ = 0;
    phase_ = Phase::kHeader;
  }

  void read_header() {
    const uint64_t before = kLengthBytes + header_bytes_;
    const std::optional<uint64_t> data = options_.bytes ? std::optional(*options_.bytes - before) : std::nullopt;
    entries_ = tensor_files::parse_safetensors_header({header_.data(), header_.size()}, data, options_.source);
    header_ = {};
    tensor_files::sort_by_offset(entries_);
    left_ = entries_.entries.empty() ? 0 : entries_.entries.back().end;
    total_ = before + left_;
    std::vector<WeightEntry> declared;
    declared.reserve(entries_.entries.size());
    for (const tensor_files::SafetensorsEntry& e : entries_.entries)
      declared.push_back({e.name, e.dtype, e.shape, e.tied});
    update_.declare(declared);
    phase_ = Phase::kData;
    begin_entry(0);
  }

  // Starts an entry; one without bytes is complete at once.
  void begin_entry(size_t index) {
    for (current_ = index; current_ < entries_.entries.size(); ++current_) {
      const tensor_files::SafetensorsEntry& e = entry();
      memory_ = update_.memory(current_);
      filled_ = 0;
      SCONCE_CHECK(memory_.size() == e.end - e.begin, kInternal,
                   "memory of an update has not the size of its entry: ", excerpt(e.name), ": ", memory_.size(),
                   " and ", e.end - e.begin, " bytes");
      if (!memory_.empty()) return;
      update_.complete(current_);
    }
    memory_ = {};
    phase_ = Phase::kDone;
  }

  void fill(size_t bytes) {
    filled_ += bytes;
    if (filled_ < memory_.size()) return;
    if (entry().dtype == DType::kBool)
      tensor_files::check_bools(memory_, options_.source + ": " + excerpt(entry().name));
    update_.complete(current_);
    begin_entry(current_ + 1);
  }

  void distribute(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const size_t piece = std::min(bytes.size(), memory_.size() - filled_);
      std::memcpy(memory_.data() + filled_, bytes.data(), piece);
      bytes = bytes.subspan(piece);
      fill(piece);
    }
  }

  WeightUpdate& update_;
  const StreamOptions options_;
  std::optional<Sha256> digest_;
  Phase phase_ = Phase::kLength;
  std::array<std::byte, kLengthBytes> length_{};
  std::array<std::byte, 64> surplus_{};
  std::string header_;
  size_t header_bytes_ = 0;
  tensor_files::SafetensorsHeader entries_;  // in the order of their data
  size_t current_ = 0;
  std::span<std::byte> memory_;  // of the current entry
  size_t filled_ = 0;            // bytes received of the length, the header or the current entry
  std::vector<std::byte> buffer_;
  std::span<std::byte> room_;
  uint64_t done_ = 0, left_ = 0, total_ = 0;  // left_: of the data
};

WeightStream::WeightStream(WeightUpdate& update, StreamOptions options)
    : decoder_(std::make_unique<Decoder>(update, std::move(options))) {}
WeightStream::~WeightStream() = default;

std::span<std::byte> WeightStream::next() { return decoder_->next(); }
void WeightStream::advance(size_t bytes) { decoder_->advance(bytes); }
void WeightStream::end() { decoder_->end(); }
uint64_t WeightStream::bytes_done() const noexcept { return decoder_->done(); }
uint64_t WeightStream::bytes_total() const noexcept { return decoder_->total(); }

}  // namespace sconce
