#include <algorithm>
#include <memory>

#include "src/tensor_files/npy_header.h"
#include "src/weights/placed_weights.h"

namespace sconce::weights {

std::unique_ptr<WeightFile> open_npy(InputFile input, const FileOptions& options) {
  using namespace tensor_files;
  auto weights = std::make_unique<PlacedWeights>(options.sha256);
  const std::filesystem::path path = input.path();
  const std::string where = path.string();
  const uint64_t size = input.size();
  const size_t file = weights->add_file(std::move(input));
  const std::vector<std::byte> start =
      weights->read_header(0, 0, static_cast<size_t>(std::min<uint64_t>(size, kMaxNpyHeader + 12)));
  NpyHeader header = parse_npy_header(start, where);
  check_data_bytes(header, size - header.header_bytes, where);
  weights->add({path.stem().string(), header.dtype, std::move(header.sizes)},
               {std::move(header.strides), header.data_bytes, header.swap_bytes}, file, header.header_bytes);
  return weights;
}

}  // namespace sconce::weights
