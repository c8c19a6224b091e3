#!/bin/sh
# Runs a command with the services of docker-compose.yml as processes, without Docker:
#
#	deploy/local.sh go test ./test/e2e
#
# It starts PostgreSQL in a temporary folder, Temporal, NATS, the S3-compatible store, two workers
# (or $WORKERS), the gateway and Prometheus, on 30 ports of 127.0.0.1 from $PORT, with the scripts
# and files in this folder. The command gets their addresses and credentials. A service that is
# killed is restarted; if one exits by itself, everything stops. The workers do not inherit the
# caller's environment, in particular no keys, so contexts have to configure a provider. They may
# use a model server at $MODEL_URL, which the command can start.
#
# It requires PostgreSQL, curl and the programs that `make e2e-postgres` builds in bin/.
set -eu
cd "$(dirname "$0")/.."
bin=$PWD/bin deploy=$PWD/deploy port=${PORT:-17000} workers=${WORKERS:-2}
command -v curl >/dev/null || { echo "local.sh: curl is missing (install it)" >&2; exit 1; }
initdb=$(command -v initdb || ls /usr/lib/postgresql/*/bin/initdb /usr/pgsql-*/bin/initdb /opt/homebrew/opt/postgresql@*/bin/initdb 2>/dev/null | tail -1)
[ -n "$initdb" ] || { echo "local.sh: initdb is missing (install PostgreSQL, on Debian with apt-get install postgresql)" >&2; exit 1; }
postgres=$(dirname "$(readlink -f "$initdb")")

dir=$(mktemp -d)
chmod 755 "$dir" # PostgreSQL runs as another user if this one is root
services=

# Stops the services, the newest first.
stop() {
	touch "$dir/stopping"
	for name in $services; do
		kill "$(cat "$dir/$name.pid")" 2>/dev/null || true
	done
	wait
	rm -rf "$dir"
}
trap stop EXIT
trap 'exit 1' TERM HUP
trap : INT # the command decides what a Ctrl-C does

# service NAME COMMAND...: starts a service, and restarts it if it is killed.
service() {
	name=$1
	shift
	services="$name $services"
	(
		trap - EXIT TERM HUP
		status=130
		while [ "$status" -gt 128 ] && [ ! -e "$dir/stopping" ]; do
			status=0
			"$@" >>"$dir/$name.log" 2>&1 &
			printf %s $! >"$dir/$name.pid"
			wait $! || status=$?
		done
		[ -e "$dir/stopping" ] && exit
		echo "local.sh: $name exited with $status; the end of its log:" >&2
		tail -n 20 "$dir/$name.log" >&2
		kill $$ $(cat "$dir/command.pid" 2>/dev/null)
	) &
}

# await WHAT COMMAND...: waits until a command succeeds, for at most a minute.
await() {
	what=$1
	shift
	attempts=600
	until "$@" >>"$dir/await.log" 2>&1; do
		attempts=$((attempts - 1))
		[ $attempts -gt 0 ] || { echo "local.sh: $what is not ready within a minute" >&2; exit 1; }
		sleep 0.1
	done
	echo "local.sh: $what"
}

# clean NAME=VALUE... COMMAND...: a command without the caller's environment.
clean() { exec env -i "PATH=$bin:$PATH" HOME="$dir" "$@"; }

# PostgreSQL does not run as root.
as=
mkdir -m 700 "$dir/postgres"
echo temporal >"$dir/password"
if [ "$(id -u)" -eq 0 ]; then
	as="setpriv --reuid=postgres --regid=postgres --clear-groups --"
	chown postgres "$dir/postgres" "$dir/password"
fi
$as "$postgres/initdb" --pgdata "$dir/postgres" --username temporal --pwfile "$dir/password" --auth scram-sha-256 \
	--encoding UTF8 --locale C.UTF-8 --no-sync >"$dir/initdb.log"
service postgres $as "$postgres/postgres" -D "$dir/postgres" -p "$port" \
	-c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=200
await PostgreSQL "$postgres/pg_isready" --host=127.0.0.1 --port="$port" --username=temporal
(clean SQL_PLUGIN=postgres12 SQL_HOST=127.0.0.1 SQL_PORT="$port" SQL_USER=temporal SQL_PASSWORD=temporal sh "$deploy/schema.sh") >"$dir/schema.log" 2>&1 ||
	{ tail -n 20 "$dir/schema.log" >&2; exit 1; }

