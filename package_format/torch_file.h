// Files that torch.save wrote: a ZIP archive of a pickle and of raw storages. We read the one kind that needs no
// Python: a single plain tensor (or Parameter) with its single storage.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace sconce {

// The bytes of the tensor's storage, in place. kCorruptPackage, kUnsupported; both name `path`.
std::span<const std::byte> torch_file_storage(std::span<const std::byte> file, const std::string& path);

}  // namespace sconce
