"""The looks of a test cluster, and the configuration files that tell SLURM of them."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

Mode = Literal["namespaces", "flat"]
Tracking = Literal["cgroup", "linuxproc"]

ACCOUNT = "lab"
GPU_TYPE, SLICE_TYPE = "h100", "1g.10gb"
CREDENTIAL_LIFE_S = 5  # a requeued job waits until its old credential has run out: 120 s by default
MESSAGE_TIMEOUT_S = 5  # 10 s by default; the controller gives up a silent node after two pings that take this long


@dataclass(frozen=True)
class Settings:
    """A cluster's shape. Everything it owns on the machine follows from these fields.

    Attributes:
        folder: Where all of its files are.
        mode: `namespaces`: each node has a network, hostname and processes of its own. `flat`: all share the machine's.
        process_tracking: `cgroup`: a signal to a task reaches the task alone. `linuxproc`: its descendants too.
        network: The third number of 10.213.N.0/24, where the machine is .1 and node K is .(10 + K).
        first_port: Of the controller; accounting and, in flat mode, the nodes have the next ones.
        freezer: The nodes' branch of the freezer cgroup; None with linuxproc.
        num_nodes: They are called node1, node2, ...
        cpus: What each node claims to have, whatever the machine has; likewise memory and GPUs.
        memory_mb: Per node.
        gpus: Per node; their device files are links to /dev/null. The last two are slices, the others of one type.
        max_array_size: One more than the highest index in a job array.
        grace_time_s: From a preempted job's signal to its end.
        node_timeout_s: After which a silent node counts as down, if it has also missed two pings.
    """

    folder: Path
    mode: Mode
    process_tracking: Tracking
    network: int
    first_port: int
    freezer: Path | None
    num_nodes: int = 4
    cpus: int = 16
    memory_mb: int = 64000
    gpus: int = 8
    max_array_size: int = 10001
    grace_time_s: int = 10
    node_timeout_s: int = 15

    @property
    def nodes(self) -> list[str]:
        return [f"node{k}" for k in range(1, self.num_nodes + 1)]

    @property
    def slurm_conf(self) -> Path:
        return self.folder / "etc" / "slurm.conf"

    @property
    def host_address(self) -> str:
        return f"10.213.{self.network}.1" if self.mode == "namespaces" else "127.0.0.1"

    @property
    def host_link(self) -> str:
        """The machine's network device on the nodes' network."""
        return f"slurm-test-{self.network}"

    def address_of(self, node: str) -> str:
        number = int(node.removeprefix("node"))
        return f"10.213.{self.network}.{10 + number}" if self.mode == "namespaces" else "127.0.0.1"

    def save(self) -> None:
        text = json.dumps(asdict(self), default=str)
        unfinished = self.folder / "settings.json.new"
        unfinished.write_text(text)
        unfinished.replace(self.folder / "settings.json")

    @classmethod
    def load(cls, folder: Path) -> Settings | None:
        """Those of the cluster in this folder, or None if there is none."""
        file = folder / "settings.json"
        if not file.exists():
            return None
        fields = json.loads(file.read_text())
        fields["folder"] = Path(fields["folder"])
        fields["freezer"] = fields["freezer"] and Path(fields["freezer"])
        return cls(**fields)

    def write_files(self) -> None:
        """Write everything that the daemons read."""
        etc = self.folder / "etc"
        self.slurm_conf.write_text(slurm_conf_text(self))
        # slurmd loads a cgroup plugin whatever the tracking, and its autodetection dies where nothing is mounted
        (etc / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        devices = self.folder / "dev"
        for number in range(self.gpus):
            (devices / f"gpu{number}").symlink_to("/dev/null")
        numbers = {GPU_TYPE: f"[0-{self.gpus - 3}]", SLICE_TYPE: f"[{self.gpus - 2}-{self.gpus - 1}]"}
        gpus = [f"Name=gpu Type={kind} File={devices}/gpu{of_kind}\n" for kind, of_kind in numbers.items() if self.gpus]
        (etc / "gres.conf").write_text("".join(gpus))
        # a refused question costs nothing, an unanswered one ten seconds, and gloo asks for the name of each address
        (etc / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
        names = [f"{self.address_of(node)} {node}" for node in self.nodes]
        (etc / "hosts").write_text(
            "\n".join(["127.0.0.1 localhost", f"{self.host_address} {short_hostname()}", *names, ""])
        )
        (etc / "munge.key").write_bytes(os.urandom(128))
        (etc / "munge.key").chmod(0o400)
        (etc / "slurmdbd.conf").write_text(slurmdbd_conf_text(self))
        (etc / "slurmdbd.conf").chmod(0o600)


def slurm_conf_text(s: Settings) -> str:
    """slurm.conf: two partitions over all nodes, `high` preempting `batch`, and the short timeouts that tests need."""
    # ids must not repeat even though each cluster starts from nothing: submitit takes an old job's result for the new
    # one's. Ten ids a second, starting over after 77 days.
    first_job_id = int(time.time() * 10) % 67_000_000 + 1
    lines = f"""
