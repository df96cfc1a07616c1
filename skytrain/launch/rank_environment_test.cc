#include "skytrain/launch/rank_environment.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <set>

namespace skytrain::launch {
namespace {

std::map<std::string, std::string> environment(const JobPlace& place, int local_rank) {
  const Environment list = rank_environment(place, local_rank);
  std::map<std::string, std::string> map(list.begin(), list.end());
  EXPECT_EQ(map.size(), list.size()) << "a variable twice";
  return map;
}

TEST(RankEnvironment, NamesTheRanksPlace) {
  JobPlace place;
  place.local_world_size = place.world_size = 2, place.master_port = 23456, place.run_id = "abc",
  place.restart_count = 1, place.max_restarts = 3;
  auto rank = environment(place, 1);
  EXPECT_EQ(rank["RANK"], "1");
  EXPECT_EQ(rank["LOCAL_RANK"], "1");
  EXPECT_EQ(rank["WORLD_SIZE"], "2");
  EXPECT_EQ(rank["LOCAL_WORLD_SIZE"], "2");
  EXPECT_EQ(rank["GROUP_RANK"], "0");
  EXPECT_EQ(rank["MASTER_ADDR"], "127.0.0.1");
  EXPECT_EQ(rank["MASTER_PORT"], "23456");
  EXPECT_EQ(rank["TORCHELASTIC_RUN_ID"], "abc");
  EXPECT_EQ(rank["TORCHELASTIC_RESTART_COUNT"], "1");
  EXPECT_EQ(rank["TORCHELASTIC_MAX_RESTARTS"], "3");
}

TEST(RankEnvironment, CountsRanksOverMachines) {
  JobPlace place;
  place.local_world_size = 4, place.group_rank = 2, place.group_world_size = 3;
  place.first_rank = 8, place.world_size = 12;
  auto rank = environment(place, 1);
  EXPECT_EQ(rank["RANK"], "9");
  EXPECT_EQ(rank["LOCAL_RANK"], "1");
  EXPECT_EQ(rank["WORLD_SIZE"], "12");
  EXPECT_EQ(rank["GROUP_WORLD_SIZE"], "3");
}

TEST(RankEnvironment, APortThatIsFreeCanBeListenedOn) {
  for (int i = 0; i < 20; ++i) {
    const int port = free_port();
    ASSERT_GT(port, 1023);
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd, 1), 0);
    ::close(fd);
  }
}

TEST(RankEnvironment, RunsAreNotNamedAlike) {
  std::set<std::string> ids;
  for (int i = 0; i < 100; ++i) ids.insert(new_run_id());
  EXPECT_EQ(ids.size(), 100U);
  EXPECT_EQ(ids.begin()->size(), 16U);
}

}  // namespace
}  // namespace skytrain::launch
