// The public C API's functions for fused operators (plait_fused.h).
#include <memory>

#include "core/attempt.h"
#include "fused/embedding/embedding.h"
#include "fused/embedding/embedding_back.h"
#include "fused/gemm/all_gather.h"
#include "fused/gemm/reduce_scatter.h"
#include "fused/gemv/gemv.h"
#include "fused/ground/fused_plan.h"
#include "fused/moe/combine.h"
#include "fused/moe/dispatch.h"
#include "plait/plait_fused.h"
#include "plugin/layer.h"
#include "plugin/mpi/call/lifecycle.h"
#include "plugin/mpi/host/errors.h"
#include "plugin/mpi/host/host.h"
#include "plugin/mpi/oob/mpi_oob.h"
#include "plugin/mpi/request/members.h"
#include "runtime/job/job.h"

namespace {

using plait::Status;
using plait::fused::AllGatherGemm;
using plait::fused::Embedding;
using plait::fused::EmbeddingArguments;
using plait::fused::EmbeddingBack;
using plait::fused::FusedPlan;
using plait::fused::GemmArguments;
using plait::fused::GemmReduceScatter;
using plait::fused::Gemv;
using plait::fused::GemvArguments;
using plait::fused::Lookup;
using plait::fused::MoeArguments;
using plait::fused::MoeCombine;
using plait::fused::MoeDispatch;

static_assert(static_cast<int>(plait::fused::RowType::f32) == PLAIT_FUSED_F32 &&
              static_cast<int>(plait::fused::RowType::bf16) == PLAIT_FUSED_BF16 &&
              static_cast<int>(plait::fused::RowType::i8) == PLAIT_FUSED_I8);

FusedPlan& plan_of(plait_fused plan) { return *reinterpret_cast<FusedPlan*>(plan); }

// The members are all of this kind here.
MPI_Comm comm_of(FusedPlan& plan) { return static_cast<plait::plugin::MpiMembers&>(plan.members()).comm(); }

// What came of a step, raised where it is an error.
int raised(MPI_Comm comm, const Status& status) {
  using namespace plait::plugin;
  if (status.ok()) return MPI_SUCCESS;
  return raise_error(comm, status.code() == plait::Code::invalid ? argument_error_code(status) : error_code(status));
}

EmbeddingArguments arguments_of(const plait_fused_embedding* shape) {
  if (shape == nullptr) return {.missing = "shape"};
  return {.batch = shape->batch,
          .dim = shape->dim,
          .tables = shape->tables,
          .rows = shape->rows,
          .data = shape->data,
          .scales = shape->scales,
          .type = shape->type,
          .mode = shape->mode,
          .weighted = shape->weighted != 0};
}

GemvArguments arguments_of(const plait_fused_gemv* shape) {
  if (shape == nullptr) return {.missing = "shape"};
  return {.rows = shape->rows,
          .depth = shape->depth,
          .columns = shape->columns,
          .type = shape->type,
          .weights = shape->data,
          .scales = shape->scales};
}

GemmArguments arguments_of(const plait_fused_gemm* shape) {
  if (shape == nullptr) return {.missing = "shape"};
  return {.rows = shape->rows,
          .depth = shape->depth,
          .columns = shape->columns,
          .type = shape->type,
          .weights = shape->data};
}

MoeArguments arguments_of(const plait_fused_moe* shape) {
  if (shape == nullptr) return {.missing = "shape"};
  return {.tokens = shape->tokens,
          .choices = shape->choices,
          .experts = shape->experts,
          .depth = shape->depth,
          .columns = shape->columns,
          .capacity = shape->capacity,
          .type = shape->type,
          .weights = shape->data};
}

template <class Plan, class Arguments>
int create(MPI_Comm comm, const Arguments& arguments, plait_fused* plan) {
  using namespace plait::plugin;
  if (phase() == Phase::before && host().allreduce != nullptr) start_late();
  if (phase() != Phase::open)
    return raise_error(comm, Status(plait::Code::unavailable, "plait_fused_*_create: Plait does not run in this job"));
  MpiOob all = MpiOob::of_program(comm);
  auto made = Plan::make(all, arguments, [comm] { return std::make_unique<MpiMembers>(comm); });
  if (!made.ok()) return raised(comm, made.status());
  *plan = reinterpret_cast<plait_fused>(static_cast<FusedPlan*>(made->release()));
  return MPI_SUCCESS;
}

// Of any kind, from what the program gives.
template <class Plan, class Arguments>
int create_from(MPI_Comm comm, Arguments arguments, void* output, const char* options, plait_fused* plan) {
  if (comm == MPI_COMM_NULL) return plait::plugin::raise_error(MPI_COMM_WORLD, MPI_ERR_COMM);
  int inter = 0;
  if (const int error = PMPI_Comm_test_inter(comm, &inter); error != MPI_SUCCESS) return error;
  if (inter != 0) return plait::plugin::raise_error(comm, MPI_ERR_COMM);
  if (plan != nullptr) *plan = PLAIT_FUSED_NULL;
  arguments.output = output;
  arguments.options = options;
  if (plan == nullptr) arguments.missing = "plan";
  return plait::plugin::guarded(comm, [&] { return create<Plan>(comm, arguments, plan); });
}

int no_plan() {
  return plait::plugin::guarded(MPI_COMM_WORLD, [] {
    return raised(MPI_COMM_WORLD, {plait::Code::invalid, "plan: NULL"});
  });
}

template <class Step>
int step_of(plait_fused plan, Step&& step) {
  if (plan == nullptr) return no_plan();
  const MPI_Comm comm = comm_of(plan_of(plan));
  return plait::plugin::guarded(comm, [&] { return raised(comm, step(plan_of(plan))); });
}

// Of a plan of this kind.
template <class Plan, class Step>
int step_of_kind(plait_fused plan, Step&& step) {
  return step_of(plan, [&](FusedPlan& any) {
    auto* one = dynamic_cast<Plan*>(&any);
    return one != nullptr ? step(*one) : Status(plait::Code::invalid, "plan: of another operator");
  });
}

template <class Plan, class... Given>
int start(plait_fused plan, Given... given) {
  return step_of_kind<Plan>(plan, [&](Plan& one) { return one.start(given...); });
}

template <class Plan, class... Given>
int run(plait_fused plan, Given... given) {
  return step_of_kind<Plan>(plan, [&](Plan& one) {
    const Status status = one.start(given...);
    return status.ok() ? one.wait() : status;
  });
}

}  // namespace

