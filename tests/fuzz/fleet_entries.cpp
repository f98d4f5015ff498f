#include "tests/fuzz/fleet_entries.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include "server/http/client/answer_head.h"
#include "server/http/client/url_text.h"
#include "server/registry/remote/listing_xml.h"
#include "server/registry/remote/range_journal.h"
#include "server/registry/remote/remote_access.h"
#include "server/registry/remote/remote_listing.h"
#include "server/registry/remote/remote_url.h"
#include "server/registry/remote/serve_argument.h"
#include "server/signing/archive_signature.h"
#include "server/signing/envelope.h"
#include "server/signing/signed_file.h"
#include "server/signing/stream_digests.h"
#include "server/weights/store/seal.h"
#include "server/weights/store/weight_journal.h"
#include "tests/fuzz/refusals.h"
#include "tests/package_format/fixtures.h"
#include "tests/server/signing/signing_pems.h"

namespace sconce::fuzz {
using namespace server;

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBoot = "boot", kPlace = "model";

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// Every path stays below the folder where it is put.
void check_paths(std::vector<registry::RemoteFile> files) {
  for (const registry::RemoteFile& file : registry::files_of_models(std::move(files))) {
    const fs::path path = file.path;
    if (path.empty() || path.is_absolute() || has_control(file.path) || path.lexically_normal() != path)
      broken("a path is not plain");
    for (const fs::path& part : path)
      if (part.native().starts_with('.') || part.native().size() > 255)
        broken("a path has a part that is hidden or goes up");
  }
}

std::vector<signing::Key> keys_of(const std::string& pem, signing::Key::Kind kind) {
  return signing::read_keys(MemoryFile(pem).path(), kind);
}

const std::vector<signing::Key>& public_keys() {
  static const std::vector<signing::Key> keys =
      keys_of(test::kFirstPublic + test::kEcdsaPublic, signing::Key::Kind::kPublic);
  return keys;
}

signing::Statement statement_of(const std::string& file) {
  signing::Statement statement;
  statement.subject = "net.pt2";
  signing::StreamDigests digests;
  digests.update(std::as_bytes(std::span<const char>(file)));
  statement.file = digests.whole();
  statement.head = digests.head();
  statement.resources = {{".", statement.file->digest}, {"net/\xc3\xa9", statement.file->digest}};
  return statement;
}

std::string safetensors_file() {
  const std::string head = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  return testing::u64(head.size()) + head + std::string(8, '\1');
}

std::string archive() {
  testing::RawZip zip;
  zip.members = {{"net/a", "the first member"}, {"net/b", "another"}};
  return build(zip);
}

std::string bundle_of(const std::string& file, const std::string& pem) {
  return signing::sign_payload(signing::statement_text(statement_of(file)),
                               keys_of(pem, signing::Key::Kind::kPrivate).front());
}

const weights::Seal& seal() {
  static const weights::Seal made(MemoryFile(std::string(32, 'k')).path());
  return made;
}

std::string journal_of_sets(bool guarded) {
  weights::StoredSet set;
  set.weight_version = 7;
  set.label = "step \"1200\"";
  set.digest = "sha-256:ab";
  set.file = "ab.safetensors";
  set.bytes = 123;
  set.sha256 = std::string(64, 'a');
  set.time = "2026-01-31T12:00:00.000Z";
  set.by = {"10.0.0.7:51234", "request"};
  weights::Journal journal;
  journal.sets = {set, set};
  journal.sets[1].weight_version = 5;
  weights::StoredPush push;
  push.id = "p";
  push.state = "committed";
  push.weight_version = 7;
  push.members = {"http://a:8003", "http://b:8003"};
  journal.pushes = {push};
  if (guarded) {
    journal.guard.emplace();
    journal.guard->bounds = {std::chrono::seconds(60), 0.25, 0.001, std::chrono::milliseconds(5)};
    journal.guard->left = std::chrono::seconds(45);
    journal.guard->push = "p";
  }
  return weights::journal_text(journal);
}

}  // namespace

