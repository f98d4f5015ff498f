// Finds the offsets of stored members in a .npz file, which libzip does not report. Their bytes can then be read
// directly to their final memory, without libzip's buffers and slow CRC.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/weights/input_file.h"

namespace sconce::weights {

struct NpzPlace {
  uint64_t offset = 0;  // of the member's first byte; 0 if it is not stored
  uint64_t bytes = 0;
  uint32_t crc = 0;
};

// In the directory's order. The archive must already be verified as consistent. Empty if the directory has an unknown
// form; then read through libzip.
std::vector<NpzPlace> find_stored_members(const InputFile& file, size_t members);

}  // namespace sconce::weights
