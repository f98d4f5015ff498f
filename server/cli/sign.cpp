// `sconce sign`: signs packages and other files for servers with require_signature.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "sconce/check.h"
#include "server/cli/command.h"
#include "server/signing/sign_file.h"
#include "server/signing/signed_file.h"

namespace sconce::server::cli {
namespace {

struct SignOptions {
  std::vector<std::string> files;
  std::string key, output;
  bool inside = false;
};

int sign(const SignOptions& options) {
  const std::vector<signing::Key> keys = signing::read_keys(options.key, signing::Key::Kind::kPrivate);
  SCONCE_CHECK(keys.size() == 1, kInvalidArgument, options.key, " has ", keys.size(), " keys; it must have one");
  const signing::Key& key = keys.front();
  for (const std::string& file : options.files) {
    std::filesystem::path signature = options.output;
    if (options.output.empty()) signature = signing::signature_beside(file);
    if (options.inside)
      signing::sign_inside(file, key);
    else
      signing::sign_beside(file, key, signature);
    std::cout << fmt::format("{}: signed by {}{}\n", file, key.id(),
                             options.inside ? ", inside" : " in " + signature.string());
  }
  return 0;
}

}  // namespace

Action add_sign(CommandLine& app) {
  auto options = std::make_shared<SignOptions>();
  app.option("FILE", options->files, "Packages (.pt2), weights or libraries of operators").required();
  app.option("--key", options->key, "The private key in PEM: Ed25519, or ECDSA on P-256").placeholder("KEY").required();
  app.flag("--inside", options->inside, "Put the signature into the package instead of beside it");
  app.option("--output", options->output, "Write the signature there instead of to FILE.sig").placeholder("SIG");
  app.footer(
      "Create keys with OpenSSL: openssl genpkey -algorithm ed25519 -out key.pem\n"
      "The public key: openssl pkey -in key.pem -pubout -out public.pem");
  app.checked([options] {
    SCONCE_CHECK(options->output.empty() || (!options->inside && options->files.size() == 1), kInvalidArgument,
                 "--output is for one file, and not with --inside");
  });
  return [options] { return sign(*options); };
}

}  // namespace sconce::server::cli
