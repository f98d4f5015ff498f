#include "server/registry/remote/listing_xml.h"

#include <doctest/doctest.h>

#include <string>

#include "sconce/error.h"

namespace sconce::server::registry {
namespace {

std::string listing(const std::string& inside) {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult "
         "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" +
         inside + "</ListBucketResult>";
}

TEST_CASE("a page of a listing is read") {
  const ListedPage page = parse_listing(listing(
      "<Name>b</Name><IsTruncated>true</IsTruncated><NextContinuationToken>t&amp;1</NextContinuationToken>"
      "<Contents><Key>a&lt;b.pt2</Key><ETag>&quot;e1&quot;</ETag><Size>12</Size><Owner><ID>Key</ID></Owner></Contents>"
      "<Contents><Key>c</Key><Size>0</Size></Contents>"));
  REQUIRE(page.objects.size() == 2);
  CHECK(page.objects[0].key == "a<b.pt2");
  CHECK(page.objects[0].etag == "\"e1\"");
  CHECK(page.objects[0].bytes == 12);
  CHECK(page.objects[1].etag.empty());
  CHECK(page.next == "t&1");
  CHECK(parse_listing(listing("")).objects.empty());
}

TEST_CASE("keys that a store encoded are decoded") {
  const std::string keys =
      "<Contents><Key>a+b%2B%01.pt2</Key><Size>1</Size></Contents><EncodingType>url</EncodingType>";
  CHECK(parse_listing(listing(keys)).objects.at(0).key == "a b+\x01.pt2");
  CHECK_THROWS_AS(
      parse_listing(listing("<EncodingType>url</EncodingType><Contents><Key>a%</Key><Size>1</Size></Contents>")),
      Error);
  // A store that does not know what it was asked for encodes nothing.
  CHECK(parse_listing(listing("<Contents><Key>a%2B</Key><Size>1</Size></Contents>")).objects.at(0).key == "a%2B");
}

TEST_CASE("a hostile listing is refused") {
  const std::string bomb =
      "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;\">]><ListBucketResult>&b;"
      "</ListBucketResult>";
  CHECK_THROWS_WITH_AS(parse_listing(bomb), "not a listing of a store: it has a document type", Error);
  CHECK_THROWS_AS(parse_listing("<!DOCTYPE x [<!ENTITY a SYSTEM \"file:///etc/passwd\">]><ListBucketResult/>"), Error);
  CHECK_THROWS_AS(parse_listing("<!DOCTYPE x [<!ATTLIST Key a CDATA \"aaaa\">]><ListBucketResult/>"), Error);
  CHECK_THROWS_AS(parse_listing("<Error><Code>NoSuchBucket</Code></Error>"), Error);
  CHECK_THROWS_AS(parse_listing(""), Error);
  CHECK_THROWS_AS(parse_listing("<ListBucketResult>"), Error);
  CHECK_THROWS_AS(parse_listing(listing("<Contents><Key>a</Key></Contents>")), Error);
  CHECK_THROWS_AS(parse_listing(listing("<Contents><Key>a</Key><Size>-1</Size></Contents>")), Error);
  CHECK_THROWS_AS(parse_listing(listing("<IsTruncated>true</IsTruncated>")), Error);
  CHECK_THROWS_AS(parse_listing(listing("<Contents><Key>" + std::string(5000, 'a') + "</Key></Contents>")), Error);
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "<d>";
  CHECK_THROWS_AS(parse_listing(listing(deep)), Error);
}

TEST_CASE("a listing that is refused at an empty element, whose end Expat still reports") {
  CHECK_THROWS_WITH_AS(parse_listing("<x/>"), "not a listing of a store: its root is no ListBucketResult", Error);
  std::string deep = "<e/>";
  for (int i = 0; i < 15; ++i) deep = "<d>" + deep + "</d>";
  CHECK_THROWS_WITH_AS(parse_listing(listing(deep)), "not a listing of a store: its elements are nested too deeply",
                       Error);
}

TEST_CASE("a container of Azure is read") {
  const ListedPage page = parse_listing(
      "<?xml version='1.0'?><EnumerationResults ContainerName='m'><Prefix>r/</Prefix><Blobs><Blob><Name>r/a.pt2</Name>"
      "<Properties><Etag>0x8D</Etag><Content-Length>5</Content-Length><Name>no</Name></Properties></Blob><Blob>"
      "<Name>r/b</Name><Properties><Content-Length>0</Content-Length></Properties></Blob></Blobs>"
      "<NextMarker>2!x</NextMarker></EnumerationResults>");
  REQUIRE(page.objects.size() == 2);
  CHECK(page.objects[0].key == "r/a.pt2");
  CHECK(page.objects[0].etag == "0x8D");
  CHECK(page.objects[0].bytes == 5);
  CHECK(page.objects[1].etag.empty());
  CHECK(page.next == "2!x");
  CHECK(parse_listing("<EnumerationResults><Blobs/><NextMarker/></EnumerationResults>").objects.empty());
  CHECK_THROWS_AS(parse_listing("<EnumerationResults><Blobs><Blob><Name>a</Name></Blob></Blobs></EnumerationResults>"),
                  Error);
}

}  // namespace
}  // namespace sconce::server::registry