ClusterName=lab
SlurmctldHost={short_hostname()}({s.host_address})
SlurmctldPort={s.first_port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={s.folder}/run/munge.socket,cred_expire={CREDENTIAL_LIFE_S}
StateSaveLocation={s.folder}/state
SlurmdSpoolDir={s.folder}/spool/%n
SlurmctldPidFile={s.folder}/run/slurmctld.daemon
SlurmdPidFile={s.folder}/run/slurmd-%n.daemon
SlurmctldLogFile={s.folder}/log/slurmctld.log
SlurmdLogFile={s.folder}/log/%n.log
MailProg=/bin/true
MpiDefault=none
ProctrackType=proctrack/{s.process_tracking}
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=5
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={s.host_address}
AccountingStoragePort={s.first_port + 1}
AccountingStoragePass={s.folder}/run/munge.socket
AccountingStorageEnforce=associations,limits,qos
AccountingStoreFlags=job_comment,job_script
FirstJobId={first_job_id}
MaxArraySize={s.max_array_size}
MaxJobCount=50000
MinJobAge=600
JobRequeue=1
ReturnToService=2
EnforcePartLimits=ALL
SlurmdTimeout={s.node_timeout_s}
MessageTimeout={MESSAGE_TIMEOUT_S}
KillWait=5
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=1,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=1000
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
SlurmdParameters=config_overrides
""".strip().splitlines()
    if s.gpus:
        lines += ["GresTypes=gpu", f"AccountingStorageTRES=gres/gpu,gres/gpu:{GPU_TYPE}"]
    return "\n".join([*lines, *_node_lines(s), *_partition_lines(s), ""])


def _node_lines(s: Settings) -> Iterator[str]:
    gres = f" Gres=gpu:{GPU_TYPE}:{s.gpus - 2},gpu:{SLICE_TYPE}:2" if s.gpus else ""
    shape = (
        f"CPUs={s.cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket={s.cpus} ThreadsPerCore=1 RealMemory={s.memory_mb}"
    )
    yield f"NodeName=DEFAULT {shape}{gres} State=UNKNOWN"
    for number, node in enumerate(s.nodes, start=1):
        place = f" NodeHostname={short_hostname()} Port={s.first_port + 1 + number}" if s.mode == "flat" else ""
        yield f"NodeName={node} NodeAddr={s.address_of(node)}{place}"


def _partition_lines(s: Settings) -> list[str]:
    return [
        "PartitionName=DEFAULT Nodes=ALL MaxTime=INFINITE DefaultTime=60 State=UP",
        f"PartitionName=batch Default=YES PriorityTier=1 PreemptMode=REQUEUE GraceTime={s.grace_time_s}",
        "PartitionName=high PriorityTier=10 PreemptMode=OFF",
    ]


def slurmdbd_conf_text(s: Settings) -> str:
    """slurmdbd.conf: MariaDB over the socket that MYSQL_UNIX_PORT names."""
    return f"""AuthType=auth/munge
AuthInfo=socket={s.folder}/run/munge.socket
DbdHost={short_hostname()}
DbdAddr={s.host_address}
DbdPort={s.first_port + 1}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=accounting
PidFile={s.folder}/run/slurmdbd.daemon
"""


def short_hostname() -> str:
    return socket.gethostname().partition(".")[0]
