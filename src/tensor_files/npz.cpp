// .npz through libzip.
#include <zip.h>

#include <memory>
#include <unordered_set>

#include "sconce/check.h"
#include "sconce/tensor_files.h"
#include "src/tensor_files/mapped_file.h"
#include "src/tensor_files/npy_header.h"
#include "src/tensor_files/npz_reader.h"
#include "src/tensor_files/output_file.h"

namespace sconce {
namespace {

using namespace tensor_files;

constexpr std::string_view kSuffix = ".npy";

struct DiscardArchive {
  void operator()(zip_t* archive) const noexcept { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, DiscardArchive>;

std::string reason_of(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

}  // namespace

std::vector<NamedTensor> read_npz(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  NpzReader reader(file->bytes(), path.string());
  std::vector<NamedTensor> tensors;
  tensors.reserve(reader.size());
  for (size_t i = 0; i < reader.size(); ++i) {
    const NpyHeader& header = reader.open(i);
    Tensor tensor = Tensor::empty_strided(header.sizes, header.strides, header.dtype);
    const std::span<std::byte> data{tensor.data_as<std::byte>(), header.data_bytes};
    reader.read(data);
    reader.finish();
    if (header.swap_bytes) swap_bytes(data, header.dtype);
    if (header.dtype == DType::kBool) check_bools(data, reader.where(i));
    tensors.push_back({reader.name(i), std::move(tensor)});
  }
  return tensors;
}

void write_npz(const std::filesystem::path& path, std::span<const NamedTensor> tensors) {
  std::unordered_set<std::string_view> names;
  for (const NamedTensor& t : tensors) {
    SCONCE_CHECK(names.insert(t.name).second, kInvalidArgument, "npz: two tensors have the same name: ", path.string(),
                 ": ", t.name);
    SCONCE_CHECK(!t.name.empty() && t.name.find('\0') == std::string::npos, kInvalidArgument,
                 "npz: a tensor's name is empty or has a zero byte: ", path.string(), ": ", t.name);
  }
  OutputFile file(path);
  if (tensors.empty()) {  // libzip would leave no file
    constexpr std::string_view kEndOfDirectory = {"PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22};
    file.write(kEndOfDirectory);
    file.commit();
    return;
  }
  int code = 0;
  Archive archive(zip_open(file.temporary_path().c_str(), ZIP_TRUNCATE, &code));
  SCONCE_CHECK(archive, kIo, "cannot write file: ", path.string(), ": ", reason_of(code));
  std::vector<std::vector<std::byte>> members;  // in memory until zip_close has written them
  for (const NamedTensor& t : tensors) {
    const std::string where = path.string() + ": " + t.name;
    const std::string header = make_npy_header(t.tensor.dtype(), t.tensor.sizes(), where);
    std::vector<std::byte>& bytes = members.emplace_back();
    bytes.reserve(header.size() + t.tensor.bytes());
    const auto append = [&](std::span<const std::byte> piece) {
      bytes.insert(bytes.end(), piece.begin(), piece.end());
    };
    append(std::as_bytes(std::span(header)));
    for_each_piece(t.tensor, where, append);
    zip_source_t* source = zip_source_buffer(archive.get(), bytes.data(), bytes.size(), 0);
    const std::string member = t.name + std::string(kSuffix);
    const zip_int64_t index =
        source ? zip_file_add(archive.get(), member.c_str(), source, ZIP_FL_ENC_UTF_8) : zip_int64_t{-1};
    if (index < 0 && source) zip_source_free(source);
    SCONCE_CHECK(index >= 0, kInvalidArgument, "npz: cannot add tensor: ", where, ": ", zip_strerror(archive.get()));
    SCONCE_CHECK(zip_set_file_compression(archive.get(), static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0) == 0,
                 kInternal, "npz: cannot store member: ", where, ": ", zip_strerror(archive.get()));
  }
  SCONCE_CHECK(zip_close(archive.get()) == 0, kIo, "cannot write file: ", path.string(), ": ",
               zip_strerror(archive.get()));
  archive.release();
  file.commit();
}

}  // namespace sconce
