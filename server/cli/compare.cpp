// `sconce compare`: compares a package with its PyTorch model, which Python does, with the options that are checked
// here. Without a Python that has Sconce it reports an error, because packages of distributions do not include it.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sconce/check.h"
#include "server/cli/command.h"

namespace sconce::server::cli {
namespace {

struct CompareOptions {
  std::string package, model, tolerance;
  bool weights = false;
};

constexpr const char* kStart = R"(import sys
try:
    from sconce.compare import main
except ModuleNotFoundError as missing:
    if missing.name not in ("sconce", "sconce.compare"):
        raise
    sys.exit(print(f"sconce: compare runs the PyTorch model, so it needs Sconce's Python package, which "
                   f"{sys.executable} has not. Install the wheel beside torch, and run there: python3 -m sconce.compare",
                   file=sys.stderr) or 2)
sys.exit(main()))";

int compare(const CompareOptions& options) {
  // The Python module runs packages with this program.
  setenv("SCONCE_PROGRAM", std::filesystem::read_symlink("/proc/self/exe").c_str(), 0);
  std::vector<std::string> words = {"python3", "-c", kStart};
  if (!options.tolerance.empty()) words.insert(words.end(), {"--tolerance", options.tolerance});
  if (options.weights) words.emplace_back("--weights");
  words.insert(words.end(), {"--", options.package, options.model});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  SCONCE_CHECK(errno != ENOENT, kNotFound,
               "compare runs the PyTorch model, and there is no python3 on PATH. Install Sconce's wheel beside torch, "
               "and run there: python3 -m sconce.compare");
  SCONCE_FAIL(kIo, "cannot start python3: ", std::strerror(errno));
}

}  // namespace

Action add_compare(CommandLine& app) {
  auto options = std::make_shared<CompareOptions>();
  app.option("PACKAGE", options->package, "The .pt2 file").required();
  app.option("MODEL", options->model, "module:function, which returns the model and its arguments in Python")
      .required();
  app.option("--tolerance", options->tolerance,
             "How far floating-point outputs may be off, as a share of the largest value")
      .placeholder("SHARE");
  app.flag("--weights", options->weights, "Give the package the model's state_dict() before it runs");
  app.footer(
      "Runs `python3 -m sconce.compare`, which needs torch and Sconce's wheel.\n"
      "Exit status: 0 all agree, 1 something differs, 2 it could not be compared.");
  return [options] { return compare(*options); };
}

}  // namespace sconce::server::cli
