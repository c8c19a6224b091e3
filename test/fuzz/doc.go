// Command fuzz is a hostile sender: it uses contexts through every door, and checks that nothing it
// says stops a context, a worker or a gateway.
//
//	make fuzz                     # 2 minutes
//	make fuzz FUZZ=1h F="-seed 7"
//	bin/fuzz -seed 7 -context 12  # repeat the steps of one context
//
// Each context receives a number of random steps. The doors are plain signals, updates and queries,
// starts of workflows, the budgets of labels, HTTP, NATS with the permissions of a client, a model
// server whose answers are garbage, endless, refused or contain the key, and an MCP server whose results
// are huge, malformed, late or contain its token. The payloads are valid
// events of every kind, mutated ones, invalid JSON, references to the blob store that are forged or
// copied, repeated client event ids, and places that were not to be chosen. Runs are interrupted,
// closed, forked, reset, cancelled and terminated.
//
// The steps of a context depend only on the seed, the number of the context and the number of the
// step; their timing does not. After the last step, the context gets usable settings. Then
// the program checks:
//
//   - The context answers a new message.
//   - Accepted input (202, an update that returned, a signal with a client event id) is recorded once among a
//     thousand others, or rejected in the log. A termination may lose input without an event id, since a plain start
//     after it does not name a run that no worker opened, and input that was to be recorded again after a reset.
//   - starter verify finds no problem. Each request ends once, and none overlap.
//   - The transcript of the gateway, which had a viewer during all steps, equals that of the log.
//   - The model received no request that OpenAI's rules reject. Neither the log of a context nor that of the
//     worker or the gateway contains the key of the model or the token of the MCP server.
//   - The gateway had no internal error. The worker and the gateway run, and the peak of their resident
//     size is below 1 GiB each.
//
// The exit code is 0 if all checks pass; 1 if not; 2 for invalid flags. A failed context is printed with its
// steps and the command that repeats them.
package main
