// Sources of weights: files and byte streams that are read directly into the memory of a WeightUpdate. The weights are
// never copied as a whole, and staged files are not mapped.
//
//   auto update = model.begin_update({.label = "step-1200"});
//   stage_file(*update, "step-1200.safetensors", {.constants = model.constants()});
//   update->finish();                                     // staged; commit_weights() publishes
//
// Input is checked: an error names the source, the tensor and the reason. One thread at a time may use an object. Codes
// besides those of WeightUpdate: kIo (cannot be read), kCorruptPackage (the source contradicts itself, or is too short
// or too long), kUnsupported (a type or layout that Sconce does not support), kInvalidArgument (wrong digest),
// kFailedPrecondition (the file changed while it was read), kCancelled.
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
#include "sconce/tensor_files.h"
#include "sconce/weights.h"

namespace sconce {

using Sha256Digest = std::array<std::byte, 32>;

enum class WeightFormat : int8_t {
  kDetect,  // by the first bytes; a raw blob by its length
  kSafetensors,
  kNpz,  // members stored or deflated
  kNpy,  // one tensor, named after the file without ".npy"
  // a .pt2 (file or directory) or a model's .so: its stored constants by FQN, except those that its graph writes,
  // because each replica has its own copy
  kPackage,
  kBlob,  // a package's weights blob: stored constants back to back in the model's order, each data_size bytes.
          // Constants that the graph writes are skipped
};

struct FileOptions {
  WeightFormat format = WeightFormat::kDetect;
  std::vector<ConstantSpec> constants = {};  // of the model that receives the weights (Model::constants()); for kBlob
  std::string package_model = {};            // which model of a package; "" as in Package::model
  std::optional<Sha256Digest> sha256 = {};   // of the file's bytes; compared at the end
  // Called after each block with the bytes done and the total, on the staging thread. May throw to stop.
  std::function<void(uint64_t done, uint64_t total)> progress = {};
  const std::atomic<bool>* cancel = nullptr;  // checked before each block
};

// A file of weights. Its entries are in the order that reads fastest.
class WeightFile {
 public:
  static std::unique_ptr<WeightFile> open(const std::filesystem::path& path, const FileOptions& options = {});
  // Opens several safetensors files with the tensors of one model. A name may be in only one of them.
  static std::unique_ptr<WeightFile> open_shards(std::span<const std::filesystem::path> paths);
  virtual ~WeightFile();
  WeightFile(const WeightFile&) = delete;
  WeightFile& operator=(const WeightFile&) = delete;

  std::span<const WeightEntry> entries() const noexcept { return entries_; }
  uint64_t bytes(size_t entry) const noexcept { return bytes_[entry]; }
  uint64_t bytes() const noexcept { return total_; }  // of all entries

  // Reads the next bytes of an entry, row-major and little endian. Read one entry at a time, from its start. `out`
  // holds whole elements, at most the unread rest of the entry. A change to another entry skips the unread rest of the
  // previous one.
  virtual void read(size_t entry, std::span<std::byte> out) = 0;
  // A view of the bytes of an entry, if host memory has them in the form that read() returns; else empty.
  virtual std::span<const std::byte> in_place(size_t /*entry*/) const noexcept { return {}; }
  // Call this after reading all entries. kInvalidArgument if the file's SHA-256 is not the one in the options,
  // kFailedPrecondition if the file changed since it was opened.
  virtual void check_whole() = 0;

 protected:
  WeightFile();
  void add(WeightEntry entry);  // kCorruptPackage if its sizes overflow

