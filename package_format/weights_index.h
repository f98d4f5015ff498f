// Where the bytes of a model's stored constants are, for all forms in which PyTorch packages weights. FORMAT.md tells
// the rules. Nothing is copied: locations point into the archive, which the Package keeps.
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
  uint64_t bytes = 0;               // that are there; padding up to ConstantSpec::data_size may be missing
};

struct WeightsIndex {
  WeightsForm form = WeightsForm::kNone;
  // One per stored (not folded) constant, in order; empty where the form is kNone or kUserProvided.
  std::vector<WeightLocation> locations;
  // All data begin at multiples of 64 bytes in memory. False in archives of torch 2.6 and 2.7, whose members begin
  // anywhere (an int64 at an odd address), and in models whose constants are all on CUDA, which are not padded: such
  // data are to be copied before a CPU uses them.
  bool aligned = true;
};

// Throws kCorruptPackage where the sizes do not add up, kUnsupported for tensors pickled in a form that only Python
// reads; names the constant or member. kFailedPrecondition if the package has no source, which is what lists constants.
WeightsIndex locate_weights(const Package& package, const ModelSpec& model);

// The form, and the bytes of all weights; `include_weights` is the generated source's word, true without one.
struct WeightsSummary {
  WeightsForm form = WeightsForm::kNone;
  uint64_t bytes = 0;
  bool writable = false;  // embedded where the model may write: the graph mutates some constant
};
WeightsSummary summarise_weights(const ArchiveReader& archive, const ModelFiles& files, const ElfImage& so,
                                 bool include_weights, const ModelSpec& spec);

}  // namespace sconce
