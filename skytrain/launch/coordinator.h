// skytrain/launch/coordinator.h
//
// The head's view of a job on several machines, without sockets and without waiting: who is there, which node has which
// number, when an attempt begins and ends, and what comes after it. What to send is taken from it with take(). Belongs
// to one thread.
//
//   gathering --all nodes are here--> running --all ranks have ended--> settling --checkpoints are committed--> ended
//        ^                                                                  |
//        +---------------- a failure, and restarts are left ----------------+
//
// A number stays with its node: the one asked for by --node-rank, else that of the earlier attempt, else that which a
// node of this host name had, else the lowest free one by order of arrival. The head is number 0.

#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "skytrain/base/clock.h"
#include "skytrain/launch/node_messages.h"

namespace skytrain::launch {

class Coordinator {
 public:
  static constexpr int kLocal = 0;  // the connection of the head's own ranks

  struct Options {
    int nodes = 2;
    int max_restarts = 0;
    double join_timeout = 600, node_timeout = 30;  // seconds
    std::string address;                           // where the others find the head, for messages
    std::function<int()> free_port;                // of the head's machine
    std::string run_id;
  };
  struct Out {
    int connection = 0;
    NodeMessage message;
    enum class Then { kGoOn, kClose, kDrop };  // kDrop: nobody is thought to listen
    Then then = Then::kGoOn;
  };

  Coordinator(Options options, Clock& clock, message::Join local);

  // A peer that has proved that it has the key. peer: its address; reached: ours, as it sees it.
  void connected(int connection, std::string peer, std::string reached);
  void received(int connection, const NodeMessage& message);
  void gone(int connection, const std::string& why);  // for good
  void say(const std::string& text);                  // on the head
  // To be called when next_tick() has come. Reads first: after a pause of this process nobody else is to blame.
  void tick();
  double next_tick() const;  // monotonic seconds
  std::vector<Out> take();
  bool ended() const { return state_ == State::kEnded; }

 private:
  enum class State { kGathering, kRunning, kSettling, kEnded };
  struct Member {
    std::string peer, reached;
    std::optional<message::Join> join;
    int seat = -1;
    double last_seen = 0;
    bool ended = false, orderly = true, settled = false;
  };

  void on(int connection, const message::Join& join);
  void on(int connection, const message::Failing& failing);
  void on(int connection, const message::Ended& ended);
  void on(int connection, const message::Settled& settled);
  void on(int connection, const message::NoticeGiven& notice);
  void on(int connection, const message::Abort& abort);
  template <class M>
  void on(int, const M&) {}  // nothing that a member says, or Alive

  std::string refusal_of(const message::Join& join, std::string& hint) const;
  void gather(double seconds);
  void form_if_complete();
  bool fill_seats();
  void form();
  void failed(const Failure& failure, double when);
  void check_all_ended();
  void check_all_settled();
  void decide();
  void end(JobEnd::Kind kind);
  void give_up_waiting();

  std::string name_of(const Member& member) const;
  int present() const;
  bool may_restart() const;
  void send(int connection, NodeMessage message, Out::Then then = Out::Then::kGoOn);
  void send_others(int but, const NodeMessage& message, bool with_ranks_only = true);

  const Options options_;
  Clock& clock_;
  State state_ = State::kGathering;
  std::map<int, Member> members_;  // in order of arrival
  std::vector<Out> out_;
  std::map<int, std::string> hosts_;  // of the seats in the attempt before
  int attempt_ = 0, restarts_ = 0;
  double join_deadline_ = 0, next_reminder_ = 0, last_tick_ = 0;
  std::optional<Failure> failure_;
  double failure_time_ = 0, ending_since_ = 0;
  bool orderly_ = true;
  bool noticed_ = false;          // ever
  bool noticed_running_ = false;  // before all had ended
  double notice_deadline_ = 0;
  bool aborted_ = false;
  std::string resume_;
};

}  // namespace skytrain::launch
