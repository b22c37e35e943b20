#!/bin/bash
# Make the key and certificate of one cluster in a new folder: make-credentials.sh FOLDER
# The certificate is its own authority: whoever has the key is let in, and nobody else.
set -euo pipefail

(($# == 1)) || { echo "usage: make-credentials.sh FOLDER" >&2; exit 2; }
umask 077
mkdir "$1"
openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj /CN=dask-internal \
    -keyout "$1/tls.key" -out "$1/tls.crt" 2>/dev/null
cp "$1/tls.crt" "$1/ca.crt"
