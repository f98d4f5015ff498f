#include "server/registry/remote/credentials/azure_signer.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "sconce/error.h"

namespace sconce::server::registry {
namespace {

AzureAccess azure_of(std::map<std::string, std::string> variables) {
  return read_azure_access(Environment([variables = std::move(variables)](const char* name) -> const char* {
                             const auto found = variables.find(name);
                             return found == variables.end() ? nullptr : found->second.c_str();
                           }),
                           {});
}

TEST_CASE("containers are at the account's host, or at a named endpoint") {
  CHECK(azure_of({}).url_of("acct/models") == "https://acct.blob.core.windows.net/models");
  CHECK(azure_of({{"AZURE_STORAGE_SERVICE_ENDPOINT", "http://127.0.0.1:1/acct/"}}).url_of("acct/models") ==
        "http://127.0.0.1:1/acct/models");
  CHECK(azure_of({{"AZURE_STORAGE_CONNECTION_STRING", "AccountName=a;AccountKey=QQ==;BlobEndpoint=http://h/a;"}})
            .url_of("a/m") == "http://h/a/m");
}

TEST_CASE("a shared access signature goes into the query") {
  RemoteRequest request;
  request.url = "https://acct.blob.core.windows.net/models/x";
  const auto signer = azure_of({{"AZURE_STORAGE_SAS_TOKEN", "?sv=1&sig=s%3D"}}).signer;
  CHECK(signer->sign(request).url == request.url + "?sv=1&sig=s%3D");
  request.url += "?comp=list";
  CHECK(signer->sign(request).url == request.url + "&sv=1&sig=s%3D");
}

TEST_CASE("what is no key and no connection string is refused without showing it") {
  CHECK_THROWS_AS(azure_of({{"AZURE_STORAGE_ACCOUNT", "a"}, {"AZURE_STORAGE_KEY", "no base64!"}}), Error);
  CHECK_THROWS_AS(azure_of({{"AZURE_STORAGE_KEY", "QQ=="}}), Error);
  CHECK_THROWS_AS(azure_of({{"AZURE_STORAGE_CONNECTION_STRING", "nonsense"}}), Error);
  CHECK_THROWS_AS(azure_of({{"AZURE_STORAGE_SAS_TOKEN", "a\r\nb"}}), Error);
}

}  // namespace
}  // namespace sconce::server::registry
