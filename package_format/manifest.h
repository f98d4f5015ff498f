// Finds the files of each model in an archive. Refuses packages that hold no compiled model (only sources, an
// ExportedProgram, TorchScript, a checkpoint), several libraries for one model, or TorchBind objects.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "package_format/archive/archive_reader.h"

namespace sconce {

// The members of one model; null if the package has none.
struct ModelFiles {
  std::string name;                               // folder below data/aotinductor/: "model"
  std::string folder;                             // with its slash; empty for a bare .so
  const ArchiveMember* so = nullptr;              // never null
  const ArchiveMember* wrapper = nullptr;         // generated host code
  std::vector<const ArchiveMember*> kernels;      // generated CPU kernels; torch 2.6 has them in the wrapper
  const ArchiveMember* metadata = nullptr;        // JSON, string to string
  const ArchiveMember* extern_nodes = nullptr;    // JSON: operators for the proxy executor
  const ArchiveMember* weights_blob = nullptr;    // all weights, back to back
  const ArchiveMember* weights_config = nullptr;  // JSON, name to file, shape, stride, offset
  // JSON of the ExportedProgram that may accompany the model: the graph, and its weights and constants by name.
  const ArchiveMember* program = nullptr;
  const ArchiveMember* program_weights = nullptr;
  const ArchiveMember* program_constants = nullptr;
};

// Sorted by name. kUnsupported names the kind of package; kCorruptPackage.
std::vector<ModelFiles> read_manifest(const ArchiveReader& archive);

// The members that belong to a library of the archive. kNotFound.
ModelFiles find_files(const ArchiveReader& archive, std::string_view so_member);

}  // namespace sconce