export TEMPORAL_ADDRESS="127.0.0.1:$((port + 1))" TEMPORAL_NAMESPACE=default TEMPORAL_CONFIG_FILE=/dev/null TEMPORAL_PID_FILE="$dir/temporal.pid"
service temporal clean DB=postgres12 DB_PORT="$port" POSTGRES_SEEDS=127.0.0.1 POSTGRES_USER=temporal POSTGRES_PWD=temporal \
	NUM_HISTORY_SHARDS=4 BIND_ON_IP=127.0.0.1 DYNAMIC_CONFIG_FILE_PATH="$deploy/dynamicconfig.yaml" LOG_LEVEL=warn \
	FRONTEND_GRPC_PORT=$((port + 1)) FRONTEND_MEMBERSHIP_PORT=$((port + 2)) FRONTEND_HTTP_PORT=$((port + 3)) \
	HISTORY_GRPC_PORT=$((port + 4)) HISTORY_MEMBERSHIP_PORT=$((port + 5)) \
	MATCHING_GRPC_PORT=$((port + 6)) MATCHING_MEMBERSHIP_PORT=$((port + 7)) \
	WORKER_GRPC_PORT=$((port + 8)) WORKER_MEMBERSHIP_PORT=$((port + 9)) "$bin/temporal-server" start
(clean TEMPORAL_ADDRESS="$TEMPORAL_ADDRESS" TEMPORAL_NAMESPACE=default TEMPORAL_CONFIG_FILE=/dev/null RETENTION=87600h sh "$deploy/namespace.sh") >"$dir/namespace.log" 2>&1 ||
	{ tail -n 20 "$dir/namespace.log" "$dir/temporal.log" >&2; exit 1; }
echo "local.sh: Temporal"

export NATS_URL="nats://127.0.0.1:$((port + 10))" NATS_USER=worker NATS_PASSWORD_FILE="$dir/nats/worker"
mkdir "$dir/nats"
service nats clean NATS_CONFIG="$deploy/nats.conf" WORKER_PASSWORD_FILE="$dir/nats/worker" VIEWER_PASSWORD_FILE="$dir/nats/viewer" \
	sh "$deploy/nats.sh" --addr 127.0.0.1 --port $((port + 10)) --http_port $((port + 11))
await NATS curl -fs "http://127.0.0.1:$((port + 11))/healthz"

export AWS_ACCESS_KEY_ID=chronicle AWS_SECRET_ACCESS_KEY=chronicle AWS_SESSION_TOKEN='' AWS_CONFIG_FILE=/dev/null \
	AWS_SHARED_CREDENTIALS_FILE=/dev/null AWS_EC2_METADATA_DISABLED=true
export BLOB_URL="s3://chronicle?endpoint=http://127.0.0.1:$((port + 12))&region=us-east-1&use_path_style=true"
mkdir -p "$dir/objects/chronicle" "$dir/metadata/chronicle"
service s3 clean ROOT_ACCESS_KEY=chronicle ROOT_SECRET_KEY=chronicle "$bin/versitygw" --port 127.0.0.1:$((port + 12)) --health /health \
	--quiet --keep-alive posix --sidecar "$dir/metadata" "$dir/objects"
await S3 curl -fs "http://127.0.0.1:$((port + 12))/health"

# program NAME USER COMMAND...: a worker or the gateway, with the password of a user of NATS.
program() {
	name=$1 user=$2
	shift 2
	service "$name" clean TEMPORAL_ADDRESS="$TEMPORAL_ADDRESS" TEMPORAL_NAMESPACE=default NATS_URL="$NATS_URL" NATS_USER="$user" \
		NATS_PASSWORD_FILE="$dir/nats/$user" BLOB_URL="$BLOB_URL" AWS_ACCESS_KEY_ID=chronicle AWS_SECRET_ACCESS_KEY=chronicle "$@"
}
export MODEL_URL="http://127.0.0.1:$((port + 13))/v1" GATEWAY_URL="http://127.0.0.1:$((port + 14))" PROMETHEUS_URL="http://127.0.0.1:$((port + 15))"
targets=
for i in $(seq "$workers"); do
	at=127.0.0.1:$((port + 20 + i))
	targets="$targets\"$at\", "
	program "worker-$i" worker "$bin/worker" --json --metrics "$at" --allow-base-url "$MODEL_URL"
done
for i in $(seq "$workers"); do
	await "worker $i" grep -q '"msg":"ready"' "$dir/worker-$i.log"
done
program gateway viewer "$bin/starter" serve --json --index-dir "$dir/index" --listen 127.0.0.1:$((port + 14)) --metrics 127.0.0.1:$((port + 16))
await gateway "$bin/starter" serve --check --listen 127.0.0.1:$((port + 14))

sed -e "s|alerts.yml|$deploy/prometheus/alerts.yml|" -e "s|gateway:9464|127.0.0.1:$((port + 16))|" \
	-e "/dns_sd_configs:/,/refresh_interval/c\\    static_configs: [{targets: [$targets]}]" "$deploy/prometheus/prometheus.yml" >"$dir/prometheus.yml"
service prometheus "$bin/prometheus" --config.file "$dir/prometheus.yml" --storage.tsdb.path "$dir/prometheus" \
	--web.listen-address 127.0.0.1:$((port + 15)) --log.level warn
await Prometheus curl -fs "$PROMETHEUS_URL/-/ready"

# Its exit code is that of this script.
sh -c 'echo $$ >"$0"; exec "$@"' "$dir/command.pid" "$@"
