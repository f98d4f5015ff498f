// Providers of credentials for S3, in the order of Amazon's SDKs (docs/remote.md).
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "server/registry/remote/credentials/credential_cache.h"
#include "server/registry/remote/credentials/environment.h"
#include "server/registry/remote/transfer/transfer.h"

namespace sconce::server::registry {

// The files ~/.aws/credentials and ~/.aws/config, and the selected profile.
class AwsProfiles {
 public:
  explicit AwsProfiles(const Environment& environment);
  const std::string& chosen() const noexcept { return chosen_; }
  bool was_named() const noexcept { return named_; }
  bool exists(const std::string& profile) const;
  // From the credentials file, else from the config file; empty: absent in both.
  std::string value(const std::string& profile, std::string_view name) const;
  const std::string& where() const noexcept { return where_; }

 private:
  std::string chosen_, where_, credentials_, config_;
  bool named_ = false;
};

// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN.
class AwsEnvironmentKeys final : public CredentialProvider {
 public:
  explicit AwsEnvironmentKeys(Environment environment) : environment_(std::move(environment)) {}
  std::string name() const override { return "the environment (AWS_ACCESS_KEY_ID)"; }
  std::optional<IssuedCredentials> fetch() override;

 private:
  const Environment environment_;
};

// Keys of a profile.
class AwsProfileKeys final : public CredentialProvider {
 public:
  AwsProfileKeys(Environment environment, std::string profile)
      : environment_(std::move(environment)), profile_(std::move(profile)) {}
  std::string name() const override;
  std::optional<IssuedCredentials> fetch() override;

 private:
  const Environment environment_;
  const std::string profile_;
};

// Issues credentials for a token in a file that the platform writes: AssumeRoleWithWebIdentity of Amazon's STS, as EKS
// uses it.
struct WebIdentity {
  std::string role, token_file, session;
  std::string where;  // source of the configuration, for errors
};

class AwsWebIdentity final : public CredentialProvider {
 public:
  AwsWebIdentity(Environment environment, TransferSettings transfer, WebIdentity identity)
      : environment_(std::move(environment)), transfer_(std::move(transfer)), identity_(std::move(identity)) {}
  std::string name() const override { return "web identity (" + identity_.where + ")"; }
  std::optional<IssuedCredentials> fetch() override;

 private:
  const Environment environment_;
  const TransferSettings transfer_;
  const WebIdentity identity_;
};

// A role assumed with the credentials of another provider: AssumeRole of Amazon's STS.
class AwsAssumedRole final : public CredentialProvider {
 public:
  struct Role {
    std::string arn, session, external_id;
  };
  AwsAssumedRole(Environment environment, TransferSettings transfer, Role role,
                 std::unique_ptr<CredentialProvider> source)
      : environment_(std::move(environment)),
        transfer_(std::move(transfer)),
        role_(std::move(role)),
        source_(std::move(source)) {}
  std::string name() const override { return "the role " + role_.arn + ", by " + source_->name(); }
  std::optional<IssuedCredentials> fetch() override;

 private:
  const Environment environment_;
  const TransferSettings transfer_;
  const Role role_;
  const std::unique_ptr<CredentialProvider> source_;
};

// The program of a profile's credential_process, run by the shell.
class AwsProcess final : public CredentialProvider {
 public:
  // longest: maximum run time; the default is that of Amazon's SDKs.
  AwsProcess(std::string profile, std::string command, std::chrono::milliseconds longest = std::chrono::seconds(60))
      : profile_(std::move(profile)), command_(std::move(command)), longest_(longest) {}
  std::string name() const override { return "credential_process of the profile '" + profile_ + "'"; }
  std::optional<IssuedCredentials> fetch() override;

 private:
  const std::string profile_, command_;
  const std::chrono::milliseconds longest_;
};

// The agent of ECS or of EKS's pod identity, at AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI.
class AwsContainer final : public CredentialProvider {
 public:
  AwsContainer(Environment environment, TransferSettings transfer)
      : environment_(std::move(environment)), transfer_(std::move(transfer)) {}
  std::string name() const override { return "the container's agent (AWS_CONTAINER_CREDENTIALS_*_URI)"; }
  std::optional<IssuedCredentials> fetch() override;

 private:
  const Environment environment_;
  const TransferSettings transfer_;
};

// The metadata service of an EC2 instance, version 2. nullopt without the service or without a role.
class AwsInstance final : public CredentialProvider {
 public:
  AwsInstance(Environment environment, TransferSettings transfer)
      : environment_(std::move(environment)), transfer_(std::move(transfer)) {}
  std::string name() const override { return "the instance's metadata service"; }
  std::optional<IssuedCredentials> fetch() override;

 private:
  const Environment environment_;
  const TransferSettings transfer_;
};

// The provider in a profile of ~/.aws: keys, a role, or a program. Null: none. kUnsupported for single sign-on;
// kInvalidArgument for a cycle of profiles.
std::unique_ptr<CredentialProvider> aws_profile_provider(const Environment& environment,
                                                         const TransferSettings& transfer, const AwsProfiles& profiles,
                                                         const std::string& profile, int depth = 0);

// The first configured provider of these: keys in the environment, web identity, the profile, the container's agent,
// the instance's metadata service. transfer: for requests to services that issue credentials.
std::unique_ptr<CredentialProvider> aws_credentials(Environment environment, TransferSettings transfer);

}  // namespace sconce::server::registry
