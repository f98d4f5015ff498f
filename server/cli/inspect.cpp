#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "sconce/check.h"
#include "server/cli/command.h"
#include "server/cli/description.h"
#include "server/cli/inspect_report.h"
#include "server/cli/load_settings.h"

namespace sconce::server::cli {
namespace {

struct InspectOptions {
  std::string path, model, html;
  bool json = false, all = false;
};

int inspect(const InspectOptions& options) {
  const std::shared_ptr<const Package> package = Package::open(options.path);
  if (!options.model.empty()) package->model(options.model);  // kNotFound lists the available models
  std::vector<const ModelSpec*> models;
  for (const ModelSpec& model : package->models())
    if (options.model.empty() || model.name == options.model) models.push_back(&model);
  if (!options.html.empty()) {
    std::ofstream file(options.html, std::ios::binary | std::ios::trunc);
    file << inspect_page(*package, models);
    SCONCE_CHECK(file.flush(), kIo, "cannot write file: ", options.html);
    if (!options.json) return 0;
  }
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
  app.option("--html", options->html, "Write a self-contained page in place of the text").placeholder("FILE");
  app.flag("--all", options->all, "Every constant and operator, however many");
  return [options] { return inspect(*options); };
}

}  // namespace sconce::server::cli
