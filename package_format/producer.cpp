#include "package_format/producer.h"

#include <algorithm>

#include "package_format/text/source_text.h"
#include "sconce/check.h"

namespace sconce {
namespace {

struct Milestone {
  std::string_view exported;  // the first export of that version
  std::string_view version;
};

// Newest first.
constexpr Milestone kMilestones[] = {
    {"AOTInductorModelContainerSetUseStreamAffinity", "2.15 or later"},
    {"AOTInductorModelContainerCreateWithExternalConstants", "2.14"},
    {"AOTInductorGetLastError", "2.13"},
    {"AOTInductorModelContainerGetConstantsBlobSize", "2.10 to 2.12"},
    {"AOTInductorModelContainerExtractConstantsMap", "2.8 or 2.9"},
    {"AOTInductorModelContainerRunSingleThreaded", "2.7"},
    {"AOTInductorModelContainerGetConstantType", "2.6"},
};

}  // namespace

std::string find_producer(const ElfImage& so, std::string_view source, const std::string& member) {
  const auto has = [&](std::string_view name) { return so.exported(name).has_value(); };
  SCONCE_CHECK(has("AOTInductorModelContainerCreateWithDevice") || has("AOTInductorModelContainerCreate"), kUnsupported,
               "library is not an AOTInductor model: ", member);
  const auto found = std::find_if(std::begin(kMilestones), std::end(kMilestones),
                                  [&](const Milestone& milestone) { return has(milestone.exported); });
  SCONCE_CHECK(found != std::end(kMilestones), kUnsupported,
               "library was compiled by a version of PyTorch before 2.6, which is not supported: ", member);
  std::string_view version = found->version;
  if (version == "2.10 to 2.12" && !source.empty()) {
    const bool has_device = find_text(source, "constants_info_[0].device_type") != std::string_view::npos;
    const bool has_constants = find_text(source, "constants_info_[0].") != std::string_view::npos;
    if (has_constants) version = has_device ? "2.11 or 2.12" : "2.10";
  }
  return std::string("torch ").append(version);
}

}  // namespace sconce
