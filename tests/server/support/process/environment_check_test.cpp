#include "server/support/process/environment_check.h"

#include <string>
#include <vector>

#include "tests/errors.h"

namespace sconce::server {
namespace {

std::string unknown(std::vector<const char*> environment) {
  environment.push_back(nullptr);
  return unknown_variables(environment.data());
}

}  // namespace

TEST_CASE("environment: a mistyped variable is named, with the one that may be meant") {
  CHECK(unknown({"SCONCE_DRAIN_GRACEE=1s", "HOME=/", "SCONCE_DRAIN_GRACE=1s", "SCONCE_COMPLETELY_ELSE=1"}) ==
        "no setting has the name of these environment variables: SCONCE_DRAIN_GRACEE (SCONCE_DRAIN_GRACE?), "
        "SCONCE_COMPLETELY_ELSE");
  // Of a model; SCONCE_SET has these.
  CHECK(contains(unknown({"SCONCE_REPLICAS=2"}), "SCONCE_REPLICAS"));
}

TEST_CASE("environment: variables that something reads, or that Kubernetes sets, are no mistake") {
  CHECK(unknown({}).empty());
  CHECK(unknown({"SCONCE_SET=*.threads=1", "SCONCE_HTTP=off", "SCONCE_CPU_ISA=avx2", "SCONCE_PROGRAM=x", "PATH=x"})
            .empty());
  CHECK(
      unknown({"SCONCE_SERVICE_HOST=10.0.0.1", "SCONCE_SERVICE_PORT=80", "SCONCE_SERVICE_PORT_HTTP=80",
               "SCONCE_PORT=tcp://10.0.0.1:80", "SCONCE_PORT_80_TCP=tcp://10.0.0.1:80", "SCONCE_PORT_80_TCP_PROTO=tcp",
               "SCONCE_WEB_PORT_8000_TCP_ADDR=10.0.0.1", "SCONCE_WEB_SERVICE_HOST=10.0.0.1"})
          .empty());
}

}  // namespace sconce::server
