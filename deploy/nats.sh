#!/bin/sh
# Starts NATS. The first start makes a password of 256 random bits for each user in nats.conf, in a
# file that only the user of the image of Chronicle may read.
set -eu
umask 077

password() {
	if [ ! -s "$1" ]; then
		od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n' >"$1.new"
		[ "$(wc -c <"$1.new")" -eq 64 ]
		[ "$(id -u)" -ne 0 ] || chown 65532:65532 "$1.new"
		mv "$1.new" "$1"
	fi
	# NATS parses the values of variables, so they are quoted.
	printf '"%s"' "$(cat "$1")"
}

NATS_WORKER_PASSWORD=$(password "$WORKER_PASSWORD_FILE")
NATS_VIEWER_PASSWORD=$(password "$VIEWER_PASSWORD_FILE")
export NATS_WORKER_PASSWORD NATS_VIEWER_PASSWORD
exec nats-server --config "$NATS_CONFIG" "$@"
