// Command bench compares Chronicle with its lower bounds: a minimal workflow with the same model on the
// same Temporal server (the bare loop), and a client that reads the same model directly. Because machines
// are noisy, it reports ratios and alternates the measurements that it compares.
//
//	make bench                          # everything, in about an hour
//	bin/bench -quick -run 'signal|fold' # some scenarios with fewer samples
//
// It prints the metrics, their change against bench/baseline.json and the targets, and writes
// bench.json. A missed target is reported but is not a failure. Package bench/rig describes the
// test setup. BENCH_TEMPORAL_ADDRESS selects a running server.
package main
