#include "skytrain/model/torchscript.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "skytrain/base/error.h"
#include "skytrain/base/json.h"
#include "skytrain/model/flops.h"
#include "skytrain/model/model_test_data.h"
#include "skytrain/tensor/memory_budget.h"

// Files that Python saved, and what Python's training makes of net.pt: tests/testdata/torchscript/make_fixtures.py.

namespace skytrain::model {
namespace {

using testing::HasSubstr;

constexpr char kFolder[] = "tests/testdata/torchscript/";
constexpr int64_t kSamples = 12, kClasses = 3;
const InputShape kInput{1, 6, 6};

recipe::ModelSpec spec_for(const std::string& path, int64_t classes = kClasses) {
  recipe::ModelSpec spec = spec_of("torchscript", classes);
  spec.path = path;
  return spec;
}

std::unique_ptr<Model> load(const std::string& name, int64_t classes = kClasses, at::ScalarType dtype = at::kFloat) {
  return build_model(spec_for(kFolder + name, classes), kInput, at::Generator(), dtype);
}

// images() of make_fixtures.py.
at::Tensor images_of(int64_t step) {
  at::Tensor images = at::empty({kSamples, kInput.channels, kInput.height, kInput.width}, at::kFloat);
  for (int64_t i = 0; i < images.numel(); ++i)
    images.mutable_data_ptr<float>()[i] = float((i * 7919 + step * 104729) % 256 - 128) / 128;
  return images;
}

void step(Model& model, const at::Tensor& loss, double rate) {
  for (const tensor::NamedTensor& parameter : model.parameters()) parameter.tensor.mutable_grad().reset();
  loss.backward();
  const at::NoGradGuard no_grad;
  for (const tensor::NamedTensor& parameter : model.parameters())
    if (parameter.tensor.grad().defined()) parameter.tensor.add_(parameter.tensor.grad(), -rate);
}

const at::Tensor& named(const std::vector<tensor::NamedTensor>& tensors, const std::string& name) {
  for (const tensor::NamedTensor& item : tensors)
    if (item.name == name) return item.tensor;
  throw std::runtime_error("no " + name);
}

void expect_near(const at::Tensor& ours, const std::vector<double>& expected) {
  const at::Tensor flat = ours.detach().contiguous().view({-1});
  ASSERT_EQ(size_t(flat.numel()), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(flat.const_data_ptr<float>()[i], expected[i], 1e-5) << i;
}

TEST(TorchScript, TrainsAsInPython) {
  const OneThread one_thread;
  const Json expected = parse_json(FileSystem::real().read_file(std::string(kFolder) + "expected.json"), "expected");
  const auto model = load("net.pt");
  EXPECT_EQ(names(model->parameters()), expected.at("parameters").get<std::vector<std::string>>());
  EXPECT_EQ(names(model->buffers()), expected.at("buffers").get<std::vector<std::string>>());
  const auto losses = expected.at("losses").get<std::vector<double>>();
  for (size_t i = 0; i < losses.size(); ++i) {
    const at::Tensor loss = loss_of(*model, images_of(int64_t(i)), kClasses);
    EXPECT_NEAR(loss.item<double>(), losses[i], 1e-5) << "step " << i;
    step(*model, loss, 0.1);
  }
  expect_near(named(model->buffers(), "bn1.running_mean"), expected.at("running_mean").get<std::vector<double>>());
  model->set_training(false);
  expect_near(model->forward(images_of(0)), expected.at("logits").get<std::vector<double>>());
}

TEST(TorchScript, ReplicasShareParametersAndNothingElse) {
  const OneThread one_thread;
  const auto original = load("net.pt"), replica = load("net.pt");
  share_parameters(*original, *replica);
  {
    const at::NoGradGuard no_grad;
    named(original->parameters(), "fc.bias").add_(1);
  }
  EXPECT_TRUE(same_bits(original->forward(images_of(0)), replica->forward(images_of(0))));
  original->forward(images_of(1));
  EXPECT_EQ(named(original->buffers(), "bn1.num_batches_tracked").item<int64_t>(), 2);
  EXPECT_EQ(named(replica->buffers(), "bn1.num_batches_tracked").item<int64_t>(), 1);
  // Together, and then each alone.
  std::vector<at::Tensor> together(2);
  std::vector<std::thread> threads;
  threads.reserve(2);
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      const OneThread in_this_thread;
      Model& model = i == 0 ? *original : *replica;
      for (int k = 0; k < 20; ++k) loss_of(model, images_of(i), kClasses).backward();
      together[size_t(i)] = named(model.parameters(), "conv1.weight").grad().clone();
    });
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 2; ++i) {
    const auto alone = load("net.pt");
    share_parameters(*original, *alone);
    for (int k = 0; k < 20; ++k) loss_of(*alone, images_of(i), kClasses).backward();
    EXPECT_LT(named(alone->parameters(), "conv1.weight").grad().sub(together[size_t(i)]).abs().max().item<double>(),
              1e-5);
  }
}

