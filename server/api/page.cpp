#include "server/api/page.h"

#include <algorithm>

#include "sconce/version.h"
#include "server/support/html/html_page.h"

namespace sconce::server::api {
namespace {

// A repository may have thousands of models; the page stays short.
constexpr size_t kMaxExamples = 20;

std::string shown_state(const registry::Catalog::Version& version) {
  using enum registry::Catalog::State;
  switch (version.state) {
    case kLoading:
      return "loading";
    case kUnloaded:
      return "unloaded";
    case kUnavailable:
      return "not available: " + version.reason;
    case kNotServing:
      return "not available: " + version.held;
    case kReady:
      break;
  }
  const std::string fault = version.fault();
  return fault.empty() ? "ready" : "not available: " + fault;
}

bool is_served(const registry::Catalog::Version& version) {
  return version.state == registry::Catalog::State::kReady && version.fault().empty();
}

std::string tensor_text(const scheduling::TensorNames& names, const scheduling::TensorInterface& tensor, size_t i) {
  return names.name(i) + " " + std::string(tensor.datatype) + " " +
         (tensor.shape_known ? to_string(tensor.shape) : "of any shape");
}

std::string tensors_text(const scheduling::TensorNames& names,
                         const std::vector<scheduling::TensorInterface>& tensors) {
  std::string text;
  for (size_t i = 0; i < tensors.size(); ++i) text += (i == 0 ? "" : ", ") + tensor_text(names, tensors[i], i);
  return text.empty() ? "none" : text;
}

// The version that answers requests without a version.
const registry::Catalog::Version* chosen(const registry::Catalog::Entry& entry) {
  for (auto version = entry.versions.rbegin(); version != entry.versions.rend(); ++version)
    if (is_served(*version)) return &*version;
  return nullptr;
}

struct Link {
  std::string path, text;
};
std::vector<Link> links_of(const PageFacts& facts) {
  std::vector<Link> links;
  if (!facts.console.empty()) links.push_back({facts.console, "console: models, weights, operations, log"});
  const std::string& url = facts.reach.url;
  if (url.empty()) return links;
  links.push_back({url + "/openapi.json", "every route"});
  links.push_back({url + "/v2/health/ready", "are all models ready"});
  links.push_back({url + "/v2", "name, version, extensions"});
  links.push_back({url + "/v1/models", "names of models"});
  links.push_back({url + "/v2/models/stats", "statistics"});
  return links;
}

constexpr std::string_view kTokenHint = "Requests need a token: the examples read it from the variable SCONCE_TOKEN.";
constexpr std::string_view kTlsHint =
    "The server uses TLS: if this system does not trust its certificate, add --cacert to curl, ca= to sconce.Client, "
    "and the options in its documentation to Triton's client.";

// As shell lines, so that it can be pasted unchanged.
std::string shell_lines(const Example& example) {
  if (example.language == Example::Language::kShell) return example.text;
  return "python3 - <<'END'\n" + example.text + "END\n";
}

std::string html_tensors(std::string_view caption, const scheduling::TensorNames& names,
                         const std::vector<scheduling::TensorInterface>& tensors) {
  if (tensors.empty()) return {};
  std::string html = "<div class=\"wide\"><table><thead><tr><th scope=\"col\">" + std::string(caption) +
                     "</th><th scope=\"col\">datatype</th><th scope=\"col\">shape</th></tr></thead><tbody>\n";
  for (size_t i = 0; i < tensors.size(); ++i)
    html += "<tr><td class=\"name mono\">" + escape_html(names.name(i)) + "</td><td class=\"mono\">" +
            std::string(tensors[i].datatype) + "</td><td class=\"mono\">" +
            (tensors[i].shape_known ? to_string(tensors[i].shape) : "any") + "</td></tr>\n";
  return html + "</tbody></table></div>\n";
}

std::string html_examples(const registry::ServedModel& model, const Reach& reach, bool open) {
  std::string html;
  for (const Example& example : examples_of(model, reach))
    html += "<h3>" + escape_html(example.title) + "</h3>\n<pre tabindex=\"0\"><code class=\"" +
            (example.language == Example::Language::kShell ? "shell" : "python") + "\">" + escape_html(example.text) +
            "</code></pre>\n";
  if (html.empty()) return "<p class=\"soft\">" + std::string(kNoExamples) + "</p>\n";
  return std::string("<details") + (open ? " open" : "") + "><summary>Examples</summary>\n" + html + "</details>\n";
}

}  // namespace

std::string url_for(std::string_view url, std::string_view host, bool same) {
  constexpr size_t kLongestHost = 255;
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == ':' || c == '[' || c == ']';
  };
  const bool known = !host.empty() && host.size() <= kLongestHost && std::all_of(host.begin(), host.end(), plain);
  const size_t scheme = url.find("://");
  const size_t begin = scheme == std::string_view::npos ? 0 : scheme + 3, colon = url.rfind(':');
  if (url.empty() || !known) return std::string(url);
  const std::string_view own = url.substr(begin, colon - begin);
  if (same) return std::string(url.substr(0, begin)).append(host);
  // Other listeners have their own ports. A listener on all interfaces is at the host that the client used.
  if (own != "0.0.0.0" && own != "[::]") return std::string(url);
  const size_t port = host.rfind(':');
  const bool has_port = port != std::string_view::npos && host.find(']', port) == std::string_view::npos;
  return std::string(url.substr(0, begin))
      .append(host.substr(0, has_port ? port : host.size()))
      .append(url.substr(colon));
}

