#include "skytrain/model/plugin.h"

#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "skytrain/base/error.h"
#include "skytrain/base/file_system.h"
#include "skytrain/model/flops.h"
#include "skytrain/model/model_test_data.h"
#include "skytrain/model/torchscript.h"

// Beside this program lie libmynet.so (examples/plugin) and the libraries of tests/plugin.

namespace skytrain::model {
namespace {

using testing::HasSubstr;

const InputShape kInput{1, 8, 8};

std::string plugins(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

std::unique_ptr<Model> load(const std::string& path, const std::string& architecture, uint64_t seed = 7,
                            at::ScalarType dtype = at::kFloat) {
  recipe::ModelSpec spec = spec_of("plugin");
  spec.path = path;
  spec.architecture = architecture;
  return build(spec, kInput, seed, dtype);
}
std::unique_ptr<Model> faulty(const std::string& architecture) { return load(plugins("libfaulty.so"), architecture); }

// A copy of libfaulty.so with other bytes in it.
class ChangedLibrary {
 public:
  ChangedLibrary(const std::string& from, const std::string& to) {
    std::string content = FileSystem::real().read_file(plugins("libfaulty.so"));
    int changed = 0;
    for (size_t at = content.find(from); at != std::string::npos; at = content.find(from, at + 1), ++changed)
      content.replace(at, from.size(), to);
    EXPECT_GT(changed, 0) << from;
    write_file_atomically(FileSystem::real(), path(), content);
  }
  std::string path() const { return folder_ / "libmine.so"; }

 private:
  TemporaryFolder folder_;
};

TEST(Plugin, TrainsTheExample) {
  const OneThread one_thread;
  const auto model = load(plugins("libmynet.so"), "");
  EXPECT_THAT(names(model->parameters()),
              testing::ElementsAre("stem.weight", "norm1.weight", "norm1.bias", "conv.weight", "norm2.weight",
                                   "norm2.bias", "fc.weight", "fc.bias"));
  EXPECT_EQ(model->buffers().size(), 6u);
  double first = 0, last = 0;
  for (int step = 0; step < 20; ++step) {
    const at::Tensor loss = loss_of(*model, random_images(10, kInput, 1), 10);
    (step == 0 ? first : last) = loss.item<double>();
    for (const tensor::NamedTensor& item : model->parameters()) item.tensor.mutable_grad().reset();
    loss.backward();
    const at::NoGradGuard no_grad;
    for (const tensor::NamedTensor& item : model->parameters()) item.tensor.add_(item.tensor.grad(), -0.5);
  }
  EXPECT_LT(last, 0.8 * first);
  EXPECT_EQ(model->buffers().back().tensor.item<int64_t>(), 20);
  model->set_training(false);
  const at::Tensor one = random_images(1, kInput, 2);
  EXPECT_TRUE(same_bits(model->forward(one), model->forward(one)));
  EXPECT_EQ(model->buffers().back().tensor.item<int64_t>(), 20) << "evaluation leaves the statistics alone";
}

TEST(Plugin, DrawsItsWeightsFromTheSeed) {
  const auto a = load(plugins("libmynet.so"), "MyNet", 1), b = load(plugins("libmynet.so"), "MyNet", 1),
             c = load(plugins("libmynet.so"), "MyNet", 2);
  EXPECT_TRUE(same_bits(a->parameters()[0].tensor.detach(), b->parameters()[0].tensor.detach()));
  EXPECT_FALSE(same_bits(a->parameters()[0].tensor.detach(), c->parameters()[0].tensor.detach()));
  // As the built-in layer draws it from the same seed.
  recipe::ModelSpec spec = spec_of("mlp");
  spec.hidden = {4};
  const auto ours = build(spec, {1, 1, 10}, 5);
  spec = spec_of("plugin", 4);
  spec.path = plugins("libfaulty.so");
  spec.architecture = "Sound";
  const auto theirs = build(spec, {1, 1, 10}, 5);
  EXPECT_TRUE(same_bits(ours->parameters()[0].tensor.detach(), theirs->parameters()[0].tensor.detach()));
  EXPECT_TRUE(same_bits(ours->parameters()[1].tensor.detach(), theirs->parameters()[1].tensor.detach()));
}

TEST(Plugin, HasReplicas) {
  const auto original = load(plugins("libmynet.so"), ""), replica = load(plugins("libmynet.so"), "", 8);
  share_parameters(*original, *replica);
  std::vector<std::thread> threads;
  for (Model* model : {original.get(), replica.get()})
    threads.emplace_back([model] {
      const OneThread one_thread;
      for (int i = 0; i < 10; ++i) loss_of(*model, random_images(4, kInput, 3), 10).backward();
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < original->parameters().size(); ++i)
    EXPECT_TRUE(same_bits(original->parameters()[i].tensor.grad(), replica->parameters()[i].tensor.grad()));
}

TEST(Plugin, ComputesInDoublePrecisionAndCountsItsFlops) {
  const auto model = load(plugins("libmynet.so"), "", 7, at::kDouble);
  EXPECT_EQ(model->forward(random_images(2, kInput, 1, at::kDouble)).scalar_type(), at::kDouble);
  EXPECT_EQ(count_flops(*model, kInput), 2 * (16 * 9 * 64 + 16 * 16 * 9 * 64 + 160));
}

TEST(Plugin, CanBeTraced) {
  const auto model = load(plugins("libmynet.so"), "");
  model->forward(random_images(8, kInput, 1));
  const TemporaryFolder folder;
  const std::string file = folder / "traced.pt";
  trace(FileSystem::real(), *model, random_images(2, kInput, 2), file);
  recipe::ModelSpec spec = spec_of("torchscript");
  spec.path = file;
  const auto traced = build(spec, kInput);
  const at::Tensor images = random_images(5, kInput, 3);
  model->set_training(false);
  traced->set_training(false);
  EXPECT_LT(model->forward(images).sub(traced->forward(images)).abs().max().item<double>(), 1e-5);
}

TEST(Plugin, SaysWhatIsWrongWithTheFile) {
  const auto message = [](const std::string& path) {
    return error_of([&] { load(path, ""); }, ErrorKind::kEnvironment);
  };
  EXPECT_THAT(message("/no/such/lib.so"), HasSubstr("/no/such/lib.so: no such file"));
  EXPECT_THAT(message("/tmp"), HasSubstr("is not a file"));
  EXPECT_THAT(message("tests/testdata/torchscript/net.pt"), HasSubstr("is not a shared library: it is a ZIP archive"));
  EXPECT_THAT(message("/proc/self/exe"), HasSubstr("can't be loaded: cannot dynamically load position-independent"));
  EXPECT_THAT(message(plugins("libempty.so")), HasSubstr("has no model in it"));
  EXPECT_THAT(message(plugins("libunlinked.so")), HasSubstr("can't be loaded: undefined symbol: "));
  EXPECT_THAT(message(ChangedLibrary("\nabi=1\n", "\nabi=9\n").path()),
              HasSubstr("was built for plug-in interface 9, this is plug-in interface 1"));
  EXPECT_THAT(message(ChangedLibrary("\nlibtorch=2.", "\nlibtorch=1.").path()), HasSubstr("was built for LibTorch 1."));
  EXPECT_THAT(message(ChangedLibrary("C++11 ABI\n", "C++98 ABI\n").path()),
              HasSubstr("was built for the C++ library libstdc++, C++98 ABI"));
}

TEST(Plugin, SuggestsAnArchitecture) {
  EXPECT_THAT(error_of([] { faulty("Sond"); }, ErrorKind::kRecipe),
              HasSubstr("model.architecture: libfaulty.so has no model \"Sond\" (did you mean \"Sound\"?)"));
  EXPECT_THAT(error_of([] { faulty(""); }, ErrorKind::kRecipe), HasSubstr("it has: Sound, ThrowsWhenBuilt"));
}

TEST(Plugin, SaysWhatItsModelThrew) {
  EXPECT_THAT(error_of([] { faulty("ThrowsWhenBuilt"); }, ErrorKind::kRecipe),
              HasSubstr("libfaulty.so: the constructor of model ThrowsWhenBuilt threw: needs pictures of 32 x 32"));
  EXPECT_THAT(error_of([] { faulty("NoParameters"); }, ErrorKind::kRecipe),
              HasSubstr("the model NoParameters has no parameters"));
  const auto failure = [](const std::string& name, const InputShape& input) {
    const auto model = faulty(name);
    return error_of([&] { model->forward(random_images(2, input, 1)); }, ErrorKind::kRecipe);
  };
  EXPECT_THAT(failure("ThrowsANumber", kInput), HasSubstr("something that is no std::exception"));
  EXPECT_THAT(failure("WrongShape", kInput), HasSubstr("returns Float [2], expected logits [2, 10]"));
  EXPECT_THAT(failure("Sound", {1, 9, 9}),
              HasSubstr("forward of the model Sound failed for images [2, 1, 9, 9]: mat1 and mat2 shapes cannot be"));
}

TEST(Plugin, LeavesNoRandomStateBehindWhenItsConstructorThrows) {
  const at::Tensor before = at::detail::getDefaultCPUGenerator().get_state().clone();
  error_of([] { faulty("ThrowsWhenBuilt"); }, ErrorKind::kRecipe);
  EXPECT_TRUE(same_bits(before, at::detail::getDefaultCPUGenerator().get_state()));
}

class PluginDeathTest : public testing::Test {
 protected:
  PluginDeathTest() { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

void run(const std::string& architecture) {
  const OneThread one_thread;
  loss_of(*faulty(architecture), random_images(2, kInput, 1), 10).backward();
}

TEST_F(PluginDeathTest, ACrashNamesThePlugin) {
  EXPECT_EXIT(run("crashing::InForward"), testing::KilledBySignal(SIGSEGV),
              "signal 11 in plug-in libfaulty.so \\(model crashing::InForward\\)");
  EXPECT_EXIT(run("crashing::Aborts"), testing::KilledBySignal(SIGABRT),
              "signal 6 in plug-in libfaulty.so \\(model crashing::Aborts\\)");
}

TEST_F(PluginDeathTest, SoDoesOneInItsBackwardPass) {
  EXPECT_EXIT(run("crashing::InBackward"), testing::KilledBySignal(SIGSEGV),
              "signal 11 in plug-in libfaulty.so \\(model crashing::InBackward\\)");
}

TEST_F(PluginDeathTest, SoDoesAnEndlessRecursionOnAnyThread) {
  EXPECT_EXIT(run("crashing::Recurses"), testing::KilledBySignal(SIGSEGV), "in plug-in libfaulty.so");
  EXPECT_EXIT(std::thread([] { run("crashing::Recurses"); }).join(), testing::KilledBySignal(SIGSEGV),
              "in plug-in libfaulty.so");
}

void crash_elsewhere() {
  run("Sound");
  static int* volatile nowhere = nullptr;
  *nowhere = 1;  // NOLINT(clang-analyzer-core.NullDereference): the fault is wanted
}

TEST_F(PluginDeathTest, ACrashElsewhereDoesNot) {
  EXPECT_EXIT(crash_elsewhere(), testing::KilledBySignal(SIGSEGV), testing::Not(HasSubstr("plug-in")));
  EXPECT_EXIT((run("Sound"), std::signal(SIGSEGV, SIG_DFL), raise(SIGTERM)), testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace skytrain::model
