#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Overlap: a layer's gradients are on their way while the next layer's are still
being computed. Several ops are in flight, and end in the order of posting.

    ORED_RANK=0 ORED_PEERS=10.0.0.1,10.0.0.2 ./overlap.py
    ORED_RANK=1 ORED_PEERS=10.0.0.1,10.0.0.2 ./overlap.py
"""
import array
import sys

import ored

LAYERS, COUNT = 8, 50_000


def backward(layer, rank):
    """Stands for the backward pass of a layer; ranks have different data."""
    return array.array("f", [layer + rank / 2] * COUNT)


def main():
    with ored.from_env(bucket_max=4 * COUNT, depth=LAYERS) as group:
        rank = group.rank
        gradients, most = {}, 0
        # The last layer's gradients are there first.
        for layer in reversed(range(LAYERS)):
            gradients[layer] = backward(layer, rank)
            group.post(gradients[layer], op="mean", mode="reliable")
            most = max(most, group.state().in_flight)
        for layer in reversed(range(LAYERS)):
            group.wait(gradients[layer])
        for layer in range(LAYERS):
            want = layer + (group.size - 1) / 4
            if any(value != want for value in gradients[layer]):
                sys.exit(f"rank {rank}: layer {layer} isn't the mean, {want}")
        print(f"rank {rank}: {LAYERS} layers reduced, up to {most} at once")


if __name__ == "__main__":
    try:
        main()
    except ored.Error as error:
        sys.exit(f"overlap.py: {error}")
