! Persistent collectives by the names that Open MPI 4.1 has for Fortran.
program fortran_persistent
  use mpi
  implicit none
  external :: mpix_allreduce_init, mpix_bcast_init
  integer :: rank, ranks, ierror, requests(2), round
  integer, volatile :: mine, total, word
  logical :: right

  call mpi_init(ierror)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, ierror)
  call mpi_comm_size(MPI_COMM_WORLD, ranks, ierror)
  right = .true.
  call mpix_allreduce_init(mine, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1), ierror)
  call mpix_bcast_init(word, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, MPI_INFO_NULL, requests(2), ierror)
  do round = 1, 20
    mine = rank + round
    total = -1
    word = merge(round, -1, rank == 0)
    if (mod(round, 2) == 0) then
      call mpi_startall(2, requests, ierror)
    else
      call mpi_start(requests(2), ierror)
      call mpi_start(requests(1), ierror)
    end if
    call mpi_waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
    if (total /= ranks * (ranks - 1) / 2 + ranks * round .or. word /= round) right = .false.
  end do
  call mpi_request_free(requests(1), ierror)
  call mpi_request_free(requests(2), ierror)
  if (right .and. rank == 0) print '(a)', 'persistent sums right'
  if (.not. right) print '(a)', 'wrong'
  call mpi_finalize(ierror)
end program fortran_persistent
