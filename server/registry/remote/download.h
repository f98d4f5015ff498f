// download: a remote file into a file here, by several ranges at the same time, with its SHA-256. It goes on where an
// earlier call or process ended, as long as the remote file is the same.
//
//   first answer: size, ETag ---> ranges of kSegment, each written at its place and noted in the journal
//                                      |
//                                      +--> a thread reads finished segments in order, and digests them
//
// A server without ranges or without a validator (ETag) gives the file in one stream. Each answer must have the range,
// the size and the ETag that it should; a file that changes meanwhile is begun anew.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "server/registry/remote/file_digest.h"
#include "server/registry/remote/remote_access.h"
#include "server/registry/remote/transfer/transfer.h"

namespace sconce::server {

struct DownloadOptions {
  TransferSettings transfer;
  int connections = 8;
  uint64_t most_bytes = UINT64_MAX;  // a larger file is refused
  std::string known;                 // the ETag, or a hub's, of what is here already; empty: nothing is
  // Bytes that are here, and all of them (0: not known). On the caller's thread. May be empty.
  std::function<void(uint64_t done, uint64_t total)> progress;
  std::function<void(uint64_t bytes)> make_room;  // before bytes are written; throws if there is none. May be empty.
  std::function<void(uint64_t bytes)> fetched;    // bytes that came. Any thread. May be empty.
};

struct Downloaded {
  bool unchanged = false;  // it is what `known` says; the rest is empty
  std::string validator;   // for `known` the next time; empty: there is none
  uint64_t bytes = 0;
  Sha256Digest digest{};
};

// part: the file to write; beside it, PART.journal. what: for messages. Errors name what and the reason: kNotFound,
// kForbidden, kUnavailable, kTooLarge, kIo, kCorruptPackage for a digest other than the hub's, kCancelled.
Downloaded download(const RemoteRequest& request, const std::string& part, const std::string& what,
                    const DownloadOptions& options);

}  // namespace sconce::server
