// download: copies a remote file to a local file, in several ranges in parallel, and computes its SHA-256. It resumes
// the download of an earlier call or process, if the remote file is unchanged.
//
//   first answer: size, ETag ---> ranges of kSegment, each written at its offset and recorded in the journal
//                                      |
//                                      +--> a thread reads finished segments in order, and digests them
//
// A server without ranges or without a validator (ETag) sends the file in one stream. Each answer must have the
// expected range, size and ETag; if the file changes meanwhile, the download restarts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "sconce/weight_sources.h"
#include "server/registry/remote/remote_access.h"
#include "server/registry/remote/transfer/transfer.h"

namespace sconce::server::registry {

struct DownloadOptions {
  TransferSettings transfer;
  int connections = 8;
  uint64_t most_bytes = UINT64_MAX;  // a larger file is refused
  std::string known;                 // the ETag, or the hub's ETag, of the local file; empty: there is none
  // Called on the caller's thread with downloaded and total bytes (0: unknown). May be empty.
  std::function<void(uint64_t done, uint64_t total)> progress;
  std::function<void(uint64_t bytes)>
      make_room;  // called before bytes are written; throws if there is no room. May be empty.
  std::function<void(uint64_t bytes)> fetched;  // received bytes. Any thread. May be empty.
};

struct Downloaded {
  bool unchanged = false;  // the file still matches `known`; all other members are empty
  std::string validator;   // for `known` at the next call; empty: none
  uint64_t bytes = 0;
  Sha256Digest digest{};
};

// part: the file to write; its journal is PART.journal. what: for messages. Errors name `what` and the reason:
// kNotFound, kForbidden, kUnavailable, kTooLarge, kIo, kCancelled; kCorruptPackage for a digest other than the hub's.
Downloaded download(const RemoteRequest& request, const std::string& part, const std::string& what,
                    const DownloadOptions& options);

}  // namespace sconce::server::registry
