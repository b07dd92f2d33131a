# Calls SLURM's programs for Python in a container, which has none: see `launchers.slurm.queries`. Ends with the folder.
# The folder is made before the loop goes into the background: a container that fails at once removes it at once.
relay="$SUITE_SLURM_RELAY"; mkdir -m 700 -p "$relay"
while [ -d "$relay" ]; do
  for asked in "$relay"/*.ask; do
    [ -e "$asked" ] || continue
    mapfile -d "" -t words < "$asked"; rm "$asked"; name="${asked%.ask}"
    case "${words[0]}" in
      scontrol|squeue|scancel|sinfo) SLURM_BITSTR_LEN=0 "${words[@]}" < /dev/null > "$name.out" 2> "$name.err"; echo $? > "$name.new" ;;
      *) echo 126 > "$name.new" ;;
    esac
    mv "$name.new" "$name.status"
  done
  sleep 0.1
done > /dev/null 2>&1 &
