// Command soak uses contexts under faults and then checks their logs.
//
//	make soak              # 10 minutes, 100 contexts
//	make soak SERVER=stock # on a Temporal server with its default settings
//	bin/soak -for 30s -contexts 20 -seed 7
//
// Each user sends messages to one context, interrupts it, answers its calls and follows it. Contexts differ in their
// delivery policy, in the size of messages and in the client: some receive plain Temporal signals. Some are closed or
// terminated. Some call tools of an MCP server in this process, wait for approvals and for tools of clients. Workers are
// killed or stopped, the model rejects requests, stalls or resets connections, and Temporal, NATS and the blob store have
// outages. Runs continue as new often.
//
// After the last fault, each user sends one more message and waits until the context is idle. Then each law is checked:
//
//   - Accepted input is in the log once, in the order sent, under the id that its sender received. A termination
//     loses none.
//   - Each request ends once, and none overlap. Each call has one result before the next request. A tool that is not
//     idempotent was executed at most once, with the arguments in the log or those of the approval, and not without it.
//   - Each answer is to the newest message that its request included, and whole unless it was interrupted. Each
//     message has an answer, or the log has the reason why not.
//   - The model received no request that a provider refuses.
//   - The state of the session is the fold of the log, also if it is split.
//   - Followers have exactly the log. The transcript that a follower patched is the one rendered from the log.
//   - No key of the model is in a log.
//   - The server ended no run, and `starter verify` finds no problem.
//
// The exit code is 0 if all checks pass; 1 if not; 2 for invalid flags. Runs of two minutes or more also check that
// everything above occurred.
package main
