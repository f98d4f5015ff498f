#include "sconce/tensor_files.h"
#include "src/tensor_files/mapped_file.h"
#include "src/tensor_files/npy_header.h"
#include "src/tensor_files/output_file.h"

namespace sconce {

Tensor read_npy(const std::filesystem::path& path) {
  using namespace tensor_files;
  const std::string where = path.string();
  const auto file = MappedFile::open(path);
  const NpyHeader header = parse_npy_header(file->bytes(), where);
  const auto data = file->bytes().subspan(header.header_bytes);
  check_data_bytes(header, data.size(), where);
  if (header.swap_bytes) swap_bytes(data, header.dtype);  // the mapping is private
  if (header.dtype == DType::kBool) check_bools(data, where);
  return view_or_copy(file, data, header.dtype, header.sizes, header.strides);
}

void write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  using namespace tensor_files;
  const std::string header = make_npy_header(tensor.dtype(), tensor.sizes(), path.string());
  OutputFile file(path);
  file.write(header);
  for_each_piece(tensor, path.string(), [&](std::span<const std::byte> piece) { file.write(piece); });
  file.commit();
}

}  // namespace sconce
