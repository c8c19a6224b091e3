#!/bin/sh
# Makes the namespace TEMPORAL_NAMESPACE on the server at TEMPORAL_ADDRESS, unless
# it is there, and waits until it can be used. RETENTION is how long a closed
# workflow is kept.
set -eu

# await runs a command once a second until it succeeds, at most for a minute.
await() {
	attempts=60
	until "$@" >/dev/null 2>&1; do
		attempts=$((attempts - 1))
		if [ $attempts -eq 0 ]; then
			echo "namespace.sh: after a minute this still fails: $*" >&2
			exec "$@"
		fi
		sleep 1
	done
}

# The server takes connections a moment before it works.
await temporal operator cluster health
temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 ||
	temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention "$RETENTION"
# It looks for new namespaces every few seconds; a worker would find none before.
await temporal operator search-attribute list --namespace "$TEMPORAL_NAMESPACE"
