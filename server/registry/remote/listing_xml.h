// Parses the XML in which S3 lists a bucket (ListObjectsV2) and Azure a container, with Expat, which is loaded at the
// first use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sconce::server::registry {

struct ListedObject {
  std::string key, etag;
  uint64_t bytes = 0;
};

struct ListedPage {
  std::vector<ListedObject> objects;
  std::string next;  // the token of the next page; empty: this is the last page
};

// kUnavailable for other documents, and for a document that declares entities.
ListedPage parse_listing(std::string_view text);

}  // namespace sconce::server::registry
