"""A Gram matrix on workers that are Slurm jobs: python client.py counts.npz counts.gram."""

import sys
from pathlib import Path

import dhsk


def main(samples: str, store: str) -> None:
    """Compute the Gram matrix of the heat kernel; the same command resumes it."""
    with dhsk.connect(str(Path(__file__).with_name("cluster.toml"))) as client:
        print(f"{len(client.nthreads())} workers")
        G = dhsk.compute_gram(samples, "heat", store=store, client=client)
    print(f"{G.shape[0]:,} x {G.shape[1]:,} entries in {store}, {G.verify()} tiles verified")


if __name__ == "__main__":
    main(*sys.argv[1:])
