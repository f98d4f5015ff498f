#include "server/remote/remote_access.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "sconce/check.h"
#include "server/base/trim.h"

namespace sconce::server {
namespace {

constexpr size_t kMostText = 1 << 20;
constexpr std::string_view kBlanks = " \t\r\n";

std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostText, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

void check_value(const std::string& value, const char* what) {
  SCONCE_CHECK(std::all_of(value.begin(), value.end(), [](char c) { return c > 0x20 && c < 0x7f; }), kInvalidArgument,
               what, ": it has a space or a character that no header field may have");
}

void check_endpoint(std::string& endpoint, const char* what) {
  while (endpoint.ends_with('/')) endpoint.pop_back();
  check_value(endpoint, what);
  SCONCE_CHECK(endpoint.empty() || endpoint.starts_with("https://") || endpoint.starts_with("http://"),
               kInvalidArgument, what, ": it must begin with https://");
  SCONCE_CHECK(endpoint.find_first_of("?#@") == std::string::npos, kInvalidArgument, what, ": it is no plain URL");
}

std::string authority_of(std::string_view url) {
  url.remove_prefix(url.find("://") + 3);
  return std::string(url.substr(0, url.find_first_of("/?")));
}

const BucketAccess& access_of(const RemoteUrl& url, const RemoteAccess& access) {
  return url.scheme == RemoteScheme::kS3 ? access.s3 : access.gs;
}

// Where the bucket is, without a slash at the end.
std::string bucket_url(const RemoteUrl& url, const BucketAccess& access) {
  if (!access.endpoint.empty()) return access.endpoint + "/" + url.origin;
  if (url.scheme == RemoteScheme::kGs) return "https://storage.googleapis.com/" + url.origin;
  // A certificate for *.s3.amazonaws.com is none for names with further dots.
  const std::string host = "s3." + access.region + ".amazonaws.com";
  return url.origin.find('.') == std::string::npos ? "https://" + url.origin + "." + host
                                                   : "https://" + host + "/" + url.origin;
}

RemoteRequest signed_request(std::string url, const BucketAccess& access) {
  RemoteRequest request;
  request.url = std::move(url);
  if (access.key.empty()) return request;
  request.signature = "aws:amz:" + access.region + ":s3";
  request.user = access.key + ":" + access.secret;
  // libcurl 7.88 signs the host without its port, unless the field is given.
  request.fields.push_back("Host: " + authority_of(request.url));
  request.fields.push_back("x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  if (!access.session.empty()) request.fields.push_back("x-amz-security-token: " + access.session);
  return request;
}

}  // namespace

std::string ini_value(std::string_view text, std::string_view section, std::string_view name) {
  bool inside = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end), kBlanks);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[' && line.back() == ']') {
      inside = trim(line.substr(1, line.size() - 2)) == section;
      continue;
    }
    const size_t equals = line.find('=');
    if (inside && equals != std::string_view::npos && trim(line.substr(0, equals)) == name)
      return std::string(trim(line.substr(equals + 1)));
  }
  return {};
}

