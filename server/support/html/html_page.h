// HTML documents: the server's first page and the reports of commands. No scripts, no external resources; dark or light
// as the reader's system is set.
#pragma once

#include <string>
#include <string_view>

namespace sconce::server {

// Escapes text for the content of an element, or for an attribute value in double quotes.
std::string escape_html(std::string_view text);

// The stylesheet of all these documents.
std::string_view page_style() noexcept;

// A whole document. head, body: HTML; `head` follows the title and has the style, or a link to it.
std::string html_page(std::string_view title, std::string_view head, std::string_view body);

// A document in one file, with the style inside; it loads nothing. style: additional rules.
std::string html_file(std::string_view title, std::string_view style, std::string_view body);

}  // namespace sconce::server
