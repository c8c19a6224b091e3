# Creates the namespace TEMPORAL_NAMESPACE on the server at TEMPORAL_ADDRESS, unless it exists,
# and waits until it is usable. RETENTION is how long closed workflows are kept.
set -eu

# await runs a command once a second until it succeeds, for at most a minute.
await() {
	attempts=60
	until "$@" >/dev/null 2>&1; do
		attempts=$((attempts - 1))
		if [ $attempts -eq 0 ]; then
			echo "namespace.sh: still failing after a minute: $*" >&2
			exec "$@"
		fi
		sleep 1
	done
}

# The server accepts connections before it is ready.
await temporal operator cluster health
temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 ||
	temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention "$RETENTION"
# The server reloads namespaces every few seconds. Until then, workers do not find the new one.
await temporal operator search-attribute list --namespace "$TEMPORAL_NAMESPACE"
