// Command bench compares Chronicle with its lower bounds: a minimal workflow with the same model on the same
// Temporal server (the bare loop), and a client that reads the same model directly. Because machines are noisy,
// it reports ratios and alternates the measurements that it compares.
//
//	make bench                           # everything, in about half an hour
//	make bench SERVER=stock              # on a Temporal server with its default settings
//	bin/bench -quick -run 'signal|crowd' # some scenarios with fewer samples
//	bin/bench -worker '--json'           # with other flags of the workers
//
// It prints a table and writes it as JSON to bench.json. A missed target is reported but is not a failure.
// Package test/rig describes the test setup. BENCH_TEMPORAL_ADDRESS selects a running server.
package main
