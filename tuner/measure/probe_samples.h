// What `plait probe` measures, and the machine that fits it (docs/probe.md). Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "plan/model/machine.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

// One size. Seconds are the median of the batches.
struct ProbePoint {
  std::size_t bytes = 0;
  double seconds = 0;
  double spread = 0;  // between the quartiles of the batches, over the median
};

// Ascending in bytes.
using ProbeCurve = std::vector<ProbePoint>;

// Two ranks over one channel alone.
struct ChannelSamples {
  std::string channel;
  ProbeCurve one_way, stream;  // as below
};

// Between two ranks that this level parts, by Plait's own channels.
struct LinkSamples {
  std::string level;     // "node", "core", "rank"
  bool network = false;  // between nodes
  std::string channels;  // that carried them: "shm", "ucx"
  ProbeCurve one_way;    // a message to the peer, and one back: half of both
  ProbeCurve stream;     // a message of many to the same peer: from one's arrival to the next one's
  ProbeCurve both_ways;  // a message to the peer and one from it at the same time
  ProbeCurve reduced;    // a message of many that the peer adds to what it has
  // By so many pairs at once (1, 2, ..), one rank of each behind the same port: what all of them together send in one
  // direction, in messages of the smallest size, and of the bytes by which long messages differ.
  std::vector<double> messages_per_second, bytes_per_second;
  std::vector<ChannelSamples> by_channel;
  ProbeCurve devices;  // a copy from the GPU of one of two ranks into the other's memory; empty: none can be mapped
};

struct ProbeSamples {
  std::vector<LinkSamples> links;          // outermost first
  std::map<std::string, ProbeCurve> host;  // the host's own collectives over all ranks, by name
  ProbeCurve copies;                       // within one rank's memory
  ProbeCurve to_device, from_device;       // between that and its GPU's, pinned; empty: there are none
  double ranks_per_core = 1;
};

// How far the model's line is from the points of a curve: the root mean square of the relative differences.
struct FitResidual {
  std::string level, curve;
  double relative = 0;
};

struct ProbeFit {
  Machine machine;
  std::vector<FitResidual> residuals;
  std::vector<std::string> remarks;  // on figures that say less than they seem to
  std::string doubt;                 // why the samples do not give a machine; empty: they do
};

// The links whose times fit the samples best, with equal weight for equal relative errors. Precondition: at least one
// link, each curve with at least two points. Source of the form: latency, overhead and gap of LogGP (Alexandrov et al.,
// 1995), as plan/model/machine.h names them.
ProbeFit fit_machine(const ProbeSamples& samples);

// Spread of the points: that which three quarters of them stay below.
double noise(const ProbeSamples& samples);

}  // namespace plait::tuner
