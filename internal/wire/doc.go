// Package wire defines the protocol between Chronicle and Temporal: names, limits and JSON
// payloads. Any SDK, and the temporal command, can use it:
//
//	temporal workflow signal-with-start --type Context --task-queue contexts \
//	  --workflow-id context:demo --signal-name event \
//	  --signal-input '{"_tag":"UserMessageEvent","content":"Hello"}'
//
// A context "demo" has:
//
//	workflow id   context:demo
//	signal        event      one event object, or an array of them
//	signal        interrupt  no input
//	signal        close      no input, or {"reason":"…"}
//	update        append     the input of signal event; returns an [Appended]
//	query         state      a [State]
//
// The log is in the history: each marker named "SideEffect" carries a [Record].
//
// Names, JSON fields and their meaning never change: contexts run for years, and clients are
// deployed independently.
package wire