std::string page_text(const registry::Catalog& catalog, const PageFacts& facts) {
  std::string text = "Sconce " + version() + " serves:\n";
  size_t shown = 0;
  for (const registry::Catalog::Entry& entry : catalog.entries()) {
    const registry::Catalog::Version* const asked = chosen(entry);
    for (const registry::Catalog::Version& version : entry.versions) {
      text += "\n" + entry.name + ", version " + std::to_string(version.version()) + ": " + shown_state(version) + "\n";
      if (!is_served(version)) continue;
      const scheduling::ModelSignature& model = version.model->interface();
      text += "  inputs:  " + tensors_text(model.input_names, model.inputs) +
              "\n  outputs: " + tensors_text(model.output_names, model.outputs) + "\n";
      if (&version != asked || shown == kMaxExamples) continue;
      const std::vector<Example> examples = examples_of(*version.model, facts.reach);
      if (examples.empty()) text += "\n# " + std::string(kNoExamples) + "\n";
      // The examples of one model show how clients are used.
      for (const Example& example : examples)
        if (example.language == Example::Language::kShell || shown == 0)
          text += "\n# " + example.title + "\n" + shell_lines(example);
      if (!examples.empty()) ++shown;
    }
  }
  text += "\n";
  if (facts.reach.token) text += std::string(kTokenHint) + "\n";
  if (facts.reach.tls) text += std::string(kTlsHint) + "\n";
  if (!facts.reach.grpc.empty()) text += "gRPC: " + facts.reach.grpc + "\n";
  for (const Link& link : links_of(facts)) text += link.path + "  " + link.text + "\n";
  return text;
}

std::string page_html(const registry::Catalog& catalog, const PageFacts& facts) {
  std::string body = "<header>\n<h1>Sconce " + version() + "</h1>\n<p>" +
                     (facts.ready ? "<span class=\"good\">ready</span>" : "<span class=\"bad\">not ready</span>") +
                     ", " + std::to_string(catalog.entries().size()) + " models";
  if (!facts.reach.grpc.empty()) body += ", gRPC on <code>" + escape_html(facts.reach.grpc) + "</code>";
  body += "</p>\n</header>\n<nav aria-label=\"This server\"><ul>\n";
  for (const Link& link : links_of(facts))
    body += "<li><a href=\"" + escape_html(link.path) + "\"><code>" + escape_html(link.path) + "</code></a> " +
            escape_html(link.text) + "</li>\n";
  body += "</ul></nav>\n";
  if (facts.reach.token) body += "<p>" + std::string(kTokenHint) + "</p>\n";
  if (facts.reach.tls) body += "<p>" + std::string(kTlsHint) + "</p>\n";
  body += "<main>\n";
  size_t shown = 0;
  for (const registry::Catalog::Entry& entry : catalog.entries()) {
    const registry::Catalog::Version* const asked = chosen(entry);
    for (const registry::Catalog::Version& version : entry.versions) {
      const std::string number = std::to_string(version.version()), id = escape_html(entry.name + "-" + number);
      const bool served = is_served(version);
      body += "<section aria-labelledby=\"" + id + "\">\n<h2 id=\"" + id + "\">" + escape_html(entry.name) +
              " <span class=\"soft\">version " + number + "</span></h2>\n<p class=\"" + (served ? "good" : "bad") +
              "\">" + escape_html(shown_state(version)) + "</p>\n";
      if (served) {
        const scheduling::ModelSignature& model = version.model->interface();
        body += html_tensors("input", model.input_names, model.inputs);
        body += html_tensors("output", model.output_names, model.outputs);
        if (&version == asked && shown < kMaxExamples) body += html_examples(*version.model, facts.reach, shown++ == 0);
      }
      body += "</section>\n";
    }
  }
  body += "</main>\n";
  return html_page("Sconce", "<link rel=\"stylesheet\" href=\"page.css\">\n", body);
}

}  // namespace sconce::server::api
