// UCC's out-of-band functions as plugin/ucc/oob has them.
#pragma once

#include <ucc/api/ucc.h>

#include <utility>

#include "plugin/layer.h"
#include "plugin/ucc/oob/all_gather.h"

namespace plait::plugin {

class UccAllGather final : public AllGather {
 public:
  UccAllGather(const ucc_oob_coll_t& oob, int rank, int ranks) : oob_(oob), rank_(rank), ranks_(ranks) {}
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  bool start(const void* mine, std::size_t bytes, void* all) override {
    return oob_.allgather(const_cast<void*>(mine), all, bytes, oob_.coll_info, &request_) == UCC_OK;
  }
  Turn test() override {
    const ucc_status_t status = oob_.req_test(request_);
    if (status > UCC_OK) return Turn::waiting;
    oob_.req_free(std::exchange(request_, nullptr));
    return status == UCC_OK ? Turn::done : Turn::failed;
  }

 private:
  const ucc_oob_coll_t oob_;
  const int rank_, ranks_;
  void* request_ = nullptr;
};

}  // namespace plait::plugin
