#include "tests/preload/device_fused.h"

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "plait/plait_fused.h"
#include "tests/fake_cuda/fake_cuda.h"

namespace {

constexpr int not_supported = 801, illegal_address = 700;
constexpr std::int64_t batch = 61, dim = 20, tables = 3, table_rows = 40, bag_rows = 4;

int own_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
int all_ranks() {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

float cell(std::int64_t rank, std::int64_t table, std::int64_t row, std::int64_t column) {
  return static_cast<float>((rank * 7 + table * 5 + row * 3 + column) % 64);
}
std::int64_t looked_up(std::int64_t round, std::int64_t rank, std::int64_t at) {
  return (round * 11 + rank * 13 + at * 17) % table_rows;
}

// Of a type's numbers, on the device.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) {
    CUdeviceptr made = 0;
    cuMemAlloc_v2(&made, count * sizeof(T));
    place_ = reinterpret_cast<T*>(made);
  }
  ~DeviceArray() { cuMemFree_v2(reinterpret_cast<CUdeviceptr>(place_)); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  T* address() const { return place_; }
  T* data() const { return static_cast<T*>(fake_cuda_data(place_)); }

 private:
  T* place_;
};

}  // namespace

struct DeviceEmbedding::Data {
  std::int64_t first = 0, samples = 0, round = 0;  // of this rank
  DeviceArray<float> cells{tables * table_rows * dim};
  DeviceArray<std::int64_t> indices{tables * batch * bag_rows}, offsets{tables * batch + 1};
  std::unique_ptr<DeviceArray<float>> output;
  plait_fused plan = PLAIT_FUSED_NULL;
  int made = MPI_SUCCESS;
};

DeviceEmbedding::DeviceEmbedding(const char* refused) : data_(std::make_unique<Data>()) {
  const std::int64_t rank = own_rank(), ranks = all_ranks();
  data_->samples = batch / ranks + (rank < batch % ranks ? 1 : 0);
  data_->first = rank * (batch / ranks) + (rank < batch % ranks ? rank : batch % ranks);
  data_->output = std::make_unique<DeviceArray<float>>(static_cast<std::size_t>(data_->samples * ranks * tables * dim));
  for (std::int64_t at = 0; at < tables * table_rows * dim; ++at)
    data_->cells.data()[at] = cell(rank, at / (table_rows * dim), at / dim % table_rows, at % dim);
  for (std::int64_t bag = 0; bag <= tables * batch; ++bag) data_->offsets.data()[bag] = bag * bag_rows;
  std::vector<std::int64_t> rows(tables, table_rows);
  std::vector<const void*> places;
  for (std::int64_t table = 0; table < tables; ++table)
    places.push_back(data_->cells.address() + table * table_rows * dim);
  const plait_fused_embedding shape{.batch = batch,
                                    .dim = dim,
                                    .tables = tables,
                                    .rows = rows.data(),
                                    .data = places.data(),
                                    .scales = nullptr,
                                    .type = PLAIT_FUSED_F32,
                                    .mode = PLAIT_FUSED_SUM,
                                    .weighted = 0};
  const bool refuses = refused != nullptr && rank == ranks - 1;
  if (refuses) fake_cuda_fail(refused, 0, not_supported);
  data_->made =
      plait_fused_embedding_create(MPI_COMM_WORLD, &shape, data_->output->address(), "slice=700", &data_->plan);
  if (refuses) fake_cuda_fail(refused, -1, 0);
}

DeviceEmbedding::~DeviceEmbedding() {
  if (data_->plan != PLAIT_FUSED_NULL) plait_fused_free(&data_->plan);
}

int DeviceEmbedding::start() {
  if (data_->made != MPI_SUCCESS) return data_->made;
  ++data_->round;
  constexpr std::int64_t count = tables * batch * bag_rows;
  for (std::int64_t at = 0; at < count; ++at) data_->indices.data()[at] = looked_up(data_->round, own_rank(), at);
  return plait_fused_embedding_start(data_->plan, data_->indices.address(), count, data_->offsets.address(), nullptr);
}

int DeviceEmbedding::wait() { return plait_fused_wait(data_->plan); }

