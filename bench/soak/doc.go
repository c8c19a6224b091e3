// Command soak uses contexts under faults and then checks them.
//
//	make soak              # 10 minutes, 100 contexts
//	bin/soak -for 30s -contexts 20 -seed 7
//
// Users send, interrupt and follow, each in a context of its own. The contexts
// differ: delivery policies "interrupt", "queue" and "reject", messages and
// attachments of up to 16 MB, plain signals without the client package, long
// answers with many inputs, sessions that are closed and begun again, and runs that
// are reset to an earlier workflow task or terminated. The faults: workers that are
// killed or told to stop, a model that refuses, stalls and breaks off, and outages
// of Temporal, of NATS and of the blob store. A small -continue-as-new-after makes
// runs continue as new all the time.
//
// When the faults are over, every user sends a last message, and the context must
// come to rest. What must hold then, of what users sent and of what they were told:
//
//   - A message that was recorded, which its sender is told with its id, is in the
//     log once, under that id. One that Temporal stored as a signal is there once.
//     Those that were sent one after the other are in that order. One whose sending
//     failed is there at most once. Attachments come with their messages.
//   - A message that the policy "reject" refuses is an InputRejectedEvent, and only
//     there is any.
//   - A termination loses at most what was stored and not yet recorded. A sender who
//     was told ErrLost is right.
//   - A reset takes back what its run recorded from the workflow task on. The server
//     delivers that again, so it is in the log once, later and in any order; what
//     was recorded before stays as it was. A run that is reset to its first task
//     begins a session anew, after those of the runs before it.
//   - Ids are dense, each event names the one before it, and no time goes back.
//   - Every request that was sent ended once, and no two ran at a time. Sessions end
//     only where their users closed, terminated or reset them.
//   - Every answer answers the newest message that its request had seen, and the
//     session is what its log amounts to: readers see what the model is shown.
//   - Every message is answered, or goes without an answer for a reason that is in
//     the log.
//   - A follower was told exactly the log. After a reset, and only then, it is sent
//     back: an event with the id of an earlier one replaces that and all behind it.
//   - starter verify finds no problem.
//   - No run was ended by the server: all are running, completed, continued as new,
//     or terminated or reset by their users.
//
// It exits with 0 if all of it holds and, in two minutes or more, every kind of
// fault happened; with 1 if not, and says what does not hold; with 2 for wrong
// usage.
package main
