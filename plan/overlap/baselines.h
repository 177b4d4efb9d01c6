// How others fuse the reductions of a step: what LIBRA is compared with (section V-A). Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/overlap/overlap_model.h"

namespace plait::plan {

// WFBP (Zhang et al., Poseidon, ATC 2017): each call by itself, as soon as its gradient exists.
std::vector<OverlapGroup> one_group_a_call(const BackwardPass& pass, const CommunicationShare& share);

// All in one: SynEASGD (You et al., SC 2017), which reduces it when all computation is done (reduction_at_end()).
std::vector<OverlapGroup> one_group(const BackwardPass& pass, const CommunicationShare& share);

// Buckets that are closed by the call with which they have so many bytes: PyTorch's, of 25 MB.
std::vector<OverlapGroup> buckets(const BackwardPass& pass, double bytes, const CommunicationShare& share);
inline constexpr double usual_bucket_bytes = 25 * 1024 * 1024;

// MG-WFBP (Shi et al., TPDS 2021, algorithm 1): a call waits for the next one where the next gradient exists before
// this call's reduction could have begun and taken its start-up, so that the start-up is saved. It knows of no
// contention: times are those alone, `startup` the a that a reduction of any size has.
std::vector<OverlapGroup> merged_gradients(const BackwardPass& pass, const OverlapModel& model,
                                           const CommunicationShare& share, double startup);

// The backward pass without any overlap.
BackwardTime reduction_at_end(const BackwardPass& pass, const OverlapModel& model, const CommunicationShare& share);

}  // namespace plait::plan
