// Why a call is the host's, in the words of the report; plan/choose/planner.h and host_rows.h have more.
// docs/coverage.md lists them, so that each stands in one place alone.
#pragma once

namespace plait::runtime::reasons {

// ---- Of the arguments (arguments/side.h); the same on all ranks but for the first, which is the error that the host
// raises
inline constexpr const char* wrong_argument = "an argument that the host must check";
inline constexpr const char* no_data = "no data";
inline constexpr const char* derived_type = "predefined operator on a derived type";
inline constexpr const char* undefined_operator = "operator that the type does not have";
inline constexpr const char* long_element = "user-defined operator on elements above 4096 bytes";
inline constexpr const char* in_place_exchange = "in place, with lengths of each pair's own";

// ---- Of the communicator
inline constexpr const char* inter_communicator = "inter-communicator";
inline constexpr const char* one_rank = "one rank";
inline constexpr const char* several_jobs = "ranks of several jobs";
inline constexpr const char* no_set_up = "it could not be set up";
inline constexpr const char* not_set_up = "not set up yet";
inline constexpr const char* no_neighborhood = "no topology that plans are made for";
inline constexpr const char* no_memory = "no memory to look at the call";

// Of one of that kind and size; nullptr: it may be set up.
const char* of_communicator(bool inter, int ranks);

// ---- Of a class of calls (trials.h)
inline constexpr const char* trial = "trial";
inline constexpr const char* few_calls = "too few calls to plan for so far";

// ---- Of calls that do not block (nonblocking.cpp)
inline constexpr const char* no_progress_hook = "the MPI library has no hook for progress";
inline constexpr const char* user_operator_posted = "user-defined operator in a call that does not block";
inline constexpr const char* not_set_up_by_blocking = "not set up by a blocking call yet";
inline constexpr const char* short_set_up = "set up for short calls so far";

// ---- Of calls that an overlap plan does not put into a group (fusion.cpp)
inline constexpr const char* not_in_overlap_plan = "the overlap plan has no call of its size";
inline constexpr const char* overlap_layout = "its data must be packed, or the ranks have no channel to agree by";
inline constexpr const char* group_begun_early = "its group was begun before all its calls were posted";
inline constexpr const char* group_incomplete =
    "the calls before it in its group were not posted, or with another type, operator or place";

// ---- Of persistent calls (persistent.cpp)
inline constexpr const char* no_persistent_memory = "no memory for a persistent collective";
inline constexpr const char* no_persistent_slot = "too many persistent collectives, or not for all ranks";

}  // namespace plait::runtime::reasons
