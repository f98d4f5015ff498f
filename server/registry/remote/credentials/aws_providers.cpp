#include "server/registry/remote/credentials/aws_providers.h"

#include <algorithm>

#include "sconce/check.h"
#include "server/registry/remote/credentials/provider_chain.h"
#include "src/support/excerpt.h"

namespace sconce::server::registry {
namespace {

constexpr int kDeepest = 5;  // maximum depth of profiles that refer to each other

void check_keys(const IssuedCredentials& keys, const std::string& what) {
  for (const std::string* const text : {&keys.key, &keys.secret, &keys.session}) check_field_value(*text, what);
}

// The section name of a profile in the config file.
std::string config_section(const std::string& profile) { return profile == "default" ? profile : "profile " + profile; }

// Null: none is configured.
std::unique_ptr<CredentialProvider> find_aws(const Environment& environment, const TransferSettings& transfer) {
  if (!environment("AWS_ACCESS_KEY_ID").empty() && !environment("AWS_SECRET_ACCESS_KEY").empty())
    return std::make_unique<AwsEnvironmentKeys>(environment);
  const std::string role = environment("AWS_ROLE_ARN"), token_file = environment("AWS_WEB_IDENTITY_TOKEN_FILE");
  if (!token_file.empty()) {
    SCONCE_CHECK(!role.empty(), kInvalidArgument, "AWS_WEB_IDENTITY_TOKEN_FILE is set, and AWS_ROLE_ARN is not");
    std::string session = environment("AWS_ROLE_SESSION_NAME");
    if (session.empty()) session = "sconce";
    return std::make_unique<AwsWebIdentity>(
        environment, transfer, WebIdentity{role, token_file, session, "AWS_ROLE_ARN, AWS_WEB_IDENTITY_TOKEN_FILE"});
  }
  const AwsProfiles profiles(environment);
  const std::string& profile = profiles.chosen();
  SCONCE_CHECK(!profiles.was_named() || profiles.exists(profile), kNotFound, "there is no profile '", excerpt(profile),
               "' (AWS_PROFILE) in ", profiles.where());
  if (auto found = aws_profile_provider(environment, transfer, profiles, profile)) return found;
  SCONCE_CHECK(!profiles.was_named(), kNotFound, "the profile '", excerpt(profile),
               "' (AWS_PROFILE) has no credentials in ", profiles.where());
  if (!environment.first({"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"}).empty())
    return std::make_unique<AwsContainer>(environment, transfer);
  std::string disabled = environment("AWS_EC2_METADATA_DISABLED");
  std::transform(disabled.begin(), disabled.end(), disabled.begin(),
                 [](char c) { return static_cast<char>(c | 0x20); });
  if (disabled != "true") return std::make_unique<AwsInstance>(environment, transfer);
  return nullptr;
}

}  // namespace

AwsProfiles::AwsProfiles(const Environment& environment) {
  chosen_ = environment.first({"AWS_PROFILE", "AWS_DEFAULT_PROFILE"});
  named_ = !chosen_.empty();
  if (!named_) chosen_ = "default";
  const std::string keys = environment("AWS_SHARED_CREDENTIALS_FILE"), config = environment("AWS_CONFIG_FILE");
  const std::string keys_path = keys.empty() ? environment.home(".aws/credentials") : keys;
  const std::string config_path = config.empty() ? environment.home(".aws/config") : config;
  credentials_ = text_of_file(keys_path);
  config_ = text_of_file(config_path);
  where_ = keys_path + " or " + config_path;
}

bool AwsProfiles::exists(const std::string& profile) const {
  return has_section(credentials_, profile) || has_section(config_, config_section(profile));
}

std::string AwsProfiles::value(const std::string& profile, std::string_view name) const {
  std::string found = ini_value(credentials_, profile, name);
  return found.empty() ? ini_value(config_, config_section(profile), name) : found;
}

std::optional<IssuedCredentials> AwsEnvironmentKeys::fetch() {
  IssuedCredentials keys;
  keys.key = environment_("AWS_ACCESS_KEY_ID");
  keys.secret = environment_("AWS_SECRET_ACCESS_KEY");
  keys.session = environment_("AWS_SESSION_TOKEN");
  check_keys(keys, "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or AWS_SESSION_TOKEN");
  return keys;
}

std::string AwsProfileKeys::name() const { return "the profile '" + excerpt(profile_) + "'"; }

std::optional<IssuedCredentials> AwsProfileKeys::fetch() {
  const AwsProfiles profiles(environment_);
  IssuedCredentials keys;
  keys.key = profiles.value(profile_, "aws_access_key_id");
  keys.secret = profiles.value(profile_, "aws_secret_access_key");
  keys.session = profiles.value(profile_, "aws_session_token");
  SCONCE_CHECK(!keys.key.empty() && !keys.secret.empty(), kNotFound, "it has no keys in ", profiles.where());
  check_keys(keys, "its keys");
  return keys;
}

std::unique_ptr<CredentialProvider> aws_profile_provider(const Environment& environment,
                                                         const TransferSettings& transfer, const AwsProfiles& profiles,
                                                         const std::string& profile, int depth) {
  const auto value = [&](std::string_view name) { return profiles.value(profile, name); };
  SCONCE_CHECK(depth < kDeepest, kInvalidArgument, "the profiles of ", profiles.where(),
               " name each other as source_profile");
  const bool has_keys = !value("aws_secret_access_key").empty();
  if (const std::string role = value("role_arn"); !role.empty()) {
    std::string session = value("role_session_name");
    if (session.empty()) session = "sconce";
    if (const std::string file = value("web_identity_token_file"); !file.empty())
      return std::make_unique<AwsWebIdentity>(
          environment, transfer, WebIdentity{role, file, session, "the profile '" + excerpt(profile) + "'"});
    const std::string from = value("source_profile"), kind = value("credential_source");
    std::unique_ptr<CredentialProvider> source;
    if (from == profile) {
      source = std::make_unique<AwsProfileKeys>(environment, profile);
    } else if (!from.empty()) {
      source = aws_profile_provider(environment, transfer, profiles, from, depth + 1);
      SCONCE_CHECK(source, kNotFound, "the profile '", excerpt(from), "', source_profile of '", excerpt(profile),
                   "', has no credentials in ", profiles.where());
    } else if (kind == "Environment") {
      source = std::make_unique<AwsEnvironmentKeys>(environment);
    } else if (kind == "EcsContainer") {
      source = std::make_unique<AwsContainer>(environment, transfer);
    } else if (kind == "Ec2InstanceMetadata") {
      source = std::make_unique<AwsInstance>(environment, transfer);
    }
    SCONCE_CHECK(source, kInvalidArgument, "the profile '", excerpt(profile),
                 "' has a role_arn, and neither a source_profile nor a credential_source that is known");
    return std::make_unique<AwsAssumedRole>(
        environment, transfer, AwsAssumedRole::Role{role, session, value("external_id")}, std::move(source));
  }
  if (has_keys) return std::make_unique<AwsProfileKeys>(environment, profile);
  if (std::string command = value("credential_process"); !command.empty())
    return std::make_unique<AwsProcess>(profile, std::move(command));
  for (const char* const name : {"sso_session", "sso_start_url", "login_session"})
    SCONCE_CHECK(value(name).empty(), kUnsupported, "the profile '", excerpt(profile), "' is for single sign-on (",
                 name, "), which is not supported: credential_process = aws configure export-credentials --profile ",
                 excerpt(profile), " in another profile brings its credentials");
  return nullptr;
}

std::unique_ptr<CredentialProvider> aws_credentials(Environment environment, TransferSettings transfer) {
  return std::make_unique<ProviderChain>(
      [environment = std::move(environment), transfer = std::move(transfer)] {
        return find_aws(environment, transfer);
      },
      "neither AWS_ACCESS_KEY_ID nor AWS_ROLE_ARN, a profile, AWS_CONTAINER_CREDENTIALS_FULL_URI or an instance's role "
      "is there");
}

}  // namespace sconce::server::registry
