// The compute functions that shim.h declares by hand. ABI: c/shim.h, torch 2.6 to 2.15.
#include "src/aoti_abi/compute.h"

#include <vector>

#include "src/aoti_abi/guard.h"
#include "src/aoti_abi/op_args.h"
#include "src/cpu/indexing/index.h"
#include "src/cpu/matmul/matmul.h"
#include "src/operators/cpu_ops.h"

using sconce::Tensor;
using sconce::aoti_abi::guard;
using sconce::aoti_abi::in;

extern "C" {

AOTITorchError aoti_torch__mm_plus_mm_out(AtenTensorHandle out, AtenTensorHandle a, AtenTensorHandle b,
                                          AtenTensorHandle c, AtenTensorHandle d) {
  return guard("aoti_torch__mm_plus_mm_out",
               [&] { sconce::cpu::mm_plus_mm_out(in(out, "out"), in(a, "a"), in(b, "b"), in(c, "c"), in(d, "d")); });
}

AOTITorchError aoti_torch_scatter_out(AtenTensorHandle out, AtenTensorHandle self, int64_t dim, AtenTensorHandle index,
                                      AtenTensorHandle src) {
  return guard("aoti_torch_scatter_out", [&] {
    sconce::cpu::scatter_src_out(in(out, "out"), in(self, "self"), dim, in(index, "index"), in(src, "src"));
  });
}

AOTITorchError aoti_torch_scatter_reduce_out(AtenTensorHandle out, AtenTensorHandle self, int64_t dim,
                                             AtenTensorHandle index, AtenTensorHandle src, const char* reduce,
                                             int32_t include_self) {
  return guard("aoti_torch_scatter_reduce_out", [&] {
    SCONCE_CHECK(reduce, kInvalidArgument, "reduce is null");
    sconce::cpu::scatter_reduce_two_out(in(out, "out"), in(self, "self"), dim, in(index, "index"), in(src, "src"),
                                        reduce, include_self != 0);
  });
}

// A null element of indices leaves its dimension unindexed.
AOTITorchError aoti_torch_index_put_out(AtenTensorHandle out, AtenTensorHandle self, const AtenTensorHandle* indices,
                                        const uint32_t num_indices, const AtenTensorHandle values, bool accumulate) {
  return guard("aoti_torch_index_put_out", [&] {
    std::vector<const Tensor*> list(num_indices);
    for (uint32_t i = 0; i < num_indices; ++i) list[i] = sconce::aoti_abi::optional_in(&indices[i]);
    sconce::cpu::index_put_out(in(out, "out"), in(self, "self"), list, in(values, "values"), accumulate);
  });
}

}  // extern "C"
