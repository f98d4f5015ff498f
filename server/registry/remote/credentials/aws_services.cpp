// Providers that query a service: STS, a container's agent, an instance's metadata service.
#include <algorithm>

#include "sconce/check.h"
#include "server/http/client/url_text.h"
#include "server/registry/remote/credentials/aws_answers.h"
#include "server/registry/remote/credentials/aws_providers.h"
#include "server/registry/remote/credentials/aws_signature.h"
#include "server/support/failure.h"
#include "server/support/trim.h"
#include "src/support/excerpt.h"

namespace sconce::server::registry {
namespace {

constexpr std::string_view kLineEnds = " \t\r\n";

// Time limits like those of Amazon's SDKs for nearby services.
TransferSettings for_near_service(TransferSettings settings, std::chrono::milliseconds connect) {
  settings.connect = connect;
  settings.stall = std::chrono::seconds(5);
  settings.tries = 3;
  return settings;
}

std::string region_of(const Environment& environment) {
  std::string region = environment.first({"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (region.empty()) {
    const AwsProfiles profiles(environment);
    region = profiles.value(profiles.chosen(), "region");
  }
  check_field_value(region, "the region of STS");
  return region;
}

std::string sts_url(const Environment& environment, const std::string& region) {
  const std::string named =
      checked_endpoint(environment.first({"AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"}), "AWS_ENDPOINT_URL_STS");
  if (!named.empty()) return named + "/";
  if (region.empty()) return "https://sts.amazonaws.com/";
  return "https://sts." + region + (region.starts_with("cn-") ? ".amazonaws.com.cn/" : ".amazonaws.com/");
}

RemoteRequest sts_request(const std::string& url, const std::string& action, const std::string& role,
                          const std::string& session) {
  RemoteRequest request;
  request.url = url;
  request.fields = {"Content-Type: application/x-www-form-urlencoded"};
  request.body = "Action=" + action + "&Version=2011-06-15&RoleArn=" + http::encoded_value(role) +
                 "&RoleSessionName=" + http::encoded_value(session);
  return request;
}

// Whether plain http may carry credentials to the host: this machine, and the addresses of the platforms' agents.
bool is_agent(std::string_view url) {
  const std::string_view authority = http::authority_of(url);
  const std::string_view host = authority.starts_with('[') ? authority.substr(0, authority.find(']') + 1)
                                                           : authority.substr(0, authority.find(':'));
  constexpr std::string_view kHosts[] = {"localhost", "[::1]", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
  const bool is_loopback = host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
  return is_loopback || std::find(std::begin(kHosts), std::end(kHosts), host) != std::end(kHosts);
}

}  // namespace

std::optional<IssuedCredentials> AwsWebIdentity::fetch() {
  const std::string token(trim(needed_text_of_file(identity_.token_file, identity_.where), kLineEnds));
  SCONCE_CHECK(!token.empty(), kNotFound, identity_.token_file, " is empty");
  RemoteRequest request = sts_request(sts_url(environment_, region_of(environment_)), "AssumeRoleWithWebIdentity",
                                      identity_.role, identity_.session);
  request.body += "&WebIdentityToken=" + http::encoded_value(token);
  return parse_issued_xml(Transfer(transfer_).document(request, ""));
}

std::optional<IssuedCredentials> AwsAssumedRole::fetch() {
  const std::optional<IssuedCredentials> source = source_->fetch();
  SCONCE_CHECK(source, kForbidden, source_->name(), " has none");
  std::string region = region_of(environment_);
  const std::string url = sts_url(environment_, region);
  if (region.empty()) region = "us-east-1";
  RemoteRequest request = sts_request(url, "AssumeRole", role_.arn, role_.session);
  if (!role_.external_id.empty()) request.body += "&ExternalId=" + http::encoded_value(role_.external_id);
  sign_for_aws(request, *source, region, "sts", std::chrono::system_clock::now());
  return parse_issued_xml(Transfer(transfer_).document(request, ""));
}

std::optional<IssuedCredentials> AwsContainer::fetch() {
  std::string url = environment_("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (const std::string path = environment_("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); !path.empty()) {
    SCONCE_CHECK(path.starts_with('/'), kInvalidArgument,
                 "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: it must begin with a slash");
    url = "http://169.254.170.2" + path;
  }
  check_field_value(url, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
  SCONCE_CHECK(
      url.starts_with("https://") || (url.starts_with("http://") && is_agent(url)), kForbidden,
      "AWS_CONTAINER_CREDENTIALS_FULL_URI: plain http is taken of this machine, of 169.254.170.2, 169.254.170.23 "
      "and [fd00:ec2::23] alone");
  RemoteRequest request;
  request.url = url;
  request.direct = url.starts_with("http://");
  std::string token = environment_("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const std::string file = environment_("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); !file.empty())
    token = trim(needed_text_of_file(file, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"), kLineEnds);
  SCONCE_CHECK(token.find_first_of("\r\n") == std::string::npos, kInvalidArgument,
               "AWS_CONTAINER_AUTHORIZATION_TOKEN: it has more than one line");
  if (!token.empty()) request.fields.push_back("Authorization: " + token);
  return parse_issued_json(Transfer(for_near_service(transfer_, std::chrono::seconds(2))).document(request, ""));
}

std::optional<IssuedCredentials> AwsInstance::fetch() {
  std::string endpoint =
      checked_endpoint(environment_("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "AWS_EC2_METADATA_SERVICE_ENDPOINT");
  const bool was_named = !endpoint.empty();
  if (!was_named)
    endpoint = environment_("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE") == "IPv6" ? "http://[fd00:ec2::254]"
                                                                                : "http://169.254.169.254";
  TransferSettings near = for_near_service(transfer_, std::chrono::seconds(1));
  near.tries = 1;
  Transfer transfer(near);
  RemoteRequest request;
  request.direct = true;
  request.method = "PUT";
  request.url = endpoint + "/latest/api/token";
  request.fields = {"x-aws-ec2-metadata-token-ttl-seconds: 21600"};
  std::string token;
  const std::exception_ptr problem = exception_of([&] { token = trim(transfer.document(request, ""), kLineEnds); });
  if (problem) {
    SCONCE_CHECK(!near.stop || !*near.stop, kCancelled, "cancelled");
    if (was_named) std::rethrow_exception(problem);
    return std::nullopt;  // not an EC2 instance
  }
  check_field_value(token, "the metadata service's token");
  request.method.clear();
  request.fields = {"x-aws-ec2-metadata-token: " + token};
  const std::string roles = endpoint + "/latest/meta-data/iam/security-credentials/";
  request.url = roles;
  std::string role;
  const std::exception_ptr none = exception_of([&] { role = transfer.document(request, ""); });
  if (none && describe_failure(none).code == ErrorCode::kNotFound) return std::nullopt;  // the instance has no role
  if (none) std::rethrow_exception(none);
  role = trim(role.substr(0, role.find('\n')), kLineEnds);
  check_field_value(role, "the name of the instance's role");
  if (role.empty()) return std::nullopt;
  request.url = roles + http::encoded_value(role);
  return parse_issued_json(transfer.document(request, ""));
}

}  // namespace sconce::server::registry
