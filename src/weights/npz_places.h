// Where the stored members of a .npz lie in their file, which libzip does not tell: so that their bytes can be read to
// where they are wanted, without its buffers and its slow CRC.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/weights/input_file.h"

namespace sconce::weights {

struct NpzPlace {
  uint64_t offset = 0;  // of the member's first byte; 0 where it is not stored
  uint64_t bytes = 0;
  uint32_t crc = 0;
};

// In the order of the directory. The archive has been found consistent. Empty where the directory is of a form that is
// not known here: it is to be read through libzip then.
std::vector<NpzPlace> find_stored_members(const InputFile& file, size_t members);

}  // namespace sconce::weights
