#include "server/rollout/push/push_terms.h"

#include <charconv>
#include <initializer_list>

#include "sconce/check.h"
#include "server/http/client/admin_client.h"
#include "server/support/trim.h"
#include "src/support/excerpt.h"
#include "src/support/parse_number.h"

namespace sconce::server::rollout {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLease{30'000}, kMinLease{100}, kMaxLease{3'600'000};

}  // namespace

milliseconds parse_lease(std::string_view text) {
  int64_t number = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  const int64_t factor = unit == "ms" ? 1 : unit == "s" ? 1000 : unit == "m" ? 60'000 : 0;
  const bool good = ec == std::errc() && factor != 0 && number >= 0 && number <= kMaxLease.count();
  const milliseconds lease(good ? number * factor : 0);
  SCONCE_CHECK(lease >= kMinLease && lease <= kMaxLease, kInvalidArgument,
               "lease must be from 100ms to 60m, such as 500ms, 30s or 2m, got '", excerpt(text), "'");
  return lease;
}

std::string push_id(std::string_view text) {
  SCONCE_CHECK(is_push_id(text), kInvalidArgument, "push must be 1 to 64 letters, digits, '.', '_' and '-', got '",
               excerpt(text), "'");
  return std::string(text);
}

std::optional<PushTerms> push_terms(const http::Query& query, const std::string& authorization) {
  const auto id = query.text("push");
  if (!id) {
    for (const std::string_view key : {"lease", "members", "member", "relay"})
      SCONCE_CHECK(!query.text(key), kInvalidArgument, "parameter ", key, " goes with push");
    return std::nullopt;
  }
  PushTerms terms;
  terms.id = push_id(*id);
  const auto lease = query.text("lease");
  terms.lease = lease ? parse_lease(*lease) : kLease;
  terms.authorization = authorization;
  if (const auto members = query.text("members")) {
    terms.members = split(*members, ',');
    for (const std::string& url : terms.members) (void)http::parse_admin_server(url);
  }
  const std::string_view text = query.text("member").value_or("0");
  const auto member = parse_number<decltype(terms.member)>(text);
  SCONCE_CHECK(member, kInvalidArgument, "member must be this server's index in members, from 0, got '", excerpt(text),
               "'");
  terms.member = *member;
  SCONCE_CHECK(terms.member == 0 || !terms.members.empty(), kInvalidArgument, "member requires members");
  return terms;
}

}  // namespace sconce::server::rollout