std::string DeviceEmbedding::wrong() const {
  const float* sum = data_->output->data();
  for (std::int64_t sample = data_->first; sample < data_->first + data_->samples; ++sample)
    for (int of = 0; of < all_ranks(); ++of)
      for (std::int64_t table = 0; table < tables; ++table)
        for (std::int64_t column = 0; column < dim; ++column, ++sum) {
          float expected = 0;
          for (std::int64_t row = 0; row < bag_rows; ++row)
            expected += cell(of, table, looked_up(data_->round, of, (table * batch + sample) * bag_rows + row), column);
          if (*sum != expected)
            return "sample " + std::to_string(sample) + ", table " + std::to_string(table) + " of rank " +
                   std::to_string(of) + ": " + std::to_string(*sum) + " instead of " + std::to_string(expected);
        }
  return {};
}

namespace {

bool is_last() { return own_rank() == all_ranks() - 1; }

enum class Where { on_device, by_copies };

std::string run_often(const std::string& what, DeviceEmbedding& embedding, Where where) {
  const long kernels = fake_cuda_kernels();
  constexpr int rounds = 20;
  for (int round = 0; round < rounds; ++round) {
    if (embedding.run() != MPI_SUCCESS) return what + ": a run failed";
    if (std::string wrong = embedding.wrong(); !wrong.empty()) return what + ": " + wrong;
  }
  // A look at the lookups and the sums.
  const long expected = where == Where::on_device ? 2 * rounds : 0;
  return fake_cuda_kernels() - kernels == expected ? "" : what + ": it ran elsewhere";
}

std::string run_often(const std::string& what, Where where) {
  DeviceEmbedding embedding;
  return run_often(what, embedding, where);
}

// Each has its own inboxes and mappings.
std::string run_two_at_a_time() {
  DeviceEmbedding first, second;
  for (int round = 0; round < 10; ++round) {
    if (first.start() != MPI_SUCCESS || second.start() != MPI_SUCCESS) return "two plans: a start failed";
    if (first.wait() != MPI_SUCCESS || second.wait() != MPI_SUCCESS) return "two plans: a run failed";
    for (const DeviceEmbedding* one : {&first, &second})
      if (std::string wrong = one->wrong(); !wrong.empty()) return "two plans: " + wrong;
  }
  return {};
}

// What has an address, and perhaps a handle, that a plan before had.
std::string come_and_go() {
  const long mapped = fake_cuda_mapped();
  for (int plan = 0; plan < 5; ++plan) {
    const DeviceEmbedding between;
    if (std::string wrong = run_often("plans that come and go", Where::on_device); !wrong.empty()) return wrong;
  }
  return fake_cuda_mapped() <= mapped ? "" : "memory is mapped that no plan has";
}

// On the last rank, while the plan is made.
std::string refuse(const char* function) {
  DeviceEmbedding embedding(function);
  return run_often(std::string("where ") + function + " is refused", embedding, Where::by_copies);
}

// The call after so many more fails on the last rank.
std::string break_down(const char* function, long calls) {
  DeviceEmbedding embedding;
  if (embedding.run() != MPI_SUCCESS) return "a run before a failure failed";
  if (is_last()) fake_cuda_fail(function, calls, illegal_address);
  const int error = embedding.run();
  if (is_last()) fake_cuda_fail(function, -1, 0);
  return error != MPI_SUCCESS ? "" : std::string("no error where ") + function + " failed on another rank";
}

// Rows times vectors: each rank's device adds some rows, and stores the sums into all outputs.
class DeviceGemv {
 public:
  static constexpr std::int64_t rows = 203, depth = 24;
  explicit DeviceGemv(const char* refused = nullptr) {
    for (std::int64_t at = 0; at < rows * depth; ++at)
      weights_.data()[at] = cell(own_rank(), 0, at / depth, at % depth);
    const plait_fused_gemv shape{.rows = rows,
                                 .depth = depth,
                                 .columns = 1,
                                 .type = PLAIT_FUSED_F32,
                                 .data = weights_.address(),
                                 .scales = nullptr};
    if (refused != nullptr && is_last()) fake_cuda_fail(refused, 0, not_supported);
    made_ = plait_fused_gemv_create(MPI_COMM_WORLD, &shape, output_.address(), "slice=64", &plan_);
    if (refused != nullptr && is_last()) fake_cuda_fail(refused, -1, 0);
  }
  ~DeviceGemv() {
    if (plan_ != PLAIT_FUSED_NULL) plait_fused_free(&plan_);
  }
  DeviceGemv(const DeviceGemv&) = delete;
  DeviceGemv& operator=(const DeviceGemv&) = delete;