  std::vector<WeightEntry> entries_;
  std::vector<uint64_t> bytes_;
  uint64_t total_ = 0;
};

// A set of a model as a weight file: its stored constants in byte order of their names, except those that the compiler
// packed, which no update can replace. Keeps the set and the model alive, regardless of later publications.
class WeightSetFile : public WeightFile {
 public:
  virtual const WeightSetInfo& info() const noexcept = 0;  // as of the opening
  // As Model::weights_digest(), which includes the constants that the compiler packed. The first call reads all
  // values.
  virtual const std::string& digest() = 0;
};

// Declares the file's entries, reads and completes each one. The caller then calls finish().
void stage_file(WeightUpdate& update, const std::filesystem::path& path, const FileOptions& options = {});
// As above, for an open file. Errors call it `source`.
void stage_file(WeightUpdate& update, WeightFile& file, const std::string& source, const FileOptions& options = {});

// Declares the tensors and copies their values, from memory of any device and with any strides. If the model is on a
// device of the same type, no byte passes through the host. All work on the values must be complete; they are not read
// after the call returns or throws. `first`: the number of the first entry, if a gradual update has earlier ones.
void stage_tensors(WeightUpdate& update, std::span<const NamedTensor> tensors, size_t first = 0);

struct StreamOptions {
  std::string source = "body";              // its name in errors
  std::optional<uint64_t> bytes = {};       // of the whole stream, if known
  std::optional<Sha256Digest> sha256 = {};  // of the whole stream
};

// Decodes a safetensors file that arrives in pieces:
//
//   WeightStream stream(*update, {.bytes = content_length, .sha256 = digest});
//   while (!body_done) stream.advance(socket.read_some(stream.next()));
//   stream.end();
//   update->finish();
//
// The update is declared once the header is complete. After an error the stream cannot be used.
class WeightStream {
 public:
  explicit WeightStream(WeightUpdate& update, StreamOptions options = {});
  ~WeightStream();
  WeightStream(const WeightStream&) = delete;
  WeightStream& operator=(const WeightStream&) = delete;

  // The buffer for the next bytes. Never empty, even at the end of the data. Valid until advance().
  std::span<std::byte> next();
  // Reports the number of bytes written to that buffer. kCorruptPackage for bytes after the end of the data.
  void advance(size_t bytes);
  // Ends the stream. kCorruptPackage if bytes are missing, kInvalidArgument if the digest differs.
  void end();

  uint64_t bytes_done() const noexcept;
  uint64_t bytes_total() const noexcept;  // 0 until it is known

 private:
  class Decoder;
  std::unique_ptr<Decoder> decoder_;
};

// Turns the weights of any file into the bytes of a safetensors file, piece by piece.
class SafetensorsEncoder {
 public:
  // kUnsupported names a tensor whose dtype safetensors lacks.
  explicit SafetensorsEncoder(std::unique_ptr<WeightFile> file);
  ~SafetensorsEncoder();
  SafetensorsEncoder(SafetensorsEncoder&&) noexcept;
  SafetensorsEncoder& operator=(SafetensorsEncoder&&) noexcept;

  uint64_t bytes() const noexcept { return header_.size() + file_->bytes(); }
  const WeightFile& file() const noexcept { return *file_; }
  // Fills `out`, whose size is a multiple of 16, unless the stream ends before. Returns the bytes written, 0 at the
  // end. Checks the whole file before it returns the last bytes.
  size_t read(std::span<std::byte> out);
  // The next bytes: a view of the file's memory where it has one, else `scratch`, filled as by read(). Empty at the
  // end. Valid until the next call. Do not mix with read().
  std::span<const std::byte> next(std::span<std::byte> scratch);

 private:
  void step(uint64_t bytes);  // `bytes` of the entry were returned
  bool complete() const noexcept { return sent_ == header_.size() && entry_ == file_->entries().size(); }

  std::unique_ptr<WeightFile> file_;
  std::string header_;
  uint64_t sent_ = 0;  // of the header
  size_t entry_ = 0;
  uint64_t position_ = 0;  // in the entry
};

// SHA-256 of the bytes that the encoder has yet to send.
Sha256Digest digest_of(SafetensorsEncoder& encoder);

}  // namespace sconce
