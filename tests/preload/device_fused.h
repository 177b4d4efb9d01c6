// Fused embeddings whose data are on the devices of the job's ranks.
#pragma once

#include <memory>
#include <string>

// A plan over MPI_COMM_WORLD and its data, of small integers, so that all sums are exact.
class DeviceEmbedding {
 public:
  // `refused`: a function of the driver's that fails on the last rank while the plan is made.
  explicit DeviceEmbedding(const char* refused = nullptr);
  ~DeviceEmbedding();
  DeviceEmbedding(const DeviceEmbedding&) = delete;
  DeviceEmbedding& operator=(const DeviceEmbedding&) = delete;

  // Other lookups each time; MPI's codes.
  int run() {
    const int error = start();
    return error != 0 ? error : wait();
  }
  int start();
  int wait();
  // What is wrong with what came of it; nothing: "".
  std::string wrong() const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

// Run after run between processes, two plans at a time, and plans that come and go with their memory; a driver that
// refuses what a plan needs, where it goes by copies; and a device that breaks down when it has done a part: all ranks
// have an error, and the next plan is right. What is wrong; nothing: "".
std::string test_fused_on_devices();
// A plan of rows of all ranks times matrices of each, run so often. What is wrong; nothing: "".
std::string multiply_often(int runs);
// By copies, and copies that fail on one rank.
std::string test_fused_by_copies();
