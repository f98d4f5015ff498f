#include "package_format/archive/archive_reader.h"
#include "sconce/check.h"
#include "sconce/runnable.h"
#include "src/loader/op_library.h"
#include "src/loader/preflight.h"

namespace sconce {

void check_runnable(const Package& package, std::string_view model_name,
                    std::span<const std::filesystem::path> op_libraries) {
  const auto opened = loader::OpLibrary::open_all(op_libraries);
  const ModelSpec& spec = package.model(model_name);
  const ArchiveMember* member = package.archive().find(spec.so_member);
  SCONCE_CHECK(member, kCorruptPackage, "model '", spec.name, "': member ", spec.so_member, " is gone");
  loader::preflight(spec, ElfImage(package.archive().read(*member), spec.so_member),
                    loader::extern_nodes(package, spec).get());
}

}  // namespace sconce
