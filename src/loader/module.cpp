#include "src/loader/module.h"

#include <cstring>
#include <string>

#include "package_format/archive/archive_reader.h"
#include "package_format/elf_image.h"
#include "package_format/weights_index.h"
#include "sconce/check.h"
#include "src/loader/constant_loading.h"
#include "src/loader/container.h"
#include "src/loader/input_words.h"
#include "src/loader/preflight.h"

namespace sconce::loader {
namespace {

// Below this size, copying is cheaper than a hole in the file.
constexpr uint64_t kSmallestHole = 64 * 1024;

// The size of weights that follow the code (USE_MMAP_SELF), else 0. The placeholder holds two numbers: that size,
// which includes the 8 bytes of the second number, and a magic number, which is also at the end of the weights.
uint64_t appended_weights(std::span<const std::byte> image, const std::byte* placeholder) {
  uint64_t size, magic, tail;
  std::memcpy(&size, placeholder, 8);
  std::memcpy(&magic, placeholder + 8, 8);
  if (size <= 8 || size > image.size() || (image.size() - size) % 16384 != 0) return 0;
  std::memcpy(&tail, image.data() + image.size() - 8, 8);
  return tail == magic ? size : 0;
}

// Frees the pages of the code: the checksum and the copy have read them, and nothing reads them again.
void leave_to_page_cache(const ArchiveReader& archive, std::span<const std::byte> image, const std::byte* constants,
                         size_t constants_size) {
  const std::byte* const end = image.data() + image.size();
  archive.give_up_pages({image.data(), constants ? constants : end});
  if (constants) archive.give_up_pages({constants + constants_size, end});
}

// Members of the model's folder in the archive.
class ArchiveFiles final : public DeviceFiles {
 public:
  ArchiveFiles(const ArchiveReader& archive, const ModelSpec& spec)
      : archive_(archive), folder_(spec.so_member.substr(0, spec.so_member.rfind('/') + 1)) {}
  std::span<const std::byte> find(std::string_view name) const override {
    const ArchiveMember* member = archive_.find(folder_ + std::string(name));
    return member && archive_.is_sound(*member) ? archive_.view(*member) : std::span<const std::byte>();
  }