bool run_address(std::string_view text) {
  static const registry::RemoteAccess access =
      registry::read_remote_access(registry::Environment([](const char* name) -> const char* {
        constexpr std::pair<std::string_view, const char*> kVariables[] = {{"AWS_ACCESS_KEY_ID", "KEY"},
                                                                           {"AWS_SECRET_ACCESS_KEY", "SECRET"},
                                                                           {"AWS_SESSION_TOKEN", "SESSION"},
                                                                           {"AWS_REGION", "eu-test-1"},
                                                                           {"HF_TOKEN", "TOKEN"},
                                                                           {"HF_ENDPOINT", "https://hub.example"},
                                                                           {"AZURE_STORAGE_ACCOUNT", "account"},
                                                                           {"AZURE_STORAGE_KEY", "a2V5"}};
        for (const auto& [known, value] : kVariables)
          if (known == name) return value;
        return nullptr;
      }));
  return accepted([&] {
    const registry::RemoteUrl url = registry::parse_remote_url(text);
    if (!registry::looks_remote(text)) broken("an address does not look like one");
    if (registry::parse_remote_url(url.key()).key() != url.key()) broken("an address is read as another one");
    if (url.scheme == registry::RemoteScheme::kHttps && url.shown().find('?') != std::string::npos)
      broken("a query is shown");
    const registry::RemoteRequest request = registry::request_for(url, access);
    const std::string_view asked = request.url;
    if (has_control(asked) || asked.find(' ') != std::string_view::npos)
      broken("a URL that libcurl may read otherwise");
    if (!asked.starts_with("https://") && !http::is_plain_loopback(asked)) broken("a URL that is not https");
    const std::string_view host = asked.substr(0, asked.find('/', asked.find("://") + 3));
    if (host.find_first_of("@?#\\") != std::string_view::npos) broken("a host with more than a host");
    if (url.scheme == registry::RemoteScheme::kHttps && !request.fields.empty())
      broken("a web server gets credentials of others");
    if (url.is_package() && (url.file().empty() || !registry::is_safe_path(url.file())))
      broken("a package without a name");
    if (url.scheme != registry::RemoteScheme::kHttps) check_paths({{url.path + "/m.pt2", 1, ""}, {url.file(), 1, ""}});
  });
}

bool run_answer_head(std::string_view text) {
  http::AnswerHead head;
  const char* wrong = nullptr;
  while (!text.empty() && !wrong) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string line(text.substr(0, end));  // so that the sanitizer sees reads past the end
    wrong = head.take(line);
    text.remove_prefix(end);
  }
  if (head.fields.size() > http::AnswerHead::kMaxFields + 1) broken("more fields than are allowed");
  for (const auto& [name, value] : head.fields) {
    if (std::any_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; }))
      broken("a name in upper case");
    for (const std::string& part : {name, value})
      if (has_control(part) && part.find('\t') == std::string::npos) broken("a field that breaks a line");
    if (value.find(http::without_quotes(value)) == std::string::npos) broken("a validator has what its field has not");
    if (const std::string link = http::next_link(value); value.find("<" + link + ">") != 0 && !link.empty())
      broken("a link that the field does not have");
    if (const auto range = http::parse_content_range(value);
        range && (range->begin >= range->end || range->end > range->total))
      broken("a range that is none");
  }
  return !wrong && head.status != 0;
}

bool run_listing(std::string_view text) {
  const std::string copy(text);
  return accepted([&] {
    registry::ListedPage page = registry::parse_listing(copy);
    std::vector<registry::RemoteFile> files;
    for (registry::ListedObject& object : page.objects) {
      if (object.key.empty()) broken("an object without a name");
      files.push_back({std::move(object.key), object.bytes, std::move(object.etag)});
    }
    check_paths(std::move(files));
  });
}

bool run_hub_tree(std::string_view text) {
  accepted([&] { check_paths(registry::parse_tree(text, "")); });
  return accepted([&] {
    std::vector<registry::RemoteFile> files = registry::parse_tree(text, "sub");
    for (const registry::RemoteFile& file : files)
      if (text.find("sub") == std::string_view::npos || file.path.empty()) broken("a file that is not below");
    check_paths(std::move(files));
  });
}

