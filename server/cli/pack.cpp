#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <iostream>
#include <memory>

#include "sconce/package.h"
#include "server/cli/command.h"
#include "server/support/terminal/text.h"

namespace sconce::server::cli {
namespace {

struct PackOptions {
  std::string directory, archive;
};

int pack(const PackOptions& options) {
  pack_directory(options.directory, options.archive);
  const std::shared_ptr<const Package> package = Package::open(options.archive);
  std::vector<std::string> models;
  for (const ModelSpec& model : package->models()) models.push_back(model.name);
  std::cout << fmt::format("{}: {}, {}\n", options.archive, format_bytes(std::filesystem::file_size(options.archive)),
                           fmt::join(models, ", "));
  return 0;
}

}  // namespace

Action add_pack(CommandLine& app) {
  auto options = std::make_shared<PackOptions>();
  app.option("DIRECTORY", options->directory, "A directory with an archive's layout: data/aotinductor/MODEL/...")
      .required();
  app.option("PACKAGE", options->archive, "The .pt2 file to write").required();
  return [options] { return pack(*options); };
}

}  // namespace sconce::server::cli
