#include "server/registry/remote/credentials/aws_signature.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>
#include <vector>

#include "server/http/client/url_text.h"
#include "server/support/hmac.h"
#include "src/support/hex.h"
#include "src/support/parse_number.h"
#include "src/support/sha256.h"

namespace sconce::server::registry {
namespace {

using Clock = std::chrono::system_clock;

std::string_view text_of(const Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string sha256_hex(std::string_view text) { return to_hex(sha256_of(std::as_bytes(std::span(text)))); }

std::string amazon_time(Clock::time_point now) {
  const std::time_t seconds = Clock::to_time_t(now);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 20> text{};
  const size_t length = std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts);
  return {text.data(), length};
}

std::optional<Clock::time_point> time_of(int year, unsigned month, unsigned day, int hour, int minute, int second) {
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second);
}

// The value of the digits at a position of the text; -1 if there are none.
int digits(std::string_view text, size_t at, size_t count) {
  if (at + count > text.size()) return -1;
  const auto number = parse_number<int>(text.substr(at, count));
  return number && *number >= 0 ? *number : -1;
}

}  // namespace

void sign_for_aws(RemoteRequest& request, const IssuedCredentials& credentials, const std::string& region,
                  const std::string& service, Clock::time_point now) {
  const std::string time = amazon_time(now), day = time.substr(0, 8);
  const std::string payload = sha256_hex(request.body);
  std::vector<std::pair<std::string, std::string>> fields = {
      {"host", std::string(http::authority_of(request.url))}, {"x-amz-content-sha256", payload}, {"x-amz-date", time}};
  if (!credentials.session.empty()) fields.emplace_back("x-amz-security-token", credentials.session);
  std::string canonical_fields, names;
  for (const auto& [name, value] : fields) {
    canonical_fields += name + ":" + value + "\n";
    names += (names.empty() ? "" : ";") + name;
  }
  std::string_view path = request.url;
  path.remove_prefix(http::origin_of(request.url).size());
  const size_t question = std::min(path.find('?'), path.size());
  const std::string_view query = question == path.size() ? std::string_view() : path.substr(question + 1);
  path = path.substr(0, question);
  const std::string method = !request.method.empty() ? request.method : request.body.empty() ? "GET" : "POST";
  const std::string canonical = method + "\n" + std::string(path.empty() ? "/" : path) + "\n" + std::string(query) +
                                "\n" + canonical_fields + "\n" + names + "\n" + payload;
  const std::string scope = day + "/" + region + "/" + service + "/aws4_request";
  const std::string text = "AWS4-HMAC-SHA256\n" + time + "\n" + scope + "\n" + sha256_hex(canonical);
  Sha256Digest key = hmac_sha256("AWS4" + credentials.secret, day);
  for (const std::string_view part :
       {std::string_view(region), std::string_view(service), std::string_view("aws4_request"), std::string_view(text)})
    key = hmac_sha256(text_of(key), part);
  for (const auto& [name, value] : fields) request.fields.push_back(name + ": " + value);
  request.fields.push_back("Authorization: AWS4-HMAC-SHA256 Credential=" + credentials.key + "/" + scope +
                           ", SignedHeaders=" + names + ", Signature=" + to_hex(key));
}

std::optional<Clock::time_point> parse_http_date(std::string_view text) {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  if (text.size() != 29 || !text.ends_with(" GMT")) return std::nullopt;
  const size_t month = kMonths.find(text.substr(8, 3));
  const int day = digits(text, 5, 2), year = digits(text, 12, 4), hour = digits(text, 17, 2),
            minute = digits(text, 20, 2), second = digits(text, 23, 2);
  if (month == std::string_view::npos || month % 3 != 0 || std::min({day, year, hour, minute, second}) < 0)
    return std::nullopt;
  return time_of(year, static_cast<unsigned>(month / 3 + 1), static_cast<unsigned>(day), hour, minute, second);
}

std::optional<Clock::time_point> parse_iso_time(std::string_view text) {
  const int year = digits(text, 0, 4), month = digits(text, 5, 2), day = digits(text, 8, 2), hour = digits(text, 11, 2),
            minute = digits(text, 14, 2), second = digits(text, 17, 2);
  if (std::min({year, month, day, hour, minute, second}) < 0) return std::nullopt;
  auto time = time_of(year, static_cast<unsigned>(month), static_cast<unsigned>(day), hour, minute, second);
  std::string_view rest = text.substr(19);
  while (!rest.empty() && (rest.front() == '.' || (rest.front() >= '0' && rest.front() <= '9'))) rest.remove_prefix(1);
  if (!time || rest == "Z" || rest.empty()) return time;
  const int hours = digits(rest, 1, 2), minutes = digits(rest, rest.size() == 6 ? 4 : 3, 2);
  if ((rest[0] != '+' && rest[0] != '-') || hours < 0 || minutes < 0) return std::nullopt;
  const auto offset = std::chrono::hours(hours) + std::chrono::minutes(minutes);
  return rest[0] == '+' ? *time - offset : *time + offset;
}

}  // namespace sconce::server::registry