bool run_download_journal(std::string_view text) {
  const std::optional<registry::JournalState> state = registry::parse_journal(text, kBoot);
  if (!state) return false;
  const registry::DownloadTerms& terms = state->terms;
  if (state->finished.size() != terms.segments() || terms.segments() > registry::kMaxSegments)
    broken("too many segments");
  if ((terms.segments() - 1) * terms.segment >= terms.bytes || terms.bytes / terms.segments() > terms.segment)
    broken("the segments are not the file");
  std::string again = registry::journal_head(terms, kBoot);
  for (size_t i = 0; i < std::min<size_t>(state->finished.size(), 1000); ++i)
    if (state->finished[i]) again += std::to_string(i) + "\n";
  const std::optional<registry::JournalState> read = registry::parse_journal(again, kBoot);
  if (!read || read->terms.bytes != terms.bytes || read->terms.segment != terms.segment)
    broken("a journal that is written is not read");
  return true;
}

bool run_bundle(std::string_view text) {
  static const std::vector<std::string> payloads = [] {
    std::vector<std::string> known;
    for (const std::string& seed : bundle_seeds()) known.push_back(signing::parse_bundle(seed).payload);
    return known;
  }();
  const std::string copy(text);
  accepted([&] { signing::verify_bundle(copy, public_keys()); });
  return accepted([&] {
    const signing::Envelope envelope = signing::parse_bundle(copy);
    const signing::Key* const key = signing::verified_by(envelope, public_keys());
    if (key && std::find(payloads.begin(), payloads.end(), envelope.payload) == payloads.end())
      broken("a payload that nobody signed is taken");
    if (signing::parse_bundle(signing::bundle_text(envelope, "id")).payload != envelope.payload)
      broken("a bundle is written wrong");
    const signing::Statement statement = signing::parse_statement(envelope.payload);
    const signing::Statement again = signing::parse_statement(signing::statement_text(statement));
    if (again.resources.size() != statement.resources.size() || again.file != statement.file ||
        again.head != statement.head)
      broken("a statement is written wrong");
    if (statement.head && statement.file)
      accepted([&] { signing::HeadCheck(statement).see(std::as_bytes(std::span<const char>(copy))); });
  });
}

bool run_signed_archive(std::string_view bytes) {
  static const std::vector<std::string> seeds = signed_archive_seeds();
  const std::string copy(bytes);
  const auto file = std::as_bytes(std::span<const char>(copy));
  if (const auto inside = signing::find_archive_signature(file);
      inside && inside->archive.size() + inside->bundle.size() >= file.size())
    broken("a signature is larger than its file");
  return accepted([&] {
    const signing::Verified verified = signing::verify_bytes(file, std::nullopt, public_keys());
    if (std::find(seeds.begin(), seeds.end(), copy) == seeds.end()) broken("bytes that nobody signed are taken");
  });
}

bool run_sealed(std::string_view text) {
  static const weights::Seal none;
  const std::string where = "journal.json";
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> opened;
    for (const std::string& seed : sealed_seeds()) opened.emplace_back(none.opened(seed, kPlace, "a seed"));
    return opened;
  }();
  accepted([&] {
    // The seal itself may be written otherwise: its digits in capitals.
    const std::string_view opened = seal().opened(text, kPlace, where);
    if (std::find(texts.begin(), texts.end(), opened) == texts.end()) broken("a text that nobody sealed is taken");
  });
  return accepted([&] {
    const weights::Journal journal = weights::parse_journal(none.opened(text, kPlace, where), where);
    for (const weights::StoredSet& set : journal.sets)
      if (set.file.empty() || fs::path(set.file).filename() != set.file || set.file == "..") broken("a file elsewhere");
    const std::string written = weights::journal_text(journal);
    if (weights::journal_text(weights::parse_journal(written, where)) != written)
      broken("a journal that is written is read otherwise");
  });
}

