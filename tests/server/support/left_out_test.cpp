#include "server/support/left_out.h"

#include <doctest/doctest.h>

#include "sconce/error.h"
#include "server/support/config.h"
#include "tests/errors.h"

using namespace sconce;
using namespace sconce::server;

namespace {

const LeftOut kFirst("first part", "SCONCE_FIRST", {"trainer_timeout", "first"});
const LeftOut kSecond("second part", "SCONCE_SECOND", {"remote_ca", "remote_cache"});

std::string refusal_of(auto&& f) { return error_from(ErrorCode::kUnsupported, f); }
std::string refusal_of(const char* key, const char* value) {
  ServerConfig config;
  config.set(key, value, "a test");
  return refusal_of([&] { LeftOut::check_settings(config); });
}

}  // namespace

TEST_CASE("left out: the error names the option of the build") {
  CHECK(refusal_of([] { kFirst.fail(); }) == "this build has no first part (SCONCE_FIRST)");
  CHECK(refusal_of([] { kFirst.fail("setting serve"); }) ==
        "setting serve: this build has no first part (SCONCE_FIRST)");
}

TEST_CASE("left out: settings of every missing part are refused, others and defaults are not") {
  CHECK(refusal_of("trainer_timeout", "1s") == "setting trainer_timeout: this build has no first part (SCONCE_FIRST)");
  CHECK(refusal_of("remote_cache", "/x") == "setting remote_cache: this build has no second part (SCONCE_SECOND)");
  CHECK(refusal_of("remote_ca", "/x") == "setting remote_ca: this build has no second part (SCONCE_SECOND)");
  CHECK(refusal_of("remote_stall", "1s") == "no error");
  LeftOut::check_settings(ServerConfig());
}

TEST_CASE("left out: help texts have a remark") {
  CHECK(LeftOut::remark("first") == " (not in this build: SCONCE_FIRST)");
  CHECK(LeftOut::remark("remote_ca") == " (not in this build: SCONCE_SECOND)");
  CHECK(LeftOut::remark("remote").empty());
}
