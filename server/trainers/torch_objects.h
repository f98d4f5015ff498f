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

// Reads the whole content of an object that PyTorch sent, and drops the reference that it sent along; the last one
// removes the object. kInvalidArgument if there is no such object or it is too small.
void take_torch_object(const std::string& name, std::span<std::byte> content);

// Subtracts one from the counter at this place of an object of counters. Returns false if there is none: then the
// sender has gone.
bool release_torch_counter(const std::string& name, uint64_t place) noexcept;

}  // namespace sconce::server