RemoteAccess read_remote_access(const std::function<const char*(const char*)>& variable) {
  const auto value = [&](const char* name) {
    const char* text = variable(name);
    return std::string(text ? text : "");
  };
  const auto first = [&](std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (std::string text = value(name); !text.empty()) return text;
    return std::string();
  };
  const std::string home = value("HOME");
  RemoteAccess access;

  const std::string chosen = first({"AWS_PROFILE"}), profile = chosen.empty() ? "default" : chosen;
  access.s3.key = value("AWS_ACCESS_KEY_ID");
  access.s3.secret = value("AWS_SECRET_ACCESS_KEY");
  access.s3.session = value("AWS_SESSION_TOKEN");
  if (access.s3.key.empty() || access.s3.secret.empty()) {
    const std::string named = value("AWS_SHARED_CREDENTIALS_FILE");
    const std::string text = text_of_file(named.empty() ? home + "/.aws/credentials" : named);
    access.s3.key = ini_value(text, profile, "aws_access_key_id");
    access.s3.secret = ini_value(text, profile, "aws_secret_access_key");
    access.s3.session = ini_value(text, profile, "aws_session_token");
    if (access.s3.secret.empty()) access.s3 = {};
  }
  access.s3.region = first({"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (access.s3.region.empty()) {
    const std::string named = value("AWS_CONFIG_FILE");
    access.s3.region = ini_value(text_of_file(named.empty() ? home + "/.aws/config" : named),
                                 profile == "default" ? profile : "profile " + profile, "region");
  }
  if (access.s3.region.empty()) access.s3.region = "us-east-1";
  access.s3.endpoint = first({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});

  access.gs.key = value("GS_ACCESS_KEY_ID");
  access.gs.secret = value("GS_SECRET_ACCESS_KEY");
  access.gs.region = "auto";
  access.gs.endpoint = value("GS_ENDPOINT_URL");

  access.hub_token = value("HF_TOKEN");
  if (access.hub_token.empty()) {
    std::string path = value("HF_TOKEN_PATH");
    if (path.empty()) path = (value("HF_HOME").empty() ? home + "/.cache/huggingface" : value("HF_HOME")) + "/token";
    access.hub_token = trim(text_of_file(path), kBlanks);
  }
  access.hub_endpoint = value("HF_ENDPOINT");
  if (access.hub_endpoint.empty()) access.hub_endpoint = "https://huggingface.co";

  for (const BucketAccess* bucket : {&access.s3, &access.gs}) {
    const char* what = bucket == &access.s3 ? "the credentials or the region of s3" : "the credentials of gs";
    for (const std::string* text : {&bucket->key, &bucket->secret, &bucket->session, &bucket->region})
      check_value(*text, what);
    SCONCE_CHECK(bucket->region.find_first_of(":/?#@") == std::string::npos, kInvalidArgument, what,
                 ": not the name of a region");
  }
  check_value(access.hub_token, "the token of hf");
  check_endpoint(access.s3.endpoint, "AWS_ENDPOINT_URL");
  check_endpoint(access.gs.endpoint, "GS_ENDPOINT_URL");
  check_endpoint(access.hub_endpoint, "HF_ENDPOINT");
  return access;
}

RemoteRequest request_for(const RemoteUrl& url, const RemoteAccess& access) {
  RemoteRequest request;
  switch (url.scheme) {
    case RemoteScheme::kS3:
    case RemoteScheme::kGs: {
      const BucketAccess& bucket = access_of(url, access);
      return signed_request(bucket_url(url, bucket) + "/" + encoded_path(url.path), bucket);
    }
    case RemoteScheme::kHub:
      request.url = access.hub_endpoint + "/" + url.origin + "/resolve/" + encoded_value(url.revision) + "/" +
                    encoded_path(url.path);
      if (!access.hub_token.empty()) request.fields.push_back("Authorization: Bearer " + access.hub_token);
      return request;
    default:
      request.url = url.key();
      request.netrc = true;
      return request;
  }
}

RemoteRequest listing_request(const RemoteUrl& prefix, const RemoteAccess& access, std::string_view token) {
  const BucketAccess& bucket = access_of(prefix, access);
  // In the order of the names, which signatures need and libcurl 7.88 does not see to.
  std::string query = "/?";
  if (!token.empty()) query += "continuation-token=" + encoded_value(token) + "&";
  query += "list-type=2&prefix=" + encoded_value(prefix.path.empty() ? "" : prefix.path + "/");
  return signed_request(bucket_url(prefix, bucket) + query, bucket);
}

RemoteRequest tree_request(const RemoteUrl& prefix, const RemoteAccess& access) {
  RemoteRequest request;
  request.url = access.hub_endpoint + "/api/models/" + prefix.origin + "/tree/" + encoded_value(prefix.revision) +
                (prefix.path.empty() ? "" : "/" + encoded_path(prefix.path)) + "?recursive=true";
  if (!access.hub_token.empty()) request.fields.push_back("Authorization: Bearer " + access.hub_token);
  return request;
}

}  // namespace sconce::server
