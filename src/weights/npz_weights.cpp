#include <memory>

#include "sconce/check.h"
#include "src/tensor_files/npz_reader.h"
#include "src/weights/stored_weights.h"

namespace sconce::weights {
namespace {

class NpzWeights final : public StoredWeights {
 public:
  NpzWeights(InputFile file, const FileOptions& options)
      : file_(std::move(file)),
        reader_(file_.descriptor(), file_.size(), file_.path().string()),
        expected_(options.sha256) {
    for (size_t i = 0; i < reader_.size(); ++i) {
      const tensor_files::NpyHeader& header = reader_.open(i);
      StoredWeights::add({reader_.name(i), header.dtype, header.sizes},
                         {header.strides, header.data_bytes, header.swap_bytes});
    }
  }

  void check_whole() override {
    if (expected_) check_digest(file_.sha256(), *expected_, file_.path().string());
    file_.check_unchanged();
  }

 private:
  void fetch(size_t entry, uint64_t position, std::span<std::byte> out) override {
    if (position == 0) left_ = reader_.open(entry).data_bytes;
    reader_.read(out);
    left_ -= out.size();
    if (left_ == 0) reader_.finish();
  }

  InputFile file_;
  tensor_files::NpzReader reader_;
  std::optional<Sha256Digest> expected_;
  uint64_t left_ = 0;
};

}  // namespace

std::unique_ptr<WeightFile> open_npz(InputFile file, const FileOptions& options) {
  return std::make_unique<NpzWeights>(std::move(file), options);
}

}  // namespace sconce::weights
