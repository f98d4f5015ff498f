#include "tests/fuzz/entries.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <cstring>
#include <nlohmann/json.hpp>

#include "package_format/archive/archive_reader.h"
#include "package_format/call_spec.h"
#include "package_format/elf_image.h"
#include "package_format/weights_index.h"
#include "package_format/wrapper/rows/row_proof.h"
#include "package_format/wrapper/rows/small_sizes.h"
#include "package_format/wrapper/wrapper_mutation.h"
#include "package_format/wrapper/wrapper_source.h"
#include "sconce/check.h"
#include "sconce/error.h"
#include "sconce/package.h"
#include "sconce/tensor_files.h"
#include "sconce/weight_sources.h"
#include "server/codecs/call_codec.h"
#include "server/codecs/generate_codec.h"
#include "server/codecs/infer_codec.h"
#include "server/codecs/predict_codec.h"
#include "server/http/chunk_decoder.h"
#include "server/http/compression.h"
#include "server/http/request_parser.h"
#include "server/http/router.h"
#include "server/rollout/trainer_tensors/shared_tensors.h"
#include "server/rollout/trainer_tensors/torch_pickles.h"
#include "server/scheduling/pipelines/pipeline_plan.h"
#include "server/scheduling/triton/model_config.h"
#include "server/support/json_cursor.h"
#include "src/loader/library/elf_fixups.h"
#include "tests/fuzz/fleet_entries.h"
#include "tests/fuzz/refusals.h"

namespace sconce::fuzz {
using namespace server;

namespace {

bool run_package(std::string_view bytes) {
  const MemoryFile file(bytes);
  return accepted([&] {
    const auto package = Package::open(file.path());
    for (const ModelSpec& model : package->models()) accepted([&] { locate_weights(*package, model); });
    package->verify();
  });
}

bool run_library(std::string_view bytes) {
  const auto file = std::as_bytes(std::span(bytes));
  const bool read = accepted([&] {
    const ElfImage image(file, "model.so");
    image.imports();
    image.unmapped_sections();
    for (size_t i = 0; i < image.symbol_count(); ++i) {
      image.symbol_version(i);
      if (!image.find_symbol(image.symbol_name(i)) && image.exported(image.symbol_name(i)))
        broken("a symbol is exported and not there");
    }
    if (const auto symbol = image.exported("_binary_constants_bin_start")) {
      image.bytes_at(symbol->st_value, symbol->st_size);
      image.writable(symbol->st_value);
    }
    find_call_spec(image);
  });
  const bool fixed = accepted([&] {
    const ElfImage image(file, "model.so");
    for (const loader::Patch& patch : loader::compute_fixups(image).patches)
      if (patch.offset > file.size() || patch.bytes.size() > file.size() - patch.offset)
        broken("a patch lies outside the file");
  });
  return read && fixed;
}

bool run_source(std::string_view text) {
  return accepted([&] {
    ModelSpec spec;
    const WrapperSource source = read_wrapper_source(text, spec);
    kernel_threads(text);
    find_mutated(text, source, false, spec);
    find_mutated(text, source, true, spec);
    spec.device_key = "cpu";
    const std::array texts{text};
    rows::ParsedCode code(source, texts);
    prove_rows(code, spec);
    find_small_sizes(code, spec);
    if (!source.in_spec.empty()) {
      CallSpec call = parse_call_spec(source.in_spec, source.out_spec);
      map_inputs(call, spec.inputs);
    }
  });
}

// Two specs and a program, one per line.
bool run_call_spec(std::string_view text) {
  const size_t first = std::min(text.find('\n'), text.size());
  const std::string_view rest = text.substr(std::min(first + 1, text.size()));
  const size_t second = std::min(rest.find('\n'), rest.size());
  return accepted([&] {
    CallSpec spec = parse_call_spec(text.substr(0, first), rest.substr(0, second));
    map_inputs(spec, std::vector<TensorSpec>(spec.args.leaves()), rest.substr(std::min(second + 1, rest.size())));
  });
}

bool run_tensor_file(std::string_view bytes) {
  const MemoryFile file(bytes);
  return accepted([&] {
    unsigned sum = 0;
    for (const NamedTensor& named : read_tensors(file.path())) {
      // Read both ends of the tensor's memory.
      if (named.tensor.numel() == 0) continue;
      const auto* first = static_cast<const volatile unsigned char*>(named.tensor.data());
      int64_t last = 0;
      for (size_t i = 0; i < named.tensor.sizes().size(); ++i)
        last += (named.tensor.sizes()[i] - 1) * named.tensor.strides()[i];
      sum += first[0] + first[last * static_cast<int64_t>(named.tensor.itemsize())];
    }
    if (sum == ~0u) broken("sum");
  });
}

// Accepts every update and checks the addresses that are written.
class PlainUpdate final : public WeightUpdate {
 public:
  void declare(std::span<const WeightEntry> entries) override {
    uint64_t left = uint64_t{1} << 24;
    for (const WeightEntry& entry : entries) {
      uint64_t bytes = dtype_bytes(entry.dtype);
      for (const int64_t size : entry.shape)
        if (size < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) bytes = UINT64_MAX;
      SCONCE_CHECK(bytes <= left, kOutOfMemory, "too large for a model: ", entry.name);
      left -= bytes;
      values_.emplace_back(bytes);
    }
  }
  std::span<std::byte> memory(size_t entry) override { return values_.at(entry); }
  void complete(size_t entry) override {
    std::vector<std::byte>().swap(values_.at(entry));  // later writes are found by the sanitizer
    ++completed_;
  }
  void set_label(std::string) override {}
  void finish() override {
    if (completed_ != values_.size()) broken("a constant was left out");
  }

