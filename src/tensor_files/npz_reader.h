// NpzReader: reads each member of a .npz file as a stream. Sizes are compared with the member's .npy header before
// memory is allocated for them. libzip checks the CRC at the end of a member.
//
// Used by one thread. Codes as in sconce/tensor_files.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/tensor_files/npy_header.h"

struct zip;
struct zip_file;

namespace sconce::tensor_files {

class NpzReader {
 public:
  // `bytes` must outlive the reader.
  NpzReader(std::span<const std::byte> bytes, std::string where);
  // Reads an open file of `size` bytes. The caller owns the descriptor; its position changes.
  NpzReader(int fd, uint64_t size, std::string where);

  size_t size() const noexcept { return members_.size(); }
  const std::string& name(size_t member) const noexcept { return members_[member].name; }  // without ".npy"
  // "weights.npz: layer.npy", for messages.
  std::string where(size_t member) const;

  // Starts a member and reads its header; the rest of the previous member is skipped.
  const NpyHeader& open(size_t member);
  // The next data bytes of the open member; at most header().data_bytes in all.
  void read(std::span<std::byte> out);
  // Call this after the last byte: kCorruptPackage if the member has more bytes or its CRC differs.
  void finish();

 private:
  struct DiscardArchive {
    void operator()(zip* archive) const noexcept;
  };
  struct CloseFile {
    void operator()(zip_file* file) const noexcept;
  };
  struct Member {
    std::string name;
    uint64_t index, bytes;
  };
  void list_members(uint64_t file_bytes);
  void inflate(std::span<std::byte> out);

  std::string file_;
  std::unique_ptr<zip, DiscardArchive> archive_;
  std::vector<Member> members_;
  size_t opened_ = 0;
  std::unique_ptr<zip_file, CloseFile> stream_;
  NpyHeader header_;
  std::vector<std::byte> early_;  // data that was read together with the header
};

}  // namespace sconce::tensor_files
