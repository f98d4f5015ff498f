#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "sconce/runnable.h"
#include "server/cli/command.h"
#include "server/cli/description.h"
#include "server/cli/load_settings.h"
#include "server/support/terminal/progress.h"
#include "server/support/terminal/text.h"

namespace sconce::server::cli {
namespace {

struct CheckOptions {
  std::string path, model;
  std::vector<std::string> op_libraries;
};

// main() sets the exit status of errors: 1 if the package would not run, 2 if it cannot be read.
int check(const CheckOptions& options) {
  const std::shared_ptr<const Package> package = Package::open(options.path);
  {
    ProgressBar bar("check");
    package->verify([&](uint64_t done, uint64_t total) { bar.show(done, total); });
  }
  const std::vector<std::filesystem::path> libraries(options.op_libraries.begin(), options.op_libraries.end());
  if (options.model.empty())
    for (const ModelSpec& model : package->models()) check_runnable(*package, model.name, libraries);
  else
    check_runnable(*package, options.model, libraries);
  std::cout << fmt::format("{}: {}\n", options.path, green("ok"));
  // A model with a batch dimension may share runs.
  for (const ModelSpec& model : package->models()) {
    const bool batch = std::any_of(model.inputs.begin(), model.inputs.end(), [](const TensorSpec& input) {
      return !input.dims.empty() && !input.dims[0].is_static();
    });
    if (batch && !model.rows.independent() && (options.model.empty() || options.model == model.name))
      std::cout << fmt::format("{}: {}\n", options.path, describe_rows(model));
  }
  return 0;
}

}  // namespace

Action add_check(CommandLine& app) {
  auto options = std::make_shared<CheckOptions>();
  add_package_option(app, options->path);
  app.option("--model", options->model, "Only this model of the archive");
  add_op_library_option(app, options->op_libraries);
  app.footer("Exit status: 0 sound and would run here, 1 will not run, 2 cannot be read.");
  return [options] { return check(*options); };
}

}  // namespace sconce::server::cli