TEST(TorchScript, TiedWeightsAreOneParameter) {
  const auto model = load("tied.pt");
  EXPECT_THAT(names(model->parameters()), testing::ElementsAre("a.weight"));
  const at::Tensor before = model->forward(images_of(0)).detach().clone();
  step(*model, loss_of(*model, images_of(0), kClasses), 0.5);
  EXPECT_FALSE(same_bits(before, model->forward(images_of(0))));
}

TEST(TorchScript, ComputesInDoublePrecisionWhenAsked) {
  const auto model = load("net.pt", kClasses, at::kDouble);
  EXPECT_EQ(model->forward(images_of(0).to(at::kDouble)).scalar_type(), at::kDouble);
}

TEST(TorchScript, ComputesInBfloat16UnderAutocast) {
  const OneThread one_thread;
  const auto exact = load("net.pt"), mixed = load("net.pt");
  for (int i = 0; i < 4; ++i) {  // the interpreter optimises from the second run on
    for (Model* model : {exact.get(), mixed.get()}) {
      at::Tensor loss;
      {
        const Autocast autocast(model == mixed.get());
        const at::Tensor logits = model->forward(images_of(i));
        EXPECT_EQ(logits.scalar_type(), model == mixed.get() ? at::kBFloat16 : at::kFloat);
        loss = at::cross_entropy_loss(logits.to(at::kFloat), some_labels(kSamples, kClasses));
      }
      step(*model, loss, 0.1);
    }
    const at::Tensor a = named(exact->parameters(), "conv1.weight").grad();
    const at::Tensor b = named(mixed->parameters(), "conv1.weight").grad();
    EXPECT_EQ(b.scalar_type(), at::kFloat);
    EXPECT_LT(a.sub(b).norm().item<double>(), 0.1 * a.norm().item<double>()) << "step " << i;
  }
}

TEST(TorchScript, CountsItsFlops) { EXPECT_EQ(count_flops(*load("net.pt"), kInput), 2 * (4 * 9 * 36 + 4 * 3)); }

TEST(TorchScript, IsSavedWithWhatItLearnt) {
  const TemporaryFolder folder;
  const auto model = load("net.pt");
  for (int i = 0; i < 3; ++i) step(*model, loss_of(*model, images_of(i), kClasses), 0.1);
  save_torchscript(FileSystem::real(), *model, folder / "trained.pt");
  EXPECT_TRUE(model->training());
  const auto again = build_model(spec_for(folder / "trained.pt"), kInput, at::Generator());
  for (size_t i = 0; i < model->parameters().size(); ++i)
    EXPECT_TRUE(same_bits(model->parameters()[i].tensor.detach(), again->parameters()[i].tensor.detach()));
  for (size_t i = 0; i < model->buffers().size(); ++i)
    EXPECT_TRUE(same_bits(model->buffers()[i].tensor, again->buffers()[i].tensor));
  const at::Tensor loss = loss_of(*again, images_of(3), kClasses);
  EXPECT_TRUE(same_bits(loss_of(*model, images_of(3), kClasses), loss)) << "it goes on from there";
}

