// Command soak uses contexts under faults and then checks their logs.
//
//	make soak              # 10 minutes, 100 contexts
//	bin/soak -for 30s -contexts 20 -seed 7
//
// Each user sends messages to one context, interrupts it and follows it. Contexts differ in
// their delivery policy, in the size of messages and attachments (up to 16 MB) and in the
// client: some receive plain Temporal signals. Some are closed and started again, reset to an
// earlier workflow task, or terminated. Some call tools, wait for approvals and for tools of
// clients, and have hooks and budgets; workers of this program serve them. Workers are killed or
// stopped, the model rejects requests, stalls or resets connections, and Temporal, NATS and the
// blob store have outages. A small -continue-as-new-after makes runs continue as new often.
//
// After the last fault, each user sends one more message and waits until the context is idle.
// Then the test checks:
//
//   - Messages: each one that was recorded is in the log once, under the id that its sender
//     received; each one that Temporal stored as a signal is there once; one whose sending
//     failed is there at most once. Sequential messages are in order. Attachments precede
//     their message.
//   - The policy "reject": a rejected message is an InputRejectedEvent. There are no others,
//     except for decisions and results for calls that have ended.
//   - Terminations lose only input that was stored and not yet recorded. Input reported
//     as lost (ErrLost) is not in the log.
//   - Resets: Temporal delivers the input that was recorded after the reset point again. It is
//     recorded later, in any order, and once. Earlier events remain unchanged. A run reset to its
//     first workflow task starts a new session after those of previous runs.
//   - The chain: ids are dense, each event names its parent, and times never decrease.
//   - Requests: each one ends once, and none overlap. Sessions end only if a user closed,
//     terminated or reset them.
//   - Answers: each one answers the newest message that its request included. The session
//     state equals the fold of the log.
//   - Calls: each answer has the calls of its script. Each call has one result before the next
//     request; only a placeholder is replaced. A tool that is not idempotent was executed at
//     most once, with the arguments in the log or those of the approval; after a reset, once
//     more. A value in the log was returned by an execution. The tools report their executions.
//   - Approvals: each request for one is decided once, expires, or is interrupted. A call that
//     was not approved was not executed.
//   - Hooks: each attempt that completed has the reports of its hooks once. Refused requests did
//     not reach the model. The model also checks that each request follows the rules of providers
//     and has the changes of its hooks. No refused answer is in the log.
//   - Deliveries: the hook with OnEvent received each event of the log, in order, with repeats only
//     of the same content. Deliveries of an abandoned branch have a lower epoch than those that
//     replace them.
//   - Usage: each attempt ends once, with the usage that the model reported if it completed. The
//     sum equals that of the session, and exceeds no budget.
//   - Completeness: each message has an answer, or the log has the reason why not.
//   - Followers receive exactly the log. After a reset, and only then, an event with the id of
//     an earlier one replaces it and all later ones.
//   - starter verify finds no problem.
//   - The server ended no run: all are running, completed, continued as new, or terminated or
//     reset by their users.
//
// The exit code is 0 if all checks pass; 1 if not; 2 for invalid flags. Runs of two minutes or more
// with all kinds of contexts also check that every kind of fault, tool calls, decisions, refusals and
// exceeded budgets occurred.
package main
