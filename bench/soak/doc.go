// Command soak torments contexts and then checks their logs: clients that send
// and interrupt when they please, workers that are killed and told to stop, and
// a model that refuses, stalls and breaks off.
//
//	make soak              # for ten minutes
//	bin/soak -for 30s
//
// It ends when every client has its answers, and then reads the log of every
// context. What must hold, of what the clients sent and of what they were told:
//
//   - every message that Temporal took is in the log, once, in the order in
//     which its client sent it; one whose sending failed is there at most once;
//   - ids are dense, each event names the one before it, and no time goes back;
//   - every request that was sent ended once, and no two ran at a time;
//   - every answer answers the newest message that its request had seen;
//   - every message is answered, or goes without an answer for a reason that is
//     in the log;
//   - a follower was told exactly the log.
//
// It exits with 0 if all of it holds, else with 1, and says what does not.
package main
