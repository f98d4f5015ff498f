#include "server/rollout/push/push_peers.h"

#include <doctest/doctest.h>

#include "sconce/error.h"
#include "server/rollout/push/push_terms.h"
#include "server/rollout/push/relay.h"

namespace sconce::server::rollout {

using namespace std::chrono_literals;

namespace {

bool allows(const std::string& peers, const std::string& url) {
  ServerConfig config;
  config.set("weights_peers", peers, "test");
  return PushPeers(config).allows(http::parse_admin_server(url));
}

}  // namespace

TEST_CASE("push peers: none without the setting") {
  ServerConfig config;
  CHECK_FALSE(PushPeers(config).allows(http::parse_admin_server("http://127.0.0.1:8003")));
  CHECK_THROWS_WITH_AS((void)PushPeers(config).client("http://10.0.0.1:80", {}, 1s),
                       "weights_peers does not allow http://10.0.0.1:80", Error);
}

TEST_CASE("push peers: a token's file must be readable at the start, and the error names the setting") {
  ServerConfig config;
  config.set("weights_peers_token_file", "/nowhere/token", "test");
  CHECK_THROWS_WITH_AS(PushPeers{config}, "setting weights_peers_token_file: cannot read the token: /nowhere/token",
                       Error);
}

TEST_CASE("push peers: who is refused is told what to do") {
  ServerConfig config;
  const PushPeers peers(config);
  http::Answer answer;
  answer.status = 401;
  answer.body = R"({"error": "a token is needed"})";
  CHECK(peers.reason(answer) ==
        "401: a token is needed; set weights_peers_token_file to a file with a token that all servers take");
  answer.status = 409;
  CHECK(peers.reason(answer) == "409: a token is needed");
}

TEST_CASE("push peers: hosts, ports, schemes, names and networks") {
  CHECK(allows("a.example", "http://a.example:1"));
  CHECK(allows("A.Example", "https://a.example"));
  CHECK(allows("a.example:8003", "http://a.example"));
  CHECK(allows("*.pods.svc", "http://sconce-0.pods.svc:8003"));
  CHECK(allows("10.1.0.0/16", "http://10.1.200.3:8003"));
  CHECK(allows("[fd00::]:8003, [::1]", "http://[::1]:9"));
  CHECK(allows("fd00::/8", "http://[fd12::1]:9"));
  CHECK(allows("::1", "http://[::1]:9"));
  CHECK(allows("https://*", "https://anything"));
}

TEST_CASE("push peers: what only looks alike is not allowed") {
  CHECK_FALSE(allows("a.example", "http://a.example.evil.org"));
  CHECK_FALSE(allows("a.example", "http://xa.example"));
  CHECK_FALSE(allows("a.example:8003", "http://a.example:8004"));
  CHECK_FALSE(allows("*.pods.svc", "http://pods.svc"));
  CHECK_FALSE(allows("*.pods.svc", "http://evilpods.svc"));
  CHECK_FALSE(allows("10.1.0.0/16", "http://10.2.0.1"));
  CHECK_FALSE(allows("127.0.0.1", "http://127.0.0.2"));
  CHECK_FALSE(allows("fd00::/8", "http://[fe12::1]:9"));
  CHECK_FALSE(allows("https://a.example", "http://a.example"));
  for (const char* url : {"http://127.0.0.1@evil.org", "http://127.0.0.1.evil.org", "http://127.0.0.1.5:1"})
    CHECK_THROWS_AS((void)allows("127.0.0.1", url), Error);
}

TEST_CASE("push peers: malformed settings are refused by name") {
  for (const char* bad : {"ftp://a", "a:b", "a:", "10.0.0.0/33", "10.0.0.0/0", "a*b", "*x", "http://", "a/b", "[::1"})
    CHECK_THROWS_AS((void)allows(bad, "http://a"), Error);
}

TEST_CASE("push terms: leases") {
  CHECK(parse_lease("500ms") == 500ms);
  CHECK(parse_lease("30s") == 30s);
  CHECK(parse_lease("60m") == 1h);
  for (const char* bad : {"", "30", "s", "99ms", "61m", "3601s", "-1s", "1h", "99999999999999999999s", "1.5s"})
    CHECK_THROWS_AS((void)parse_lease(bad), Error);
}

TEST_CASE("push terms: members") {
  const auto terms = [](const char* query) {
    return push_terms(http::Query(query, {"push", "lease", "members", "member", "relay"}), "Bearer x");
  };
  CHECK_FALSE(terms(""));
  const PushTerms two = *terms("push=p&members=http%3A%2F%2Fa:1,b&member=1");
  CHECK(two.members == std::vector<std::string>{"http://a:1", "b"});
  CHECK(two.member == 1);
  CHECK(two.lease == 30s);
  CHECK(two.authorization == "Bearer x");
  for (const char* bad : {"lease=1s", "members=a", "relay=true", "push=a%20b", "push=", "push=p&member=1",
                          "push=p&members=a&member=x", "push=p&members=ftp://a"})
    CHECK_THROWS_AS((void)terms(bad), Error);
}

TEST_CASE("relay: the next server's query is this one's with its own place") {
  PushTerms terms;
  terms.member = 3;
  CHECK(query_for_next("mode=full&member=3&push=p&relay=true", terms) == "mode=full&push=p&relay=true&member=4");
}

}  // namespace sconce::server::rollout
