"""The rendezvous ports of a job's runs."""

from itertools import product

from launchers.slurm.job import _rendezvous_port

EPHEMERAL = 32_768  # from here on Linux gives ports to outgoing connections, by default


def test_ranks_meet_at_a_port_that_no_outgoing_connection_gets():
    ports = {_rendezvous_port(job_id, restart=0, number=0) for job_id in range(66_640_000, 66_660_000)}
    assert 1024 <= min(ports) <= max(ports) < EPHEMERAL


def test_near_jobs_and_their_restarts_and_runs_meet_at_ports_of_their_own():
    places = list(product(range(66_648_223, 66_648_423), range(3), range(8)))
    assert len({_rendezvous_port(*place) for place in places}) == len(places)
