#include "python/native/loaded_model.h"

#include <utility>

#include "python/native/errors.h"
#include "python/native/forked.h"
#include "sconce/check.h"

namespace sconce::python {
namespace {

constexpr size_t kMaxFrames = 16;

std::shared_ptr<Model> load(std::shared_ptr<const Package> package, LoadOptions options) {
  const nb::gil_scoped_release released;
  return Model::load(std::move(package), std::move(options));
}

}  // namespace

void Frame::clear() noexcept {
  arguments.clear();
  for (Tensor& tensor : inputs) tensor = Tensor();
  for (Tensor& tensor : outputs) tensor = Tensor();
}

LoadedModel::LoadedModel(std::shared_ptr<const Package> package, LoadOptions options, OutputForm form)
    : model_(load(std::move(package), std::move(options))),
      plan_(model_->info().spec),
      form_(form),
      forks_(forks_so_far()) {
  frames_.reserve(kMaxFrames);
}

LoadedModel::~LoadedModel() {
  frames_.clear();
  if (forks_ != forks_so_far()) {
    new std::shared_ptr<Model>(std::move(model_));
    return;
  }
  const nb::gil_scoped_release released;
  model_.reset();
}

Model& LoadedModel::model() const {
  SCONCE_CHECK(forks_ == forks_so_far(), kFailedPrecondition,
               "the model was loaded before this process was forked, and its threads are not in the child: load it "
               "after the fork, or start processes by \"spawn\" or \"forkserver\"");
  return *model_;
}

std::unique_ptr<Frame> LoadedModel::take_frame() {
  if (frames_.empty()) return std::make_unique<Frame>(plan_, model_->info().spec.outputs.size());
  std::unique_ptr<Frame> frame = std::move(frames_.back());
  frames_.pop_back();
  return frame;
}

void LoadedModel::return_frame(std::unique_ptr<Frame> frame) noexcept {
  frame->clear();
  if (frames_.size() < kMaxFrames) frames_.push_back(std::move(frame));
}

std::string LoadedModel::with_paths(std::string text) const {
  const std::vector<TensorSpec>& inputs = model_->info().spec.inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string label = "input " + std::to_string(i) + " (" + inputs[i].name + ")";
    for (size_t at = text.find(label); at != std::string::npos; at = text.find(label, at))
      text.replace(at, label.size(), plan_.rule(i).path);
  }
  return text;
}

nb::object run_info(const RunInfo& info) {
  static PyObject* const type = imported("sconce._results", "RunInfo");
  using Seconds = std::chrono::duration<double>;
  return nb::handle(type)(info.weight_version, info.label ? nb::object(nb::str(info.label->c_str())) : nb::none(),
                          info.replica, Seconds(info.queue).count(), Seconds(info.compute).count());
}

nb::object call(LoadedModel& loaded, PyObject* args, PyObject* kwargs, RunInfo* info) {
  struct Use {
    LoadedModel& loaded;
    std::unique_ptr<Frame> frame;
    ~Use() { loaded.return_frame(std::move(frame)); }
  };
  Model& model = loaded.model();
  Use use{loaded, loaded.take_frame()};
  Frame& frame = *use.frame;
  loaded.plan().flatten(args, kwargs, frame.arguments, frame.inputs);
  try {
    const nb::gil_scoped_release released;
    const RunInfo ran = model.run(frame.inputs, frame.outputs);
    if (info) *info = ran;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) throw;
    throw Error(error.code(), loaded.with_paths(error.what()));
  }
  frame.arguments.give_back();
  frame.arguments.separate(frame.outputs);
  return loaded.plan().unflatten(frame.outputs, loaded.form());
}

}  // namespace sconce::python
