#include "server/registry/remote/listing_xml.h"

#include <expat.h>

#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "sconce/check.h"
#include "server/http/client/url_text.h"
#include "server/support/failure.h"
#include "src/support/parse_number.h"

namespace sconce::server::registry {
namespace {

constexpr size_t kDeepest = 16;
constexpr size_t kLongestText = 4096;
constexpr size_t kMaxObjects = 10'000;  // of a page; S3 has 1000

// Expat calls its functions, which must not throw.
struct Reading {
  XML_Parser parser = nullptr;
  std::vector<std::string> path;  // names of the open elements
  std::string text;               // of the innermost element
  ListedObject object;
  std::optional<uint64_t> bytes;
  bool truncated = false, url_encoded = false;
  ListedPage page;
  const char* wrong = nullptr;
  std::exception_ptr thrown;

  void refuse(const char* reason) {
    wrong = reason;
    XML_StopParser(parser, XML_FALSE);
  }
  bool inside(std::string_view parent) const { return path.size() == 3 && path[1] == parent; }
  bool is_azure() const { return path[0] == "EnumerationResults"; }
  // Handles the end of an object.
  void take_object() {
    if (object.key.empty() || !bytes) return refuse("an object has no key or no size");
    if (page.objects.size() >= kMaxObjects) return refuse("a page has too many objects");
    object.bytes = *bytes;
    page.objects.push_back(std::move(object));
  }
};

// Expat calls some functions after it was told to stop, for example for the end of an empty element.
void guarded(Reading& reading, Work work) noexcept {
  if (reading.thrown || reading.wrong) return;
  reading.thrown = exception_of(work);
  if (reading.thrown) XML_StopParser(reading.parser, XML_FALSE);
}

void on_begin(void* object, const XML_Char* name, const XML_Char**) noexcept {
  Reading& reading = *static_cast<Reading*>(object);
  guarded(reading, [&] {
    const std::string_view named(name);
    if (reading.path.empty() && named != "ListBucketResult" && named != "EnumerationResults")
      return reading.refuse("its root is no ListBucketResult");
    if (reading.path.size() >= kDeepest) return reading.refuse("its elements are nested too deeply");
    reading.path.emplace_back(name);
    reading.text.clear();
    if (reading.path.size() == (reading.is_azure() ? 3 : 2)) {
      reading.object = {};
      reading.bytes.reset();
    }
  });
}

// EnumerationResults/Blobs/Blob/Name and Properties/Content-Length, Etag; EnumerationResults/NextMarker.
void end_of_azure(Reading& reading, const std::string& name) {
  const std::vector<std::string>& path = reading.path;
  if (path.size() == 2 && name == "NextMarker") {
    reading.page.next = reading.text;
    reading.truncated = !reading.text.empty();
  }
  if (path.size() < 3 || path[1] != "Blobs" || path[2] != "Blob") return;
  if (path.size() == 4 && name == "Name") reading.object.key = reading.text;
  if (path.size() == 5 && path[3] == "Properties") {
    if (name == "Etag") reading.object.etag = reading.text;
    if (name == "Content-Length") reading.bytes = parse_number<uint64_t>(reading.text);
  }
  if (path.size() == 3) reading.take_object();
}

void on_end(void* object, const XML_Char*) noexcept {
  Reading& reading = *static_cast<Reading*>(object);
  guarded(reading, [&] {
    const std::string name = reading.path.back();
    if (reading.is_azure()) {
      end_of_azure(reading, name);
    } else if (reading.inside("Contents")) {
      if (name == "Key") reading.object.key = reading.text;
      if (name == "ETag") reading.object.etag = reading.text;
      if (name == "Size") reading.bytes = parse_number<uint64_t>(reading.text);
    } else if (reading.path.size() == 2) {
      if (name == "IsTruncated") reading.truncated = reading.text == "true";
      if (name == "NextContinuationToken") reading.page.next = reading.text;
      if (name == "EncodingType") reading.url_encoded = reading.text == "url";
      if (name == "Contents") reading.take_object();
    }
    reading.path.pop_back();
    reading.text.clear();
  });
}

void on_text(void* object, const XML_Char* text, int bytes) noexcept {
  Reading& reading = *static_cast<Reading*>(object);
  guarded(reading, [&] {
    if (reading.text.size() + static_cast<size_t>(bytes) > kLongestText)
      return reading.refuse("the text of an element is too long");
    reading.text.append(text, static_cast<size_t>(bytes));
  });
}

// S3 sends none. It could declare entities that expand to gigabytes, or to local files.
void on_document_type(void* object, const XML_Char*, const XML_Char*, const XML_Char*, int) noexcept {
  static_cast<Reading*>(object)->refuse("it has a document type");
}

struct FreeParser {
  void operator()(XML_Parser parser) const noexcept { XML_ParserFree(parser); }
};

}  // namespace

ListedPage parse_listing(std::string_view text) {
  const std::unique_ptr<std::remove_pointer_t<XML_Parser>, FreeParser> parser(XML_ParserCreate(nullptr));
  if (!parser) throw std::bad_alloc();
  Reading reading;
  reading.parser = parser.get();
  XML_SetUserData(parser.get(), &reading);
  XML_SetElementHandler(parser.get(), &on_begin, &on_end);
  XML_SetCharacterDataHandler(parser.get(), &on_text);
  XML_SetStartDoctypeDeclHandler(parser.get(), &on_document_type);
  SCONCE_CHECK(text.size() <= INT32_MAX, kUnavailable, "a listing is too large");
  const XML_Status status = XML_Parse(parser.get(), text.data(), static_cast<int>(text.size()), XML_TRUE);
  if (reading.thrown) std::rethrow_exception(reading.thrown);
  SCONCE_CHECK(!reading.wrong, kUnavailable, "not a listing of a store: ", reading.wrong);
  SCONCE_CHECK(status == XML_STATUS_OK, kUnavailable,
               "not a listing of a store: ", XML_ErrorString(XML_GetErrorCode(parser.get())));
  SCONCE_CHECK(reading.truncated == !reading.page.next.empty(), kUnavailable,
               "not a listing of a store: its truncation flag and its next token do not match");
  for (ListedObject& object : reading.page.objects) {
    if (!reading.url_encoded) break;
    std::optional<std::string> key = http::decoded_form(object.key);
    SCONCE_CHECK(key, kUnavailable, "not a listing of a store: a key is not encoded as declared");
    object.key = std::move(*key);
  }
  return std::move(reading.page);
}

}  // namespace sconce::server::registry
