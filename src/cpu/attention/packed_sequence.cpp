#include "src/cpu/attention/packed_sequence.h"

#include <vector>

#include "sconce/check.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/dimensions.h"

namespace sconce::cpu {

std::array<Tensor, 2> _pack_padded_sequence(const Tensor& input, const Tensor& lengths, bool batch_first) {
  constexpr const char* kName = "_pack_padded_sequence";
  SCONCE_CHECK(input.dim() >= 2, kInvalidArgument, kName, ": expected an input of 2 dimensions or more, got ",
               describe(input));
  SCONCE_CHECK(lengths.dim() == 1 && lengths.dtype() == DType::kInt64, kInvalidArgument, kName,
               ": 'lengths' argument should be a 1D CPU int64 tensor, but got ", describe(lengths));
  const Tensor steps = batch_first ? transpose(input, 0, 1) : input, kept = contiguous(lengths);
  const int64_t batch = steps.size(1), longest = steps.size(0);
  SCONCE_CHECK(input.numel() > 0, kInvalidArgument, kName, ": Cannot pack empty tensors.");
  SCONCE_CHECK(kept.numel() == batch, kInvalidArgument, kName,
               ": Expected `len(lengths)` to be equal to batch_size, but got ", kept.numel(), " (batch_size=", batch,
               ")");
  const int64_t* const length = kept.data_as<int64_t>();
  SCONCE_CHECK(length[batch - 1] > 0, kInvalidArgument, kName,
               ": Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0");
  int64_t total = length[0];
  for (int64_t b = 1; b < batch; ++b) {
    SCONCE_CHECK(length[b] <= length[b - 1], kInvalidArgument, kName,
                 ": `lengths` array has to be sorted in decreasing order when `enforce_sorted` is True. You can pass "
                 "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if "
                 "you do not need ONNX exportability.");
    total += length[b];
  }
  SCONCE_CHECK(length[0] <= longest, kInvalidArgument, kName, ": a length of ", length[0], " in sequences of ",
               longest);

  std::vector<int64_t> sizes(steps.sizes().begin() + 1, steps.sizes().end());
  sizes[0] = total;
  Tensor packed = Tensor::empty(sizes, input.dtype());
  Tensor counts = Tensor::empty({length, 1}, DType::kInt64);
  int64_t alive = batch, at = 0;
  for (int64_t t = 0; t < length[0]; ++t) {
    while (length[alive - 1] <= t) --alive;
    counts.data_as<int64_t>()[t] = alive;
    Tensor to = slice_Tensor(packed, 0, at, at + alive, 1);
    copy(slice_Tensor(select(steps, 0, t), 0, 0, alive, 1), to);
    at += alive;
  }
  return {packed, counts};
}

}  // namespace sconce::cpu
