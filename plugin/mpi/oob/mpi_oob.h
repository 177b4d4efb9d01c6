// The host's messages as the way for what ranks do together out of band.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugin/layer.h"
#include "plugin/mpi/oob/mpi_messages.h"
#include "runtime/oob/oob.h"

namespace plait::plugin {

// A communicator of ours with the ranks of one of the program's, on which errors are returned; or one of the program's,
// for as long as it is there.
class MpiOob final : public Oob {
 public:
  // Owns the communicator.
  explicit MpiOob(MPI_Comm handle) : MpiOob(handle, true) {}
  static MpiOob of_program(MPI_Comm comm) { return {comm, false}; }
  MpiOob(const MpiOob&) = delete;
  MpiOob& operator=(const MpiOob&) = delete;
  ~MpiOob() override {
    if (owned_ && handle_ != MPI_COMM_NULL) PMPI_Comm_free(&handle_);
  }

  MPI_Comm handle() const { return handle_; }
  // For one that has no communicator yet. Collective over `user`; blocks. Makes one of ours with the same ranks: not a
  // duplicate, which would call the program's attribute copy functions. Fails with `unavailable` where the host makes
  // none. Needs no memory of ours.
  Status make_own(MPI_Comm user) noexcept;
  // Owns it, where it had none.
  void take(MPI_Comm handle) {
    handle_ = handle;
    messages_ = MpiMessages(handle);
  }

  int rank() const override;
  int ranks() const override;
  Status meet(std::string_view what) override;
  Status gather_all(const void* mine, std::size_t bytes, void* all, std::string_view what) override;
  Status tell_all(void* data, std::size_t bytes, std::string_view what) override;
  Status gather_all_unless(const std::function<Status()>& failed, const void* mine, std::size_t bytes, void* all,
                           std::string_view what) override;
  void gather_texts(const std::string& mine, const std::function<void(int rank, std::string text)>& take) override;
  Status reduce_all(const void* mine, void* all, std::size_t count, Element element, Op op,
                    std::string_view what) override;
  void withdraw() noexcept override;
  Status go_on_together(const Status& mine) noexcept override;
  void abandon() noexcept override;
  void leave_word(int rank) noexcept override;
  bool word_left() override;
  std::unique_ptr<FailureNotice> make_notice(std::uint64_t number, std::vector<int> near) override;
  Status part(std::optional<int> colour, std::unique_ptr<Oob>& made, std::string_view what) override;
  HostMessages* messages() override { return &messages_; }

 private:
  MpiOob(MPI_Comm handle, bool owned) : handle_(handle), owned_(owned), messages_(handle) {}

  MPI_Comm handle_;
  bool owned_;
  MpiMessages messages_;
};

// For a rank that has no memory to take part in what the others do with such a one: they hear of it at once.
void decline_mpi_oob(MPI_Comm user) noexcept;

}  // namespace plait::plugin
