// Files written by torch.save: a ZIP archive of a pickle and raw storages. Sconce reads only the form that needs no
// Python: one plain tensor (or Parameter) with one storage.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace sconce {

// The bytes of the tensor's storage, in place. kCorruptPackage and kUnsupported name `path`.
std::span<const std::byte> torch_file_storage(std::span<const std::byte> file, const std::string& path);

}  // namespace sconce
