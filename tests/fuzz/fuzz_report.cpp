// A report that is read gives a job for which there is a sentence; what is refused says why, in one line.
#include "tests/fuzz/fuzz.h"
#include "tuner/text/report_reader.h"

using namespace plait;
using namespace plait::tuner;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto job = read_report(fuzz::text_of(data, size));
  if (!job.ok()) {
    fuzz::require(!job.status().message().empty(), "a refusal says why");
    return 0;
  }
  fuzz::require(job->places.empty() || job->places.size() == static_cast<std::size_t>(job->ranks), "a place a rank");
  JobPlacement placement{.nodes = {}, .machine = plan::default_machine(), .traffic = job->traffic};
  for (const RankPlace& place : job->places) placement.nodes.push_back(place.node);
  fuzz::require(!placement_advice(placement).sentence.empty(), "there is always something to say");
  mapping_advice(job->places, launcher_of(job->mpi));
  return 0;
}
