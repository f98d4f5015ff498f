#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "sconce/runnable.h"
#include "server/cli/command.h"

namespace sconce::server::cli {
namespace {

struct OpsOptions {
  std::string filter;
  bool json = false;
};

int list(const OpsOptions& options) {
  nlohmann::json found = nlohmann::json::array();
  for (const std::string& name : implemented_operators())
    if (name.find(options.filter) != std::string::npos) found.push_back(name);
  if (options.json)
    std::cout << found.dump(1) << "\n";
  else
    for (const nlohmann::json& name : found) std::cout << name.get_ref<const std::string&>() << "\n";
  return found.empty() ? 1 : 0;
}

}  // namespace

Action add_ops(CommandLine& app) {
  auto options = std::make_shared<OpsOptions>();
  app.option("TEXT", options->filter, "Only operators whose name contains this text");
  app.flag("--json", options->json, "As a JSON array");
  return [options] { return list(*options); };
}

}  // namespace sconce::server::cli
