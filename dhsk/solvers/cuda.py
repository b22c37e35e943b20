"""CUDA functions of dual problems: steps of two variables, and gradients computed anew."""

from functools import cache
from string import Template
from typing import Final

import numpy as np

from dhsk.kernels.cuda import C_TYPES
from dhsk.solvers.simd import SMALLEST_CURVATURE

THREADS: Final = 1024
"""Threads of a block, one block or several of a problem."""

PART_BYTES: Final = 40
"""Bytes of what a block of threads tells the others of its problem, at most: `Best`."""

GROWS: Final = 1
SHRINKS: Final = 2
"""Bits of a coefficient that is below its upper bound, and above its lower one."""

_UNROLLED: Final = 4
"""Entries of a thread whose loads wait together. One problem of 60,000 samples on an H200 took 85
microseconds a step with one block and entries one by one, and 16 with 58 blocks and four."""

_STEPS: Final = Template("""
struct Best {
    double room;
    $real value, gradient, lowest;
    int place;
};

static __device__ __forceinline__ Best better(const Best one, const Best other)
{
    const bool takes = other.place >= 0 && (one.place < 0 || other.value > one.value
        || (other.value == one.value && other.place < one.place));
    Best found = takes ? other : one;
    found.lowest = other.lowest < one.lowest ? other.lowest : one.lowest;
    return found;
}

static __device__ void of_warp(Best* shared, const int lanes)
{
    const int own = threadIdx.x;
    for (int half = 16; half; half /= 2) {
        __syncwarp();
        if (own % 32 < half && own + half < lanes)
            shared[own] = better(shared[own], shared[own + half]);
    }
}

static __device__ Best of_block(const Best one, Best* shared)
{
    const int own = threadIdx.x, warps = (blockDim.x + 31) / 32;
    shared[own] = one;
    of_warp(shared, blockDim.x);
    __syncthreads();
    if (own < 32) {
        const Best first = shared[own < warps ? 32 * own : 0];
        __syncwarp();
        shared[own] = first;
        of_warp(shared, warps);
    }
    __syncthreads();
    const Best found = shared[0];
    __syncthreads();
    return found;
}

static __device__ Best of_problem(
    const Best one, Best* shared, volatile Best* parts, unsigned* arrived)
{
    const Best own = of_block(one, shared);
    if (gridDim.x == 1)
        return own;
    if (threadIdx.x == 0) {
        volatile Best* part = parts + blockIdx.x;
        part->room = own.room;
        part->value = own.value;
        part->gradient = own.gradient;
        part->lowest = own.lowest;
        part->place = own.place;
        __threadfence();
        const unsigned last = (atomicAdd(arrived, 1) / gridDim.x + 1) * gridDim.x;
        while ((int)(*(volatile unsigned*)arrived - last) < 0)
            __nanosleep(20);
        __threadfence();
    }
    __syncthreads();
    Best found = {0, 0, 0, ($real)$largest, -1};
    for (int k = threadIdx.x; k < gridDim.x; k += blockDim.x) {
        volatile Best* part = parts + k;
        const Best other = {
            part->room, part->value, part->gradient, part->lowest, part->place};
        found = better(found, other);
    }
    return of_block(found, shared);
}

extern "C" __global__ void __launch_bounds__($threads) entries(
    const $entry* __restrict__ K, const $real* __restrict__ diagonal,
    const int* __restrict__ members, const long long* __restrict__ starts,
    const double* __restrict__ lower, const double* __restrict__ upper,
    double* b, $real* f, unsigned char* open, const double* __restrict__ goals,
    double* results, Best* parts, unsigned* arrived, long long problems, long long samples)
{
    __shared__ Best shared[$threads];
    const $real unit = ($real)$unit, least_curvature = ($real)$curvature;
    const Best none = {0, 0, 0, ($real)$largest, -1};
    const int width = gridDim.x * blockDim.x, mine = blockIdx.x * blockDim.x + threadIdx.x;
    const long long p = blockIdx.y;
    double* result = results + 4 * p;
    if (result[0])
        return;
    const long long first = starts[p];
    const int n = (int)(starts[p + 1] - first), most = (int)result[1];
    const int* m = members + first;
    $real* own_f = f + first;
    double* own_b = b + first;
    unsigned char* gates = open + first;
    parts += 2 * p * gridDim.x, arrived += p;
    double taken = 0, violation = 0;
    int i = 0, j = 0, steps = 0, ended = 1;
    for (;; steps++) {
        const $entry* Ki = K + m[i] * samples;
        const $entry* Kj = K + m[j] * samples;
        const $real step = ($real)taken;
        Best up = none;
        for (int k = mine; k < n; k += $together * width) {
            $real values[$together];
            #pragma unroll
            for (int u = 0; u < $together; u++) {
                const int at = k + u * width < n ? k + u * width : k;
                values[u] = own_f[at] - step * (($real)Ki[m[at]] - ($real)Kj[m[at]]);
            }
            #pragma unroll
            for (int u = 0; u < $together; u++) {
                const int at = k + u * width;
                if (at < n) {
                    own_f[at] = values[u];
                    if ((gates[at] & $grows) && (up.place < 0 || values[u] > up.value))
                        up.value = values[u], up.place = at;
                }
            }
        }
        if (up.place >= 0)
            up.room = upper[first + up.place] - own_b[up.place];
        up = of_problem(up, shared, parts, arrived);
        violation = 0;
        if (up.place < 0)
            break;
        i = up.place;
        Ki = K + m[i] * samples;
        const $real highest = up.value, own = diagonal[m[i]];
        Best down = none;
        for (int k = mine; k < n; k += $together * width) {
            $real curvatures[$together], values[$together];
            #pragma unroll
            for (int u = 0; u < $together; u++) {
                const int at = k + u * width < n ? k + u * width : k;
                const $real curvature = own + diagonal[m[at]] - 2 * ($real)Ki[m[at]];
                curvatures[u] = curvature > least_curvature ? curvature : least_curvature;
                values[u] = own_f[at];
            }
            #pragma unroll
            for (int u = 0; u < $together; u++) {
                const int at = k + u * width;
                if (at < n && (gates[at] & $shrinks)) {
                    const $real value = values[u], d = highest - value;
                    const $real gain = d * d / curvatures[u];
                    if (d > 0 && (down.place < 0 || gain > down.value))
                        down.value = gain, down.gradient = value, down.place = at;
                    down.lowest = value < down.lowest ? value : down.lowest;
                }
            }
        }
        if (down.place >= 0)
            down.room = own_b[down.place] - lower[first + down.place];
        down = of_problem(down, shared, parts + gridDim.x, arrived);
        if (down.place < 0)
            break;
        const $real lowest = down.lowest;
        violation = (double)highest - (double)lowest;
        const $real high = highest < 0 ? -highest : highest, low = lowest < 0 ? -lowest : lowest;
        const double rounding = unit * (high > low ? high : low);
        if (violation <= (goals[p] > rounding ? goals[p] : rounding))
            break;
        if (steps == most) {
            ended = 0;
            break;
        }
        j = down.place;
        $real curvature = own + diagonal[m[j]] - 2 * ($real)Ki[m[j]];
        curvature = curvature > least_curvature ? curvature : least_curvature;
        const double free = ((double)highest - (double)down.gradient) / (double)curvature;
        taken = free < up.room ? free : up.room;
        taken = taken < down.room ? taken : down.room;
        if (i % width == mine) {
            const double next = taken == up.room ? upper[first + i] : own_b[i] + taken;
            own_b[i] = next;
            gates[i] = (next < upper[first + i]) * $grows | (next > lower[first + i]) * $shrinks;
        }
        if (j % width == mine) {
            const double next = taken == down.room ? lower[first + j] : own_b[j] - taken;
            own_b[j] = next;
            gates[j] = (next < upper[first + j]) * $grows | (next > lower[first + j]) * $shrinks;
        }
    }
    if (mine == 0) {
        result[0] = ended;
        result[1] = most - steps;
        result[2] = violation;
    }
}
""")