extern "C" {

int plait_fused_embedding_create(MPI_Comm comm, const plait_fused_embedding* shape, void* output, const char* options,
                                 plait_fused* plan) {
  return create_from<Embedding>(comm, arguments_of(shape), output, options, plan);
}

int plait_fused_embedding_start(plait_fused plan, const int64_t* indices, int64_t count, const int64_t* offsets,
                                const float* weights) {
  return start<Embedding>(plan, Lookup{indices, count, offsets, weights});
}

int plait_fused_embedding_run(plait_fused plan, const int64_t* indices, int64_t count, const int64_t* offsets,
                              const float* weights) {
  return run<Embedding>(plan, Lookup{indices, count, offsets, weights});
}

int plait_fused_embedding_back_create(MPI_Comm comm, const plait_fused_embedding* shape, void* const* data,
                                      const float* gradients, const char* options, plait_fused* plan) {
  EmbeddingArguments arguments = arguments_of(shape);
  arguments.direction = plait::fused::Direction::back;
  arguments.data = data;
  arguments.targets = data;
  arguments.gradients = gradients;
  return create_from<EmbeddingBack>(comm, arguments, nullptr, options, plan);
}

int plait_fused_embedding_back_start(plait_fused plan, const int64_t* indices, int64_t count, const int64_t* offsets,
                                     const float* weights, float factor) {
  return start<EmbeddingBack>(plan, Lookup{indices, count, offsets, weights}, factor);
}

int plait_fused_embedding_back_run(plait_fused plan, const int64_t* indices, int64_t count, const int64_t* offsets,
                                   const float* weights, float factor) {
  return run<EmbeddingBack>(plan, Lookup{indices, count, offsets, weights}, factor);
}

int plait_fused_gemv_create(MPI_Comm comm, const plait_fused_gemv* shape, float* output, const char* options,
                            plait_fused* plan) {
  return create_from<Gemv>(comm, arguments_of(shape), output, options, plan);
}

int plait_fused_gemv_start(plait_fused plan, const float* x) { return start<Gemv>(plan, x); }

int plait_fused_gemv_run(plait_fused plan, const float* x) { return run<Gemv>(plan, x); }

int plait_fused_gemm_reduce_scatter_create(MPI_Comm comm, const plait_fused_gemm* shape, float* output,
                                           const char* options, plait_fused* plan) {
  return create_from<GemmReduceScatter>(comm, arguments_of(shape), output, options, plan);
}

int plait_fused_gemm_reduce_scatter_start(plait_fused plan, const float* x) {
  return start<GemmReduceScatter>(plan, x);
}

int plait_fused_gemm_reduce_scatter_run(plait_fused plan, const float* x) { return run<GemmReduceScatter>(plan, x); }

int plait_fused_all_gather_gemm_create(MPI_Comm comm, const plait_fused_gemm* shape, float* output, const char* options,
                                       plait_fused* plan) {
  return create_from<AllGatherGemm>(comm, arguments_of(shape), output, options, plan);
}

int plait_fused_all_gather_gemm_start(plait_fused plan, const float* x) { return start<AllGatherGemm>(plan, x); }

int plait_fused_all_gather_gemm_run(plait_fused plan, const float* x) { return run<AllGatherGemm>(plan, x); }

int plait_fused_moe_dispatch_create(MPI_Comm comm, const plait_fused_moe* shape, float* output, int64_t* counts,
                                    const char* options, plait_fused* plan) {
  MoeArguments arguments = arguments_of(shape);
  arguments.counts = counts;
  return create_from<MoeDispatch>(comm, arguments, output, options, plan);
}

int plait_fused_moe_dispatch_start(plait_fused plan, const float* x, const int32_t* experts) {
  return start<MoeDispatch>(plan, MoeDispatch::Tokens{x, experts});
}

int plait_fused_moe_dispatch_run(plait_fused plan, const float* x, const int32_t* experts) {
  return run<MoeDispatch>(plan, MoeDispatch::Tokens{x, experts});
}

int plait_fused_moe_combine_create(MPI_Comm comm, const plait_fused_moe* shape, float* output, const char* options,
                                   plait_fused* plan) {
  return create_from<MoeCombine>(comm, arguments_of(shape), output, options, plan);
}

int plait_fused_moe_combine_start(plait_fused plan, const float* x, const int32_t* experts, const float* weights) {
  return start<MoeCombine>(plan, MoeCombine::Results{x, experts, weights});
}

int plait_fused_moe_combine_run(plait_fused plan, const float* x, const int32_t* experts, const float* weights) {
  return run<MoeCombine>(plan, MoeCombine::Results{x, experts, weights});
}

int plait_fused_wait(plait_fused plan) {
  return step_of(plan, [](FusedPlan& any) { return any.wait(); });
}

const char* plait_fused_describe(plait_fused plan) {
  return plan != nullptr ? plan_of(plan).description().c_str() : "{}";
}

int plait_fused_free(plait_fused* plan) {
  if (plan == nullptr || *plan == nullptr) return no_plan();
  // MPI_Finalize has freed those that were left, whose owners may end after it.
  if (plait::plugin::phase() != plait::plugin::Phase::over) delete reinterpret_cast<FusedPlan*>(*plan);
  *plan = PLAIT_FUSED_NULL;
  return MPI_SUCCESS;
}

}  // extern "C"
