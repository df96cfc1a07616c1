// skytrain/launch/rank_process.h
//
// One rank of a job, as the agent sees it: a shim (rank_shim.h) with the command below it. Belongs to one thread.

#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "skytrain/base/process.h"
#include "skytrain/launch/rank_shim.h"

namespace skytrain::launch {

class RankProcess {
 public:
  struct Options {
    std::string shim;                  // shim_program()
    std::string program;               // what is run
    std::vector<std::string> command;  // its words; [0] is the name that it sees itself under
    std::vector<std::pair<std::string, std::string>> environment;
    int in = 0, out = 1, err = 2;  // descriptors of ours that become its 0, 1 and 2
  };
  // Returns when the command runs. Throws Error(kEnvironment) naming it when it can't be started.
  explicit RankProcess(const Options& options);
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;
  ~RankProcess();  // ends all that is left of it, at once, and waits for that

  int fd() const { return control_.get(); }  // readable: receive() has something
  pid_t pid() const { return pid_; }         // of the command
  pid_t shim_pid() const { return shim_.pid(); }

  // What the shim has said, oldest first; nullopt: nothing (more) now. Sets closed() at its end.
  std::optional<ShimReport> receive();
  bool closed() const { return closed_; }
  // After closed(): the shim has ended, and what it may have left has another parent.
  void wait_for_shim();

  void signal(int signo);        // to the command's process
  void signal_group(int signo);  // to it and what it has started in its group
  void kill_all();               // SIGKILL to everything below the shim

 private:
  void order(ShimOrder::What what, int signo);

  Fd control_;
  ChildProcess shim_;
  pid_t pid_ = -1;
  bool closed_ = false;
};

}  // namespace skytrain::launch
