// The XML with which S3 lists a bucket (ListObjectsV2), and Azure a container, read by Expat, which is opened when
// first needed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sconce::server {

struct ListedObject {
  std::string key, etag;
  uint64_t bytes = 0;
};

struct ListedPage {
  std::vector<ListedObject> objects;
  std::string next;  // the token of the next page; empty: this is the last one
};

// kUnavailable for what is no such listing, and for one that declares entities.
ListedPage parse_listing(std::string_view text);

}  // namespace sconce::server
