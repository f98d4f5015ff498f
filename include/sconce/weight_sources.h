// Sources of weights: files and byte streams that are read straight into the memory of a WeightUpdate. No whole copy of
// the weights is made on the way, and no file is mapped whose bytes are staged.
//
//   auto update = model.begin_update({.label = "step-1200"});
//   stage_file(*update, "step-1200.safetensors", {.constants = model.constants()});
//   update->finish();                                     // staged; commit_weights() publishes
//
// Nothing is trusted: an error names the source, the tensor and the reason. Objects are confined to one thread at a
// time. Codes besides those of WeightUpdate: kIo (cannot be read), kCorruptPackage (the source lies about itself, or
// ends too early or too late), kUnsupported (a type or layout that Sconce does not take), kInvalidArgument (wrong
// digest), kFailedPrecondition (the file changed while it was read), kCancelled.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sconce/package.h"
#include "sconce/weights.h"

namespace sconce {

using Sha256Digest = std::array<std::byte, 32>;

enum class WeightFormat : int8_t {
  kDetect,  // by the first bytes; raw blobs by their length
  kSafetensors,
  kNpz,      // members stored or deflated
  kNpy,      // one tensor, named as the file without ".npy"
  kPackage,  // a .pt2 (file or directory) or a model's .so: its stored constants by FQN, without those that its
             // graph writes, which belong to a replica
  kBlob,     // stored constants back to back, each data_size bytes, in the model's order: a package's weights blob.
             // Those that the graph writes are passed over
};

struct FileOptions {
  WeightFormat format = WeightFormat::kDetect;
  std::vector<ConstantSpec> constants = {};  // of the model that takes the weights (Model::constants()); for kBlob
  std::string package_model = {};            // which model of a package; "" as in Package::model
  std::optional<Sha256Digest> sha256 = {};   // of the file's bytes; compared when all is read
  // After each block: bytes done and all bytes. Called on the thread that stages; may throw to stop.
  std::function<void(uint64_t done, uint64_t total)> progress = {};
  const std::atomic<bool>* cancel = nullptr;  // looked at before each block
};

// A file that holds weights. Its entries are in the order in which they are best read.
class WeightFile {
 public:
  static std::unique_ptr<WeightFile> open(const std::filesystem::path& path, const FileOptions& options = {});
  virtual ~WeightFile();
  WeightFile(const WeightFile&) = delete;
  WeightFile& operator=(const WeightFile&) = delete;

  std::span<const WeightEntry> entries() const noexcept { return entries_; }
  uint64_t bytes(size_t entry) const noexcept { return bytes_[entry]; }
  uint64_t bytes() const noexcept { return total_; }  // of all entries

  // The next bytes of an entry, row-major and little endian. Entries are read one after the other, each from its start;
  // `out` holds whole elements, no more than are left. What an earlier call left of another entry is skipped.
  virtual void read(size_t entry, std::span<std::byte> out) = 0;
  // When all is read: kInvalidArgument if the file's SHA-256 is not the one in the options, kFailedPrecondition if the
  // file changed since it was opened.
  virtual void check_whole() = 0;

 protected:
  WeightFile() = default;
  void add(WeightEntry entry);  // kCorruptPackage if its sizes overflow

  std::vector<WeightEntry> entries_;
  std::vector<uint64_t> bytes_;
  uint64_t total_ = 0;
};

// Declares what the file holds, reads it in and completes every entry. finish() remains to the caller.
void stage_file(WeightUpdate& update, const std::filesystem::path& path, const FileOptions& options = {});

struct StreamOptions {
  std::string source = "body";              // its name in errors
  std::optional<uint64_t> bytes = {};       // of the whole stream, where known
  std::optional<Sha256Digest> sha256 = {};  // of the whole stream
};

// Decodes a safetensors file that arrives in pieces:
//
//   WeightStream stream(*update, {.bytes = content_length, .sha256 = digest});
//   while (!body_done) stream.advance(socket.read_some(stream.next()));
//   stream.end();
//   update->finish();
//
// The update is declared when the header is complete. After an error the stream is of no more use.
class WeightStream {
 public:
  explicit WeightStream(WeightUpdate& update, StreamOptions options = {});
  ~WeightStream();
  WeightStream(const WeightStream&) = delete;
  WeightStream& operator=(const WeightStream&) = delete;

  // Where the next bytes go; never empty, not even behind the end of the data. Valid until advance().
  std::span<std::byte> next();
  // So many bytes have been written there. kCorruptPackage for bytes behind the end of the data.
  void advance(size_t bytes);
  // The stream has ended. kCorruptPackage if bytes are missing, kInvalidArgument if the digest differs.
  void end();

  uint64_t bytes_done() const noexcept;
  uint64_t bytes_total() const noexcept;  // 0 as long as it is not known

 private:
  class Decoder;
  std::unique_ptr<Decoder> decoder_;
};

// The weights of any file as the bytes of a safetensors file, to be sent in pieces.
class SafetensorsEncoder {
 public:
  // kUnsupported names a tensor whose dtype safetensors does not have.
  explicit SafetensorsEncoder(std::unique_ptr<WeightFile> file);
  ~SafetensorsEncoder();
  SafetensorsEncoder(SafetensorsEncoder&&) noexcept;
  SafetensorsEncoder& operator=(SafetensorsEncoder&&) noexcept;

  uint64_t bytes() const noexcept { return header_.size() + file_->bytes(); }
  const WeightFile& file() const noexcept { return *file_; }
  // Fills `out`, whose size is a multiple of 16, up to the end of the stream; returns how many bytes it wrote, 0 when
  // all are out. Checks the whole file before it returns the last ones.
  size_t read(std::span<std::byte> out);

 private:
  std::unique_ptr<WeightFile> file_;
  std::string header_;
  uint64_t sent_ = 0;  // of the header
  size_t entry_ = 0;
  uint64_t position_ = 0;  // in the entry
};

// SHA-256 of all that the encoder has left to send.
Sha256Digest digest_of(SafetensorsEncoder& encoder);

}  // namespace sconce
