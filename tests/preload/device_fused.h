// Fused embeddings whose data are on the devices of the job's ranks.
#pragma once

#include <memory>
#include <string>

// A plan over MPI_COMM_WORLD and its data, of small integers, so that all sums are exact.
class DeviceEmbedding {
 public:
  DeviceEmbedding();
  ~DeviceEmbedding();
  DeviceEmbedding(const DeviceEmbedding&) = delete;
  DeviceEmbedding& operator=(const DeviceEmbedding&) = delete;

  // Other lookups each time; MPI's code.
  int run();
  // What is wrong with what came of it; nothing: "".
  std::string wrong() const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

// Run after run between processes; and a device that breaks down when it has done a part: all ranks have an error, and
// the next plan is right. What is wrong; nothing: "".
std::string test_fused_on_devices();
