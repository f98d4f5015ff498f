// PyTorch's shared-memory objects (/dev/shm/torch_*): their first 64 bytes belong to PyTorch, which counts in them who
// has the object open; the content follows.
//
// Read and written through descriptors, never mapped: if the owner shrinks an object, that is an error, and the server
// lives. Only objects with names of PyTorch's form are opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sconce::server {

// An object that PyTorch sent, with a reference to it.
class TorchObject {
 public:
  // kInvalidArgument if there is no such object or it has fewer bytes than `content`.
  TorchObject(const std::string& name, uint64_t content);
  ~TorchObject();
  TorchObject(const TorchObject&) = delete;
  TorchObject& operator=(const TorchObject&) = delete;
  // Reads the whole content. kInvalidArgument.
  void read(std::span<std::byte> content) const;

 private:
  const std::string shown_;
  const int descriptor_;
};

// Drops the reference that PyTorch sent along; the last one removes the object. Returns false if there is no such
// object.
bool release_torch_object(const std::string& name) noexcept;

// Subtracts one from the counter at this place of an object of counters. Returns false if there is none: then the
// sender has gone.
bool release_torch_counter(const std::string& name, uint64_t place) noexcept;

}  // namespace sconce::server
