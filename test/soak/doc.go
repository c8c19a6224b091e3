// Command soak uses contexts under faults or with hostile input, and then checks their logs.
//
//	make soak              # 10 minutes, 100 contexts under faults
//	make soak SERVER=stock # on a Temporal server with its default settings
//	bin/soak -for 30s -contexts 20 -seed 7
//	make fuzz              # 2 minutes of hostile input
//	make fuzz FUZZ=1h F="-seed 7"
//
// Without -hostile, each user sends messages to one context, interrupts it, answers its calls and follows it. Contexts
// differ in their delivery policy, in the size of messages and in the client: some receive plain Temporal signals. Some
// are closed or terminated. Some call tools of an MCP server in this process, wait for approvals and for tools of clients.
// Runs continue as new often. After the faults, each user sends one more message and waits until the context is idle.
//
// With -outages, workers are killed or stopped, and Temporal, NATS and the blob store have outages. With -faults, the
// model rejects requests, stalls or resets connections.
//
// With -hostile, each context receives a number of random steps through all doors: plain signals, updates and queries,
// starts of workflows, the budgets of labels, HTTP, NATS with the permissions of a client, a model whose answers are
// garbage, endless, refused or contain the key, and an MCP server whose results are huge, malformed, late or contain its
// token. The payloads are valid events of every kind, mutated ones, invalid JSON, references to the blob store that are
// forged or copied, repeated client event ids, and places that were not to be chosen. Runs are interrupted, closed, forked,
// reset, cancelled and terminated. The steps depend only on the seed, the number of the context and the number of the step;
// their timing does not. After the last step, the context and its forks get usable settings and must answer a new message.
//
// Then each law is checked:
//
//   - Accepted input is in the log once among a thousand others, under the id that its sender received, or it is
//     rejected there. A termination loses none, except hostile input without the client.
//   - Each request ends once, and none overlap.
//   - The state of the session is the fold of the log, also if it is split.
//   - Followers have exactly the log. The transcript that the gateway patched for a viewer is the one rendered from the log.
//   - The model received no request that a provider refuses.
//   - Neither a log of a context nor that of a worker or the gateway contains the key of the model or the token of the
//     MCP server.
//   - `starter verify` finds no problem.
//   - The gateway had no internal error to hostile input, and runs. The peak of its resident size and, without outages, that
//     of each worker is below 1 GiB.
//
// And without -hostile:
//
//   - The log has no other input. Messages are in the order sent. Each has an answer, or the log has the reason why not.
//   - Each call has one result before the next request. A tool that is not idempotent was executed at most once, with the
//     arguments in the log or those of the approval, and not without it.
//   - Each answer is to the newest message that its request included, and whole unless it was interrupted.
//   - The server ended no run.
//
// The exit code is 0 if all checks pass; 1 if not; 2 for invalid flags. A failed context is printed with its log and its
// steps. Runs with outages of two minutes or more also check that everything above occurred.
package main
