// `sconce verify`: checks the signatures of packages, weights and libraries of operators.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "sconce/check.h"
#include "server/cli/command.h"
#include "server/signing/signed_file.h"
#include "server/support/failure.h"

namespace sconce::server::cli {
namespace {

struct VerifyOptions {
  std::vector<std::string> files, keys;
  std::string signature;
};

// Returns 0 if each file has a valid signature.
int verify(const VerifyOptions& options) {
  std::vector<signing::Key> keys;
  for (const std::string& path : options.keys) {
    const std::vector<signing::Key> found = signing::read_keys(path, signing::Key::Kind::kPublic);
    keys.insert(keys.end(), found.begin(), found.end());
  }
  int status = 0;
  for (const std::string& file : options.files) {
    std::filesystem::path signature = options.signature;
    if (options.signature.empty()) signature = signing::signature_beside(file);
    signing::Verified verified;
    const std::exception_ptr problem =
        exception_of([&] { verified = signing::read_signed(file, signature, keys).verified; });
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

}  // namespace

Action add_verify(CommandLine& app) {
  auto options = std::make_shared<VerifyOptions>();
  app.option("FILE", options->files, "Signed packages, weights or libraries of operators").required();
  app.option("--key", options->keys, "Check the signatures by this public key in PEM; may be given again")
      .placeholder("PUBLIC_KEY")
      .one_each();
  app.option("--signature", options->signature, "The signature's file instead of FILE.sig").placeholder("SIG");
  for (const char* const name : {"--tolerance", "--weights"}) app.former_option(name, "sconce compare");  // deprecated
  app.footer("Exit status: 0 all are valid, 1 one is not, 2 a file cannot be read.");
  app.checked([options] {
    SCONCE_CHECK(!options->keys.empty(), kInvalidArgument,
                 "verify needs --key: it checks signatures. `sconce compare` compares with a PyTorch model");
    SCONCE_CHECK(options->signature.empty() || options->files.size() == 1, kInvalidArgument,
                 "--signature is for one file");
  });
  return [options] { return verify(*options); };
}

}  // namespace sconce::server::cli
