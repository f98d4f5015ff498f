// WeightFile::open: detects the format.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "sconce/check.h"
#include "sconce/tensor.h"
#include "sconce/weight_sources.h"
#include "src/support/excerpt.h"
#include "src/tensor_files/npy_header.h"
#include "src/tensor_files/safetensors_header.h"
#include "src/weights/stored_weights.h"

namespace sconce {
namespace {

// Name of a ZIP archive's first member; empty if there is none.
std::string first_member(const weights::InputFile& file) {
  std::array<std::byte, 30> header;
  if (file.size() < header.size()) return {};
  file.read(0, header);
  const size_t length = std::to_integer<size_t>(header[26]) | std::to_integer<size_t>(header[27]) << 8;
  std::string name(static_cast<size_t>(std::min<uint64_t>(length, file.size() - header.size())), '\0');
  file.read(header.size(), std::as_writable_bytes(std::span(name)));
  return name;
}

WeightFormat detect(const weights::InputFile& file, const FileOptions& options) {
  std::array<std::byte, 9> start{};
  const size_t known = static_cast<size_t>(std::min<uint64_t>(start.size(), file.size()));
  file.read(0, std::span(start).first(known));
  const std::string extension = file.path().extension().string();
  const auto begins = [&](std::string_view text) { return std::memcmp(start.data(), text.data(), text.size()) == 0; };
  if (begins("\x7f"
             "ELF"))
    return WeightFormat::kPackage;
  if (begins("PK")) {
    const bool arrays = extension == ".npz" || first_member(file).ends_with(".npy");
    return arrays ? WeightFormat::kNpz : WeightFormat::kPackage;
  }
  if (tensor_files::is_npy(start)) return WeightFormat::kNpy;
  uint64_t length = 0;
  std::memcpy(&length, start.data(), sizeof length);
  const bool header = start[8] == std::byte{'{'} && length <= tensor_files::kMaxSafetensorsHeader;
  if (extension == ".safetensors" || header) return WeightFormat::kSafetensors;
  const uint64_t blob = weights::blob_bytes(options.constants);
  if (file.size() > 0 && file.size() == blob) return WeightFormat::kBlob;
  if (options.constants.empty())
    SCONCE_FAIL(kUnsupported, "not a .safetensors, .npz, .npy or .pt2 file: ", file.path().string());
  SCONCE_FAIL(kUnsupported, "not a .safetensors, .npz, .npy or .pt2 file, nor a raw blob of the model's ", blob,
              " bytes of weights: ", file.path().string());
}

}  // namespace

WeightFile::WeightFile() = default;
WeightFile::~WeightFile() = default;

void WeightFile::add(WeightEntry entry) {
  SCONCE_CHECK(entry.shape.size() <= size_t{Tensor::kMaxRank}, kUnsupported,
               "too many dimensions: ", excerpt(entry.name), ": ", entry.shape.size());
  auto bytes = static_cast<int64_t>(dtype_bytes(entry.dtype));
  bool overflow = false, empty = false;
  for (const int64_t size : entry.shape) {
    empty |= size == 0;
    overflow |= size < 0 || __builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes);
  }
  if (empty) bytes = 0;
  overflow |= __builtin_add_overflow(total_, static_cast<uint64_t>(bytes), &total_);
  SCONCE_CHECK(!overflow, kCorruptPackage, "sizes overflow: ", excerpt(entry.name), ": ",
               excerpt(to_string(IntSpan(entry.shape))));
  bytes_.push_back(static_cast<uint64_t>(bytes));
  entries_.push_back(std::move(entry));
}

std::unique_ptr<WeightFile> WeightFile::open(const std::filesystem::path& path, const FileOptions& options) {
  std::error_code ignored;  // if it cannot be inspected, it cannot be opened either
  if (options.format == WeightFormat::kPackage ||
      (options.format == WeightFormat::kDetect && std::filesystem::is_directory(path, ignored)))
    return weights::open_package(path, options);
  weights::InputFile file(path);
  switch (options.format == WeightFormat::kDetect ? detect(file, options) : options.format) {
    case WeightFormat::kSafetensors:
      return weights::open_safetensors(std::move(file), options);
    case WeightFormat::kNpz:
      return weights::open_npz(std::move(file), options);
    case WeightFormat::kNpy:
      return weights::open_npy(std::move(file), options);
    case WeightFormat::kBlob:
      return weights::open_blob(std::move(file), options);
    case WeightFormat::kPackage:
    case WeightFormat::kDetect:
      break;
  }
  return weights::open_package(path, options);
}

}  // namespace sconce
