/* Loads a package and runs it once, in C. In CMake: find_package(sconce), target_link_libraries(... sconce::sconce). */
#include <stdio.h>
#include <stdlib.h>

#include "sconce.h"

static int failed(sconce_error* error) {
  if (!error) return 0;
  fprintf(stderr, "embed_c: %s: %s\n", sconce_code_name(sconce_error_code(error)), sconce_error_text(error));
  sconce_error_free(error);
  return 1;
}

/* Ones of the smallest shape that the model takes. */
static int make_input(const sconce_model* model, size_t index, sconce_tensor* tensor) {
  sconce_tensor_info info = {.size = sizeof info};
  if (failed(sconce_model_input(model, index, &info))) return 1;
  if (!info.dtype_known || info.ndim < 0) return fprintf(stderr, "embed_c: the package has no signature\n"), 1;
  size_t elements = 1;
  tensor->shape = calloc((size_t)info.ndim + 1, sizeof *tensor->shape);
  if (!tensor->shape) return 1;
  for (int32_t d = 0; d < info.ndim; ++d) {
    tensor->shape[d] = info.dims[d].min > 1 ? info.dims[d].min : 1;
    elements *= (size_t)tensor->shape[d];
  }
  tensor->ndim = info.ndim;
  tensor->dtype = info.dtype;
  tensor->device.device_type = SCONCE_CPU;
  tensor->data = calloc(elements, (size_t)info.dtype.bits / 8 * info.dtype.lanes);
  if (!tensor->data) return 1;
  if (info.dtype.code == SCONCE_FLOAT && info.dtype.bits == 32)
    for (size_t i = 0; i < elements; ++i) ((float*)tensor->data)[i] = 1;
  return 0;
}

static int run(sconce_model* model) {
  sconce_model_info info = {.size = sizeof info};
  if (failed(sconce_model_get_info(model, &info))) return 1;
  sconce_tensor* tensors = calloc(info.inputs + 1, sizeof *tensors);
  const sconce_tensor** inputs = calloc(info.inputs + 1, sizeof *inputs);
  sconce_managed_tensor** outputs = calloc(info.outputs + 1, sizeof *outputs);
  int result = !tensors || !inputs || !outputs;
  for (size_t i = 0; !result && i < info.inputs; ++i) {
    inputs[i] = &tensors[i];
    result = make_input(model, i, &tensors[i]);
  }
  sconce_run_info ran = {.size = sizeof ran};
  if (!result) result = failed(sconce_model_run(model, inputs, info.inputs, outputs, info.outputs, NULL, &ran));
  for (size_t i = 0; !result && i < info.outputs; ++i) {
    sconce_tensor_info output = {.size = sizeof output};
    if (failed(sconce_model_output(model, i, &output))) break;
    printf("%s [", output.dtype_name);
    for (int32_t d = 0; outputs[i] && d < outputs[i]->dl_tensor.ndim; ++d)
      printf("%s%lld", d > 0 ? ", " : "", (long long)outputs[i]->dl_tensor.shape[d]);
    printf("]\n");
    sconce_tensor_free(outputs[i]);
  }
  if (!result) printf("%.1f us\n", (double)ran.compute_ns / 1e3);
  for (size_t i = 0; tensors && i < info.inputs; ++i) {
    free(tensors[i].shape);
    free(tensors[i].data);
  }
  free(tensors);
  free(inputs);
  free(outputs);
  return result;
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: embed_c PACKAGE\n"), 2;
  sconce_package* package = NULL;
  sconce_model* model = NULL;
  int result =
      failed(sconce_package_open(argv[1], &package)) || failed(sconce_model_load(package, NULL, &model)) || run(model);
  if (failed(sconce_model_free(model))) result = 1;
  sconce_package_free(package);
  return result;
}