std::vector<std::string> address_seeds() {
  return {"s3://models/production/ranker.pt2",
          "s3://my.bucket/a b/c",
          "gs://models/x.pt2",
          "hf://org/repo@v1.0/sub/ranker.pt2",
          "hf://org/repo",
          "https://host.example:8443/a%20b/x.pt2?X-Signature=secret&y",
          "http://127.0.0.1:80/x.pt2",
          "http://[::1]:8000/x",
          "https://[fe80::1]/x.pt2"};
}

std::vector<std::string> answer_head_seeds() {
  return {"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-99/1000\r\nETag: \"abc\"\r\n\r\n",
          "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: W/\"x\"\r\nLast-Modified: "
          "now\r\n\r\n",
          "HTTP/2 302\r\nLocation: https://h/x\r\nX-Linked-Etag: \"0123\"\r\nX-Linked-Size: 7\r\n\r\n",
          "HTTP/1.1 200 OK\r\nLink: <https://hub/api?cursor=a>; rel=\"next\"\r\nServer:\tx\r\n\r\n",
          "HTTP/1.1 416 \r\nContent-Range: bytes */10\r\n"};
}

std::vector<std::string> listing_seeds() {
  const auto page = [](const std::string& inside) {
    return R"(<?xml version="1.0" encoding="UTF-8"?>)"
           R"(<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">)" +
           inside + "</ListBucketResult>";
  };
  const auto object = [](const std::string& key) {
    return "<Contents><Key>" + key +
           "</Key><ETag>&quot;e&quot;</ETag><Size>12</Size><Owner><ID>x</ID></Owner></Contents>";
  };
  return {page(object("a.pt2") + object("a.pt2.sig") + object("m/1/model.pt2") + object("m/config.pbtxt") +
               object("m/labels.txt")),
          page("<Name>b</Name><IsTruncated>true</IsTruncated><NextContinuationToken>t&amp;1</NextContinuationToken>" +
               object("../a.pt2") + object("/b.pt2") + object("m/../../x")),
          page("<Contents/>") + " <!-- -->", page("<![CDATA[x]]>" + object("&#x41;.pt2"))};
}

std::vector<std::string> hub_tree_seeds() {
  return {R"([{"type":"directory","oid":"1","size":0,"path":"sub/d"},)"
          R"({"type":"file","oid":"abc","size":5,"path":"sub/m/config.pbtxt"},)"
          R"({"type":"file","oid":"def","size":7,"path":"sub/x.pt2","lfs":{"oid":"0123","size":7}}])",
          R"([{"type":"file","oid":"a","size":1,"path":"sub/../../x.pt2"},)"
          R"({"type":"file","oid":"a","size":1,"path":"/sub/y.pt2"}])",
          R"([{"type":"file","oid":"a","size":1,"path":"sub/m/1/model.pt2"},)"
          R"({"type":"file","oid":"a","size":1,"path":"sub/m/\u0000"}])",
          "[]"};
}

std::vector<std::string> download_journal_seeds() {
  return {registry::journal_head({"\"e\"", "", 25, 10}, kBoot) + "2\n0\n",
          registry::journal_head({"\"e\"", "0123", 1, 8388608}, kBoot),
          registry::journal_head({"\"e\"", "", uint64_t{1} << 40, 8388608}, kBoot) + "100000\n7\n1"};
}

std::vector<std::string> bundle_seeds() {
  signing::Statement plain = statement_of(archive());
  plain.file = plain.head = {};
  const signing::Key key = keys_of(test::kFirst, signing::Key::Kind::kPrivate).front();
  return {bundle_of(archive(), test::kFirst), bundle_of(safetensors_file(), test::kFirst),
          signing::sign_payload(signing::statement_text(plain), key), bundle_of(archive(), test::kEcdsa)};
}

std::vector<std::string> signed_archive_seeds() {
  const std::string file = archive();
  return {file.substr(0, file.size() - 2) + signing::archive_tail(bundle_of(file, test::kFirst))};
}

std::vector<std::string> sealed_seeds() {
  return {seal().sealed(journal_of_sets(true) + "\n", kPlace), seal().sealed(journal_of_sets(false) + "\n", kPlace)};
}

}  // namespace sconce::fuzz
