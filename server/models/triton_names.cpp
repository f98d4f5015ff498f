#include "server/models/triton_names.h"

#include "sconce/check.h"
#include "sconce/excerpt.h"

namespace sconce::server {
namespace {

std::string text_of(std::string_view datatype, const std::vector<int64_t>& shape) {
  std::string text(datatype);
  for (size_t d = 0; d < shape.size(); ++d) text += (d == 0 ? " [" : ", ") + std::to_string(shape[d]);
  return text + (shape.empty() ? " []" : "]");
}

// Whether a tensor can be both.
bool agree(const std::vector<int64_t>& said, const TensorInterface& tensor) {
  if (!tensor.shape_known) return true;
  if (said.size() != tensor.shape.size()) return false;
  for (size_t d = 0; d < said.size(); ++d)
    if (said[d] != -1 && tensor.shape[d] != -1 && said[d] != tensor.shape[d]) return false;
  return true;
}

TensorNames named(const std::vector<TritonTensor>& said, bool batched, const TensorNames& names,
                  const std::vector<TensorInterface>& tensors, std::string_view what) {
  if (said.empty()) return names;
  SCONCE_CHECK(said.size() == tensors.size(), kInvalidArgument, "the file has ", said.size(), " fields ", what,
               ", the package ", tensors.size(), ": ", excerpt(names.list()));
  std::vector<std::string> taken(tensors.size());
  for (size_t i = 0; i < said.size(); ++i) {
    const size_t at = names.find(said[i].name).value_or(i);
    SCONCE_CHECK(taken[at].empty(), kInvalidArgument, what, " '", excerpt(taken[at]), "' and '", excerpt(said[i].name),
                 "' are one tensor of the package, ", names.name(at));
    taken[at] = said[i].name;
    const TensorInterface& tensor = tensors[at];
    std::vector<int64_t> shape = said[i].dims.value_or(tensor.shape);
    if (batched && said[i].dims) shape.insert(shape.begin(), -1);
    const bool same = said[i].datatype.empty() || !tensor.dtype || said[i].datatype == tensor.datatype;
    SCONCE_CHECK(same && agree(shape, tensor), kInvalidArgument, what, " '", excerpt(said[i].name), "' is ",
                 text_of(said[i].datatype, shape), " there, in the package ", text_of(tensor.datatype, tensor.shape),
                 " (", names.name(at), ")");
  }
  return names.renamed(std::move(taken));
}

}  // namespace

void take_names(const TritonConfig& config, ModelInterface& interface) {
  const bool batched = config.max_batch_size > 0;
  interface.input_names = named(config.inputs, batched, interface.input_names, interface.inputs, "input");
  interface.output_names = named(config.outputs, batched, interface.output_names, interface.outputs, "output");
}

}  // namespace sconce::server
