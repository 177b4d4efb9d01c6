! Cross-mesh resharding by Fortran's names: rows on two ranks become columns on the same ranks, blocking and not.
program fortran_reshard
  use mpi
  use plait_reshard
  use, intrinsic :: iso_c_binding
  implicit none
  integer, parameter :: rows = 6, columns = 4
  integer :: rank, ierror, request, i, j, round
  type(c_ptr) :: plan
  integer(c_int64_t) :: offset(2), length(2)
  integer, asynchronous :: source(columns, rows / 2), destination(columns / 2, rows)
  integer(c_int) :: none(0)
  logical :: right

  call mpi_init(ierror)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, ierror)
  right = .true.
  call plait_reshard_create(MPI_COMM_WORLD, [2], [0, 1], "S0R", [2], none, "RS0", &
                            [int(rows, c_int64_t), int(columns, c_int64_t)], MPI_INTEGER, "", plan, ierror)
  if (ierror /= MPI_SUCCESS) right = .false.
  call plait_reshard_local(plan, plait_reshard_destination, offset, length, ierror)
  if (length(1) /= rows .or. length(2) /= columns / 2 .or. offset(2) /= rank * columns / 2) right = .false.
  do round = 1, 4
    do j = 1, rows / 2
      do i = 1, columns
        source(i, j) = value(rank * rows / 2 + j, i)
      end do
    end do
    destination = -1
    if (mod(round, 2) == 0) then
      call plait_reshard_execute(plan, source, destination, ierror)
    else
      call plait_reshard_start(plan, source, destination, request, ierror)
      call mpi_wait(request, MPI_STATUS_IGNORE, ierror)
    end if
    do j = 1, rows
      do i = 1, columns / 2
        if (destination(i, j) /= value(j, rank * columns / 2 + i)) right = .false.
      end do
    end do
  end do
  call plait_reshard_free(plan, ierror)
  if (right .and. rank == 0) print '(a)', 'resharding right'
  if (.not. right) print '(a)', 'wrong'
  call mpi_finalize(ierror)

contains

  integer function value(row, column)
    integer, intent(in) :: row, column
    value = 1000 * round + 10 * row + column
  end function

end program fortran_reshard
