// .npz through libzip. Sizes are compared with the member's .npy header before memory is taken; libzip checks the CRC
// when a member has been read to its end.
#include <zip.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <unordered_set>

#include "sconce/check.h"
#include "sconce/tensor_files.h"
#include "src/tensor_files/mapped_file.h"
#include "src/tensor_files/npy_header.h"
#include "src/tensor_files/output_file.h"

namespace sconce {
namespace {

using namespace tensor_files;

constexpr std::string_view kSuffix = ".npy";
constexpr zip_int64_t kMaxMembers = 65536;
constexpr uint64_t kMaxDeflateRatio = 1032;

struct DiscardArchive {
  void operator()(zip_t* archive) const noexcept { zip_discard(archive); }
};
struct CloseMember {
  void operator()(zip_file_t* member) const noexcept { zip_fclose(member); }
};
using Archive = std::unique_ptr<zip_t, DiscardArchive>;
using Member = std::unique_ptr<zip_file_t, CloseMember>;

std::string reason_of(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

Archive open_archive(const MappedFile& file) {
  const std::string where = file.path().string();
  SCONCE_CHECK(!file.bytes().empty(), kCorruptPackage, "npz: not a sound zip archive: ", where, ": the file is empty");
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(file.bytes().data(), file.bytes().size(), 0, &error);
  zip_t* archive = source ? zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error) : nullptr;
  const std::string reason = archive ? "" : zip_error_strerror(&error);
  zip_error_fini(&error);
  if (!archive && source) zip_source_free(source);
  SCONCE_CHECK(archive, kCorruptPackage, "npz: not a sound zip archive: ", where, ": ", reason);
  return Archive(archive);
}

// Reads exactly bytes.size() bytes.
void read_exactly(zip_file_t* member, std::span<std::byte> bytes, const std::string& where) {
  while (!bytes.empty()) {
    const zip_int64_t n = zip_fread(member, bytes.data(), bytes.size());
    SCONCE_CHECK(n > 0, kCorruptPackage, "npz: cannot read member: ", where, ": ",
                 n < 0 ? zip_file_strerror(member) : "it ends early");
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

Tensor read_member(zip_t* archive, zip_uint64_t index, const zip_stat_t& info, const std::string& where) {
  SCONCE_CHECK(info.encryption_method == ZIP_EM_NONE, kUnsupported, "npz: member is encrypted: ", where);
  SCONCE_CHECK(info.comp_method == ZIP_CM_STORE || info.comp_method == ZIP_CM_DEFLATE, kUnsupported,
               "npz: member is neither stored nor deflated: ", where, ": method ", info.comp_method);
  // Deflate cannot do better; a larger claim is a lie that would cost memory.
  const uint64_t ratio = info.comp_method == ZIP_CM_STORE ? 1 : kMaxDeflateRatio;
  SCONCE_CHECK(info.size / ratio <= info.comp_size, kCorruptPackage, "npz: member claims too large a size: ", where,
               ": ", info.size, " bytes from ", info.comp_size);
  Member member(zip_fopen_index(archive, index, 0));
  SCONCE_CHECK(member, kCorruptPackage, "npz: cannot open member: ", where, ": ", zip_strerror(archive));

  std::vector<std::byte> start(12);
  SCONCE_CHECK(info.size >= start.size(), kCorruptPackage, "npz: member ends within its header: ", where);
  read_exactly(member.get(), start, where);
  // The length is the first thing behind the version: as many bytes as it says are read, no more than there are.
  const bool wide = start[6] != std::byte{1};
  const auto byte = [&](size_t i) { return std::to_integer<size_t>(start[i]); };
  const size_t length = (wide ? 12 : 10) + (byte(8) | byte(9) << 8 | (wide ? byte(10) << 16 | byte(11) << 24 : 0));
  const size_t known = start.size();
  if (is_npy(start) && length > known && length <= kMaxNpyHeader) {
    start.resize(std::min<size_t>(length, info.size));
    read_exactly(member.get(), std::span(start).subspan(known), where);
  }
  const NpyHeader header = parse_npy_header(start, where);
  SCONCE_CHECK(info.size - header.header_bytes == header.data_bytes, kCorruptPackage,
               "npz: wrong size of data: ", where, ": expected ", header.data_bytes, " bytes for ",
               dtype_name(header.dtype), " ", to_string(IntSpan(header.sizes)), ", found ",
               info.size - header.header_bytes);

  Tensor tensor = Tensor::empty_strided(header.sizes, header.strides, header.dtype);
  const std::span<std::byte> data{tensor.data_as<std::byte>(), header.data_bytes};
  // A header shorter than what was read at once: the rest of `start` is data.
  const size_t early = std::min(start.size() - header.header_bytes, data.size());
  if (early > 0) std::memcpy(data.data(), &start[header.header_bytes], early);
  read_exactly(member.get(), data.subspan(early), where);
  std::byte beyond;
  const zip_int64_t end = zip_fread(member.get(), &beyond, 1);  // at the end libzip compares the CRC
  SCONCE_CHECK(end == 0, kCorruptPackage, "npz: member is damaged: ", where, ": ",
               end < 0 ? zip_file_strerror(member.get()) : "it is longer than it says");
  if (header.swap_bytes) swap_bytes(data, header.dtype);
  if (header.dtype == DType::kBool) check_bools(data, where);
  return tensor;
}

}  // namespace

std::vector<NamedTensor> read_npz(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  const Archive archive = open_archive(*file);
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  SCONCE_CHECK(count <= kMaxMembers, kCorruptPackage, "npz: too many members: ", path.string(), ": ", count);
  std::vector<NamedTensor> tensors;
  std::unordered_set<std::string> names;
  uint64_t left = file->bytes().size();  // members must not share bytes, or a small file could fill the memory
  for (zip_int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<zip_uint64_t>(i);
    zip_stat_t info;
    SCONCE_CHECK(zip_stat_index(archive.get(), index, 0, &info) == 0 && info.name, kCorruptPackage,
                 "npz: unreadable member: ", path.string(), ": ", i);
    std::string name = info.name;
    const std::string where = path.string() + ": " + name;
    SCONCE_CHECK(name.ends_with(kSuffix), kUnsupported, "npz: a member is not a .npy file: ", where);
    name.resize(name.size() - kSuffix.size());
    SCONCE_CHECK(names.insert(name).second, kCorruptPackage, "npz: two members have the same name: ", where);
    SCONCE_CHECK(info.comp_size <= left, kCorruptPackage, "npz: members overlap: ", where);
    left -= info.comp_size;
    Tensor tensor = read_member(archive.get(), index, info, where);
    tensors.push_back({std::move(name), std::move(tensor)});
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
  std::vector<std::vector<std::byte>> members;  // until zip_close has written them
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
