// `sconce verify`: with --key, checks signatures. Otherwise compares with the PyTorch model, which Python does, with
// the options that are checked here. Without a Python that has Sconce it reports an error, because packages of
// distributions do not include it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>

#include "sconce/check.h"
#include "server/cli/command.h"
#include "server/signing/signed_file.h"
#include "server/support/failure.h"

namespace sconce::server::commands {
namespace {

struct VerifyOptions {
  std::string package, tolerance;
  std::vector<std::string> others;  // the model, or more packages
  std::vector<std::string> keys;
  std::string signature;
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

// Returns 0 if each file has a valid signature.
int verify_signatures(const VerifyOptions& options) {
  std::vector<Key> keys;
  for (const std::string& path : options.keys) {
    const std::vector<Key> found = read_keys(path, Key::Kind::kPublic);
    keys.insert(keys.end(), found.begin(), found.end());
  }
  std::vector<std::string> files = options.others;
  files.insert(files.begin(), options.package);
  int status = 0;
  for (const std::string& file : files) {
    std::filesystem::path signature = options.signature;
    if (options.signature.empty()) signature = signature_beside(file);
    Verified verified;
    const std::exception_ptr problem = exception_of([&] { verified = read_signed(file, signature, keys).verified; });
    if (!problem) {
      std::cout << fmt::format("{}: signed by {} ({})\n", file, verified.key_id, verified.key_file);
      continue;
    }
    const Failure failure = describe_failure(problem);
    std::cout << fmt::format("{}: {}\n", file, failure.message);
    status = failure.code == ErrorCode::kForbidden ? std::max(status, 1) : 2;
  }
  return status;
}

int verify(const VerifyOptions& options) {
  if (!options.keys.empty()) return verify_signatures(options);
  // The Python module runs packages with this program.
  setenv("SCONCE_PROGRAM", std::filesystem::read_symlink("/proc/self/exe").c_str(), 0);
  std::vector<std::string> words = {"python3", "-c", kStart};
  if (!options.tolerance.empty()) words.insert(words.end(), {"--tolerance", options.tolerance});
  if (options.weights) words.emplace_back("--weights");
  words.insert(words.end(), {"--", options.package, options.others.front()});
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
  app.option("PACKAGE", options->package, "The .pt2 file; with --key, any signed file").required();
  app.option("MODEL", options->others,
             "module:function, which returns the model and its arguments in Python; with --key, more files");
  app.option("--key", options->keys, "Check the signatures by this public key in PEM; may be given again")
      .placeholder("PUBLIC_KEY")
      .one_each();
  app.option("--signature", options->signature, "With --key: the signature's file instead of PACKAGE.sig")
      .placeholder("SIG");
  app.option("--tolerance", options->tolerance,
             "How far floating-point outputs may be off, as a share of the largest value")
      .placeholder("SHARE");
  app.flag("--weights", options->weights, "Give the package the model's state_dict() before it runs");
  app.footer(
      "Without --key, runs `python3 -m sconce.verify`, which needs torch and Sconce's wheel.\n"
      "Exit status: 0 all agree, 1 something differs, 2 it could not be compared.");
  app.checked([options] {
    SCONCE_CHECK(!options->keys.empty() || (options->others.size() == 1 && options->signature.empty()),
                 kInvalidArgument, "verify needs PACKAGE and MODEL, or --key and packages");
    SCONCE_CHECK(options->signature.empty() || options->others.empty(), kInvalidArgument,
                 "--signature is for one file");
  });
  return [options] { return verify(*options); };
}

}  // namespace sconce::server::commands
