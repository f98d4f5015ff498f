#include "server/answers/page.h"

#include "sconce/version.h"

namespace sconce::server {
namespace {

std::string escape_html(std::string_view text) {
  std::string out;
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
      default:
        out += c;
    }
  }
  return out;
}

std::string describe_tensors(const TensorNames& names, const std::vector<TensorInterface>& tensors) {
  std::string text;
  for (size_t i = 0; i < tensors.size(); ++i) {
    text += (i == 0 ? "" : ", ") + names.name(i) + " " + std::string(tensors[i].datatype) + " " +
            (tensors[i].shape_known ? to_string(tensors[i].shape) : "of any shape");
  }
  return text.empty() ? "none" : text;
}

std::string plain_text(const Catalog& catalog, std::string_view url) {
  std::string text = "Sconce " + version() + " serves:\n";
  std::string example = "MODEL";
  for (const Catalog::Entry& entry : catalog.entries()) {
    for (const Catalog::Version& v : entry.versions) {
      text += "\n" + entry.name + ", version " + std::to_string(v.version()) + ": ";
      if (v.state == Catalog::State::kLoading) text += "loading";
      if (v.state == Catalog::State::kUnloaded) text += "unloaded";
      if (v.state == Catalog::State::kUnavailable) text += "not available: " + v.reason;
      if (v.state == Catalog::State::kHeld) text += "not available: " + v.held;
      if (v.state == Catalog::State::kReady) {
        const ModelInterface& model = v.model->interface();
        text += "ready\n  inputs:  " + describe_tensors(model.input_names, model.inputs) +
                "\n  outputs: " + describe_tensors(model.output_names, model.outputs);
        if (example == "MODEL") example = entry.name;
      }
      text += "\n";
    }
  }
  const std::string base(url);
  text += "\nPOST " + base + "/v1/models/" + example +
          ":call          {\"args\": [...], \"kwargs\": {...}}, as in Python\n" + "POST " + base + "/v2/models/" +
          example + "/infer         Open Inference Protocol v2\n" + "GET  " + base + "/v2/models/" + example +
          "               names, datatypes and shapes\n" + "GET  " + base + "/v2/health/ready\n";
  return text;
}

}  // namespace

std::string page_text(const Catalog& catalog, std::string_view url, bool html) {
  const std::string text = plain_text(catalog, url);
  if (!html) return text;
  return "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Sconce</title></head><body><pre>" +
         escape_html(text) + "</pre></body></html>\n";
}

}  // namespace sconce::server
