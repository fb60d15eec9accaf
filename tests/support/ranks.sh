# For tests that start ranks; sourced after script.sh. `ranks N COMMAND...` runs it under mpirun.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none MIXT_THREADS=1 OMPI_MCA_btl_vader_single_copy_mechanism=${SINGLE_COPY:-none}

ranks() { timeout 60 mpirun -n "$@"; }

# need_ranks: skips the rest of the test where ranks cannot be started
need_ranks() {
    command -v mpirun >/dev/null && [ -e "$(dirname "$mixt")/libmixt_mpi.so" ] && return
    skip "no mpirun or no libmixt_mpi.so: ranks over MPI are not tested"
}

# same FOLDER FOLDER: weights, and metrics but for times and memory
figures() { sed 's/,"samples_s".*"time":[^,}]*//; s/,"checkpoint_stall":[^,}]*//; s/,"energy[^,}]*//g; s/,"memory_by_role".*//' "$1/metrics.jsonl"; }
same() {
    cmp -s "$1/model.safetensors" "$2/model.safetensors" || { fail "$1 and $2 have other weights"; return; }
    cmp -s <(figures "$1") <(figures "$2") || fail "$1 and $2 have other metrics: $(diff <(figures "$1") <(figures "$2") | head -4)"
}
