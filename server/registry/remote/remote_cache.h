// RemoteCache: remote files on the disk here, by digest, up to a size. Several processes share a folder.
//
//   FOLDER/lock            held (flock) while names change
//          objects/DIGEST  whole files; the time of the last access says which goes first
//          known/URL       what an address had: validator, digest
//          partial/URL     what is being downloaded, held by its process, with its journal
//          mirrors/URL/    what is served of an address: hard links of objects, under the names of a repository
//          mirrors/URL.lock  held, shared, by each process that serves it
//
// URL stands for the digest of the address. What a process serves is never removed. Objects are not forced to the disk:
// what was written before the machine's last boot is compared with its digest before it counts. obtain(), make_room()
// and bytes() are called by any thread; the rest is for one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "server/registry/remote/download.h"
#include "server/registry/remote/remote_listing.h"
#include "server/registry/remote/remote_url.h"
#include "server/support/files/descriptor.h"

namespace sconce::server {

class RemoteCache {
 public:
  // How many bytes the file system of a folder has room for.
  using FreeBytes = uint64_t (*)(const std::filesystem::path& folder);
  static uint64_t free_bytes(const std::filesystem::path& folder);

  // folder: made for its owner alone if it is not there; empty: default_folder(). most_bytes: 0 for what its file
  // system has room for. kIo.
  RemoteCache(const std::filesystem::path& folder, uint64_t most_bytes, FreeBytes free = &free_bytes);
  // $XDG_CACHE_HOME/sconce, ~/.cache/sconce. kInvalidArgument where there is neither.
  static std::filesystem::path default_folder();

  struct Obtained {
    std::filesystem::path path;  // in `place`, else in the cache
    Sha256Digest digest{};
    uint64_t bytes = 0;
    bool fetched = false;  // rather than found here
  };
  // listed: the validator that a listing has; with it, what is here needs no request. place: where the file is to be as
  // well, as a hard link or a copy; empty: nowhere. Errors of download().
  Obtained obtain(const RemoteUrl& url, const RemoteAccess& access, const std::string& listed,
                  const std::filesystem::path& place, DownloadOptions options);

  // The validator with which an address was fetched last; empty: it was not.
  std::string validator_of(const RemoteUrl& url) const;

  // What the cache has of the files below an address.
  std::vector<RemoteFile> known_below(const RemoteUrl& prefix) const;

  // The folder of what is served of an address, which is not cleared from now on. name: tells several of one address
  // apart.
  std::filesystem::path mirror(const RemoteUrl& url, const std::string& name);

  // Removes what was used least lately until so many bytes are free, on the disk as well. kOutOfMemory if most_bytes
  // less what is in use leaves too little.
  void make_room(uint64_t bytes);
  uint64_t bytes() const;  // of objects and unfinished downloads

 private:
  struct Known {
    std::string url, validator, digest, boot;  // url: as messages show it
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

// Puts a file at a place at once, over what is there: a hard link, or a copy on another file system. kIo.
void place_file(const std::filesystem::path& file, const std::filesystem::path& place);

}  // namespace sconce::server
