#include "server/support/html/html_page.h"

#include <doctest/doctest.h>

using namespace sconce::server;

TEST_CASE("html: text cannot become markup") {
  CHECK(escape_html("<a href=\"x\">'&'</a>") == "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
  CHECK(escape_html("ß plain") == "ß plain");
}

TEST_CASE("html: a document") {
  const std::string page = html_page("<t>", "<x>", "<y>");
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(page.find("<title>&lt;t&gt;</title>\n<x></head>") != std::string::npos);
  CHECK(page.find("<body>\n<y></body>") != std::string::npos);
}

TEST_CASE("html: a file by itself has its style and loads nothing") {
  const std::string file = html_file("t", ".own{}", "");
  CHECK(file.find("default-src 'none'") != std::string::npos);
  CHECK(file.find(".own{}</style>") != std::string::npos);
  CHECK(file.find("prefers-color-scheme:dark") != std::string::npos);
  CHECK(file.find("http://") == std::string::npos);
  CHECK(file.find("url(") == std::string::npos);
}