 private:
  const ArchiveReader& archive_;
  std::string folder_;
};

std::span<const std::byte> weights_blob(const ArchiveReader& archive, const ModelSpec& spec) {
  for (const ArchiveMember* member : archive.list("data/aotinductor/" + spec.name + "/"))
    if (member->name.ends_with(".blob")) return archive.view(*member);
  SCONCE_FAIL(kCorruptPackage, "model '", spec.name, "': its weights blob is missing");
}

const ArchiveMember& code_of(const Package& package, const ModelSpec& spec) {
  const ArchiveMember* member = package.archive().find(spec.so_member);
  SCONCE_CHECK(member, kCorruptPackage, "model '", spec.name, "': member ", spec.so_member, " is gone");
  return *member;
}

}  // namespace

std::vector<std::string> imports_of(const Package& package, const ModelSpec& spec) {
  return ElfImage(package.archive().view(code_of(package, spec)), spec.name).imports();
}

Module::~Module() {
  if (device_files_) device_backend(DeviceType::kCuda).forget(*device_files_);
}

std::shared_ptr<const Module> Module::load(std::shared_ptr<const Package> package, const ModelSpec& spec) {
  auto module = std::shared_ptr<Module>(new Module);
  module->package_ = std::move(package);
  module->spec_ = &spec;
  const ArchiveReader& archive = module->package_->archive();
  const ArchiveMember* const member = &code_of(*module->package_, spec);
  module->image_ = archive.view(*member);  // its checksum was compared when the package was opened
  const std::span<const std::byte> image = module->image_;
  const ElfImage elf(image, spec.name);
  module->extern_nodes_ = loader::extern_nodes(*module->package_, spec);
  preflight(spec, elf, module->extern_nodes_.get());

  const auto begin = elf.exported("_binary_constants_bin_start"), end = elf.exported("_binary_constants_bin_end");
  std::vector<ByteRange> holes;
  if (begin && end && end->st_value >= begin->st_value) {
    const uint64_t address = begin->st_value, size = end->st_value - address;
    const uint64_t offset = elf.offset_of(address, size, "constants");
    module->constants_size_ = size;
    module->constants_archived_ = image.data() + offset;
    // Without an imported memcpy, constants cannot be traced. torch 2.6 copies none, so it needs no trace.
    const bool traceable = elf.find_symbol("memcpy") != 0;
    if (size >= kSmallestHole && traceable) holes.push_back({offset, size});
    if (const uint64_t appended = size >= 16 && size < 64 ? appended_weights(image, image.data() + offset) : 0;
        appended >= kSmallestHole && traceable)
      holes.push_back({image.size() - appended, appended - 8});
  }
  module->has_holes_ = !holes.empty();
  module->library_ = SharedLibrary::load(
      elf, holes, spec.device_key == "cuda", [&] { archive.check_files(); },
      module->package_->path().string() + (spec.name == "model" ? "" : " (" + spec.name + ")"));
  module->library_.rebind("memcpy", reinterpret_cast<void*>(&ConstantLoading::copy));
  module->library_.rebind("mmap", reinterpret_cast<void*>(&ConstantLoading::map));
  if (spec.device_key == "cuda") {
    module->device_files_ = std::make_unique<ArchiveFiles>(archive, spec);
    for (const DeviceBackend::Replacement& r : device_backend(DeviceType::kCuda).replacements())
      module->library_.rebind(r.imported, r.function);
  }
  if (!spec.has_source) {
    const size_t constants =
        module->constants_archived_ ? static_cast<size_t>(module->constants_archived_ - image.data()) : image.size();
    module->least_ranks_ = loader::least_ranks(image.first(constants));
    // The rest may also be constants, so at most 64 MiB of it are searched.
    const auto rest = image.subspan(std::min(constants + module->constants_size_, image.size()));
    const auto after = loader::least_ranks(rest.first(std::min(rest.size(), size_t{64} << 20)));
    module->least_ranks_.resize(std::max(module->least_ranks_.size(), after.size()));
    for (size_t i = 0; i < after.size(); ++i) module->least_ranks_[i] = std::max(module->least_ranks_[i], after[i]);
  }
  module->api_ = ContainerApi::resolve(module->library_);
  if (module->constants_size_)
    module->constants_begin_ = static_cast<const std::byte*>(module->library_.find("_binary_constants_bin_start"));
  if (!member->deflated) leave_to_page_cache(archive, image, module->constants_archived_, module->constants_size_);
  if (spec.weights_form == WeightsForm::kBlob) module->blob_ = weights_blob(archive, spec);
  return module;
}

std::span<const std::byte> Module::archived(const void* address) const noexcept {
  const auto* at = static_cast<const std::byte*>(address);
  if (!constants_begin_ || at < constants_begin_ || at >= constants_begin_ + constants_size_) return {};
  const auto offset = static_cast<size_t>(at - constants_begin_);
  return {constants_archived_ + offset, constants_size_ - offset};
}

std::vector<Tensor> Module::outside_constants(std::span<const ContainerConstant> constants) const {
  std::vector<Tensor> tensors;
  const WeightsIndex index = spec_->has_source ? locate_weights(*package_, *spec_) : WeightsIndex{};
  for (const ContainerConstant& constant : constants) {
    if (constant.folded) continue;
    Tensor& tensor = tensors.emplace_back();
    for (const WeightLocation& location : index.locations) {
      const ConstantSpec& spec = spec_->constants[location.constant];
      if (spec.name != constant.name) continue;
      SCONCE_CHECK(spec.dtype, kCorruptPackage, "constant '", spec.name, "': its dtype is not recorded");
      auto storage = archived_storage(package_, location.data, location.bytes, Device{});
      if (spec.opaque) storage->set_opaque_metadata(spec.opaque_metadata);
      tensor = Tensor(std::move(storage), *spec.dtype, spec.shape, spec.strides, location.offset,
                      spec.opaque ? Layout::kMkldnn : Layout::kStrided);
    }
  }
  return tensors;
}

namespace {

class Archive final : public Storage::Source {
 public:
  explicit Archive(std::shared_ptr<const Package> package) : package_(std::move(package)) {}
  void give_up(const void* bytes, size_t count) noexcept override {
    constexpr size_t kPiece = size_t{64} << 10;  // smaller ranges are not worth a system call
    if (count >= kPiece) package_->archive().give_up_pages({static_cast<const std::byte*>(bytes), count});
  }

 private:
  const std::shared_ptr<const Package> package_;
};

}  // namespace

StoragePtr archived_storage(std::shared_ptr<const Package> package, const std::byte* bytes, size_t size,
                            Device device) {
  const bool again = package->archive().rereadable({bytes, size});
  auto owner = std::make_unique<Archive>(std::move(package));
  auto storage = StoragePtr::adopt(new Storage(
      const_cast<std::byte*>(bytes), size, device,
      [](void*, size_t, void* context) noexcept {
        delete static_cast<Archive*>(static_cast<Storage::Source*>(context));
      },
      static_cast<Storage::Source*>(owner.get())));
  owner.release();
  storage->set_immutable(true);
  if (again) storage->set_source();
  return storage;
}

}  // namespace sconce::loader
