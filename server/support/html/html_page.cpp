#include "server/support/html/html_page.h"

namespace sconce::server {

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string_view page_style() noexcept {
  return R"css(:root{color-scheme:light dark;--ink:#1b2430;--soft:#566372;--line:#d5dbe3;--ground:#fff;--card:#f5f7fa;--mark:#0b62c4;
--good:#12703a;--bad:#b3261e;--bar:#4a90d9;--was:#c77700}
@media(prefers-color-scheme:dark){:root{--ink:#e4e9ef;--soft:#9fabb8;--line:#36414d;--ground:#14191f;--card:#1d242c;--mark:#7db7f5;
--good:#67c98d;--bad:#f2877f;--bar:#4a90d9;--was:#f0b14d}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem 1rem 4rem;max-width:68rem;font:1rem/1.5 system-ui,sans-serif;color:var(--ink);background:var(--ground)}
h1{font-size:1.6rem;margin:0 0 .25rem}
h2{font-size:1.2rem;margin:2rem 0 .5rem;border-top:1px solid var(--line);padding-top:1rem}
h3{font-size:1rem;margin:1.25rem 0 .25rem}
p{margin:.25rem 0 .75rem}
a{color:var(--mark)}
a:focus-visible,summary:focus-visible,pre:focus-visible{outline:2px solid var(--mark);outline-offset:2px}
code,pre,td.number,.mono{font-family:ui-monospace,monospace;font-size:.875rem}
pre{margin:0;padding:.75rem;overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:.4rem}
table{border-collapse:collapse;width:100%}
.wide{overflow-x:auto}
th,td{text-align:left;padding:.25rem .75rem .25rem 0;border-bottom:1px solid var(--line);vertical-align:top}
th{font-weight:600;color:var(--soft);font-size:.875rem}
td.number,th.number{text-align:right}
td.name{overflow-wrap:anywhere}
summary{cursor:pointer;padding:.25rem 0;font-weight:600}
.soft{color:var(--soft)}.good{color:var(--good)}.bad{color:var(--bad)}
ul{margin:.25rem 0;padding-left:1.25rem}
)css";
}

std::string html_page(std::string_view title, std::string_view head, std::string_view body) {
  std::string page =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>";
  page += escape_html(title);
  page += "</title>\n";
  page += head;
  page += "</head>\n<body>\n";
  page += body;
  page += "</body>\n</html>\n";
  return page;
}

std::string html_file(std::string_view title, std::string_view style, std::string_view body) {
  std::string head =
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<style>\n";
  head += page_style();
  head += style;
  head += "</style>\n";
  return html_page(title, head, body);
}

}  // namespace sconce::server
