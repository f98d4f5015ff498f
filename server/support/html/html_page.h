// HTML documents: the first page of the server and the reports of commands. No script, nothing from elsewhere, dark and
// light as the reader's system wants it.
#pragma once

#include <string>
#include <string_view>

namespace sconce::server {

// Text as the content of an element, or as an attribute's value in double quotes.
std::string escape_html(std::string_view text);

// The stylesheet that all these documents share.
std::string_view page_style() noexcept;

// A whole document. head, body: HTML; `head` comes after the title and has the style, or a link to it.
std::string html_page(std::string_view title, std::string_view head, std::string_view body);

// One that is a file by itself: the style is in it, and it loads nothing. style: rules of its own.
std::string html_file(std::string_view title, std::string_view style, std::string_view body);

}  // namespace sconce::server