// A replica's module is saved with the parameters that it shares.
TEST(TorchScript, IsSavedWithTheParametersThatItShares) {
  const TemporaryFolder folder;
  const auto original = load("net.pt"), replica = load("net.pt");
  share_parameters(*original, *replica);
  step(*original, loss_of(*original, images_of(0), kClasses), 0.1);
  save_torchscript(FileSystem::real(), *replica, folder / "replica.pt");
  const auto again = build_model(spec_for(folder / "replica.pt"), kInput, at::Generator());
  EXPECT_TRUE(same_bits(named(original->parameters(), "conv1.weight").detach(),
                        named(again->parameters(), "conv1.weight").detach()));
}

TEST(TorchScript, SavingIsAtomic) {
  MemoryFileSystem disk;
  write_file_atomically(disk, "/model.pt", "the old one");
  const auto model = load("net.pt");
  disk.set_capacity(3000);
  EXPECT_THROW(save_torchscript(disk, *model, "/model.pt"), Error);
  EXPECT_EQ(disk.read_file("/model.pt"), "the old one");
  EXPECT_EQ(disk.list("/"), std::vector<std::string>{"model.pt"});
  const auto other = build(spec_of("mlp"), kInput);
  EXPECT_THAT(error_of([&] { save_torchscript(disk, *other, "/model.pt"); }, ErrorKind::kRecipe),
              HasSubstr("did not come as TorchScript"));
}

class Trace : public testing::TestWithParam<std::string> {};

