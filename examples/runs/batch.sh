#!/usr/bin/env bash
# A run in a batch job: plan, compute the matrix once, use it often. Submit it again if it is stopped.
#   sbatch batch.sh SAMPLES LABELS OUT
#SBATCH --job-name=dhsk
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH --time=02:00:00
set -euo pipefail
samples=$1 labels=$2 out=$3
memory=$((${SLURM_MEM_PER_NODE:-8192} * 9 / 10))MB   # leaves a tenth to the system
workers=${SLURM_CPUS_PER_TASK:-2}

mkdir -p "$out"
dhsk plan "$samples" --memory "$memory" --workers "$workers"
dhsk gram "$samples" --kernel cosine --memory "$memory" --workers "$workers" --out "$out/cosines.gram"
dhsk verify "$out/cosines.gram"
dhsk cv "$out/cosines.gram" --labels "$labels" --kernel heat,cosine --time-scale 0.7,1,1.4 --C auto \
    --model --memory "$memory" --out "$out/cv"
