#include "skytrain/elastic/worker_location.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "skytrain/base/error.h"

namespace skytrain::elastic {
namespace {

using ::testing::HasSubstr;

class WorkerLocationTest : public ::testing::Test {
 protected:
  WorkerLocationTest() {
    std::filesystem::create_directories(root_ + "/bin");
    std::filesystem::create_directories(root_ + "/libexec");
  }
  ~WorkerLocationTest() override { std::filesystem::remove_all(root_); }
  void put(const std::string& path, mode_t mode) {
    std::ofstream(path) << "#!/bin/sh\n";
    ::chmod(path.c_str(), mode);
  }
  std::string root_ = ::testing::TempDir() + "worker_location." + std::to_string(::getpid());
};

TEST_F(WorkerLocationTest, IsLibexecBesideTheProgramsFolder) {
  put(root_ + "/libexec/skytrain-worker", 0755);
  const WorkerLocation location = locate_worker(root_ + "/bin", nullptr);
  EXPECT_EQ(location.problem, "");
  EXPECT_EQ(require_worker(location), root_ + "/libexec/skytrain-worker");
}

TEST_F(WorkerLocationTest, TheVariableComesFirst) {
  put(root_ + "/libexec/skytrain-worker", 0755);
  put(root_ + "/mine", 0755);
  EXPECT_EQ(require_worker(locate_worker(root_ + "/bin", (root_ + "/mine").c_str())), root_ + "/mine");
  EXPECT_EQ(require_worker(locate_worker(root_ + "/bin", "")), root_ + "/libexec/skytrain-worker");
}

TEST_F(WorkerLocationTest, AMissingWorkerIsNamedWithWhatToDo) {
  try {
    require_worker(locate_worker(root_ + "/bin", nullptr));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_EQ(error.where(), root_ + "/libexec/skytrain-worker");
    EXPECT_THAT(error.hint(), HasSubstr("SKYTRAIN_WORKER"));
  }
}

TEST_F(WorkerLocationTest, AWorkerThatCanNotBeStartedIsRefused) {
  EXPECT_EQ(locate_worker(root_ + "/bin", root_.c_str()).problem, "is not a file");
  put(root_ + "/libexec/skytrain-worker", 0644);
  EXPECT_EQ(locate_worker(root_ + "/bin", nullptr).problem, "is not executable");
}

}  // namespace
}  // namespace skytrain::elastic