TEST_P(Trace, ComputesWhatTheModelDoesForOtherBatchesToo) {
  const OneThread one_thread;
  const TemporaryFolder folder;
  const InputShape input{GetParam() == "simplecnn" ? 1 : 3, 16, 16};
  const auto model = build(spec_of(GetParam()), input);
  model->forward(random_images(8, input, 1));  // moves the running statistics
  const auto before = copies(model->buffers());
  trace(FileSystem::real(), *model, random_images(2, input, 2), folder / "traced.pt");
  EXPECT_TRUE(model->training());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(same_bits(before[i], model->buffers()[i].tensor));

  const auto traced = build_model(spec_for(folder / "traced.pt", 10), input, at::Generator());
  EXPECT_THAT(names(traced->parameters()), testing::UnorderedElementsAreArray(names(model->parameters())));
  EXPECT_THAT(names(traced->buffers()), testing::UnorderedElementsAreArray(names(model->buffers())));
  model->set_training(false);
  traced->set_training(false);
  const at::NoGradGuard no_grad;
  for (const int64_t samples : {1, 5}) {
    const at::Tensor images = random_images(samples, input, 3);
    const at::Tensor ours = model->forward(images), theirs = traced->forward(images);
    EXPECT_LT(ours.sub(theirs).abs().max().item<double>(), 1e-5);
    EXPECT_GT(ours.abs().max().item<double>(), 1e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Trace, testing::Values("mlp", "simplecnn", "convnet", "resnet18", "resnet50"),
                         [](const auto& test) { return test.param; });

// A user's model that reads the number of samples as a plain number.
class ReadsItsBatchSize : public Model {
 public:
  explicit ReadsItsBatchSize(bool in_shape) : in_shape_(in_shape) {
    weight_ =
        add_parameter("weight", at::empty({3, 36}, at::kFloat).uniform_(-1, 1, at::detail::createCPUGenerator(1)));
  }
  at::Tensor forward(const at::Tensor& images) override {
    const int64_t samples = images.size(0);
    const at::Tensor features = in_shape_ ? images.view({samples, 36}) : images.flatten(1).mul(double(samples));
    return features.matmul(weight_.t());
  }

 private:
  bool in_shape_;
  at::Tensor weight_;
};

// The exported file worked for batches of one size only, that of the trace.
TEST(TraceOfABatchSize, IsRefusedAndNotWritten) {
  MemoryFileSystem disk;
  for (const auto& [in_shape, says] : {std::pair(true, "its trace fails for another batch size: "),
                                       std::pair(false, "its trace gives other results for another batch size")}) {
    ReadsItsBatchSize model(in_shape);
    const auto refusal =
        error_of([&] { trace(disk, model, random_images(2, kInput, 1), "/model.pt"); }, ErrorKind::kRecipe);
    EXPECT_THAT(refusal, HasSubstr(says));
    EXPECT_THAT(refusal, HasSubstr("x.flatten(1)"));
    EXPECT_FALSE(disk.exists("/model.pt"));
    EXPECT_TRUE(model.training());
  }
}

struct Refused {
  std::string file;
  ErrorKind kind;
  std::string says, advises;
};

class TorchScriptFile : public testing::TestWithParam<Refused> {};

TEST_P(TorchScriptFile, IsRefusedInALine) {
  const std::string message = error_of([] { load(GetParam().file); }, GetParam().kind);
  EXPECT_THAT(message, HasSubstr(GetParam().file + ": " + GetParam().says));
  EXPECT_THAT(message, HasSubstr(GetParam().advises));
}

constexpr char kScript[] = "torch.jit.script(model).save(\"model.pt\")";

INSTANTIATE_TEST_SUITE_P(
    Files, TorchScriptFile,
    testing::Values(
        Refused{"missing.pt", ErrorKind::kData, "no such file", "model.path"},
        Refused{"", ErrorKind::kData, "is a directory", ""},
        Refused{"make_fixtures.py", ErrorKind::kData, "is not TorchScript: it looks like text", kScript},
        Refused{"state_dict.pt", ErrorKind::kData, "holds weights (of torch.save) without a module", "model.init"},
        Refused{"checkpoint.pt", ErrorKind::kData, "holds weights (of torch.save) without a module", "model.init"},
        Refused{"old_state_dict.pt", ErrorKind::kData, "holds weights (of torch.save) without a module", "model.init"},
        Refused{"whole_module.pt", ErrorKind::kData, "is a pickled __main__.Net, which only Python can open", kScript},
        Refused{"old_whole_module.pt", ErrorKind::kData, "is a pickled mine.Mine, which only Python can open", kScript},
        Refused{"exported.pt2", ErrorKind::kData, "is a program of torch.export", kScript},
        Refused{"no_parameters.pt", ErrorKind::kRecipe, "the module has no parameters", "frozen"},
        Refused{"half.pt", ErrorKind::kRecipe, "parameter \"fc.weight\" of the module is Half, training needs Float",
                "float32"},
        Refused{"frozen_parameter.pt", ErrorKind::kRecipe, "parameter \"fc.weight\" of the module is frozen",
                "lr_scale: 0"},
        Refused{"two_inputs.pt", ErrorKind::kRecipe, "forward of the module takes 2 inputs", "images"}),
    [](const auto& test) {
      std::string name = test.param.file.empty() ? "folder" : test.param.file;
      std::replace(name.begin(), name.end(), '.', '_');
      return name;
    });

TEST(TorchScriptFile, ThatIsDamagedIsNamedAsSuch) {
  const TemporaryFolder folder;
  FileSystem& disk = FileSystem::real();
  const std::string whole = disk.read_file(std::string(kFolder) + "net.pt");
  const auto message = [&](const std::string& content) {
    write_file_atomically(disk, folder / "file.pt", content);
    return error_of([&] { build_model(spec_for(folder / "file.pt"), kInput, at::Generator()); }, ErrorKind::kData);
  };
  EXPECT_THAT(message(whole.substr(0, whole.size() / 2)), HasSubstr("is a damaged archive"));
  EXPECT_THAT(message(""), HasSubstr("is empty"));
  EXPECT_THAT(message("<!DOCTYPE html><html>404</html>"), HasSubstr("looks like HTML"));
  EXPECT_THAT(message("version https://git-lfs.github.com/spec/v1\n"), HasSubstr("Git LFS pointer"));
  EXPECT_THAT(message(std::string("\x40\0\0\0\0\0\0\0{\"__metadata__\"", 23)), HasSubstr("safetensors"));
  std::string broken = whole;  // the code of the module
  const size_t code = broken.find("def forward");
  ASSERT_NE(code, std::string::npos);
  broken.replace(code, 11, "de# forward");
  message(broken);  // a checksum or a syntax error, but one line
}

TEST(TorchScript, WhatItReturnsIsChecked) {
  const auto failure = [](const std::string& name, int64_t classes) {
    const auto model = load(name, classes);
    return error_of([&] { model->forward(images_of(0)); }, ErrorKind::kRecipe);
  };
  EXPECT_THAT(failure("pair.pt", kClasses),
              HasSubstr("pair.pt: forward of the module returns Tuple[Tensor, Tensor], expected one tensor"));
  EXPECT_THAT(failure("net.pt", 10), HasSubstr("returns Float [12, 3], expected logits [12, 10]"));
  EXPECT_THAT(failure("raises.pt", kClasses), HasSubstr("these pictures are not to my taste"));
  const auto model = load("net.pt");
  EXPECT_THAT(error_of(
                  [&] {
                    model->forward(random_images(2, {3, 6, 6}, 1));
                  },
                  ErrorKind::kRecipe),
              HasSubstr("forward of the module failed for images [2, 3, 6, 6]: Given groups=1, weight of size"));
}

// torch.jit.trace writes the mode into the code: batch norm of such a module would never train.
TEST(TorchScript, ATracedModuleOnlyEvaluates) {
  const auto model = load("traced.pt");
  EXPECT_THAT(error_of([&] { model->forward(images_of(0)); }, ErrorKind::kRecipe),
              HasSubstr("is fixed in evaluation mode, as torch.jit.trace does it"));
  model->set_training(false);
  EXPECT_EQ(model->forward(images_of(0)).sizes(), at::IntArrayRef({kSamples, kClasses}));
}

// The interpreter makes a std::runtime_error of whatever an operator throws.
TEST(TorchScript, OutOfMemoryKeepsItsType) {
  tensor::install_memory_budget();
  const auto model = load("net.pt");
  const at::Tensor images = images_of(0);
  for (int i = 0; i < 3; ++i) {  // the interpreter optimises from the second run on
    tensor::set_memory_budget(tensor::memory_use().live + 100);
    EXPECT_THROW(model->forward(images), tensor::OutOfMemory);
    tensor::set_memory_budget(std::nullopt);
    EXPECT_NO_THROW(model->forward(images));
  }
}

// With SKYTRAIN_TORCHSCRIPT_CASE=<folder> trains the module there as tests/judges/judge_torchscript.py asks, and leaves
// what it compares.
TEST(TorchScriptJudge, TrainsACaseWhenAsked) {
  const char* const folder = std::getenv("SKYTRAIN_TORCHSCRIPT_CASE");
  if (folder == nullptr) return;
  const std::string at = std::string(folder) + "/";
  FileSystem& disk = FileSystem::real();
  const Json task = parse_json(disk.read_file(at + "case.json"), at + "case.json");
  at::set_num_threads(task.at("threads"));
  const std::vector<int64_t> shape = task.at("shape");  // [steps, N, C, H, W]
  const InputShape input{shape[2], shape[3], shape[4]};
  const at::Tensor images = at::empty(shape, at::kFloat), labels = at::empty({shape[0], shape[1]}, at::kLong);
  for (const auto& [name, tensor] : {std::pair("images.bin", images), std::pair("labels.bin", labels)})
    disk.read_range(at + name, 0, {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()});

  const auto model = build_model(spec_for(at + "model.pt", task.at("classes")), input, at::Generator());
  std::vector<double> losses;
  for (int64_t i = 0; i < shape[0]; ++i) {
    const at::Tensor loss = at::cross_entropy_loss(model->forward(images[i]), labels[i]);
    losses.push_back(loss.item<double>());
    step(*model, loss, task.at("rate"));
  }
  write_file_atomically(disk, at + "losses.json", Json(losses).dump());
  save_torchscript(disk, *model, at + "trained.pt");

  // A model of the zoo, for torch.jit.load.
  recipe::ModelSpec spec = spec_of("resnet18", task.at("classes"));
  spec.stem = "imagenet";
  const auto ours = build(spec, input);
  ours->forward(images[0]);
  trace(disk, *ours, images[0].narrow(0, 0, 2), at + "traced.pt");
  ours->set_training(false);
  const at::NoGradGuard no_grad;
  const at::Tensor logits = ours->forward(images[0]).contiguous();
  const auto* const bytes = static_cast<const char*>(logits.const_data_ptr());
  write_file_atomically(disk, at + "logits.bin", {bytes, logits.nbytes()});
  write_file_atomically(disk, at + "names.json", Json(names(ours->parameters())).dump());
}

}  // namespace
}  // namespace skytrain::model
