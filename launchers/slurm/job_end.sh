# The end of a job's script, after its processes. `launchers.slurm.requeue` judges what these have left, and then leaves a mark.
# On a node whose Python leaves none, whatever its status, the shell notes a lost start itself, as `launchers.slurm.lost_starts` would,
# and puts the job back into the queue, away from that node.
if [ ! -e "$judged" ]; then
  job="$SLURM_ARRAY_JOB_ID"_"$SLURM_ARRAY_TASK_ID" restarts="${SLURM_RESTART_COUNT:-0}" node="$SLURMD_NODENAME" lost=""
  said=$(tac "$folder/$job"_0_log.out | sed '/^start [0-9]* on /Q' | head -n 8 | tac | paste -sd';')
  said=$(printf %s "${image:+ in the container $image, see containers/}${said:+: $said}" | tr -cs '[:alnum:] ,.:;/_()=+*@-' ' ')  # as it may stand in JSON
  for try in {1..24}; do shown=$(scontrol show job "$job") && break; sleep 5; done
  [ -e "$folder/cancelled" ] || case "$shown" in ""|*JobState=RUNNING*"Restarts=$restarts "*)  # nobody has ended it
    log=$(printf %s "$folder/$job" | sed 's/"/\\"/g')_0_log.out
    printf '{"kind":"node","job":"%s","restarts":%d,"task":%d,"node":"%s","reason":"%s","log":"%s"}\n' "$job" "$restarts" \
      $((first + SLURM_ARRAY_TASK_ID)) "$node" "its Python ended with status $status$said" "$log" >> "$folder/starts.jsonl" &&
      lost=$(grep -cF '{"kind":"node","job":"'"$job"'",' "$folder/starts.jsonl")
    excluded=$(echo "$shown" | sed -n 's/.*ExcNodeList=\([^ (]*\).*/\1/p')
    excluded="${excluded:+$excluded,}$node"
    nodes=$(sinfo --noheader --Node --format=%N --partition="$SLURM_JOB_PARTITION")
    left=$(echo "$nodes" | grep -vxF "$(scontrol show hostnames "$excluded")")
    if [ "${lost:-3}" -lt 3 ] && { [ -n "$left" ] || [ -z "$nodes" ]; } && scontrol requeue "$job"; then
      scontrol update JobId="$job" ExcNodeList="$excluded"
    fi
  esac
  [ "$status" -ne 0 ] || status=1
fi
rm -f "$judged"
exit "$status"
