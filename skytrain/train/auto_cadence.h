// skytrain/train/auto_cadence.h
//
// How often to save when the recipe says `auto`: what a save costs against what a failure would, both as measured.

#pragma once

namespace skytrain::train {

// The time between two checkpoints that loses least, in seconds: of saving, and of work done again after failures that
// come every `mtbf` seconds on average. cost: seconds of training that a save takes. Daly 2006, "A higher order
// estimate of the optimum checkpoint interval for restart dumps", equation 37; to first order Young 1974, sqrt(2 * cost
// * mtbf).
double checkpoint_interval(double cost, double mtbf);

// Learns the cost from the run: the time that steps wait for a save, and by how much steps beside one are slower than
// others.
class AutoCadence {
 public:
  // mtbf > 0, seconds. expected_cost: until one was measured.
  AutoCadence(double mtbf, double expected_cost) : mtbf_(mtbf), cost_(expected_cost) {}

  // A step that took `seconds`, of which `waited` for a save. beside: one was going on.
  void step(double seconds, double waited, bool beside);
  // A save has ended: what it took is known.
  void saved(double seconds_of_save);

  // Between the beginnings of two saves. At least kLeastSaves times as long as a save takes: writing all the time helps
  // nobody.
  double interval() const;
  static constexpr double kLeastSaves = 3;

 private:
  double mtbf_, cost_;
  double usual_ = 0;     // seconds of a step without a save; 0: not known yet
  double current_ = 0;   // what the save that is going on has taken so far
  double duration_ = 0;  // of the last save
  bool measured_ = false;
};

}  // namespace skytrain::train
