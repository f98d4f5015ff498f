#include "server/codecs/answer_parts.h"

#include <charconv>
#include <cstring>
#include <string>

#include "sconce/check.h"
#include "src/support/excerpt.h"

namespace sconce::server::codecs {

void check_output(const Tensor& tensor) {
  SCONCE_CHECK(tensor.is_cpu() && tensor.layout() == Layout::kStrided, kUnsupported,
               "an output on this device cannot be sent: ", describe(tensor));
}

void check_infer_output(const Tensor& tensor, const InferRequest::Output& wanted) {
  if (tensor.is_cpu()) return check_output(tensor);
  SCONCE_CHECK(wanted.region && wanted.region->device(), kInternal, "an output was left on its device");
  SCONCE_CHECK(tensor.layout() == Layout::kStrided, kUnsupported, "an output cannot be sent: ", describe(tensor));
}

void send_to_region(const Tensor& tensor, const InferRequest::Output& wanted, TensorScratch& scratch) {
  SCONCE_CHECK(tensor.bytes() <= wanted.region_bytes, kInvalidArgument,
               "shared memory size specified with the request for output ", excerpt(wanted.json_name), " (",
               wanted.region_bytes, " bytes) should be at least ", tensor.bytes(), " bytes");
  if (const DeviceRegion* device = wanted.region->device()) return device->write(wanted.region_offset, tensor);
  wanted.region->posix()->write(wanted.region_offset, scratch.row_major(tensor), tensor.bytes());
}

std::span<const std::byte> pack_classes(const Classes& classes, TensorScratch& scratch) {
  size_t bytes = 0;
  for (const std::string& element : classes.elements) bytes += sizeof(uint32_t) + element.size();
  if (bytes == 0) return {};
  const TensorScratch::Piece piece = scratch.allocate(bytes);
  std::byte* out = piece.data;
  for (const std::string& element : classes.elements) {
    const auto length = static_cast<uint32_t>(element.size());
    std::memcpy(out, &length, sizeof length);
    std::memcpy(out + sizeof length, element.data(), element.size());
    out += sizeof length + element.size();
  }
  return {piece.data, bytes};
}

void append_number(TextBuffer& text, int64_t number) {
  char* const at = text.reserve(20);  // first, because it may move the text
  text.commit(std::to_chars(at, at + 20, number).ptr);
}

}  // namespace sconce::server::codecs
