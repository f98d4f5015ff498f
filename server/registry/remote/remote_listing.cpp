#include "server/registry/remote/remote_listing.h"

#include <algorithm>
#include <set>
#include <utility>

#include "sconce/check.h"
#include "server/registry/remote/listing_xml.h"
#include "server/support/failure.h"
#include "server/support/json_document.h"
#include "src/support/parse_number.h"

namespace sconce::server::registry {
namespace {

constexpr size_t kMaxFiles = 100'000;
constexpr size_t kMaxPages = 1000;
constexpr size_t kMaxNames = size_t{64} << 20;  // bytes of names and validators

// The part of a key below the prefix; empty if the key is not below it.
std::string below(const std::string& key, const std::string& prefix) {
  if (prefix.empty()) return key;
  return key.size() > prefix.size() + 1 && key.starts_with(prefix) && key[prefix.size()] == '/'
             ? key.substr(prefix.size() + 1)
             : std::string();
}

bool is_version(std::string_view text) noexcept {
  return !text.empty() && text.size() < 19 && text.front() != '0' &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= path.size();) {
    const size_t slash = std::min(path.find('/', at), path.size());
    parts.push_back(path.substr(at, slash - at));
    at = slash + 1;
  }
  return parts;
}

bool is_model_file(const std::string& name) { return name == "model.pt2" || name == "model.pt2.sig"; }

}  // namespace

RemoteLister::RemoteLister(RemoteUrl prefix, const RemoteAccess& access, std::string begin)
    : prefix_(std::move(prefix)), access_(access), begin_(std::move(begin)) {
  SCONCE_CHECK(prefix_.scheme != RemoteScheme::kHttps, kInvalidArgument, prefix_.shown(),
               ": a web server lists no files; name a package");
}

void RemoteLister::next(Transfer& transfer, std::vector<RemoteFile>& files) {
  SCONCE_CHECK(pages_++ < kMaxPages, kTooLarge, prefix_.shown(), " has a list of more than ", kMaxPages, " pages");
  prefix_.scheme == RemoteScheme::kHub ? next_of_hub(transfer, files) : next_of_bucket(transfer, files);
  at_end_ = token_.empty();
}

void RemoteLister::add(RemoteFile file, std::vector<RemoteFile>& files) {
  text_ += file.path.size() + file.validator.size();
  SCONCE_CHECK(files_++ < kMaxFiles && text_ <= kMaxNames, kTooLarge, prefix_.shown(), " has more than ", kMaxFiles,
               " files, or longer names than fit into ", kMaxNames, " bytes");
  files.push_back(std::move(file));
}

void RemoteLister::next_of_bucket(Transfer& transfer, std::vector<RemoteFile>& files) {
  const std::string keys = (prefix_.path.empty() ? "" : prefix_.path + "/") + begin_;
  ListedPage page = parse_listing(transfer.document(listing_request(prefix_, keys, access_, token_), prefix_.shown()));
  for (ListedObject& object : page.objects)
    if (std::string path = below(object.key, prefix_.path); !path.empty())
      add({std::move(path), object.bytes, std::move(object.etag)}, files);
  token_ = std::move(page.next);
}

void RemoteLister::next_of_hub(Transfer& transfer, std::vector<RemoteFile>& files) {
  RemoteRequest request = tree_request(prefix_, access_);
  if (!token_.empty()) request.url = token_;
  std::string next;
  for (RemoteFile& file : parse_tree(transfer.document(request, prefix_.shown(), &next), prefix_.path))
    add(std::move(file), files);
  SCONCE_CHECK(next.empty() || next.starts_with(access_.hub_endpoint + "/"), kForbidden, prefix_.shown(),
               ": its list continues at another host, which is not queried");
  token_ = std::move(next);
}

std::vector<RemoteFile> list_remote(const RemoteUrl& prefix, const RemoteAccess& access, Transfer& transfer) {
  RemoteLister lister(prefix, access);
  std::vector<RemoteFile> files;
  while (!lister.at_end()) lister.next(transfer, files);
  return files;
}

std::vector<RemoteFile> parse_tree(std::string_view text, const std::string& prefix) {
  const OrderedJson tree = OrderedJson::parse(text, nullptr, false);
  std::vector<RemoteFile> files;
  const bool read = tree.is_array() && succeeds([&] {
                      for (const OrderedJson& entry : tree) {
                        if (entry.at("type").get<std::string>() != "file") continue;
                        std::string path = below(entry.at("path").get<std::string>(), prefix);
                        const bool large = entry.contains("lfs");
                        std::string oid = (large ? entry.at("lfs") : entry).at("oid").get<std::string>();
                        if (!path.empty())
                          files.push_back({std::move(path), unsigned_at(entry, "size"), std::move(oid)});
                      }
                    });
  SCONCE_CHECK(read, kUnavailable, "not a hub's list of files");
  return files;
}

std::vector<RemoteFile> files_of_models(std::vector<RemoteFile> files) {
  std::set<std::string> models;  // folders
  for (const RemoteFile& file : files) {
    const std::vector<std::string> parts = parts_of(file.path);
    if ((parts.size() == 2 && parts[1] == "config.pbtxt") ||
        (parts.size() == 3 && is_version(parts[1]) && parts[2] == "model.pt2"))
      models.insert(parts[0]);
  }
  std::vector<RemoteFile> wanted;
  for (RemoteFile& file : files) {
    if (!is_safe_path(file.path)) continue;
    const std::vector<std::string> parts = parts_of(file.path);
    const std::string& name = parts.back();
    const bool alone =
        parts.size() == 1 && (name.ends_with(".pt2") || name.ends_with(".pt2.sig") || name.ends_with(".pipeline.json"));
    // A version's folder may hold other runtimes' files beside the package.
    const bool in_model = parts.size() > 1 && models.contains(parts[0]) &&
                          (!is_version(parts[1]) || (parts.size() == 3 && is_model_file(name)));
    if (alone || in_model) wanted.push_back(std::move(file));
  }
  std::stable_partition(wanted.begin(), wanted.end(),
                        [](const RemoteFile& file) { return !file.path.ends_with(".pt2"); });
  return wanted;
}

std::string stem_of_file(const std::string& path) {
  const size_t slash = path.find('/');
  if (slash != std::string::npos) return path.substr(0, slash);
  for (const std::string_view end : {".pt2.sig", ".pipeline.json", ".pt2"})
    if (path.ends_with(end)) return path.substr(0, path.size() - end.size());
  return path;
}

int64_t version_of_file(const std::string& path) {
  const std::vector<std::string> parts = parts_of(path);
  if (parts.size() != 3 || !is_version(parts[1]) || !is_model_file(parts[2])) return 0;
  return parse_number<int64_t>(parts[1]).value_or(0);
}

}  // namespace sconce::server::registry
