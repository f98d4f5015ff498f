// `sconce verify`: compares with the PyTorch model, so Python does it, with the options that are checked here. Without
// a Python that has Sconce it says so: the packages of distributions bring none.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "sconce/check.h"
#include "server/commands/command.h"

namespace sconce::server::commands {
namespace {

struct VerifyOptions {
  std::string package, model, tolerance;
  bool weights = false;
};

constexpr const char* kStart = R"(import sys
try:
    from sconce.verify import main
except ModuleNotFoundError as missing:
    if missing.name not in ("sconce", "sconce.verify"):
        raise
    sys.exit(print(f"sconce: verify compares with the PyTorch model, so it needs Sconce's Python package, which "
                   f"{sys.executable} has not. Install the wheel beside torch, and run there: python3 -m sconce.verify",
                   file=sys.stderr) or 2)
sys.exit(main()))";

int verify(const VerifyOptions& options) {
  // A package without its module is run by this program.
  setenv("SCONCE_PROGRAM", std::filesystem::read_symlink("/proc/self/exe").c_str(), 0);
  std::vector<std::string> words = {"python3", "-c", kStart};
  if (!options.tolerance.empty()) words.insert(words.end(), {"--tolerance", options.tolerance});
  if (options.weights) words.emplace_back("--weights");
  words.insert(words.end(), {"--", options.package, options.model});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  SCONCE_CHECK(
      errno != ENOENT, kNotFound,
      "verify compares with the PyTorch model, and there is no python3 on PATH. Install Sconce's wheel beside torch, "
      "and run there: python3 -m sconce.verify");
  SCONCE_FAIL(kIo, "cannot start python3: ", std::strerror(errno));
}

}  // namespace

Action add_verify(CommandLine& app) {
  auto options = std::make_shared<VerifyOptions>();
  app.option("PACKAGE", options->package, "The .pt2 file").required();
  app.option("MODEL", options->model, "module:function, which returns the model and its arguments in Python")
      .required();
  app.option("--tolerance", options->tolerance,
             "How far floating-point outputs may be off, as a share of the largest value")
      .placeholder("SHARE");
  app.flag("--weights", options->weights, "Give the package the model's state_dict() before it runs");
  app.footer(
      "Runs `python3 -m sconce.verify`, which needs torch and Sconce's wheel.\n"
      "Exit status: 0 all agree, 1 something differs, 2 it could not be compared.");
  return [options] { return verify(*options); };
}

}  // namespace sconce::server::commands
