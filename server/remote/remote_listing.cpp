#include "server/remote/remote_listing.h"

#include <algorithm>
#include <set>
#include <utility>

#include "sconce/check.h"
#include "server/base/failure.h"
#include "server/base/json_document.h"
#include "server/remote/listing_xml.h"

namespace sconce::server {
namespace {

constexpr size_t kMostFiles = 100'000;
constexpr size_t kMostPages = 1000;
constexpr size_t kMostNames = size_t{64} << 20;  // of names and validators

// The part of a key below the prefix; empty if it is not below.
std::string below(const std::string& key, const std::string& prefix) {
  if (prefix.empty()) return key;
  return key.size() > prefix.size() + 1 && key.starts_with(prefix) && key[prefix.size()] == '/'
             ? key.substr(prefix.size() + 1)
             : std::string();
}

// The files of all pages, which a server may try to make without end.
class Files {
 public:
  explicit Files(const RemoteUrl& prefix) : prefix_(prefix) {}
  void begin_page() {
    SCONCE_CHECK(pages_++ < kMostPages, kTooLarge, prefix_.shown(), " has a list of more than ", kMostPages, " pages");
  }
  void add(RemoteFile file) {
    text_ += file.path.size() + file.validator.size();
    SCONCE_CHECK(files_.size() < kMostFiles && text_ <= kMostNames, kTooLarge, prefix_.shown(), " has more than ",
                 kMostFiles, " files, or longer names than fit into ", kMostNames, " bytes");
    files_.push_back(std::move(file));
  }
  std::vector<RemoteFile> take() { return std::move(files_); }

 private:
  const RemoteUrl& prefix_;
  std::vector<RemoteFile> files_;
  size_t pages_ = 0, text_ = 0;
};

std::vector<RemoteFile> list_bucket(const RemoteUrl& prefix, const RemoteAccess& access, Transfer& transfer) {
  Files files(prefix);
  std::string token;
  for (;;) {
    files.begin_page();
    ListedPage page = parse_listing(transfer.document(listing_request(prefix, access, token)));
    for (ListedObject& object : page.objects)
      if (std::string path = below(object.key, prefix.path); !path.empty())
        files.add({std::move(path), object.bytes, std::move(object.etag)});
    if (page.next.empty()) return files.take();
    token = std::move(page.next);
  }
}

std::vector<RemoteFile> list_hub(const RemoteUrl& prefix, const RemoteAccess& access, Transfer& transfer) {
  Files files(prefix);
  RemoteRequest request = tree_request(prefix, access);
  for (;;) {
    files.begin_page();
    std::string next;
    for (RemoteFile& file : parse_tree(transfer.document(request, &next), prefix.path)) files.add(std::move(file));
    if (next.empty()) return files.take();
    SCONCE_CHECK(next.starts_with(access.hub_endpoint + "/"), kForbidden, prefix.shown(),
                 ": its list goes on at another host, which is not asked");
    request.url = std::move(next);
  }
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

std::vector<RemoteFile> list_remote(const RemoteUrl& prefix, const RemoteAccess& access, Transfer& transfer) {
  SCONCE_CHECK(prefix.scheme != RemoteScheme::kHttps, kInvalidArgument, prefix.shown(),
               ": a web server lists no files; name a package");
  return prefix.scheme == RemoteScheme::kHub ? list_hub(prefix, access, transfer)
                                             : list_bucket(prefix, access, transfer);
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

}  // namespace sconce::server
