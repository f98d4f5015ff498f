// Finds the bytes of a model's stored constants, for all forms in which PyTorch packages weights (FORMAT.md). Nothing
// is copied: locations point into the archive, which the Package keeps alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "package_format/elf_image.h"
#include "package_format/manifest.h"
#include "sconce/package.h"

namespace sconce {

struct WeightLocation {
  size_t constant = 0;              // index into ModelSpec::constants
  const std::byte* data = nullptr;  // start of the constant's storage
  int64_t offset = 0;               // elements from there to the constant's first; usually ConstantSpec::offset
  uint64_t bytes = 0;               // available; padding up to ConstantSpec::data_size may be missing
};

struct WeightsIndex {
  WeightsForm form = WeightsForm::kNone;
  // One per stored (not folded) constant, in order; empty if the form is kNone or kUserProvided.
  std::vector<WeightLocation> locations;
  // Whether all data start at multiples of 64 bytes in memory. Archives of torch 2.6 and 2.7 do not align members (an
  // int64 may start at an odd address), and models with all constants on CUDA do not pad: copy such data before a CPU
  // uses them.
  bool aligned = true;
};

// kCorruptPackage if the sizes do not add up; kUnsupported for tensors pickled in a form that only Python reads; both
// name the constant or member. kFailedPrecondition if the package has no source, because only the source lists
// constants.
WeightsIndex locate_weights(const Package& package, const ModelSpec& model);

// The form and the size of all weights. `include_weights` is the value in the generated source, true without one.
struct WeightsSummary {
  WeightsForm form = WeightsForm::kNone;
  uint64_t bytes = 0;
  // Whether the weights are in writable memory, because the graph mutates a constant. If weights are stored elsewhere,
  // the compiler places a substitute in the .so in the same way. True for a .so without it.
  bool writable = true;
};
WeightsSummary summarise_weights(const ArchiveReader& archive, const ModelFiles& files, const ElfImage& so,
                                 bool include_weights, const ModelSpec& spec);

}  // namespace sconce
