#include "server/signing/statement.h"

#include <algorithm>

#include "sconce/check.h"
#include "server/support/failure.h"
#include "server/support/json_cursor.h"
#include "server/support/json_document.h"
#include "src/support/excerpt.h"
#include "src/support/hex.h"
#include "src/support/sha256.h"

namespace sconce::server::signing {
namespace {

constexpr const char *kType = "https://in-toto.io/Statement/v1",
                     *kPredicateType = "https://model_signing/signature/v1.0";
constexpr size_t kMaxResources = 100'000;

// The subject's digest: the digest of all resources' digests, concatenated.
Sha256Digest digest_of_all(const std::vector<SignedResource>& resources) {
  Sha256 digest;
  for (const SignedResource& resource : resources) digest.update(resource.digest);
  return digest.finish();
}

Sha256Digest read_digest(JsonCursor& json, std::string_view what) {
  const std::optional<Sha256Digest> digest = sha256_from_hex(json.string(what));
  SCONCE_CHECK(digest, kInvalidArgument, what, " is not a SHA-256 in hexadecimal");
  return *digest;
}

SignedResource read_resource(JsonCursor& json) {
  SignedResource resource;
  std::string algorithm;
  bool digest = false;
  json.object("a resource", [&](std::string_view key) {
    if (key == "name") {
      resource.name = json.string("'name'");
    } else if (key == "algorithm") {
      algorithm = json.string("'algorithm'");
    } else if (key == "digest") {
      resource.digest = read_digest(json, "a resource's 'digest'");
      digest = true;
    } else {
      json.skip();
    }
  });
  SCONCE_CHECK(algorithm == "sha256", kInvalidArgument, "the digest of resource '", excerpt(resource.name),
               "' must be of sha256, got '", excerpt(algorithm), "'");
  SCONCE_CHECK(digest && !resource.name.empty(), kInvalidArgument, "a resource has no name or no digest");
  return resource;
}

void read_file(JsonCursor& json, Statement& statement) {
  std::optional<uint64_t> bytes, head_bytes;
  std::optional<Sha256Digest> digest, head_digest;
  json.object("'sconce'", [&](std::string_view key) {
    if (key == "bytes") {
      bytes = json.unsigned_integer("'bytes'");
    } else if (key == "digest") {
      digest = read_digest(json, "'digest'");
    } else if (key == "head_bytes") {
      head_bytes = json.unsigned_integer("'head_bytes'");
    } else if (key == "head_digest") {
      head_digest = read_digest(json, "'head_digest'");
    } else {
      json.skip();
    }
  });
  SCONCE_CHECK(bytes && digest && head_bytes.has_value() == head_digest.has_value(), kInvalidArgument,
               "'sconce' must have bytes and digest, and may have head_bytes and head_digest");
  statement.file = SignedBytes{*bytes, *digest};
  if (head_bytes) statement.head = SignedBytes{*head_bytes, *head_digest};
}

void read_predicate(JsonCursor& json, Statement& statement) {
  json.object("'predicate'", [&](std::string_view key) {
    if (key == "resources") {
      json.array("'resources'", [&](size_t) {
        SCONCE_CHECK(statement.resources.size() < kMaxResources, kInvalidArgument, "more than ", kMaxResources,
                     " resources");
        statement.resources.push_back(read_resource(json));
      });
    } else if (key == "sconce") {
      read_file(json, statement);
    } else {
      json.skip();
    }
  });
}

Sha256Digest read_subject(JsonCursor& json, Statement& statement) {
  std::optional<Sha256Digest> digest;
  json.array("'subject'", [&](size_t i) {
    SCONCE_CHECK(i == 0, kInvalidArgument, "more than one subject");
    json.object("the subject", [&](std::string_view key) {
      if (key == "name") {
        statement.subject = json.string("the subject's 'name'");
      } else if (key == "digest") {
        json.object("the subject's 'digest'", [&](std::string_view algorithm) {
          if (algorithm == "sha256")
            digest = read_digest(json, "the subject's 'sha256'");
          else
            json.skip();
        });
      } else {
        json.skip();
      }
    });
  });
  SCONCE_CHECK(digest, kInvalidArgument, "the subject has no sha256");
  return *digest;
}

void check_names(const std::vector<SignedResource>& resources) {
  std::vector<std::string_view> names;
  names.reserve(resources.size());
  for (const SignedResource& resource : resources) names.push_back(resource.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) SCONCE_FAIL(kInvalidArgument, "resource '", excerpt(*twice), "' is in the statement twice");
}

}  // namespace

const Sha256Digest& Statement::file_digest() const {
  if (file) return file->digest;
  SCONCE_CHECK(resources.size() == 1, kForbidden, "the signature is of ", resources.size(),
               " files and not of this one: sign the file itself");
  return resources.front().digest;
}

std::string statement_text(Statement statement) {
  std::vector<SignedResource>& resources = statement.resources;
  std::sort(resources.begin(), resources.end(),
            [](const SignedResource& a, const SignedResource& b) { return a.name < b.name; });
  OrderedJson json;
  json["_type"] = kType;
  json["subject"] =
      OrderedJson::array({{{"name", statement.subject}, {"digest", {{"sha256", to_hex(digest_of_all(resources))}}}}});
  json["predicateType"] = kPredicateType;
  OrderedJson& predicate = json["predicate"];
  predicate["serialization"] = {
      {"method", "files"}, {"hash_type", "sha256"}, {"allow_symlinks", false}, {"ignore_paths", OrderedJson::array()}};
  predicate["resources"] = OrderedJson::array();
  for (const SignedResource& resource : resources)
    predicate["resources"].push_back(
        {{"name", resource.name}, {"algorithm", "sha256"}, {"digest", to_hex(resource.digest)}});
  if (statement.file) {
    predicate["sconce"] = {{"bytes", statement.file->bytes}, {"digest", to_hex(statement.file->digest)}};
    if (statement.head) {
      predicate["sconce"]["head_bytes"] = statement.head->bytes;
      predicate["sconce"]["head_digest"] = to_hex(statement.head->digest);
    }
  }
  return dump(json);
}

Statement parse_statement(std::string_view text) {
  Statement statement;
  const std::string problem = problem_of([&] {
    std::string type, predicate_type;
    std::optional<Sha256Digest> subject;
    JsonCursor json(text);
    json.object("the statement", [&](std::string_view key) {
      if (key == "_type")
        type = json.string("'_type'");
      else if (key == "predicateType")
        predicate_type = json.string("'predicateType'");
      else if (key == "subject")
        subject = read_subject(json, statement);
      else if (key == "predicate")
        read_predicate(json, statement);
      else
        json.skip();
    });
    json.finish();
    SCONCE_CHECK(type == kType && predicate_type == kPredicateType, kInvalidArgument, "it is not ", kPredicateType);
    SCONCE_CHECK(!statement.resources.empty(), kInvalidArgument, "it is about nothing");
    check_names(statement.resources);
    SCONCE_CHECK(subject && *subject == digest_of_all(statement.resources), kInvalidArgument,
                 "its subject has another digest than its resources");
  });
  SCONCE_CHECK(problem.empty(), kForbidden, "the signed statement cannot be used: ", problem);
  return statement;
}

}  // namespace sconce::server::signing