  int run() {
    if (made_ != MPI_SUCCESS) return made_;
    ++round_;
    for (std::int64_t at = 0; at < depth; ++at) x_.data()[at] = cell(own_rank(), round_, at, 0);
    return plait_fused_gemv_run(plan_, x_.address());
  }
  std::string wrong() const {
    for (std::int64_t row = 0; row < rows; ++row) {
      float sum = 0;
      for (int of = 0; of < all_ranks(); ++of)
        for (std::int64_t at = 0; at < depth; ++at) sum += cell(of, 0, row, at) * cell(of, round_, at, 0);
      if (output_.data()[row] != sum) return "row " + std::to_string(row);
    }
    return {};
  }

 private:
  DeviceArray<float> weights_{rows * depth}, x_{depth}, output_{rows};
  plait_fused plan_ = PLAIT_FUSED_NULL;
  int made_ = MPI_SUCCESS;
  std::int64_t round_ = 0;
};

// Rows of all ranks times matrices of each.
class DeviceGather {
 public:
  static constexpr std::int64_t rows = 203, depth = 24, columns = 70;
  DeviceGather() {
    for (std::int64_t at = 0; at < depth * columns; ++at)
      weights_.data()[at] = cell(own_rank(), 1, at / columns, at % columns);
    const plait_fused_gemm shape{
        .rows = rows, .depth = depth, .columns = columns, .type = PLAIT_FUSED_F32, .data = weights_.address()};
    made_ = plait_fused_all_gather_gemm_create(MPI_COMM_WORLD, &shape, output_.address(), "slice=1000", &plan_);
  }
  ~DeviceGather() {
    if (plan_ != PLAIT_FUSED_NULL) plait_fused_free(&plan_);
  }
  DeviceGather(const DeviceGather&) = delete;
  DeviceGather& operator=(const DeviceGather&) = delete;

  int run() {
    if (made_ != MPI_SUCCESS) return made_;
    ++round_;
    const std::int64_t first = first_row(own_rank()), end = first_row(own_rank() + 1);
    for (std::int64_t at = 0; at < (end - first) * depth; ++at)
      x_.data()[at] = cell(first + at / depth, 2, round_, at % depth);
    return plait_fused_all_gather_gemm_run(plan_, x_.address());
  }
  std::string wrong() const {
    for (std::int64_t row = 0; row < rows; row += 7)
      for (std::int64_t column = 0; column < columns; ++column) {
        float sum = 0;
        for (std::int64_t at = 0; at < depth; ++at) sum += cell(row, 2, round_, at) * cell(own_rank(), 1, at, column);
        if (output_.data()[row * columns + column] != sum) return "row " + std::to_string(row);
      }
    return {};
  }

 private:
  static std::int64_t first_row(std::int64_t rank) {
    return rows / all_ranks() * rank + std::min<std::int64_t>(rank, rows % all_ranks());
  }

