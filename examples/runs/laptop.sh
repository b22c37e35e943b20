#!/usr/bin/env bash
# A run on a laptop: a table, its labels in a column, and a memory limit.
#   bash laptop.sh SAMPLES.csv COLUMN OUT
set -euo pipefail
samples=$1 column=$2 out=$3

dhsk cv "$samples" --labels "$samples:$column" --time-scale auto --model --memory 2GB --out "$out"
dhsk info "$out/model.dhsk"
dhsk predict "$out/model.dhsk" "$samples" --drop-column "$column" --out "$out/predicted.csv"
head -n 4 "$out/predicted.csv"
