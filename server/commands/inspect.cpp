#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "server/commands/command.h"
#include "server/commands/description.h"
#include "server/commands/load_settings.h"

namespace sconce::server::commands {
namespace {

struct InspectOptions {
  std::string path, model;
  bool json = false, all = false;
};

int inspect(const InspectOptions& options) {
  const std::shared_ptr<const Package> package = Package::open(options.path);
  if (!options.model.empty()) package->model(options.model);  // kNotFound names what there is
  std::vector<const ModelSpec*> models;
  for (const ModelSpec& model : package->models())
    if (options.model.empty() || model.name == options.model) models.push_back(&model);
  if (options.json)
    std::cout << describe_json(*package, models).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  else
    std::cout << describe_text(*package, models, options.all);
  return 0;
}

}  // namespace

Action add_inspect(CommandLine& app) {
  auto options = std::make_shared<InspectOptions>();
  add_package_option(app, options->path);
  app.option("--model", options->model, "Only this model of the archive");
  app.flag("--json", options->json, "As JSON");
  app.flag("--all", options->all, "Every constant and operator, however many");
  return [options] { return inspect(*options); };
}

}  // namespace sconce::server::commands