_GRADIENTS: Final = Template("""
extern "C" __global__ void entries(
    const $entry* __restrict__ K, const int* __restrict__ members,
    const long long* __restrict__ starts, const int* __restrict__ support,
    const long long* __restrict__ ends, const double* __restrict__ coef,
    double* __restrict__ f, long long problems, long long samples)
{
    for (long long p = blockIdx.y; p < problems; p += gridDim.y)
        for (long long k = starts[p] + blockIdx.x * blockDim.x + threadIdx.x; k < starts[p + 1];
                k += gridDim.x * blockDim.x) {
            double sum = f[k];
            for (long long s = ends[p]; s < ends[p + 1]; s++)
                sum -= coef[s] * (double)K[support[s] * samples + members[k]];
            f[k] = sum;
        }
}
""")


@cache
def steps_code(entry: str, real: str) -> str:
    """Steps on a matrix of a type, with gradients in a type, both named as numpy does."""
    return _STEPS.substitute(
        entry=C_TYPES[entry],
        real=C_TYPES[real],
        threads=THREADS,
        together=_UNROLLED,
        unit=repr(4.0 * float(np.finfo(real).eps)),
        curvature=repr(SMALLEST_CURVATURE),
        largest=repr(float(np.finfo(real).max)),
        grows=GROWS,
        shrinks=SHRINKS,
    )


@cache
def gradients_code(entry: str) -> str:
    """Subtract K b from f, on a matrix of a type."""
    return _GRADIENTS.substitute(entry=C_TYPES[entry])
