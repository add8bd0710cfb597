"""What `make peers` runs: the same batches and streams through other libraries and through ours."""
