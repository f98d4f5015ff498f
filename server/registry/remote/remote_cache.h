// RemoteCache: a local disk cache of remote files, by digest, with a size limit. Several processes may share a folder.
//
//   FOLDER/lock            locked (flock) while names change
//          objects/DIGEST  complete files; the one with the oldest access time is evicted first
//          known/URL       last known content of an address: validator, digest
//          partial/URL     a download in progress, locked by its process, with its journal
//          mirrors/URL/    served files of an address: hard links to objects, under the names of a repository
//          mirrors/URL.lock  locked, shared, by each process that serves the mirror
//
// URL stands for the digest of the address. Files that a process serves are never evicted. Objects are not synced to
// disk: a file written before the machine's last boot is used only after its digest was checked. obtain(), make_room()
// and bytes() are for any thread; all other functions are for one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sconce/weight_sources.h"
#include "server/registry/remote/download.h"
#include "server/registry/remote/remote_listing.h"
#include "server/registry/remote/remote_url.h"
#include "server/support/files/descriptor.h"

namespace sconce::server::registry {

class RemoteCache {
 public:
  // Returns the free bytes of the folder's file system.
  using FreeBytes = uint64_t (*)(const std::filesystem::path& folder);
  static uint64_t free_bytes(const std::filesystem::path& folder);

  // folder: created with access for its owner only; empty: default_folder(). most_bytes: 0 for the free space of its
  // file system. kIo.
  RemoteCache(const std::filesystem::path& folder, uint64_t most_bytes, FreeBytes free = &free_bytes);
  // $XDG_CACHE_HOME/sconce, else ~/.cache/sconce. kInvalidArgument if neither variable is set.
  static std::filesystem::path default_folder();

  struct Obtained {
    std::filesystem::path path;  // `place` if given, else in the cache
    Sha256Digest digest{};
    uint64_t bytes = 0;
    bool fetched = false;  // downloaded now, rather than found in the cache
  };
  // listed: the validator from a listing; if it matches the cached file, no request is sent. place: additional location
  // for the file, as a hard link or a copy; empty: none. Errors of download().
  Obtained obtain(const RemoteUrl& url, const RemoteAccess& access, const std::string& listed,
                  const std::filesystem::path& place, DownloadOptions options);

  // The validator of the last download of an address; empty: never downloaded.
  std::string validator_of(const RemoteUrl& url) const;

  // Cached files below an address.
  std::vector<RemoteFile> known_below(const RemoteUrl& prefix) const;

  // The folder for the served files of an address, which is never evicted from now on. name: distinguishes several
  // folders of one address.
  std::filesystem::path mirror(const RemoteUrl& url, const std::string& name);

  // Evicts the least recently used files until `bytes` are free, within the limit and on the disk. kOutOfMemory if
  // most_bytes minus the files in use is too small.
  void make_room(uint64_t bytes);
  uint64_t bytes() const;  // of objects and unfinished downloads

 private:
  struct Known {
    std::string url, validator, digest, boot;  // url: in the form for messages
  };
  std::filesystem::path at(const char* room, const std::string& name) const { return folder_ / room / name; }
  Descriptor hold(const std::filesystem::path& part, const std::atomic<bool>* stop) const;
  bool read_known(const std::string& key, Known& known) const;
  void write_known(const std::string& key, const Known& known) const;
  bool is_whole(const std::string& key, Known& known) const;
  bool give(const Known& known, const std::filesystem::path& place, Obtained& obtained) const;
  template <class Fits>
  void remove_parts(Fits&& fits, uint64_t& used) const;

  const std::filesystem::path folder_;
  const uint64_t most_bytes_;
  const FreeBytes free_;
  std::vector<Descriptor> mirrors_;
};

// Puts a file at a location atomically, replacing an existing one: as a hard link, or as a copy on another file system.
// kIo.
void place_file(const std::filesystem::path& file, const std::filesystem::path& place);

}  // namespace sconce::server::registry