  DeviceArray<float> weights_{depth * columns}, x_{rows * depth}, output_{rows * columns};
  plait_fused plan_ = PLAIT_FUSED_NULL;
  int made_ = MPI_SUCCESS;
  std::int64_t round_ = 0;
};

std::string break_down_in_products() {
  DeviceGather gather;
  if (gather.run() != MPI_SUCCESS) return "a product before a failure failed";
  if (is_last()) fake_cuda_fail("execution", 0, illegal_address);
  const int error = gather.run();
  if (is_last()) fake_cuda_fail("execution", -1, 0);
  return error != MPI_SUCCESS ? "" : "no error where a product failed on another rank";
}

std::string add_often(const char* refused, Where where) {
  DeviceGemv gemv(refused);
  const long kernels = fake_cuda_kernels();
  constexpr int rounds = 10;
  for (int round = 0; round < rounds; ++round)
    if (gemv.run() != MPI_SUCCESS || !gemv.wrong().empty()) return "rows times vectors: " + gemv.wrong();
  // A product, and its sum where other ranks' parts came too late for the same kernel.
  const long least = where == Where::on_device ? rounds : 0, ran = fake_cuda_kernels() - kernels;
  return ran >= least && ran <= 2 * least ? "" : "rows times vectors ran elsewhere";
}

// In the product, or when the parts of all are added by a kernel of their own.
std::string break_down_in_sums(long kernels) {
  DeviceGemv gemv;
  if (gemv.run() != MPI_SUCCESS) return "rows times vectors before a failure failed";
  if (is_last()) {
    fake_cuda_fail("parts in time", 0, illegal_address);
    fake_cuda_fail("execution", kernels, illegal_address);
  }
  const int error = gemv.run();
  if (is_last()) {
    fake_cuda_fail("execution", -1, 0);
    fake_cuda_fail("parts in time", -1, 0);
  }
  return error != MPI_SUCCESS ? "" : "no error where a sum failed on another rank";
}

// What a run is given and the tables are copied before it, the output behind it.
constexpr long copies_in = 2 + tables;

// Before a run: all have an error.
std::string fail_before(long copies) {
  DeviceEmbedding embedding;
  if (embedding.run() != MPI_SUCCESS) return "a run before a failed copy failed";
  if (is_last()) fake_cuda_fail("cuMemcpyAsync", copies, not_supported);
  const int error = embedding.run();
  if (is_last()) fake_cuda_fail("cuMemcpyAsync", -1, 0);
  if (error == MPI_SUCCESS) return "no error where a copy failed on another rank";
  return embedding.run() != MPI_SUCCESS ? "" : "a run after a failed copy";
}

// Behind a run: the rank that lacks its output has an error, and all others in the next run.
std::string fail_behind() {
  DeviceEmbedding embedding;
  if (embedding.run() != MPI_SUCCESS) return "a run before a failed copy back failed";
  if (is_last()) fake_cuda_fail("cuMemcpyAsync", copies_in, not_supported);
  const int error = embedding.run();
  if (is_last()) fake_cuda_fail("cuMemcpyAsync", -1, 0);
  if ((error == MPI_SUCCESS) == is_last()) return "whose error a failed copy back is";
  if (!is_last() && !embedding.wrong().empty()) return "what comes of a run whose copy back fails elsewhere";
  return embedding.run() != MPI_SUCCESS ? "" : "a run after a failed copy back";
}

}  // namespace

std::string multiply_often(int runs) {
  DeviceGather gather;
  for (int run = 0; run < runs; ++run)
    if (gather.run() != MPI_SUCCESS || !gather.wrong().empty()) return "rows of all ranks: " + gather.wrong();
  return {};
}

std::string test_fused_on_devices() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  std::string wrong = run_often("fused", Where::on_device);
  if (wrong.empty()) wrong = run_two_at_a_time();
  if (wrong.empty()) wrong = come_and_go();
  for (const char* function : {"cuIpcOpenMemHandle_v2", "cuIpcGetMemHandle", "cuMemHostRegister_v2", "cuMemAlloc_v2",
                               "cuStreamCreate", "cuEventCreate"})
    if (wrong.empty()) wrong = refuse(function);
  // The first kernel looks at what is given, the second one breaks down when a half of its tiles are done.
  if (wrong.empty()) wrong = break_down("execution", 1);
  if (wrong.empty()) wrong = break_down("execution", 0);
  if (wrong.empty()) wrong = break_down("cuLaunchKernel", 1);
  if (wrong.empty()) wrong = break_down("cuEventQuery", 1);
  if (wrong.empty()) wrong = add_often(nullptr, Where::on_device);
  if (wrong.empty()) wrong = add_often("cuIpcOpenMemHandle_v2", Where::by_copies);
  for (const long kernels : {0, 1})
    if (wrong.empty()) wrong = break_down_in_sums(kernels);
  if (wrong.empty()) wrong = multiply_often(10);
  if (wrong.empty()) wrong = break_down_in_products();
  if (wrong.empty()) wrong = add_often(nullptr, Where::on_device);
  if (wrong.empty()) wrong = run_often("fused, after failures", Where::on_device);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  return wrong;
}

std::string test_fused_by_copies() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  std::string wrong = run_often("fused, by copies", Where::by_copies);
  if (wrong.empty()) wrong = fail_before(0);
  if (wrong.empty()) wrong = fail_before(copies_in - 1);
  if (wrong.empty()) wrong = fail_behind();
  if (wrong.empty()) wrong = run_often("fused, after failed copies", Where::by_copies);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  return wrong;
}
