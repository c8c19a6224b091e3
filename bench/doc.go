// Command bench measures Chronicle against what it cannot be faster than: a bare
// loop on the same Temporal server, and a client that reads the same model
// itself. Machines are noisy, so the ratio counts; what is compared takes turns
// with what it is compared with.
//
//	make bench                          # everything, in about nine minutes
//	bin/bench -quick -run 'signal|fold' # some scenarios, roughly
//
// It prints a table and the targets, and the change against the run that is
// kept in bench/baseline.json; it writes bench.json. A target that is missed is
// reported and is no failure. What is measured in is described in package
// bench/rig; BENCH_TEMPORAL_ADDRESS names a running server to measure on.
package main
