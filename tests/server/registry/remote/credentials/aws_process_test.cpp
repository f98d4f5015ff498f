#include <doctest/doctest.h>

#include <chrono>
#include <string>

#include "sconce/error.h"
#include "server/registry/remote/credentials/aws_providers.h"

namespace sconce::server::registry {
namespace {

constexpr const char* kPrints = "echo '{\"Version\": 1, \"AccessKeyId\": \"K\", \"SecretAccessKey\": \"S\"}'";

TEST_CASE("a program that prints credentials") {
  const auto issued = AwsProcess("p", kPrints).fetch();
  REQUIRE(issued);
  CHECK(issued->key == "K");
  CHECK(issued->secret == "S");
}

TEST_CASE("a program that does not end is killed, also if it has closed its output") {
  for (const std::string& command : {std::string("sleep 1000"), std::string(kPrints) + "; exec >&-; sleep 1000"}) {
    CAPTURE(command);
    AwsProcess program("p", command, std::chrono::milliseconds(200));
    CHECK_THROWS_WITH_AS(program.fetch(), "it does not end in time", Error);
  }
}

}  // namespace
}  // namespace sconce::server::registry
