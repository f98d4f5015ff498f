// PyTorch's shared-memory objects (/dev/shm/torch_*): the first 64 bytes are PyTorch's and count the users of the
// object; the content follows.
//
// Read and written through descriptors and never mapped: if the owner shrinks an object, the read fails with an error
// and the server is not affected. Only objects with names of PyTorch's form are opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sconce::server::rollout {

// An object that PyTorch sent, with a reference to it.
class TorchObject {
 public:
  // kInvalidArgument if the object does not exist or has fewer bytes than `content`.
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

// Releases the reference that PyTorch sent; the last release removes the object. Returns false if the object does not
// exist.
bool release_torch_object(const std::string& name) noexcept;

// Decrements the counter at this index of a counter object. Returns false if the object does not exist: then the sender
// has exited.
bool release_torch_counter(const std::string& name, uint64_t place) noexcept;

}  // namespace sconce::server::rollout