 private:
  std::vector<std::vector<std::byte>> values_;
  size_t completed_ = 0;
};

// The first byte sets the size of the pieces in which the rest arrives, and whether its length is known.
bool run_weight_stream(std::string_view bytes) {
  const auto choice = bytes.empty() ? 0u : static_cast<unsigned char>(bytes[0]);
  bytes.remove_prefix(std::min<size_t>(1, bytes.size()));
  const size_t piece = size_t{1} << choice % 18;
  return accepted([&] {
    PlainUpdate update;
    StreamOptions options;
    if (choice & 128) options.bytes = bytes.size();
    WeightStream stream(update, options);
    for (std::string_view rest = bytes; !rest.empty();) {
      const std::span<std::byte> room = stream.next();
      if (room.empty()) broken("no room for the next bytes");
      const size_t n = std::min({room.size(), piece, rest.size()});
      std::memcpy(room.data(), rest.data(), n);
      stream.advance(n);
      rest.remove_prefix(n);
    }
    stream.end();
    update.finish();
  });
}

bool run_weight_file(std::string_view bytes) {
  const MemoryFile file(bytes);
  ConstantSpec constant;
  constant.name = constant.fqn = "w";
  constant.dtype = DType::kFloat32;
  constant.shape = {3, 5};
  constant.strides = {1, 3};
  constant.data_size = 64;
  return accepted([&] {
    PlainUpdate update;
    stage_file(update, file.path(), {.constants = {constant, constant}});
    update.finish();
  });
}

// A trainer's request; the first byte selects its form. There is no device, so only tensors in the request itself are
// read.
bool run_pickle(std::string_view bytes) {
  const auto choice = bytes.empty() ? 0u : static_cast<unsigned char>(bytes[0]);
  bytes.remove_prefix(std::min<size_t>(1, bytes.size()));
  const std::vector<char> copy(bytes.begin(), bytes.end());  // so that the sanitizer sees reads past the end
  bytes = {copy.data(), copy.size()};
  return accepted([&] {
    rollout::TrainerTensors described;
    const std::string uuids[] = {"gpu"};
    if (choice % 4 == 0) rollout::read_named_tensors(bytes, described);
    if (choice % 4 == 1) rollout::read_flat_bucket(bytes, described);
    if (choice % 4 == 2) rollout::read_ipc_handles(bytes, {{"a"}, {"float32"}, {{4}}, {}}, uuids, described);
    if (choice % 4 == 3) rollout::read_ipc_handles(bytes, {{"a"}, {"float32"}, {{4}}, {16}}, uuids, described);
    for (const rollout::TrainerMemory& memory : described.memories)
      if (memory.where == rollout::TrainerMemory::Where::kObject) return;  // memory of another process
    const rollout::SharedTensors shared(described);
    PlainUpdate update;
    stage_tensors(update, shared.tensors());
    update.finish();
  });
}

// Our reader must accept exactly the JSON that nlohmann accepts (up to 100 levels), and read the same strings.
bool run_json(std::string_view text) {
  bool too_deep = false;
  const bool ours = accepted_request([&] {
    try {
      JsonCursor cursor(text);
      cursor.skip();
      cursor.finish();
    } catch (const Error& error) {
      too_deep = std::string_view(error.what()).find("nested deeper") != std::string_view::npos;
      throw;
    }
  });
  // nlohmann skips a byte order mark and stops at a NUL.
  const bool same = !text.starts_with("\xef\xbb\xbf") && text.find('\0') == std::string_view::npos;
  if (!ours && !too_deep && same && nlohmann::json::accept(text)) broken("JSON is refused");
  accepted_request([&] {
    JsonCursor cursor(text);
    const std::string_view value = cursor.string("a string");
    const nlohmann::json theirs = nlohmann::json::parse(text.substr(0, cursor.offset()), nullptr, false);
    if (!theirs.is_discarded() && theirs.get_ref<const std::string&>() != value) broken("a string is read wrong");
    std::string written;
    append_json_string(written, value);
    if (!nlohmann::json::accept(written)) broken("a string is written wrong");
  });
  accepted_request([&] { JsonCursor(text).number("a number"); });
  accepted_request([&] { JsonCursor(text).unsigned_integer("an integer"); });
  return ours;
}

TensorSpec input(DType dtype, std::vector<Dim> dims) {
  TensorSpec spec;
  spec.name = "arg";
  spec.dtype = dtype;
  spec.has_shape = true;
  spec.dims = std::move(dims);
  return spec;
}

SpecNode node(SpecNode::Kind kind, std::vector<SpecNode> children, std::vector<std::string> keys = {}) {
  SpecNode result;
  result.kind = kind;
  result.children = std::move(children);
  result.keys = std::move(keys);
  result.int_keys.resize(result.keys.size());
  return result;
}

// f(a, [b, c], *, mask, scale): float, double, int64 with fixed strides, bool, complex.
const scheduling::ModelSignature& model() {
  static const scheduling::ModelSignature interface = [] {
    using Kind = SpecNode::Kind;
    ModelSpec spec;
    spec.name = "model";
    const Dim batch{2, 64, "s0"};
    spec.inputs = {input(DType::kFloat32, {batch, {3, 3, ""}}), input(DType::kFloat64, {batch}),
                   input(DType::kInt64, {{2, 2, ""}, {3, 3, ""}}), input(DType::kBool, {}),
                   input(DType::kComplex64, {{0, INT64_MAX, "s1"}})};
    spec.inputs[2].strides = {1, 2};
    spec.outputs = {input(DType::kFloat32, {batch})};
    spec.call_spec.known = true;
    spec.call_spec.args = node(Kind::kTuple, {SpecNode(), node(Kind::kList, {SpecNode(), SpecNode()})});
    spec.call_spec.kwargs = node(Kind::kDict, {SpecNode(), SpecNode()}, {"mask", "scale"});
    spec.call_spec.input_leaf = {0, 1, 2, 3, 4};
    return scheduling::ModelSignature("model", 1, std::move(spec));
  }();
  return interface;
}

BodyBuffer body_of(std::string_view bytes) {
  BodyBuffer body;
  body.prepare(bytes.size(), 0);
  body.append(bytes.data(), bytes.size());
  return body;
}

// Reads every element of every tensor.
void touch(std::span<const Tensor> tensors) {
  for (const Tensor& tensor : tensors) {
    std::vector<std::byte> copy(static_cast<size_t>(tensor.numel()) * tensor.itemsize());
    copy_to_contiguous(tensor, copy.data());
  }
}

// Two bytes with the length of the JSON part (0xffff: header field absent), then the body.
bool run_infer(std::string_view bytes) {
  if (bytes.size() < 2) return false;
  const unsigned length =
      static_cast<unsigned char>(bytes[0]) | static_cast<unsigned>(static_cast<unsigned char>(bytes[1])) << 8;
  bytes.remove_prefix(2);
  return accepted_request([&] {
    const BodyBuffer body = body_of(bytes);
    TensorScratch scratch;
    codecs::InferRequest request;
    codecs::decode_infer(model(), body, length == 0xffff ? std::nullopt : std::optional<uint64_t>(length), nullptr,
                         scratch, request);
    touch(request.inputs);
  });
}

bool run_call(std::string_view bytes) {
  return accepted_request([&] {
    const BodyBuffer body = body_of(bytes);
    TensorScratch scratch;
    std::vector<Tensor> inputs;
    codecs::decode_call(model(), body, scratch, inputs);
    touch(inputs);
  });
}

template <class Decode>
bool run_form(std::string_view bytes, Decode&& decode) {
  return accepted_request([&] {
    const BodyBuffer body = body_of(bytes);
    TensorScratch scratch;
    codecs::InferRequest request;
    decode(model(), body, scratch, request);
    touch(request.inputs);
  });
}

bool run_generate(std::string_view bytes) { return run_form(bytes, codecs::decode_generate); }
bool run_predict(std::string_view bytes) { return run_form(bytes, codecs::decode_predict); }

// One byte for the coding, then the body.
bool run_compressed(std::string_view bytes) {
  if (bytes.empty()) return false;
  const http::Coding coding = (bytes[0] & 1) == 0 ? http::Coding::kGzip : http::Coding::kDeflate;
  bytes.remove_prefix(1);
  return accepted_request([&] {
    constexpr size_t kLimit = 1 << 20;
    const BodyBuffer body = body_of(bytes);
    BodyBuffer plain;
    http::decompress(coding, body, 7, kLimit, plain);
    if (plain.size() > kLimit) broken("more was decompressed than is allowed");
  });
}

// Every text of the head lies within the parsed bytes and is readable.
void read_texts(const http::RequestHeader& head, std::string_view bytes) {
  unsigned sum = 0;
  for (const std::string_view text : {head.method_text, head.target, head.request_id, head.traceparent,
                                      head.authorization, head.origin, head.content_type, head.content_digest}) {
    const auto at = reinterpret_cast<uintptr_t>(text.data()), begin = reinterpret_cast<uintptr_t>(bytes.data());
    if (!text.empty() && (at < begin || at + text.size() > begin + bytes.size()))
      broken("a text is not of the request");
    for (const char& c : text) sum += static_cast<unsigned char>(const_cast<const volatile char&>(c));
  }
  if (sum == ~0u) broken("sum");
}

// Checks that decoding a chunked body does not depend on the pieces in which it arrives.
void compare_chunks(std::string_view bytes, const http::RequestParser& whole, size_t used, bool failed,
                    const BodyBuffer& body) {
  http::ChunkDecoder decoder;
  std::string plain;
  size_t at = 0;
  while (at < bytes.size() && !decoder.done() && decoder.problem() == nullptr) {
    const std::vector<char> piece(bytes.begin() + static_cast<ptrdiff_t>(at),
                                  bytes.begin() + static_cast<ptrdiff_t>(std::min(bytes.size(), at + 1 + at % 3)));
    const http::ChunkDecoder::Step step = decoder.step({piece.data(), piece.size()}, SIZE_MAX);
    if (step.used == 0) broken("a chunk decoder does not go on");
    at += step.used;
    plain += step.data;
    if (plain.size() > 1 << 16) return;
  }
  const std::string_view theirs(reinterpret_cast<const char*>(body.begin()), body.size());
  if (at != used || plain != theirs || decoder.done() != whole.is_done() || (decoder.problem() != nullptr) != failed)
    broken("a body in chunks depends on its pieces");
}

// Every kind of segment in the server's routes.
constexpr http::RoutePattern kPatterns[] = {
    {http::Method::kGet, "/", http::kPublic, 0},
    {http::Method::kGet, "/v2/models/{model}", http::kPublic, 1},
    {http::Method::kPost, "/v2/models/{model}/infer", http::kPublic, 2},
    {http::Method::kPost, "/v1/models/{model}/versions/{version}:call", http::kPublic, 3},
    {http::Method::kPost, "/v1/models/{model}:call", http::kPublic, 4},
    {http::Method::kPost, "/v2/systemsharedmemory/region/{region}/register", http::kPublic, 5},
    {http::Method::kDelete, "/v2/admin/models/{model}/replicas/{number}", http::kPublic, 6},
};

// Reads a whole request as a session does and routes its target.
bool run_request(std::string_view text) {
  const std::vector<char> copy(text.begin(), text.end());  // so that the sanitizer sees reads past the end
  std::string_view bytes(copy.data(), copy.size());
  http::RequestParser parser(1 << 16);
  BodyBuffer body;
  body.prepare(0, 0);
  boost::beast::error_code ec;
  const auto failed = [&] {
    if (!ec) return false;
    if (ec != boost::beast::http::error::need_more && parser.status(ec) < 400) broken("refused without a status");
    return true;
  };
  const size_t used = parser.put(boost::asio::const_buffer(bytes.data(), bytes.size()), ec);
  if (failed() || !parser.is_header_done()) return false;
  const http::RequestHeader& head = parser.head();
  read_texts(head, bytes);
  const bool routed = accepted_request([&] {
    const http::CanonicalTarget target = http::canonical_target(head.target);
    const http::RouteMatch route = http::find_route(kPatterns, target.path, head.method, http::kPublic);
    for (const std::string_view name : {route.model, route.set, route.region, route.file})
      if (route.result == http::RouteMatch::Result::kFound && (name == "." || name == "..")) broken("a path goes up");
  });
  if (!routed) return false;
  bytes.remove_prefix(used);
  if (!parser.chunked()) return true;
  parser.collect(body);
  parser.eager(true);
  const size_t taken = parser.put(boost::asio::const_buffer(bytes.data(), bytes.size()), ec);
  if (body.size() > 1 << 16) broken("a body is larger than allowed");
  if (ec != boost::beast::http::error::body_limit) compare_chunks(bytes, parser, taken, bool(ec), body);
  return !failed();
}

// A config.pbtxt, and the pipeline that it may be.
bool run_triton(std::string_view text) {
  return accepted([&] {
    const scheduling::TritonConfig config = scheduling::read_triton_config(text, "/models/m");
    if (config.ensemble) scheduling::pipeline_of(config, "config.pbtxt");
  });
}

// A pipeline whose steps are all one model, rows of four numbers to such rows.
bool run_pipeline(std::string_view text) {
  static const scheduling::ModelSignature layer = [] {
    ModelSpec spec;
    spec.inputs = spec.outputs = {input(DType::kFloat32, {{2, 64, "s0"}, {4, 4, ""}})};
    return scheduling::ModelSignature("layer", 1, std::move(spec));
  }();
  return accepted([&] {
    const scheduling::PipelineSpec spec = scheduling::read_pipeline(text, "p.pipeline.json");
    const std::vector<const scheduling::ModelSignature*> members(spec.steps.size(), &layer);
    const scheduling::PipelinePlan plan = scheduling::plan_pipeline(spec, "p", 1, members);
    for (const scheduling::PipelinePlan::Step& step : plan.steps)
      for (const scheduling::PipelinePlan::Input& input : step.inputs)
        if (input.value >= plan.values) broken("a step's input is no value");
    if (plan.interface.inputs.size() + plan.interface.outputs.size() > 2 * plan.values)
      broken("more tensors than values");
  });
}

constexpr Entry kEntries[] = {
    {"package", run_package, package_seeds},
    {"library", run_library, library_seeds},
    {"source", run_source, source_seeds},
    {"call_spec", run_call_spec, call_spec_seeds},
    {"tensor_file", run_tensor_file, tensor_file_seeds},
    {"weight_stream", run_weight_stream, weight_stream_seeds},
    {"weight_file", run_weight_file, weight_file_seeds},
    {"pickle", run_pickle, pickle_seeds},
    {"json", run_json, json_seeds},
    {"infer", run_infer, infer_seeds},
    {"call", run_call, call_seeds},
    {"generate", run_generate, generate_seeds},
    {"predict", run_predict, predict_seeds},
    {"compressed", run_compressed, compressed_seeds},
    {"request", run_request, request_seeds},
    {"triton", run_triton, triton_seeds},
    {"pipeline", run_pipeline, pipeline_seeds},
    {"address", run_address, address_seeds},
    {"answer_head", run_answer_head, answer_head_seeds},
    {"listing", run_listing, listing_seeds},
    {"hub_tree", run_hub_tree, hub_tree_seeds},
    {"download_journal", run_download_journal, download_journal_seeds},
    {"bundle", run_bundle, bundle_seeds},
    {"signed_archive", run_signed_archive, signed_archive_seeds},
    {"sealed", run_sealed, sealed_seeds},
};

}  // namespace

std::span<const Entry> entries() { return kEntries; }

const Entry* find_entry(std::string_view name) {
  for (const Entry& entry : kEntries)
    if (name == entry.name) return &entry;
  return nullptr;
}

}  // namespace sconce::fuzz
