! Collectives from Fortran through the mpi module: sums, and the sentinels whose addresses preloaded tools tend to miss.
program fortran_mpi
  use mpi
  implicit none
  integer :: rank, ranks, ierror, call_number
  logical :: right

  call mpi_init(ierror)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, ierror)
  call mpi_comm_size(MPI_COMM_WORLD, ranks, ierror)
  right = .true.
  do call_number = 1, 6
    call vector_sums
    call sums_in_place
    call sum_at_bottom
    call gathered_in_place
    call pairs
  end do
  if (right .and. rank == 0) print '(a)', 'all sums right'
  if (.not. right) print '(a)', 'wrong'
  call mpi_finalize(ierror)

contains

  ! The sum over the ranks of (rank + 1) * i.
  integer function expected(i)
    integer, intent(in) :: i
    expected = i * ranks * (ranks + 1) / 2
  end function expected

  subroutine check(values)
    integer, intent(in) :: values(:)
    integer :: i
    do i = 1, size(values)
      if (values(i) /= expected(i)) right = .false.
    end do
  end subroutine check

  subroutine vector_sums
    integer :: mine(100), sums(100), i
    mine = [((rank + 1) * i, i = 1, 100)]
    sums = 0
    call mpi_allreduce(mine, sums, 100, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call check(sums)
    sums = 0
    call mpi_reduce(mine, sums, 100, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
    if (rank == 0) call check(sums)
    call mpi_bcast(sums, 100, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
    call check(sums)
    call mpi_barrier(MPI_COMM_WORLD, ierror)
  end subroutine vector_sums

  ! Fortran's MPI_IN_PLACE is the address of a common block, not C's constant.
  subroutine sums_in_place
    integer :: sums(100), i
    sums = [((rank + 1) * i, i = 1, 100)]
    call mpi_allreduce(MPI_IN_PLACE, sums, 100, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call check(sums)
    sums = [((rank + 1) * i, i = 1, 100)]
    if (rank == 0) then
      call mpi_reduce(MPI_IN_PLACE, sums, 100, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
      call check(sums)
    else
      call mpi_reduce(sums, sums, 100, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
    end if
  end subroutine sums_in_place

  ! So is MPI_BOTTOM: a datatype with absolute addresses is broadcast.
  subroutine sum_at_bottom
    integer, asynchronous, target, save :: first(10), second(10)
    integer :: i
    integer(kind=MPI_ADDRESS_KIND) :: places(2)
    integer :: absolute
    first = 0
    second = 0
    if (rank == 0) then
      first = [(expected(i), i = 1, 10)]
      second = first
    end if
    call mpi_get_address(first, places(1), ierror)
    call mpi_get_address(second, places(2), ierror)
    call mpi_type_create_hindexed(2, [10, 10], places, MPI_INTEGER, absolute, ierror)
    call mpi_type_commit(absolute, ierror)
    call mpi_bcast(MPI_BOTTOM, 1, absolute, 0, MPI_COMM_WORLD, ierror)
    call mpi_type_free(absolute, ierror)
    call check(first)
    call check(second)
  end subroutine sum_at_bottom

  subroutine gathered_in_place
    integer :: all(64), i
    all = -1
    all(rank + 1) = 10 * rank
    call mpi_allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    do i = 1, ranks
      if (all(i) /= 10 * (i - 1)) right = .false.
    end do
    if (all(ranks + 1) /= -1) right = .false.
  end subroutine gathered_in_place

  subroutine pairs
    double precision :: mine(2), best(2)
    logical :: mine_true, all_true
    mine = [dble(mod(rank + 1, ranks)), dble(rank)]
    call mpi_allreduce(mine, best, 1, MPI_2DOUBLE_PRECISION, MPI_MAXLOC, MPI_COMM_WORLD, ierror)
    if (nint(best(1)) /= ranks - 1) right = .false.
    mine_true = .true.
    call mpi_allreduce(mine_true, all_true, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierror)
    if (.not. all_true) right = .false.
  end subroutine pairs

end program fortran_mpi
